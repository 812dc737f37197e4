"""The optimum for Huber and logistic loss with lam = 0: Newton's method, then weak duality in fractions.

Without a ridge weak duality asks for slopes g of the rows with A'(wg) = 0 on all columns of a set, exactly. So the
slopes at a point near the optimum are moved by h (Ac), where h >= 0 is the room a slope has in its domain and c the
solution of a small linear system in fractions: then nothing is left, and no model on the set, however large its
coefficients are, costs less than  -sum w l*(g).  What that loses is the square of the point's gradient.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from exactsel.types import BoolArray
from exactsel_dev.campaigns.convex_fits import ROUNDING, Long, Look, Rows, as_long, eliminated, free_in, look, rows_of
from exactsel_dev.campaigns.whole_numbers import WholeData, power

STEPS = 200
HALVINGS = 12

DAMPED = (0.0, 1e-9, 1e-4, 1.0)
"""Shares of a curvature that is nowhere too small, added to the loss's own where steps with less lead nowhere."""

SHRUNK = (Fraction(0), Fraction(1, 2**50), Fraction(1, 2**34), Fraction(1, 2**17), Fraction(1, 2))
"""By which part slopes are shrunk: at the optimum those of Huber's outliers have no room."""


def optimum(data: WholeData, sets: Sequence[Sequence[int]]) -> tuple[Fraction, Fraction]:
    """An interval that holds the smallest objective of all sets of columns."""
    rows = rows_of(data)
    u = _fitted(rows, free_in(rows, sets))
    state = look(rows, u)
    sizes = np.abs(u) @ np.abs(rows.Z).T + np.abs(rows.y)
    blur = np.sum(rows.w * np.abs(state.slope) * sizes, axis=1) + np.abs(state.value)
    blur = ROUNDING * np.finfo(np.longdouble).eps * blur
    high = min(Fraction(*_ratio(value)) for value in state.value + blur if np.isfinite(value))
    low = min(below(data, columns, state.slope[row]) for row, columns in enumerate(sets))
    return low, high


def counting(data: WholeData, columns: Sequence[int]) -> list[int]:
    """Those whose coefficients can change anything: not zero, nor constant beside an intercept."""
    level = data.instance.intercept
    return [j for j in columns if (len(set(data.columns[j])) > 1 if level else any(data.columns[j]))]


def below(data: WholeData, columns: Sequence[int], slopes: Long) -> Fraction:
    """No model on these columns costs less; by slopes (n,) of the rows, long doubles."""
    moved = balanced(data, columns, slopes)
    return Fraction(0) if moved is None else max(Fraction(0), _dual(data, moved))


def balanced(data: WholeData, columns: Sequence[int], slopes: Iterable[Any]) -> list[Fraction] | None:
    """Slopes near these, in their domain, with nothing left along the columns (and the level), exactly.

    ``slopes`` are numbers that know their ratio; None where there seem to be none near them.
    """
    sides = [data.columns[j] for j in counting(data, columns)]
    sides += [[1] * len(data.rows)] if data.instance.intercept else []
    given = [Fraction(*_ratio(value)) for value in slopes]
    for part in SHRUNK:
        moved = _balanced(data, sides, [value * (1 - part) for value in given])
        if moved is not None:
            return moved
    return None


def _balanced(data: WholeData, sides: list[list[int]], g: list[Fraction]) -> list[Fraction] | None:
    """One try."""
    room = [Fraction(float(value)) for value in _room(data, g)]
    if any(value < 0 for value in room):
        return None
    pulls = [w * h for w, h in zip(data.weights, room, strict=True)]
    zero = Fraction(0)
    H = [
        [sum((p * a * b for p, a, b in zip(pulls, one, other, strict=True)), zero) for other in sides] for one in sides
    ]
    c = _solved(H, [-rest for rest in _left(data, sides, g)])
    along = [sum((x * a for x, a in zip(c, row, strict=True)), Fraction(0)) for row in zip(*sides, strict=True)]
    if sides:
        g = [value + h * z for value, h, z in zip(g, room, along, strict=True)]
    if any(_left(data, sides, g)) or any(value < 0 for value in _room(data, g)):
        return None
    return g


def _left(data: WholeData, sides: list[list[int]], g: list[Fraction]) -> list[Fraction]:
    weighted = [w * value for w, value in zip(data.weights, g, strict=True)]
    return [sum((v * a for v, a in zip(weighted, side, strict=True)), Fraction(0)) for side in sides]


def _room(data: WholeData, g: list[Fraction]) -> list[Fraction]:
    """How far slopes may still go; below zero outside the domain."""
    if data.instance.loss == "huber":
        return [Fraction(data.instance.delta) - abs(value) for value in g]
    shares = [-value if label > 0 else value for value, label in zip(g, data.target, strict=True)]
    return [min(p, 1 - p) for p in shares]


def _solved(H: list[list[Fraction]], right: list[Fraction]) -> list[Fraction]:
    """A solution of a consistent semidefinite system, by elimination; what depends on others gets zero."""
    m = len(right)
    rows = [[*map(Fraction, H[i]), right[i]] for i in range(m)]
    pivots = []
    for p in range(m):
        if rows[p][p] == 0:
            continue
        pivots.append(p)
        rows[p] = [value / rows[p][p] for value in rows[p]]
        for i in range(m):
            if i != p and rows[i][p]:
                rows[i] = [a - rows[i][p] * b for a, b in zip(rows[i], rows[p], strict=True)]
    return [rows[p][m] if p in pivots else Fraction(0) for p in range(m)]


def _dual(data: WholeData, g: list[Fraction]) -> Fraction:
    """-sum w l*(g): exactly for Huber loss, else no more than that."""
    if data.instance.loss == "huber":
        unit = power(data.target_power)
        terms = (w * (v * v / 2 + v * y * unit) for w, v, y in zip(data.weights, g, data.target, strict=True))
        return -sum(terms, Fraction(0)) * power(data.weight_power)
    total = np.longdouble(0)
    for w, value in zip(data.weights, g, strict=True):
        p = min(abs(value), 1 - abs(value))
        if p > 0:
            share = as_long(p.numerator) / as_long(p.denominator)
            total += as_long(w) * (-share * np.log(share) - (1 - share) * np.log1p(-share))
    total -= ROUNDING * np.finfo(np.longdouble).eps * total
    return Fraction(*_ratio(total)) * power(data.weight_power)


def _fitted(rows: Rows, included: BoolArray) -> Long:
    """About the best coefficients (sets, p) on each set."""
    u = np.zeros(included.shape, dtype=np.longdouble)
    active = np.arange(len(u))
    for _ in range(STEPS):
        moved, u[active] = _step(rows, look(rows, u[active]), u[active], included[active])
        active = active[moved]
        if not active.size:
            break
    return u


def _step(rows: Rows, state: Look, u: Long, included: BoolArray) -> tuple[BoolArray, Long]:
    """Which points moved, and all of them after a step down."""
    best, moved = u.copy(), np.zeros(len(u), dtype=bool)
    gradient = np.where(included, (rows.w * state.slope) @ rows.Z, 0)
    both, unit = included[:, :, None] & included[:, None, :], np.eye(u.shape[1], dtype=np.longdouble)
    for damped in DAMPED:
        left = np.flatnonzero(~moved)
        if not left.size:
            break
        bends = rows.w * (state.bend[left] + np.longdouble(damped) * _majorant(rows, state.z[left]))
        H = np.where(both[left], np.einsum("bi,ip,iq->bpq", bends, rows.Z, rows.Z), unit)
        step = eliminated(H, gradient[left])
        for halving in range(HALVINGS):
            tried = u[left] - np.ldexp(step, -halving)
            better = ~moved[left] & (look(rows, tried).value < state.value[left])
            best[left[better]] = tried[better]
            moved[left[better]] = True
            if moved[left].all():
                break
    return moved, best


def _majorant(rows: Rows, z: Long) -> Long:
    """The curvature of a quadratic above the loss that touches it here."""
    if rows.delta is None:
        return np.full(z.shape, np.longdouble(0.25))
    size = np.abs(z - rows.y)
    return np.where(size > rows.delta, rows.delta / np.maximum(size, rows.delta), np.longdouble(1))


def _ratio(value: np.longdouble) -> tuple[int, int]:
    top, bottom = value.as_integer_ratio()
    return int(top), int(bottom)
