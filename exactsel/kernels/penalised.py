"""The relaxation of the penalised form, P(x) + lam0 ||x||_0, at a node (S, C), and the bound it proves.

Every column of S costs lam0. A column of C costs lam0 only if it is used, so for every dual vector b with v = A'b,
q = v^2, and r the number of columns of C that a model may use at most,

    lam0 |S| - L*(b) - sum_{j in S} q_j / (2 lam) - the r largest of max(0, q_j / (2 lam) - lam0), j in C          (4)

is a lower bound for the node: formula (2) with a price. Its largest value over b, with a place for every column, is
the minimum of

    L(Ax) + sum_{j in S} ((lam/2) x_j^2 + lam0) + sum_{j in C} h(x_j),

where h is the reverse Huber function: sqrt(2 lam0 lam) |x| up to |x| = sqrt(2 lam0 / lam), and lam0 + (lam/2) x^2
beyond. (Pilanci, Wainwright, El Ghaoui: Sparse learning via Boolean relaxations, 2015; Dong, Chen, Linderoth:
Regularization vs. relaxation, 2015.)

It is found by coordinate descent over an active set. A loss that is not quadratic is majorised by a quadratic one at
the predictions of the moment (``bends`` are the smoothness of its rows). None of that matters for the bound, which is
evaluated at whatever dual vector comes out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from exactsel._jit import choose_by_type, in_numpy, njit
from exactsel.kernels.columns import Columns
from exactsel.kernels.dual import dual_at_point, dual_from_gram
from exactsel.kernels.linalg import add_scaled, dot
from exactsel.rounding import UNIT
from exactsel.types import BoolArray, FloatArray, IntArray

ROUNDS = 60
"""Times that the bound is evaluated and columns are added, at most."""

SWEEPS = 100
"""Sweeps over the active columns in between, at most."""

SOLVED = 1e-3
"""Part of its first step at which coordinate descent has come far enough to evaluate the bound."""

HOPELESS = 0.1
"""A relaxation ends once its own gap is at most this part of what is missing to the cut-off."""

EXACT = 1e-10
"""... or this part of its value."""


class PenalisedGram(NamedTuple):
    """A problem of quadratic loss whose columns have curvature beside the ridge, in variables where it is 1."""

    G: FloatArray
    """(d, d) as the other entries in :class:`exactsel.kernels.forms.GramData`."""
    b: FloatArray
    constant: float
    roundings: int
    norms: FloatArray
    lam: float
    price: float


class PenalisedRows(NamedTuple):
    """A problem with a ridge and a price of columns, by its rows."""

    loss: Any
    columns: Columns
    """As they are stored."""
    AT: FloatArray
    """(d, n) the same columns, all of them whole."""
    y: FloatArray
    norms: FloatArray
    """(d,) those of the columns as they are stored."""
    bends: FloatArray
    """(n,) upper estimates of the second derivatives of the loss, row by row; no bound rests on them."""
    squares: FloatArray
    """(d,) the sums of the columns' squares, weighted by ``bends``."""
    lam: float
    price: float
    place: IntArray
    """(d,) of a column its place in ``products``, -1 before it has one."""
    held: IntArray
    """(1 + most,) how many have one, and which these are."""
    products: FloatArray
    """(most, most) products of the columns that have been active, weighted by ``bends``."""


@njit
def weighted_product(a: FloatArray, b: FloatArray, weights: FloatArray) -> float:
    """The sum of a b over rows, weighted."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i] * weights[i]
    return total


@in_numpy(weighted_product)
def _whole_product(a: FloatArray, b: FloatArray, weights: FloatArray) -> float:
    return float((a * b) @ weights)


@njit
def hold(data: PenalisedRows, j: int) -> int:
    """The place of a column among those whose products are kept, where there is one for it; the multiplications."""
    count = data.held[0]
    if data.place[j] >= 0 or count == data.products.shape[0]:
        return 0
    data.place[j] = count
    data.held[0], data.held[1 + count] = count + 1, j
    for i in range(count + 1):
        product = weighted_product(data.AT[j], data.AT[data.held[1 + i]], data.bends)
        data.products[count, i] = product
        data.products[i, count] = product
    return int((count + 1) * data.y.size)


@njit
def subtract_weighted(out: FloatArray, scale: float, a: FloatArray, weights: FloatArray) -> None:
    """out -= scale * weights * a."""
    for i in range(out.size):
        out[i] -= scale * weights[i] * a[i]


@in_numpy(subtract_weighted)
def _subtract_whole(out: FloatArray, scale: float, a: FloatArray, weights: FloatArray) -> None:
    out -= scale * weights * a


@njit
def price_of(size: float, lam: float, price: float) -> float:
    """h at a coefficient of this size, to about double precision."""
    turn = np.sqrt(2.0 * price / lam)
    return float(np.sqrt(2.0 * price * lam) * size if size <= turn else price + 0.5 * lam * size * size)


@njit
def best_coefficient(u: float, square: float, lam: float, price: float, inside: bool) -> float:
    """argmin of (square/2) x^2 - u x + h(x), or of that with (lam/2) x^2 in the place of h for a column of S."""
    if square == 0.0:
        return 0.0
    if inside:
        return u / (square + lam)
    size, slope = abs(u), np.sqrt(2.0 * price * lam)
    if size <= slope:
        return 0.0
    x = (size - slope) / square
    if x > np.sqrt(2.0 * price / lam):
        x = size / (square + lam)
    return float(x) if u > 0.0 else -float(x)


@njit
def penalised_bound(
    base: float, q: FloatArray, fixed: int, places: int, lam: float, price: float,
    bound_in: FloatArray, bound_out: FloatArray,
) -> float:  # fmt: skip
    """Formula (4) from ``base`` <= -L*(b) and upper estimates q of the squares, and the bounds of the children.

    ``bound_in`` and ``bound_out`` (q.size,) receive what putting a column of C in, or leaving it out, is bounded by at
    the same dual vector.
    """
    many = q.size + 16
    paid = 2.0 * lam * price
    inside, count = 0.0, 0
    for i in range(fixed):
        inside += q[i]
    gains = np.empty(q.size - fixed)
    for i in range(fixed, q.size):
        if q[i] > paid * (1.0 - 4 * UNIT):
            # An upper estimate: paid has been rounded, and so is the difference.
            gains[count] = (q[i] - paid * (1.0 - 4 * UNIT)) * (1.0 + 4 * UNIT)
            count += 1
    last, following = 0.0, 0.0
    if count > places:
        ranked = np.sort(gains[:count])[::-1]
        following = ranked[max(places, 0)]
        last = ranked[places - 1] if places > 0 else np.inf
        count = max(places, 0)
        gains[:count] = ranked[:count]
    for i in range(count):
        inside += gains[i]
    taken, charged = inside * (1.0 + many * UNIT) / (2.0 * lam), price * fixed
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


@choose_by_type("data")
def evaluate(data: Any, columns: IntArray, x: FloatArray, b: FloatArray, q: FloatArray, v: FloatArray) -> float:
    """Write q and v = A'b at the dual vector b = grad L(Ax) of some columns; return ``base`` <= -L*(b)."""
    z = np.zeros(data.y.size)
    for i in range(columns.size):
        if x[i] != 0.0:
            add_scaled(z, x[i], data.AT[columns[i]])
    return float(dual_at_point(data.loss, data.columns, data.y, data.norms, columns, z, b, q, v))


@evaluate.register(PenalisedGram)
def _evaluate_gram(data: Any, columns: IntArray, x: FloatArray, b: FloatArray, q: FloatArray, v: FloatArray) -> float:
    m = columns.size
    image, target, norms = np.zeros(m), data.b[columns], data.norms[columns]
    for i in range(m):
        if x[i] != 0.0:
            row = data.G[columns[i]]
            for a in range(m):
                image[a] += x[i] * row[columns[a]]
    for a in range(m):
        v[a] = image[a] - target[a]
    return float(dual_from_gram(image, target, data.constant, data.roundings, norms, x, q))


@choose_by_type("data")
def rows_of(data: Any) -> int:
    """Length of a dual vector."""
    return int(data.y.size)


@rows_of.register(PenalisedGram)
def _no_rows(data: Any) -> int:
    return 0


@njit
def relax_penalised(
    data: Any, columns: IntArray, fixed: int, places: int, cutoff: float, x: FloatArray, stop: BoolArray,
    bound_in: FloatArray, bound_out: FloatArray, kept: FloatArray,
) -> tuple[float, float]:  # fmt: skip
    """Bound the node of these columns, S first; x (columns.size,) is where to begin, and becomes the relaxed model.

    ``kept`` (columns.size + 1,) receives q and, last, ``base`` of the dual vector with the largest bound. Returns that
    bound, and the multiplications it took.
    """
    m = columns.size
    b, q, v, low, high = np.empty(rows_of(data)), np.empty(m), np.empty(m), np.empty(m), np.empty(m)
    active = np.zeros(m, dtype=np.bool_)
    threshold = np.sqrt(2.0 * data.price * data.lam)
    for i in range(m):
        active[i] = i < fixed or x[i] != 0.0
    best, work = -np.inf, 0.0
    for _ in range(ROUNDS):
        base = evaluate(data, columns, x, b, q, v)
        bound = penalised_bound(base, q, fixed, places, data.lam, data.price, low, high)
        value, used = base, 0
        for i in range(m):
            value += x[i] * v[i]
            if i < fixed:
                value += data.price + 0.5 * data.lam * x[i] * x[i]
            elif x[i] != 0.0:
                value += price_of(abs(x[i]), data.lam, data.price)
            used += x[i] != 0.0
        work += (b.size if b.size > 0 else used) * m
        if bound > best:
            best = bound
            bound_in[:], bound_out[:] = low, high
            kept[:m] = q
            kept[m] = base
        if best >= cutoff or stop[0]:
            break
        gap = value - best
        if gap <= EXACT * abs(value) or (value < cutoff and gap <= HOPELESS * (cutoff - best)):
            break
        for i in range(fixed, m):
            active[i] = active[i] or abs(v[i]) > threshold
        moved, done = _descend(data, columns, fixed, active, b, v, x)
        work += done
        if not moved:
            break
    return best, work


@njit
def _descend(
    data: Any, columns: IntArray, fixed: int, active: BoolArray, b: FloatArray, v: FloatArray, x: FloatArray
) -> tuple[bool, float]:
    """Minimise the majoriser at the dual vector b, v = A'b, over the active columns.

    Returns whether x has changed, and the multiplications it took.
    """
    which = np.flatnonzero(active)
    local = np.empty((which.size, which.size))
    work = products_among(data, columns, which, local)
    if work < 0.0:
        answer: tuple[bool, float] = descend_by_rows(data, columns, fixed, which, b, x)
        return answer
    slope = -v[which]
    moved, first = False, 0.0
    for sweep in range(SWEEPS):
        largest = 0.0
        for a in range(which.size):
            i, square = which[a], local[a, a]
            new = best_coefficient(square * x[i] + slope[a], square, data.lam, data.price, i < fixed)
            change = new - x[i]
            if change != 0.0:
                add_scaled(slope, -change, local[a])
                x[i] = new
                moved = True
                largest = max(largest, abs(change) * np.sqrt(square))
                work += which.size
        if sweep == 0:
            first = largest
        if largest <= SOLVED * first:
            break
    return moved, work


@choose_by_type("data")
def products_among(data: Any, columns: IntArray, which: IntArray, local: FloatArray) -> float:
    """Write the products of the columns at some places, weighted by ``bends``; the multiplications, -1 where they are
    not kept.
    """
    work = 1.0 * which.size * which.size
    for a in range(which.size):
        work += hold(data, columns[which[a]])
        if data.place[columns[which[a]]] < 0:
            return -1.0
    for a in range(which.size):
        row = data.products[data.place[columns[which[a]]]]
        for c in range(which.size):
            local[a, c] = row[data.place[columns[which[c]]]]
    return work


@products_among.register(PenalisedGram)
def _gram_among(data: Any, columns: IntArray, which: IntArray, local: FloatArray) -> float:
    for a in range(which.size):
        row = data.G[columns[which[a]]]
        for c in range(which.size):
            local[a, c] = row[columns[which[c]]]
    return 1.0 * which.size * which.size


@choose_by_type("data")
def descend_by_rows(
    data: Any, columns: IntArray, fixed: int, which: IntArray, b: FloatArray, x: FloatArray
) -> tuple[bool, float]:
    """The same without products."""
    slope = -b
    first, work, moved = 0.0, 0.0, False
    for sweep in range(SWEEPS):
        largest = 0.0
        for i in which:
            j = columns[i]
            square = data.squares[j]
            u = square * x[i] + dot(data.AT[j], slope)
            new = best_coefficient(u, square, data.lam, data.price, i < fixed)
            change = new - x[i]
            work += slope.size
            if change != 0.0:
                subtract_weighted(slope, change, data.AT[j], data.bends)
                x[i] = new
                moved = True
                largest = max(largest, abs(change) * np.sqrt(square))
                work += slope.size
        if sweep == 0:
            first = largest
        if largest <= SOLVED * first:
            break
    return moved, work


@descend_by_rows.register(PenalisedGram)
def _never_by_rows(
    data: Any, columns: IntArray, fixed: int, which: IntArray, b: FloatArray, x: FloatArray
) -> tuple[bool, float]:
    return False, 0.0
