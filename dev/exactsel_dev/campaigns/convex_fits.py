"""The optimum on every set of columns for other losses than the quadratic: Newton on all sets, then weak duality.

For slopes g of the rows in the domain of the conjugate l*, with sum w g = 0 where there is an intercept, no model on a
set is below  -sum w l*(g) - sum_j v_j² / (2 lam s_j²),  v = A'(wg). At the slopes of a point near the optimum that is
within the square of its gradient. All is counted in long doubles; what rounding may do is taken off one end of the
interval and added to the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from exactsel.testing.instances import TinyInstance
from exactsel.types import BoolArray
from exactsel_dev.campaigns.whole_numbers import WholeData

Long: TypeAlias = NDArray[np.longdouble]
"""An array of long doubles."""

STEPS = 100
HALVINGS = 60
ROUNDING = 64.0
"""Units in the last place of what is summed up that an end of an interval is off by at most."""

TIGHT = 1e-16
"""Relative width at which an interval will do."""


class Rows(NamedTuple):
    """The rows that count, in long doubles, columns scaled to at most one in size."""

    Z: Long
    """(n, p), the last a column of ones where there is an intercept."""
    y: Long
    w: Long
    ridge: Long
    """(p,) The curvature each coefficient has of its own."""
    delta: np.longdouble | None
    level: bool
    loss: str


def intervals(data: WholeData, sets: Sequence[Sequence[int]]) -> tuple[Long, Long]:
    """For each set of columns an interval that holds its smallest objective; wide where another is surely better."""
    rows = rows_of(data)
    included = free_in(rows, sets)
    u = np.zeros(included.shape, dtype=np.longdouble)
    low, high = np.full(len(sets), -np.inf, np.longdouble), np.full(len(sets), np.inf, np.longdouble)
    active = np.arange(len(sets))
    for _ in range(STEPS):
        state = look(rows, u[active])
        below, above = _ends(rows, state, u[active], included[active])
        low[active], high[active] = np.maximum(low[active], below), np.minimum(high[active], above)
        unfinished = (high - low > TIGHT * np.abs(high)) & (low < high.min())
        keep = unfinished[active]
        if not keep.any():
            break
        active, state = active[keep], Look(*(part[keep] for part in state))
        moved, u[active] = _newton_step(rows, state, u[active], included[active])
        active = active[moved]
        if not active.size:
            break
    return low, high


def free_in(rows: Rows, sets: Sequence[Sequence[int]]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """(sets, p) Which coefficients are free on each set of columns."""
    p = rows.Z.shape[1]
    return np.array([np.isin(np.arange(p), [*columns, *range(p - rows.level, p)]) for columns in sets])


class Look(NamedTuple):
    """What is known at the points (sets, ...)."""

    z: Long
    value: Long
    slope: Long
    bend: Long


def rows_of(data: WholeData) -> Rows:
    """The rows of an instance."""
    instance = data.instance
    A = instance.A[data.rows].astype(np.longdouble)
    y = instance.y[data.rows].astype(np.longdouble)
    # Doubles, so their differences are right to the last place; the level takes what they are shifted by.
    A = A - A[0] if instance.intercept else A
    y = y - np.median(y) if instance.intercept and instance.loss == "huber" else y
    size = np.abs(A).max(axis=0)
    size = np.where(size > 0, size, np.longdouble(1))
    squares = np.array([_long(data, j) for j in range(instance.d)], dtype=np.longdouble)
    ridge = np.longdouble(instance.lam) * squares / size**2
    Z = A / size
    if instance.intercept:
        Z, ridge = np.column_stack([Z, np.ones(len(Z), np.longdouble)]), np.append(ridge, np.longdouble(0))
    w = _row_weights(instance)[data.rows]
    delta = np.longdouble(instance.delta) if instance.loss == "huber" else None
    return Rows(Z, y, w, ridge, delta, instance.intercept, instance.loss)


def _long(data: WholeData, j: int) -> np.longdouble:
    """The square a column's coefficient is scaled by, to the last place of a long double."""
    square = data.squared_scale(j)
    return as_long(square.numerator) / as_long(square.denominator)


def as_long(number: int) -> np.longdouble:
    """A whole number as a long double, whatever its size."""
    shift = max(0, number.bit_length() - 900)
    top = number >> shift
    head = float(top)
    whole: np.longdouble = np.ldexp(np.longdouble(head) + np.longdouble(float(top - int(head))), shift)
    return whole


def _row_weights(instance: TinyInstance) -> Long:
    given = np.ones(instance.n) if instance.weights is None else instance.weights
    return given.astype(np.longdouble)


def look(rows: Rows, u: Long) -> Look:
    """What there is to see at points (sets, p)."""
    z = u @ rows.Z.T
    value, slope, bend = _loss(rows, z)
    return Look(z, np.sum(rows.w * value, axis=1) + np.sum(rows.ridge * u * u, axis=1) / 2, slope, bend)


def _loss(rows: Rows, z: Long) -> tuple[Long, Long, Long]:
    """Value, slope and curvature of each row."""
    if rows.delta is not None:
        r = z - rows.y
        size = np.abs(r)
        inner = size <= rows.delta
        value = np.where(inner, r * r / 2, rows.delta * (size - rows.delta / 2))
        return value, np.clip(r, -rows.delta, rows.delta), inner.astype(np.longdouble)
    if rows.loss == "poisson":
        mean = np.exp(np.minimum(z, 300))
        return mean - rows.y * (z + 1 - _logarithm(rows.y)), mean - rows.y, mean
    margin = rows.y * z
    if rows.loss == "squared_hinge":
        short = np.maximum(1 - margin, 0)
        return short * short, -2 * rows.y * short, 2 * (short > 0).astype(np.longdouble)
    e = np.exp(-np.abs(margin))
    share = np.where(margin > 0, e / (1 + e), 1 / (1 + e))
    return np.maximum(-margin, 0) + np.log1p(e), -rows.y * share, e / (1 + e) ** 2


def _ends(rows: Rows, state: Look, u: Long, included: BoolArray) -> tuple[Long, Long]:
    """What weak duality says at the slopes of these points, and their objectives."""
    g, w = state.slope, rows.w
    if rows.level:  # towards zero, which is in the domain, until the sum is zero
        up, down = np.sum(w * np.maximum(g, 0), axis=1), np.sum(w * np.maximum(-g, 0), axis=1)
        least = np.minimum(up, down)
        with np.errstate(invalid="ignore", divide="ignore"):
            for_up, for_down = np.where(up > 0, least / up, 0), np.where(down > 0, least / down, 0)
        g = np.where(g > 0, g * for_up[:, None], g * for_down[:, None])
    v = (w * g) @ rows.Z
    columns = rows.Z.shape[1] - rows.level
    ridge, shares = rows.ridge[:columns], np.where(included[:, :columns], v[:, :columns], 0)
    dual = -np.sum(w * _conjugate(rows, g), axis=1) - np.sum(shares * shares / ridge, axis=1) / 2
    sizes = np.abs(u) @ np.abs(rows.Z).T + np.abs(rows.y)
    if rows.loss == "poisson":
        blurred = np.sum(w * (rows.y + state.bend) * (1 + np.abs(state.z) + _logarithm(np.maximum(rows.y, 1))), axis=1)
    summed = np.sum(w * (np.abs(g) + np.abs(state.slope)) * sizes, axis=1) + np.abs(state.value) + np.abs(dual)
    summed += np.sum((np.abs(w * g) @ np.abs(rows.Z[:, :columns])) * np.abs(shares) / ridge, axis=1)
    summed += blurred if rows.loss == "poisson" else 0
    blur = ROUNDING * np.finfo(np.longdouble).eps * summed
    return dual - blur, state.value + blur


def _conjugate(rows: Rows, g: Long) -> Long:
    if rows.delta is not None:
        return g * g / 2 + g * rows.y
    if rows.loss == "squared_hinge":
        return g * g / 4 + g * rows.y
    if rows.loss == "poisson":
        p: Long = np.maximum(rows.y + g, 0)
        return p * _logarithm(p) - p - rows.y * (_logarithm(rows.y) - 1)
    a = np.clip(-rows.y * g, 0, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy: Long = np.where(a > 0, a * np.log(a), 0) + np.where(a < 1, (1 - a) * np.log1p(-a), 0)
    return entropy


def _logarithm(values: Long) -> Long:
    """The logarithm, 0 for 0, which it is only multiplied with."""
    return np.log(np.where(values > 0, values, 1))


def _newton_step(rows: Rows, state: Look, u: Long, included: BoolArray) -> tuple[BoolArray, Long]:
    """Which points moved, and all of them after a step that does not climb."""
    weighted = rows.w * state.bend
    H = np.einsum("bi,ip,iq->bpq", weighted, rows.Z, rows.Z)
    p = rows.Z.shape[1]
    # A row beyond the threshold has no curvature, so that the level may have none at all.
    floor = np.longdouble(1e-12) * np.einsum("i,ip->p", rows.w, rows.Z**2)
    H[:, range(p), range(p)] += rows.ridge + np.where(H[:, range(p), range(p)] > 0, 0, floor)
    gradient = np.where(included, (rows.w * state.slope) @ rows.Z + rows.ridge * u, 0)
    H = np.where(included[:, :, None] & included[:, None, :], H, np.eye(p, dtype=np.longdouble))
    step = eliminated(H, gradient)
    length, moved = np.ones(len(u), np.longdouble), np.zeros(len(u), dtype=bool)
    best = u.copy()
    for _ in range(HALVINGS):
        tried = u - length[:, None] * step
        better = ~moved & (look(rows, tried).value < state.value)
        best[better], moved = tried[better], moved | better
        if moved.all():
            break
        length = np.where(moved, length, length / 2)
    return moved, best


def eliminated(H: Long, right: Long) -> Long:
    """The solutions of positive definite systems, by elimination; no library has it for long doubles."""
    p = right.shape[1]
    H, right = H.copy(), right.copy()
    for j in range(p):
        pivot = np.where(H[:, j, j] > 0, H[:, j, j], np.inf)
        factor = H[:, :, j] / pivot[:, None]
        factor[:, j] = 0
        right -= factor * right[:, j, None]
        H -= factor[:, :, None] * H[:, j, None, :]
    diagonal = H[:, range(p), range(p)]
    return np.where(diagonal > 0, right / np.where(diagonal > 0, diagonal, 1), 0)
