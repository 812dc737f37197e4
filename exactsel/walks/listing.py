"""Solve by listing: all sets of columns on which the quadratic minorant comes to U, each fitted with the loss itself.

A model that is no worse than the incumbent, P <= U, has q <= U (bounds/minorant.py), so its columns are in the list of
all sets on which q comes to U (kernels/listing.py). Every set of the list is then a convex problem with a bound of its
own; the smallest of these, or U, bounds everything. Once the sums over rows are made, rows matter for the fits only.

It pays where P at the fit on all columns is not far below U: then the list is short. Where the list grows too long, or
takes too much work, nothing is claimed. Work is counted, not timed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from exactsel._jit import loss_session, parallel_section
from exactsel.bounds.base import BoundOptions
from exactsel.bounds.minorant import Minorant, minorant
from exactsel.kernels.listing import COMPLETE, list_sets
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

FIT_WORK = 4e9
"""... so many multiplications together."""

QUICK = 1e-8
"""Times the problem's gradient scale: where a quick fit ends at the latest, and ..."""

HOPELESS = 1e-9
"""... by what part of U a set must be above it for a fit to end before."""

FIT_STEPS = 10
"""Newton steps a fit takes, about."""


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


def listable(problem: SubsetProblem) -> bool:
    """Whether a listing can be thought of: columns one by one, and a loss with a curvature on intervals."""
    objective = problem.objective
    return (
        objective is not None and not objective.is_quadratic and objective.lam > 0.0 and problem.d <= LARGEST
        and problem.family == "regression" and problem.units.free_columns and curvature_known(objective.loss)
    )  # fmt: skip


class Lister:
    """Bound to one problem and a good model of it; a pure function of what :meth:`explore` is given."""

    def __init__(self, problem: Problem, coef: FloatArray, options: BoundOptions) -> None:
        self._problem, self._coef, self._options = problem, coef, options

    @property
    def stopped(self) -> bool:
        """Whether it was told to stop: then what it did not find means nothing."""
        return bool(self._options.stop[0])

    def explore(self, state: StateArray, upper: float) -> Listed | None:
        """A region (d,) by listing, where some model is known to cost ``upper``; None where that is not to be had."""
        return by_listing(self._problem, state, upper, self._coef, self._options)


def by_listing(
    problem: Problem, state: StateArray, upper: float, coef: FloatArray, options: BoundOptions
) -> Listed | None:  # fmt: skip
    """A region by listing; None where that is not to be had. ``coef`` (d,) is a good model, ``upper`` is U."""
    places = problem.k - int(np.count_nonzero(state == IN))
    if not (math.isfinite(upper) and 0 < places < np.count_nonzero(state == FREE)):
        return None
    least = NEAR_HUBER if isinstance(problem.loss, Huber) else NEAR
    below = minorant(problem.objective, upper, coef, least, options.stop)
    if below is None or options.stop[0]:
        return None
    longest = int(min(LONGEST, max(SHORTEST, FIT_WORK / (FIT_STEPS * problem.n * problem.k**2))))
    sets, nodes = listed_sets(below, state, places, options.stop, longest)
    return None if sets is None else fitted(problem, sets, upper, nodes, options)


def listed_sets(
    below: Minorant, state: StateArray, places: int, stop: BoolArray, longest: int, work: float = WORK
) -> tuple[IntArray | None, int]:  # fmt: skip
    """All sets of the region whose minorant comes to its level, padded with -1, and the nodes it took.

    None where they are more than ``longest``, or take too much work. ``state`` (d,) is that of the columns.
    """
    q, d = below.quadratic, len(state)
    used = np.append(np.flatnonzero(state != OUT), np.arange(d, len(q.h)))
    inside = np.where(np.append(state, np.full(len(q.h) - d, IN))[used] == IN, IN, FREE).astype(np.int8)
    part = q._replace(
        H=np.ascontiguousarray(q.H[np.ix_(used, used)]), h=np.ascontiguousarray(q.h[used]),
        lengths=np.ascontiguousarray(q.lengths[used]),
    )  # fmt: skip
    found = np.full((longest, int(np.count_nonzero(inside == IN)) + places), -1, dtype=np.int64)
    ended, count, nodes, _ = list_sets(part, inside, places, below.level, work, stop, found)
    if ended != COMPLETE:
        return None, nodes
    sets = np.where(found[:count] >= 0, used[found[:count]], -1)
    return np.where(sets < d, sets, -1), nodes


def fitted(
    problem: Problem, sets: IntArray, upper: float, nodes: int, options: BoundOptions
) -> Listed | None:  # fmt: skip
    """Fit the loss on every set of a complete list; None when told to stop midway.

    First quickly, until a set is seen to be no better than U; those that are not are then fitted to the end.
    """
    objective = problem.objective
    bounds, hopeless = np.empty(len(sets)), upper + HOPELESS * abs(upper)
    with loss_session(problem.loss), parallel_section(options.threads):
        newton_bounds(
            problem.row_loss, problem.raw.AT, problem.y, problem.raw.norms, problem.lam, sets,
            QUICK * problem.gradient_scale, hopeless, options.stop, bounds,
        )  # fmt: skip
    best = None
    for i in np.flatnonzero(~(bounds >= upper)).tolist():
        if options.stop[0]:
            return None
        chosen = sets[i][sets[i] >= 0]
        fit = problem.fit(chosen)
        region: StateArray = np.full(problem.d, OUT, dtype=np.int8)
        region[chosen] = IN
        bounds[i] = np.fmax(bounds[i], objective.dual_bound(fit.coef, region, chosen.size))
        if fit.value < (upper if best is None else best.value):
            best = fit
    lowest = float(np.min(bounds, initial=upper))
    return Listed(lowest, best, sets, nodes) if math.isfinite(lowest) else None
