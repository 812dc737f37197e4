"""Regions with one or two places left, closed at once for all columns that may be added to those in S.

Bounded one by one, these regions are most of a search: below a node with two places left lie some fifty nodes. But
everything there is near the fit on S (kernels/leaf_fit.py): a model on S and a set T of one or two candidates is better
than the fit by about g'B^-1 g / 2, g the slopes of T and B their bends. The dual vector that proves it is b + Wt with
the predictions' change t = R d, d = -B^-1 g, for which A'(b + Wt) = -lam (x + d) on S and T but for what is left of the
gradient on S and for rounding, so that formula (2) becomes

    (the fit's bound)  -  d'Bd / 2  -  (the cubic and quartic terms of KL)  -  (what those errors can cost).

No sum over rows is needed: the cubic and quartic terms obey the triangle inequality of their norms, and so does the
largest change of any row's probability. A pair that is not closed by that is held against this change itself, one pass
over the rows. Sets that are still left are evaluated row by row, with t cut off where a probability would leave [0, 1]
and formula (2) taken of what it has become (kernels/leaf_rows.py), and at last solved as a model.
``tests/kernels/test_last_place.py`` and ``test_last_pair.py`` have the slow twins.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from exactsel._jit import choose_by_type, in_numpy, njit
from exactsel.kernels.columns import Columns, columns_of
from exactsel.kernels.dual import dual_at_point, node_bound
from exactsel.kernels.leaf_candidate import Candidates, add_candidate, empty_candidates
from exactsel.kernels.leaf_cost import Margins, cost_of_one, cost_of_pair, costs_of_pairs, margins_of, steps_of_pair
from exactsel.kernels.leaf_fit import HEAVY, TOTAL, WRONG, SmallFit, empty_fit, fit_small
from exactsel.kernels.leaf_rows import bound_at_step
from exactsel.kernels.linalg import correlate, dot
from exactsel.kernels.refit import newton_refit
from exactsel.kernels.rows import is_levelled
from exactsel.losses.logistic import AdjustedLogistic, Logistic
from exactsel.rounding import UNIT
from exactsel.types import BoolArray, FloatArray, IntArray

MOST_PAIRED = 320
"""Candidates that may be evaluated in pairs; with more the relaxation fixes some to 0 first."""

MOST_LEFT = 10
"""Sets that may be evaluated row by row, as a multiple of the candidates' number: there are more where predictions are
far from zero, and then the relaxation does as well (measured: 2 to 7 where this is five times as fast, 17 where it
would be half as fast) ..."""

MOST_SOLVED = 64
"""... and models that may be solved; where there are more, the region is bounded as others are."""

SLACK = 4.0
"""A region claims this many roundings of a sum over rows less than was proven, so that other ways to add up, such as a
checker's, prove it too."""


class Ending(NamedTuple):
    """The outcome of closing a region's last places."""

    closed: bool
    bound: float
    value: float
    """The best objective met, where it is less than the caller's; else inf."""
    support: IntArray
    """(|S| + 2,) its columns, padded with -1."""
    iterations: int
    """Iterations of the relaxation, on all columns, that would take as many multiplications."""


@njit(inline=True)
def _columns_of(fit: SmallFit, found: Candidates, i: int, j: int) -> IntArray:
    k = fit.columns.size
    columns = np.empty(k + (1 if j < 0 else 2), dtype=np.int64)
    columns[:k] = fit.columns
    columns[k] = found.columns[i]
    if j >= 0:
        columns[k + 1] = found.columns[j]
    return columns


@njit(inline=True)
def _model_of(fit: SmallFit, found: Candidates, i: int, j: int, d: float, e: float) -> FloatArray:
    """The coefficients the steps d and e of candidates i and j (-1: none) lead to."""
    k = fit.columns.size
    x = np.zeros(k + (1 if j < 0 else 2))
    for a in range(k):
        x[a] = fit.x[a] - d * found.moves[i, a] - (e * found.moves[j, a] if j >= 0 else 0.0)
    x[k] = d
    if j >= 0:
        x[k + 1] = e
    return x


@njit
def _gather(
    AT: Columns, norms: FloatArray, lam: float, fit: SmallFit, bound: float, needed: float, pool: IntArray,
    slots: int, found: Candidates, stop: BoolArray,
) -> tuple[int, float]:  # fmt: skip
    """Fill the candidates the fit's own dual vector does not close; how many, and the least bound of the others.

    -1: stopped.
    """
    m, size_of_b = pool.size, np.sqrt(dot(fit.b, fit.b))
    slopes, room = np.empty(m), np.empty((4, fit.z.size))
    correlate(AT, pool, fit.b, slopes)
    most = 0.0
    rounding = 2.0 * (fit.z.size + 64) * UNIT * size_of_b + fit.level[WRONG] * fit.level[HEAVY]
    for j in range(m):
        most = max(most, abs(slopes[j]) + rounding * norms[pool[j]])
    count, lowest = 0, bound
    for j in range(m):
        own = abs(slopes[j]) + rounding * norms[pool[j]]
        square = own * own if slots == 1 else own * own + most * most
        simple = bound - square * (1.0 + 64 * UNIT) / (2.0 * lam) - 8 * UNIT * abs(bound)
        if simple >= needed:
            lowest = min(lowest, simple)
            continue
        if stop[0]:
            return -1, lowest
        add_candidate(AT, norms, lam, fit, pool[j], slopes[j], size_of_b, found, count, room)
        count += 1
    return count, lowest


@njit(sums=True)
def _eight_dots(
    a: FloatArray, b: FloatArray, c: FloatArray, d: FloatArray, v: FloatArray, w: FloatArray, out: FloatArray, at: int
) -> None:
    """Write the products of a, b, c and d with v to row 0 of ``out``, and those with w to row 1."""
    av, bv, cv, dv, aw, bw, cw, dw = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(v.size):
        av += a[i] * v[i]
        bv += b[i] * v[i]
        cv += c[i] * v[i]
        dv += d[i] * v[i]
        aw += a[i] * w[i]
        bw += b[i] * w[i]
        cw += c[i] * w[i]
        dw += d[i] * w[i]
    out[0, at], out[0, at + 1], out[0, at + 2], out[0, at + 3] = av, bv, cv, dv
    out[1, at], out[1, at + 1], out[1, at + 2], out[1, at + 3] = aw, bw, cw, dw


@in_numpy(_eight_dots)
def _eight_whole_dots(
    a: FloatArray, b: FloatArray, c: FloatArray, d: FloatArray, v: FloatArray, w: FloatArray, out: FloatArray, at: int
) -> None:
    out[0, at : at + 4] = a @ v, b @ v, c @ v, d @ v
    out[1, at : at + 4] = a @ w, b @ w, c @ w, d @ w


@njit(inline=True)
def products_of_two(rows: FloatArray, i: int, out: FloatArray) -> None:
    """Products of rows i and i + 1 (where there is one) with all rows before; ``out`` is (2, m)."""
    v, w = rows[i], rows[min(i + 1, rows.shape[0] - 1)]
    whole = i - i % 4
    for j in range(0, whole, 4):
        _eight_dots(rows[j], rows[j + 1], rows[j + 2], rows[j + 3], v, w, out, j)
    for j in range(whole, i + 1):
        if j < i:
            out[0, j] = dot(rows[j], v)
        if j < out.shape[1]:
            out[1, j] = dot(rows[j], w)


@njit
def _compare(
    fit: SmallFit, margins: Margins, bound: float, needed: float, found: Candidates, count: int, slots: int,
    waiting: IntArray, steps: FloatArray, stop: BoolArray,
) -> tuple[int, float, int]:  # fmt: skip
    """Write the sets to be evaluated row by row; how many, the least bound of the others, and passes over the rows.

    -1: too many, or stopped.
    """
    kept, lowest, passes = 0, np.inf, 0
    if slots == 1 or count == 1:
        for i in range(count):
            cost, step = cost_of_one(found, margins, i)
            if bound - cost >= needed:
                lowest = min(lowest, bound - cost)
            else:
                waiting[kept, 0], waiting[kept, 1], steps[kept, 0], steps[kept, 1] = i, -1, step, 0.0
                kept += 1
        return kept, lowest, passes
    products, costs, reaches = np.empty((2, count)), np.empty(count), np.empty(fit.z.size)
    for i in range(1, count):
        if stop[0]:
            return -1, lowest, passes
        if i % 2 == 1:
            products_of_two(found.scaled, i, products)
        costs_of_pairs(found, margins, products[1 - i % 2], i, costs)
        for j in range(i):
            cost = costs[j]
            if not bound - cost >= needed:
                passes += 1
                cost = cost_of_pair(fit, found, margins, i, j, products[1 - i % 2, j], reaches)
            if bound - cost >= needed:
                lowest = min(lowest, bound - cost)
            else:
                if kept == waiting.shape[0]:
                    return -1, lowest, passes
                waiting[kept, 0], waiting[kept, 1] = i, j
                steps[kept, 0], steps[kept, 1] = steps_of_pair(found, i, j, products[1 - i % 2, j])
                kept += 1
    return kept, lowest, passes


@njit
def _solve_set(
    problem: Any, columns: IntArray, x: FloatArray, accuracy: float, stop_above: float
) -> tuple[float, float]:
    """The bound and the value of the model on a set, from x on."""
    loss, data, y, lam = problem.loss, problem.data, problem.data.y, problem.lam
    z, b, q, v = np.empty(y.size), np.empty(y.size), np.empty(columns.size), np.empty(columns.size)
    value, norm = newton_refit(loss, columns_of(data), y, lam, columns, accuracy, x, z, stop_above)
    base = dual_at_point(loss, columns_of(data), y, data.norms, columns, z, b, q, v)
    bound = node_bound(base, q, columns.size, 0, lam, np.empty(1))
    return bound, value if norm < np.inf else np.inf


@choose_by_type("loss")
def close_last_slots(
    loss: Any, problem: Any, included: IntArray, pool: IntArray, slots: int, start: FloatArray, best: float,
    tolerance: float, accuracy: float, adopts: bool, stop: BoolArray,
) -> Ending:  # fmt: skip
    """Try to close the region (``included``, ``pool``) with one or two ``slots`` left, ``tolerance`` below ``best``.

    ``start`` (d,) is a model to begin at. Where not every model is admissible (not ``adopts``) a set that costs less
    leaves the region open, and is a proposal. Only logistic loss is served.
    """
    return Ending(False, -np.inf, np.inf, np.full(included.size + 2, -1, dtype=np.int64), 0)


@close_last_slots.register(Logistic)
def _close_logistic(
    loss: Any, problem: Any, included: IntArray, pool: IntArray, slots: int, start: FloatArray, best: float,
    tolerance: float, accuracy: float, adopts: bool, stop: BoolArray,
) -> Ending:  # fmt: skip
    rows = np.ones(problem.data.y.size)
    ending = close_slots(problem, loss, rows, included, pool, slots, start, best, tolerance, accuracy, adopts, stop)
    return Ending(ending.closed, ending.bound, ending.value, ending.support, ending.iterations)


@close_last_slots.register(AdjustedLogistic)
def _close_adjusted(
    loss: Any, problem: Any, included: IntArray, pool: IntArray, slots: int, start: FloatArray, best: float,
    tolerance: float, accuracy: float, adopts: bool, stop: BoolArray,
) -> Ending:  # fmt: skip
    flat = AdjustedLogistic(loss.weights, False)
    ending = close_slots(
        problem, flat, loss.weights, included, pool, slots, start, best, tolerance, accuracy, adopts, stop
    )
    return Ending(ending.closed, ending.bound, ending.value, ending.support, ending.iterations)


@njit
def close_slots(
    problem: Any, flat: Any, rows: FloatArray, included: IntArray, pool: IntArray, slots: int, start: FloatArray,
    best: float, tolerance: float, accuracy: float, adopts: bool, stop: BoolArray,
) -> Ending:  # fmt: skip
    """As :func:`close_last_places`, for logistic loss; ``flat`` is the loss without its intercept, ``rows`` weights."""
    AT, y, norms, lam = columns_of(problem.data), problem.data.y, problem.data.norms, problem.lam
    n, k, m = y.size, included.size, pool.size
    every, work, nothing = (
        n * AT.whole.shape[0] + AT.rows.size,
        8 * n * (k * k + 16),
        np.full(k + 2, -1, dtype=np.int64),
    )
    fit = empty_fit(included, start[included], rows, is_levelled(problem.loss))
    bound, base = fit_small(flat, AT, y, norms, lam, best - tolerance, fit)
    slack = SLACK * ((3 if fit.x.size > k else 1) * n + 64) * UNIT * (abs(bound) + fit.level[TOTAL])
    needed = best - tolerance + slack
    if not bound >= needed or stop[0]:
        return Ending(False, -np.inf, np.inf, nothing, 1 + work // every)
    found, margins = empty_candidates(m, n, k, fit.x.size), margins_of(fit, n, lam)
    count, lowest = _gather(AT, norms, lam, fit, bound, needed, pool, slots, found, stop)
    if count < 0:
        return Ending(False, -np.inf, np.inf, nothing, 1 + work // every)
    work += n * (m + count * (2 * k + 10))
    waiting, steps = np.empty((MOST_LEFT * m, 2), dtype=np.int64), np.empty((MOST_LEFT * m, 2))
    kept, least, passes = _compare(fit, margins, bound, needed, found, count, slots, waiting, steps, stop)
    work += n * (count * count * (slots - 1) // 2 + 4 * passes)
    lowest = min(lowest, least)
    if kept < 0:
        return Ending(False, -np.inf, np.inf, nothing, 1 + work // every)
    value, support, solved, b = best, nothing.copy(), 0, np.empty(n)
    for at in range(kept):
        if stop[0]:
            return Ending(False, -np.inf, np.inf, nothing, 1 + work // every)
        i, j, d, e = waiting[at, 0], waiting[at, 1], steps[at, 0], steps[at, 1]
        columns = _columns_of(fit, found, i, j)
        proven = bound_at_step(problem.loss, AT, y, norms, lam, fit, base, found, i, j, d, e, columns, b)
        work += n * (k + 16)
        if not proven >= needed:
            solved += 1
            work += 4 * n * (k + 2) * (k + 8)
            begin = _model_of(fit, found, i, j, d, e)
            proven, reached = _solve_set(problem, columns, begin, accuracy, needed + slack)
            if reached < value:
                value = reached
                support[:] = -1
                support[: columns.size] = columns
                if adopts:
                    needed = value - tolerance + slack
            if not proven >= needed or solved > MOST_SOLVED:
                return Ending(False, -np.inf, value if value < best else np.inf, support, 1 + work // every)
        lowest = min(lowest, proven)
    # More may be proven, but to tell how would take many more steps. Half the tolerance is left for a better model, at
    # which it is less, and for what a proof takes off.
    bound = min(lowest - slack, (value if adopts else best) - 0.5 * tolerance)
    return Ending(True, bound, value if value < best else np.inf, support, 1 + work // every)
