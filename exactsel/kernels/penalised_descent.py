"""Coordinate descent on the relaxation of the penalised form over some active columns (kernels/penalised.py).

The products of columns that have been active are kept; where there are too many it goes by their rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from exactsel._jit import choose_by_type, njit
from exactsel.kernels.columns import Columns, column_dot
from exactsel.kernels.dual import dual_at_point, dual_from_gram
from exactsel.kernels.limited_prox import at_price, limit_of
from exactsel.kernels.linalg import add_scaled, correlate, predict
from exactsel.types import BoolArray, FloatArray, IntArray

DESCENTS = 10
"""Quadratic majorisers that are minimised in turn, at most, ..."""

SWEEPS = 100
"""... sweeps for each, at most, ..."""

SOLVED = 1e-3
"""... and the part of its first step at which coordinate descent has come far enough."""


class PenalisedGram(NamedTuple):
    """A problem of quadratic loss whose columns have curvature beside the ridge, in variables where it is 1."""

    G: FloatArray
    """(d, d) as the other entries in :class:`exactsel.kernels.forms.GramData`."""
    b: FloatArray
    constant: float
    roundings: int
    norms: FloatArray
    lam: float
    ridge: float
    price: float
    lower: FloatArray
    """(d,) limits of coefficients, in these variables; -inf where there is none."""
    upper: FloatArray
    limited: bool
    """Whether there is any."""


class PenalisedRows(NamedTuple):
    """A problem with a ridge or limits and a price of columns, by its rows."""

    loss: Any
    columns: Columns
    y: FloatArray
    norms: FloatArray
    """(d,) those of the columns as they are stored."""
    bends: FloatArray
    """(n,) upper estimates of the second derivatives of the loss, row by row; no bound rests on them."""
    lam: float
    """The unit of q: the ridge weight, or 1 where there is none."""
    ridge: float
    """The ridge weight, in that unit: 1 or 0."""
    price: float
    lower: FloatArray
    """(d,) limits of coefficients; -inf where there is none."""
    upper: FloatArray
    limited: bool
    """Whether there is any."""
    place: IntArray
    """(d,) of a column its place in ``products``, -1 before it has one."""
    held: IntArray
    """(1 + most,) how many have one, and which these are."""
    products: FloatArray
    """(most, most) products of the columns that have been active, weighted by ``bends``."""


class ActiveProducts(NamedTuple):
    """Active columns by their products with each other: ``slope`` has an entry for each."""

    products: FloatArray


class ActiveRows(NamedTuple):
    """Active columns by their rows, where these are too many: ``slope`` has an entry for each row."""

    columns: Columns
    which: IntArray
    bends: FloatArray
    squares: FloatArray
    weighted: FloatArray
    """(n,) to work in."""


@njit
def write_weighted(columns: Columns, j: int, weights: FloatArray, out: FloatArray) -> None:
    """out = diag(weights) a_j."""
    predict(columns, np.array([j]), np.ones(1), out)
    out *= weights


@njit
def hold(data: PenalisedRows, j: int) -> int:
    """The place of a column among those whose products are kept, where there is one for it; the multiplications."""
    count = data.held[0]
    if data.place[j] >= 0 or count == data.products.shape[0]:
        return 0
    data.place[j] = count
    data.held[0], data.held[1 + count] = count + 1, j
    weighted = np.empty(data.y.size)
    write_weighted(data.columns, j, data.bends, weighted)
    correlate(data.columns, data.held[1 : count + 2], weighted, data.products[count, : count + 1])
    for i in range(count):
        data.products[i, count] = data.products[count, i]
    return int((count + 1) * data.y.size)


@njit
def turn_of(lam: float, price: float) -> float:
    """The size of a coefficient from which its indicator is 1, where there is no limit."""
    return float(np.sqrt(2.0 * price / lam)) if lam > 0.0 else np.inf


@njit
def price_of(x: float, lam: float, price: float, low: float, high: float) -> float:
    """h at a coefficient, to about double precision."""
    size, turn, limit = abs(x), turn_of(lam, price), limit_of(x, low, high)
    if turn >= limit:
        return float((0.5 * lam * limit + price / limit) * size) if limit > 0.0 else 0.0
    return float(np.sqrt(2.0 * price * lam) * size if size <= turn else price + 0.5 * lam * size * size)


@njit
def shares_of(data: Any, columns: IntArray, x: FloatArray) -> FloatArray:
    """The relaxed indicators of some columns' coefficients."""
    turn, shares = turn_of(data.lam * data.ridge, data.price), np.zeros(x.size)
    for i in range(x.size):
        if x[i] != 0.0:
            full = min(turn, limit_of(x[i], data.lower[columns[i]], data.upper[columns[i]]))
            shares[i] = min(1.0, abs(x[i]) / full) if full > 0.0 else 1.0
    return shares


@njit
def best_coefficient(
    u: float, square: float, lam: float, price: float, low: float, high: float, included: bool
) -> float:  # fmt: skip
    """argmin of (square/2) x^2 - u x + h(x), or of that with (lam/2) x^2 in the place of h for a column of S."""
    if square == 0.0:
        return 0.0
    if included:
        return min(max(u / (square + lam), low), high)
    limit = limit_of(u, low, high)
    if u == 0.0 or not limit > 0.0:
        return 0.0
    size = at_price(abs(u) / square, limit, lam / square, price / square)[0]
    return float(size) if u > 0.0 else -float(size)


@choose_by_type("data")
def slopes_at(data: Any, columns: IntArray, x: FloatArray, b: FloatArray, q: FloatArray, v: FloatArray) -> float:
    """Write the dual vector b = grad L(Ax), v = A'b and upper estimates of its squares; return ``base`` <= -L*(b)."""
    z = np.empty(data.y.size)
    predict(data.columns, columns, x, z)
    return float(dual_at_point(data.loss, data.columns, data.y, data.norms, columns, z, b, q, v))


@slopes_at.register(PenalisedGram)
def _slopes_by_gram(data: Any, columns: IntArray, x: FloatArray, b: FloatArray, q: FloatArray, v: FloatArray) -> float:
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
def settle(
    data: Any, columns: IntArray, fixed: int, active: BoolArray, x: FloatArray
) -> tuple[bool, float]:  # fmt: skip
    """Minimise the relaxation over the active columns; whether x has changed, and the multiplications it took."""
    which = np.flatnonzero(active)
    if which.size == 0:
        return False, 0.0
    mine, part = columns[which], x[which]
    low, high = data.lower[mine], data.upper[mine]
    b, q, v = np.empty(rows_of(data)), np.empty(which.size), np.empty(which.size)
    included, local = int(np.searchsorted(which, fixed)), np.empty((which.size, which.size))
    work, held = products_among(data, mine, local)
    moved, first = False, 0.0
    for descent in range(DESCENTS):
        slopes_at(data, mine, part, b, q, v)
        work += 2.0 * b.size * which.size
        if held:
            largest, done = descend(ActiveProducts(local), -v, included, low, high, data, part)
        else:
            largest, done = descend_by_rows(data, mine, -b, included, low, high, part)
        work += done
        moved = moved or largest > 0.0
        if descent == 0:
            first = largest
        if largest <= SOLVED * first:
            break
    x[which] = part
    return moved, work


@njit
def descend(
    form: Any, slope: FloatArray, included: int, low: FloatArray, high: FloatArray, data: Any, x: FloatArray
) -> tuple[float, float]:
    """Minimise a majoriser over active columns, the first ``included`` of them in S; ``slope`` is lost.

    Returns the largest change of the first sweep, in predictions, and the multiplications it took.
    """
    lam, price, first, work = data.lam * data.ridge, data.price, 0.0, 0.0
    for sweep in range(SWEEPS):
        largest = 0.0
        for a in range(x.size):
            square = curvature_of(form, a)
            u = square * x[a] + slope_of(form, a, slope)
            change = best_coefficient(u, square, lam, price, low[a], high[a], a < included) - x[a]
            if change != 0.0:
                move(form, a, change, slope)
                x[a] += change
                work += slope.size
                largest = max(largest, abs(change) * np.sqrt(square))
        if sweep == 0:
            first = largest
        if largest <= SOLVED * first:
            break
    return first, work


@choose_by_type("form")
def curvature_of(form: Any, a: int) -> float:
    """The majoriser's curvature along an active column."""
    return float(form.products[a, a])


@curvature_of.register(ActiveRows)
def _curvature_of_rows(form: Any, a: int) -> float:
    return float(form.squares[a])


@choose_by_type("form")
def slope_of(form: Any, a: int, slope: FloatArray) -> float:
    """How fast the majoriser falls along an active column."""
    return float(slope[a])


@slope_of.register(ActiveRows)
def _slope_of_rows(form: Any, a: int, slope: FloatArray) -> float:
    return float(column_dot(form.columns, form.which[a], slope))


@choose_by_type("form")
def move(form: Any, a: int, change: float, slope: FloatArray) -> None:
    """Change a coefficient."""
    add_scaled(slope, -change, form.products[a])


@move.register(ActiveRows)
def _move_rows(form: Any, a: int, change: float, slope: FloatArray) -> None:
    write_weighted(form.columns, form.which[a], form.bends, form.weighted)
    add_scaled(slope, -change, form.weighted)


@choose_by_type("data")
def descend_by_rows(
    data: Any, columns: IntArray, slope: FloatArray, included: int, low: FloatArray, high: FloatArray, x: FloatArray
) -> tuple[float, float]:  # fmt: skip
    """:func:`descend` without products."""
    squares, weighted = np.empty(columns.size), np.empty(data.y.size)
    for a in range(columns.size):
        write_weighted(data.columns, columns[a], data.bends, weighted)
        correlate(data.columns, columns[a : a + 1], weighted, squares[a : a + 1])
    form = ActiveRows(data.columns, columns, data.bends, squares, weighted)
    answer: tuple[float, float] = descend(form, slope, included, low, high, data, x)
    return answer


@descend_by_rows.register(PenalisedGram)
def _never_by_rows(
    data: Any, columns: IntArray, slope: FloatArray, included: int, low: FloatArray, high: FloatArray, x: FloatArray
) -> tuple[float, float]:  # fmt: skip
    return 0.0, 0.0


@choose_by_type("data")
def products_among(data: Any, columns: IntArray, local: FloatArray) -> tuple[float, bool]:
    """Write the products of some columns, weighted by ``bends``; the multiplications, and whether they are all kept."""
    work = 1.0 * columns.size * columns.size
    for a in range(columns.size):
        work += hold(data, columns[a])
        if data.place[columns[a]] < 0:
            return work, False
    for a in range(columns.size):
        row = data.products[data.place[columns[a]]]
        for c in range(columns.size):
            local[a, c] = row[data.place[columns[c]]]
    return work, True


@products_among.register(PenalisedGram)
def _gram_among(data: Any, columns: IntArray, local: FloatArray) -> tuple[float, bool]:
    for a in range(columns.size):
        row = data.G[columns[a]]
        for c in range(columns.size):
            local[a, c] = row[columns[c]]
    return 1.0 * columns.size * columns.size, True
