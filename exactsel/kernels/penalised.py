"""The relaxation of the penalised form, P(x) + lam0 ||x||_0, at a node (S, C), and the bound it proves.

Every column of S costs lam0. A column of C costs lam0 only if it is used, so for every dual vector b with v = A'b,
q = v^2, and r the number of columns of C that a model may use at most,

    lam0 |S| - L*(b) - sum_{j in S} q_j / (2 lam) - the r largest of max(0, q_j / (2 lam) - lam0), j in C          (4)

is a lower bound for the node: formula (2) with a price. Where coefficients have limits, q_j / (2 lam) is the gain of a
column within them (kernels/boxed.py). The largest value over b, with a place for every column, is the minimum of

    L(Ax) + sum_{j in S} ((lam/2) x_j^2 + lam0) + sum_{j in C} h(x_j),

h(x) the minimum of lam0 z + lam x^2 / (2 z) over z in [|x| / M, 1], M the limit on the side of x. Without a limit that
is the reverse Huber function: sqrt(2 lam0 lam) |x| up to |x| = sqrt(2 lam0 / lam), and lam0 + (lam/2) x^2 beyond.
(Pilanci, Wainwright, El Ghaoui: Sparse learning via Boolean relaxations, 2015; Dong, Chen, Linderoth: Regularization
vs. relaxation, 2015; Hazimeh, Mazumder, Saab: Sparse regression at scale, 2022.)

It is found by coordinate descent over an active set. A loss that is not quadratic is majorised by a quadratic one at
the predictions of the moment (``bends`` are the smoothness of its rows). None of that matters for the bound, which
holds at any dual vector.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from exactsel._jit import njit
from exactsel.kernels.boxed import limit_squares
from exactsel.kernels.penalised_descent import price_of, rows_of, settle, slopes_at
from exactsel.rounding import UNIT
from exactsel.types import BoolArray, FloatArray, IntArray

ROUNDS = 60
"""Times that the bound is evaluated and columns are added, at most."""

FEWEST, GROWTH = 50, 0.5
"""Columns that become active at once, at most: so many, or this part of those that are."""

HOPELESS = 0.1
"""A relaxation ends once its own gap is at most this part of what is missing to the cut-off."""

EXACT = 1e-10
"""... or this part of its value."""


@njit
def penalised_bound(
    base: float, q: FloatArray, fixed: int, slots: int, lam: float, price: float,
    bound_in: FloatArray, bound_out: FloatArray,
) -> float:  # fmt: skip
    """Formula (4) from ``base`` <= -L*(b) and upper estimates q of the squares, and the bounds of the children.

    ``bound_in`` and ``bound_out`` (q.size,) receive what putting a column of C in, or leaving it out, is bounded by at
    the same dual vector.
    """
    many = q.size + 16
    paid = 2.0 * lam * price
    included, count = 0.0, 0
    for i in range(fixed):
        included += q[i]
    gains = np.empty(q.size - fixed)
    for i in range(fixed, q.size):
        if q[i] > paid * (1.0 - 4 * UNIT):
            # An upper estimate: paid has been rounded, and so is the difference.
            gains[count] = (q[i] - paid * (1.0 - 4 * UNIT)) * (1.0 + 4 * UNIT)
            count += 1
    last, following = 0.0, 0.0
    if count > slots:
        ranked = np.sort(gains[:count])[::-1]
        following = ranked[max(slots, 0)]
        last = ranked[slots - 1] if slots > 0 else np.inf
        count = max(slots, 0)
        gains[:count] = ranked[:count]
    for i in range(count):
        included += gains[i]
    taken, charged = included * (1.0 + many * UNIT) / (2.0 * lam), price * fixed
    bound = base + charged - taken - 8 * UNIT * (abs(base) + charged + taken)
    shave = 1.0 - many * UNIT
    for i in range(q.size):
        bound_in[i], bound_out[i] = bound, bound
        if i >= fixed:
            beyond = paid * (1.0 - 4 * UNIT) - q[i] + last
            below = q[i] - paid * (1.0 + 4 * UNIT) - following
            rounding = 16 * UNIT * (paid + q[i] + (last if last < np.inf else 0.0) + following)
            bound_in[i] = bound + max(0.0, beyond - rounding) * shave / (2.0 * lam)
            bound_out[i] = bound + max(0.0, below - rounding) * shave / (2.0 * lam)
    return float(bound)


@njit
def evaluate(
    data: Any, columns: IntArray, x: FloatArray, b: FloatArray, q: FloatArray, v: FloatArray
) -> float:  # fmt: skip
    """:func:`slopes_at`, with 2 lam times what columns gain within their limits in the place of the squares."""
    base = slopes_at(data, columns, x, b, q, v)
    if data.limited:
        limit_squares(v, data, data.lower[columns], data.upper[columns], q)
    return float(base)


@njit
def relax_penalised(
    data: Any, columns: IntArray, fixed: int, slots: int, cutoff: float, x: FloatArray, stop: BoolArray,
    bound_in: FloatArray, bound_out: FloatArray, kept: FloatArray,
) -> tuple[float, float]:  # fmt: skip
    """Bound the node of these columns, S first; x (columns.size,) is where to begin, and becomes the relaxed model.

    ``kept`` (2 columns.size + 1,) receives q, the model that proves the largest bound and, last, ``base``. Returns that
    bound, and the multiplications it took.
    """
    m, lam = columns.size, data.lam * data.ridge
    b, q, v, low, high = np.empty(rows_of(data)), np.empty(m), np.empty(m), np.empty(m), np.empty(m)
    active = np.zeros(m, dtype=np.bool_)
    for i in range(m):
        active[i] = i < fixed or x[i] != 0.0
    best, work = -np.inf, 0.0
    for _ in range(ROUNDS):
        moved, done = settle(data, columns, fixed, active, x)
        base = evaluate(data, columns, x, b, q, v)
        bound = penalised_bound(base, q, fixed, slots, data.lam, data.price, low, high)
        value, used = base, 0
        for i in range(m):
            if x[i] != 0.0:
                value += x[i] * v[i]
                used += 1
                if i >= fixed:
                    value += price_of(x[i], lam, data.price, data.lower[columns[i]], data.upper[columns[i]])
            if i < fixed:
                value += data.price + 0.5 * lam * x[i] * x[i]
        work += done + (b.size if b.size > 0 else used) * m
        if bound > best:
            best = bound
            bound_in[:], bound_out[:] = low, high
            kept[:m] = q
            kept[m : 2 * m] = x
            kept[2 * m] = base
        if best >= cutoff or stop[0]:
            break
        gap = value - best
        if gap <= EXACT * abs(value) or (value < cutoff and gap <= HOPELESS * (cutoff - best)):
            break
        if not activate(q, 2.0 * data.lam * data.price, active) and not moved:
            break
    return best, work


@njit
def activate(q: FloatArray, paid: float, active: BoolArray) -> bool:
    """Make the columns active that gain most beyond their price; whether there are any."""
    count = 0
    for i in range(q.size):
        count += active[i]
    most, new = max(FEWEST, int(GROWTH * count)), np.flatnonzero(~active & (q > paid))
    if new.size > most:
        new = new[np.argsort(-q[new], kind="mergesort")[:most]]
    active[new] = True
    return bool(new.size > 0)
