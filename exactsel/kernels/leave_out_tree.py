"""All sets of columns, of any size, whose best models come down to the level of their size: depth first, by fits.

    region (S, C): every set that holds S and no column outside of S and C; it begins with all columns in C
    fit on S and C: no set of the region has a better model
        drop the region if that is above the level of every size it has
        list S and C itself if it is not above the level of its own size
        a column of C whose leaving out would lift the fit above all levels is put into S
        the others, costliest first: c_1, c_2, ...
            continue with the region that has c_1, ..., c_(i-1) in S and c_i in neither

Every other set of the region lacks some c_i, and is in the region of the first one it lacks. With each column put into
S the sets grow larger, and for a criterion that charges columns their level falls: most regions are dropped by the fit
of the region they come from, and those that hold most sets lack the costliest column. What a column costs is taken
over from region to region, as fewer columns cost more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exactsel._jit import njit
from exactsel.kernels.leave_out import Fitting, Place, bound_without, fit_until, new_place
from exactsel.kernels.linalg import inverse_from_cholesky
from exactsel.kernels.listing import COMPLETE, STOPPED, TOO_LONG, TOO_MUCH_WORK
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.types import BoolArray, FloatArray, IntArray, StateArray

LIKELY = 0.9
"""Part of the way from a fit to the level that fixing a column to 0 must seem to cost, for that to be bounded."""

ROW_WORK = 60.0
"""Multiplications that what is done for a row is worth."""

CLOSED, OPEN, SINGULAR = 0, 1, 2

ABOVE = 1e-7
"""Part of an objective that levels stay above those of models met."""


class Levels(NamedTuple):
    """Which models count; all levels are lowered by the same amount as good models are met."""

    own: FloatArray
    """(d + 1,) no set of so many columns is listed whose models all cost at least this."""
    least: FloatArray
    """(d + 1,) the largest of these for so many columns or more."""
    best: FloatArray
    """(top,) how much the best models met cost above the levels of their sizes as these were at first; inf for none.
    The levels stay above the last of them. Of size 0 where they are not to be lowered."""
    lowered: FloatArray
    """(1,) by how much they are lower than at first."""


class Regions(NamedTuple):
    """A region for each depth, and how it is divided."""

    state: StateArray
    """(depth, d) IN for S, FREE for C, OUT."""
    costs: FloatArray
    """(depth, d) without this column no model of the region costs less."""
    order: IntArray
    """(depth, d) c_1, c_2, ..., ..."""
    counts: IntArray
    """(depth,) how many, ..."""
    following: IntArray
    """(depth,) how many of them are done with, ..."""
    included: IntArray
    """(depth,) and how many columns S has."""
    models: FloatArray
    """(depth, m) where a fit begins, and ends."""
    moves: FloatArray
    """(depth, m, m) row j: how coefficients change where column j is fixed to 0, in units of its own; minus that."""


@njit
def _new_regions(state: StateArray, start: FloatArray) -> Regions:
    d, m = state.size, start.size
    made = Regions(
        np.empty((d + 2, d), dtype=np.int8), np.full((d + 2, d), -np.inf), np.zeros((d + 2, d), dtype=np.int64),
        np.zeros(d + 2, dtype=np.int64), np.zeros(d + 2, dtype=np.int64), np.zeros(d + 2, dtype=np.int64),
        np.zeros((d + 2, m)), np.zeros((d + 2, m, m)),
    )  # fmt: skip
    made.state[0] = state
    made.models[0] = start
    return made


@njit
def _used(state: StateArray, m: int) -> tuple[IntArray, IntArray]:
    """The columns of the data that are not out; and these with those beyond the data, which always are in."""
    d = state.size
    chosen = np.flatnonzero(state != OUT)
    used = np.empty(chosen.size + m - d, dtype=np.int64)
    used[: chosen.size] = chosen
    for j in range(d, m):
        used[chosen.size + j - d] = j
    return chosen, used


@njit
def _bound_costs(
    data: Fitting, regions: Regions, depth: int, levels: Levels, value: float, K: FloatArray, chosen: IntArray,
    used: IntArray, x: FloatArray, bends: FloatArray, at: Place,
) -> int:  # fmt: skip
    """Bound the cost of fixing a column to 0 where that may be too much; fix to 1 those whose cost is too much.

    How many were bounded.
    """
    state, costs, bounded = regions.state[depth], regions.costs[depth], 0
    threshold = levels.least[regions.included[depth]]
    for a in range(chosen.size):
        j = chosen[a]
        likely = 0.5 * x[a] * x[a] >= LIKELY * (threshold - value) * K[a, a]
        if state[j] == FREE and likely and not costs[j] >= threshold:
            rest = np.empty(chosen.size - 1, dtype=np.int64)
            rest[:a] = chosen[:a]
            rest[a:] = chosen[a + 1 :]
            bound = bound_without(data, used, a, rest, x, K, bends, at)
            if bound > costs[j]:
                costs[j] = bound
            bounded += 1
    changed = True
    while changed:
        changed = False
        for j in chosen:
            if state[j] == FREE and costs[j] >= levels.least[regions.included[depth]]:
                state[j] = IN
                regions.included[depth] += 1
                changed = True
    return bounded


@njit
def _divide(
    regions: Regions, depth: int, value: float, K: FloatArray, chosen: IntArray, used: IntArray, x: FloatArray
) -> None:
    """Note how a region is divided."""
    state, count = regions.state[depth], 0
    keys = np.empty(chosen.size)
    for a in range(chosen.size):
        j = chosen[a]
        if state[j] == FREE:
            regions.order[depth, count] = j
            keys[count] = -max(value + 0.5 * x[a] * x[a] / K[a, a], regions.costs[depth, j])
            count += 1
            for b in range(used.size):
                regions.moves[depth, j, used[b]] = K[a, b] / K[a, a]
    regions.order[depth, :count] = regions.order[depth, :count][np.argsort(keys[:count])]
    regions.counts[depth], regions.following[depth] = count, 0


@njit
def _descend(regions: Regions, depth: int, first: int) -> None:
    """Write the region at the next depth: the columns before the ``first`` one that is fixed to 0 are in."""
    j, below = regions.order[depth, first], depth + 1
    regions.state[below] = regions.state[depth]
    for a in range(first):
        regions.state[below, regions.order[depth, a]] = IN
    regions.state[below, j] = OUT
    regions.included[below] = regions.included[depth] + first
    least = regions.costs[depth, j]
    for i in range(regions.state.shape[1]):
        regions.costs[below, i] = max(regions.costs[depth, i], least)
    regions.models[below] = regions.models[depth] - regions.models[depth, j] * regions.moves[depth, j]
    regions.models[below, j] = 0.0


@njit
def _lower(levels: Levels, size: int, value: float) -> None:
    """Take note of a model that was met, and lower the levels to where as many models as are wanted are below them."""
    best, above = levels.best, value - levels.lowered[0] - levels.own[size]
    if best.size == 0 or not above < best[-1]:
        return
    at = best.size - 1
    while at > 0 and best[at - 1] > above:
        best[at] = best[at - 1]
        at -= 1
    best[at] = above
    # A little above: what the model costs in the end, said of the data as given, may be a little more.
    by = -best[-1] - levels.lowered[0] - ABOVE * abs(value)
    if by > 0.0:
        levels.lowered[0] += by
        for m in range(levels.own.size):
            levels.own[m] -= by
            levels.least[m] -= by


@njit
def _look(
    data: Fitting, regions: Regions, depth: int, levels: Levels, at: Place, spare: Place
) -> tuple[int, float, float, float]:
    """Fit a region and say how it is divided: CLOSED, OPEN or SINGULAR; the objective and bound of its fit; the work.

    Where its fit is one that counts, levels are lowered by it.
    """
    state, m, n = regions.state[depth], data.ridge.size, data.y.size
    chosen, used = _used(state, m)
    x, H = regions.models[depth][used], np.empty((used.size, used.size))
    threshold = levels.least[regions.included[depth]]
    value, bound, steps = fit_until(data, used, chosen, max(threshold, levels.own[chosen.size]), x, H, at)
    each = float(n) * (used.size + ROW_WORK)
    work = steps * (each + 0.5 * float(n) * used.size * used.size) + each
    if steps < 0:
        return SINGULAR, value, bound, work
    if not bound >= levels.own[chosen.size]:
        _lower(levels, chosen.size, value)
        threshold = levels.least[regions.included[depth]]
    if bound >= threshold or regions.included[depth] == chosen.size:
        return CLOSED, value, bound, work
    regions.models[depth] = 0.0
    for a in range(used.size):
        regions.models[depth, used[a]] = x[a]
    for j in chosen:
        regions.costs[depth, j] = max(regions.costs[depth, j], bound)
    K = inverse_from_cholesky(H)
    bounded = _bound_costs(data, regions, depth, levels, value, K, chosen, used, x, at.bends, spare)
    work += 3.0 * bounded * each
    if bound >= levels.least[regions.included[depth]]:
        return CLOSED, value, bound, work
    _divide(regions, depth, value, K, chosen, used, x)
    return OPEN, value, bound, work


@njit
def list_all_sizes(
    data: Fitting, state: StateArray, start: FloatArray, levels: Levels, budget: float, stop: BoolArray,
    found: IntArray, values: FloatArray, bounds: FloatArray,
) -> tuple[int, int, int, float]:  # fmt: skip
    """List every set of columns whose best model comes below the level of its size.

    ``state`` (d,) says which columns must be in or out, ``start`` (m,) where the first fit begins. The levels are
    overwritten by those to which the list is complete; it may hold sets above them. Rows of ``found``
    (cap, d) receive the sets, padded with -1, ``values`` (cap,) about what the best models on them cost, and ``bounds``
    (cap,) what no model on them is below. Returns how it ended (as :func:`exactsel.kernels.listing.list_sets`;
    TOO_MUCH_WORK also where a fit is not to be had), the number of sets and of regions, and the multiplications done.
    Only where it says COMPLETE is every set listed.
    """
    regions = _new_regions(state, start)
    regions.included[0] = np.sum(state == IN)
    at, spare = new_place(data.y.size), new_place(data.y.size)
    depth, known, nodes, work, arrived = 0, 0, 0, 0.0, True
    while depth >= 0:
        if arrived:
            if stop[0]:
                return STOPPED, known, nodes, work
            if work > budget:
                return TOO_MUCH_WORK, known, nodes, work
            nodes += 1
            ended, value, bound, more = _look(data, regions, depth, levels, at, spare)
            work += more
            if ended == SINGULAR:
                return TOO_MUCH_WORK, known, nodes, work
            size = np.sum(regions.state[depth] != OUT)
            if not bound >= levels.own[size]:
                if known == len(found):
                    return TOO_LONG, known, nodes, work
                found[known, :] = -1
                found[known, :size] = np.flatnonzero(regions.state[depth] != OUT)
                values[known], bounds[known] = value, bound
                known += 1
            if ended == CLOSED:
                depth -= 1
        arrived = False
        if depth < 0:
            break
        first = regions.following[depth]
        if first == regions.counts[depth]:
            depth -= 1
            continue
        regions.following[depth] += 1
        if not regions.costs[depth, regions.order[depth, first]] >= levels.least[regions.included[depth] + first]:
            _descend(regions, depth, first)
            depth += 1
            arrived = True
    return COMPLETE, known, nodes, work
