"""Solve by listing: all sets of columns on which the quadratic minorant comes to U, each fitted with the loss itself.

A model that is no worse than the incumbent, P <= U, has q <= U (bounds/minorant.py), so its columns are in the list of
all sets on which q comes to U (kernels/listing.py). Every set of the list is then a convex problem with a bound of its
own; the smallest of these, or U, bounds everything. Once the sums over rows are made, rows matter for the fits only.

It pays where P at the fit on all columns is not far below U: then the list is short. Where the list grows too long, or
takes too much work, nothing is claimed. Work is counted, not timed.

For a proof the minorant is one that can be shown (bounds/shown_minorant.py), and what the listing decides is written
down; the model where each set's fit ended proves the bound of that set.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.linalg import LinAlgError

from exactsel._jit import loss_session, parallel_section
from exactsel.bounds.base import BoundOptions
from exactsel.bounds.minorant import Minorant, minorant
from exactsel.bounds.shown_minorant import shown_minorant
from exactsel.bounds.witness import ListedPoints, ModelPoint
from exactsel.kernels.listing import COMPLETE, list_sets
from exactsel.kernels.listing_record import FULL, WORDS, decisions
from exactsel.kernels.moves import LEFT_OUT
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.kernels.refit import newton_bounds
from exactsel.losses.base import curvature_known
from exactsel.losses.huber import Huber
from exactsel.problem.fit import Fit
from exactsel.problem.interface import SubsetProblem
from exactsel.problem.regression import Problem
from exactsel.types import BoolArray, FloatArray, IntArray, StateArray

LARGEST = 250
"""With more columns than this the memory of a listing, and its nodes, grow too large."""

NEAR, NEAR_HUBER = 0.9, 0.83
"""Part of U that P at the fit must come to for a listing to be tried."""

WORK = 6e9
"""Multiplications after which a listing is given up."""

LONGEST, SHORTEST = 4000, 64
"""Sets that may be listed, between these limits; fits take ..."""

FIT_WORK = 6e8
"""... so many multiplications together (a fifth of a second: where that is not enough the search is often shorter)."""

QUICK = 1e-8
"""Times the problem's gradient scale: where a quick fit ends at the latest, and ..."""

HOPELESS = 1e-9
"""... by what part of U a set must be above it for a fit to end before."""

MOST_WORDS = 1 << 22
"""Words about what a listing decided; where there are more, it is not used for a proof."""

FIT_STEPS, ROW_WORK, ROW_WORK_HUBER = 5, 150, 10
"""Newton steps a fit takes, about, and the multiplications a row's loss is worth in each (no logarithms for Huber)."""


@dataclass(frozen=True)
class Listed:
    """What a complete listing brought."""

    bound: float
    """No model of the region is below this."""
    fit: Fit | None
    """The best model met, None if none is better than the incumbent."""
    sets: IntArray
    """(count, k at most) the sets that were fitted, padded with -1."""
    nodes: int
    """Regions the listing looked at."""
    points: ListedPoints | None = None
    """What proves it, where that was asked for."""


def listable(problem: SubsetProblem) -> bool:
    """Whether a listing can be thought of: columns one by one, and a loss with a curvature on intervals."""
    objective = problem.objective
    return (
        objective is not None and not objective.is_quadratic and objective.lam > 0.0 and problem.d <= LARGEST
        and problem.family == "regression" and problem.units.free_columns and curvature_known(objective.loss)
    )  # fmt: skip


class Lister:
    """Bound to one problem and a good model of it; a pure function of what :meth:`explore` is given."""

    def __init__(self, problem: Problem, coef: FloatArray, options: BoundOptions, shown: bool = False) -> None:
        """With ``shown`` only what comes with a proof will do."""
        self._problem, self._coef, self._options, self._shown = problem, coef, options, shown

    @property
    def stopped(self) -> bool:
        """Whether it was told to stop: then what it did not find means nothing."""
        return bool(self._options.stop[0])

    def explore(self, state: StateArray, upper: float) -> Listed | None:
        """A region (d,) by listing, where some model is known to cost ``upper``; None where that is not to be had."""
        return by_listing(self._problem, state, upper, self._coef, self._options, self._shown)


def by_listing(
    problem: Problem, state: StateArray, upper: float, coef: FloatArray, options: BoundOptions, shown: bool = False
) -> Listed | None:  # fmt: skip
    """A region by listing; None where that is not to be had. ``coef`` (d,) is a good model, ``upper`` is U.

    With ``shown`` it comes with what proves it.
    """
    places = problem.k - int(np.count_nonzero(state == IN))
    if not (math.isfinite(upper) and 0 < places < np.count_nonzero(state == FREE)):
        return None
    least, row_work = (NEAR_HUBER, ROW_WORK_HUBER) if isinstance(problem.loss, Huber) else (NEAR, ROW_WORK)
    below = minorant(problem.objective, upper, coef, least, options.stop, options.threads)
    witness = None
    if below is not None and shown:
        witness = shown_minorant(problem.objective, below, upper, options.stop, options.threads)
        below = None if witness is None else witness.below
    if below is None or options.stop[0]:
        return None
    fit_work = FIT_STEPS * problem.n * (row_work + problem.k**2)
    longest = int(min(LONGEST, max(SHORTEST, FIT_WORK / fit_work)))
    sets, words, nodes = listed_sets(below, state, places, options.stop, longest, MOST_WORDS if shown else 0)
    if sets is None:
        return None
    outcome = fitted(problem, sets, _starts(below, sets, problem.d), upper, nodes, options)
    if outcome is None:
        return None
    listed, models = outcome
    if witness is None:
        return listed
    return replace(listed, points=ListedPoints(words, models, witness.touching, witness.widths))


def listed_sets(
    below: Minorant, state: StateArray, places: int, stop: BoolArray, longest: int, room: int = 0, work: float = WORK
) -> tuple[IntArray | None, IntArray, int]:
    """All sets of the region whose minorant comes to its level, padded with -1.

    None where they are more than ``longest``, or take too much work, or more than ``room`` words where that is not 0.
    ``state`` (d,) is that of the columns. Also what was decided, if there is room for words, and the nodes it took.
    """
    q, d = below.quadratic, len(state)
    used = np.append(np.flatnonzero(state != OUT), np.arange(d, len(q.h)))
    inside = np.where(np.append(state, np.full(len(q.h) - d, IN))[used] == IN, IN, FREE).astype(np.int8)
    part = q._replace(
        H=np.ascontiguousarray(q.H[np.ix_(used, used)]), h=np.ascontiguousarray(q.h[used]),
        lengths=np.ascontiguousarray(q.lengths[used]),
    )  # fmt: skip
    found = np.full((longest, int(np.count_nonzero(inside == IN)) + places), -1, dtype=np.int64)
    made = decisions(room, len(part.h))
    ended, count, nodes, _ = list_sets(part, inside, places, below.level, work, stop, found, made)
    words = made.words[: made.counts[WORDS]]
    if ended != COMPLETE or (room and made.counts[FULL]):
        return None, words, nodes
    about = words & 7 <= LEFT_OUT
    words[about] = 8 * used[words[about] >> 3] + (words[about] & 7)
    sets = np.where(found[:count] >= 0, used[found[:count]], -1)
    return np.where(sets < d, sets, -1), words, nodes


def fitted(
    problem: Problem, sets: IntArray, models: FloatArray, upper: float, nodes: int, options: BoundOptions
) -> tuple[Listed, tuple[ModelPoint, ...]] | None:
    """Fit the loss on every set of a complete list; None when told to stop midway. Also the models that prove bounds.

    ``models`` (like ``sets``) are the coefficients to begin at; they are overwritten.

    First quickly, until a set is seen to be no better than U; those that are not are then fitted to the end.
    """
    objective = problem.objective
    bounds, hopeless = np.empty(len(sets)), upper + HOPELESS * abs(upper)
    with loss_session(problem.loss), parallel_section(options.threads):
        newton_bounds(
            problem.row_loss, problem.raw.AT, problem.y, problem.raw.norms, problem.lam, sets,
            QUICK * problem.gradient_scale, hopeless, options.stop, bounds, models,
        )  # fmt: skip
    points = [_point(columns[columns >= 0], x) for columns, x in zip(sets, models, strict=True)]
    best = None
    for i in np.flatnonzero(~(bounds >= upper)).tolist():
        if options.stop[0]:
            return None
        chosen = sets[i][sets[i] >= 0]
        fit = problem.fit(chosen)
        region: StateArray = np.full(problem.d, OUT, dtype=np.int8)
        region[chosen] = IN
        better = objective.dual_bound(fit.coef, region, chosen.size)
        if not bounds[i] >= better:
            bounds[i], points[i] = better, ModelPoint.from_dense(fit.coef)
        if fit.value < (upper if best is None else best.value):
            best = fit
    lowest = float(np.min(bounds, initial=upper))
    return (Listed(lowest, best, sets, nodes), tuple(points)) if math.isfinite(lowest) else None


def _starts(below: Minorant, sets: IntArray, d: int) -> FloatArray:
    """The model with the least minorant on each set, its coefficients in the order of the set's columns."""
    q, models, there = below.quadratic, np.zeros(sets.shape), sets >= 0
    sizes = np.count_nonzero(there, axis=1)
    for size in np.unique(sizes).tolist():
        rows = np.flatnonzero(sizes == size)
        chosen = sets[rows][there[rows]].reshape(len(rows), size)
        columns = np.hstack([chosen, np.broadcast_to(np.arange(d, len(q.h)), (len(rows), len(q.h) - d))])
        try:
            x = np.linalg.solve(q.H[columns[:, :, None], columns[:, None, :]], q.h[columns][:, :, None])[:, :size, 0]
        except LinAlgError:
            continue
        models[rows, :size] = x * below.scale[chosen]
    return models


def _point(columns: IntArray, x: FloatArray) -> ModelPoint:
    """The model with the first of some coefficients on these columns."""
    order = np.argsort(columns)
    return ModelPoint(columns[order].astype(np.int32), x[order])
