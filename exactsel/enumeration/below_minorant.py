"""Enumeration of all sets of columns on which the quadratic minorant is at most U, each fitted with the loss itself.

A model that is no worse than the incumbent, P <= U, has q <= U (bounds/minorant.py), so its columns are in the list of
all sets on which q is at most U (kernels/listing.py). Every set of the list is then a convex problem with a bound of
its own; the smallest of these, or U, bounds everything. Once the sums over rows are made, rows matter for the fits
only.

It pays where P at the fit on all columns is not far below U: then the list is short. Where the list grows too long, or
takes too much work, nothing is claimed. Work is counted, not timed.

For a proof the minorant is one that can be shown (bounds/minorant_certificate.py), and what the listing decides is
written down; the model where each set's fit ended proves the bound of that set.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeGuard

import numpy as np

from exactsel._jit import parallel_section
from exactsel.bounds.base import BoundOptions
from exactsel.bounds.minorant import Minorant, minorant
from exactsel.bounds.minorant_certificate import Shown, minorant_certificate
from exactsel.bounds.witness import ListedPoints, ModelPoint
from exactsel.enumeration.minorant_cuts import Shortened, fit_to_the_end, least_models, shortened
from exactsel.enumeration.minorant_restricted import MOST_CLOSED, RestrictedSets
from exactsel.enumeration.minorant_restricted import WORK as RESTRICTED_WORK
from exactsel.kernels.listing import COMPLETE, list_sets
from exactsel.kernels.listing_record import FULL, WORDS, decisions
from exactsel.kernels.moves import LEFT_OUT
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.kernels.refit import newton_bounds
from exactsel.losses.base import curvature_known
from exactsel.losses.huber import Huber
from exactsel.problem.capabilities import CLOSED_FORM, PLAIN_REGRESSION
from exactsel.problem.fit import Fit
from exactsel.problem.interface import SubsetProblem, is_regression
from exactsel.problem.regression import Problem
from exactsel.types import BoolArray, FloatArray, IntArray, StateArray
from exactsel_mapped import is_kept

LARGEST = 250
"""With more columns than this the memory of a listing, and its nodes, grow too large."""

NEAR, NEAR_HUBER = 0.9, 0.83
"""Part of U that P at the fit must reach for a listing to be tried."""

WORK = 6e9
"""Multiplications after which a listing is given up."""

LONGEST, SHORTEST = 4000, 64
"""Sets that may be listed, between these limits; fits take ..."""

FIT_WORK = 6e8
"""... so many multiplications together (a fifth of a second: where that is not enough the search is often shorter)."""

MOST_LISTED = 10_000
"""Sets that may be listed where more minorants shorten the list."""

ATTEMPTS = 3
"""Times that better models are looked for where a list is too long."""

HALFWAY = 0.5
"""Where the q touches P by which better models are looked for, on the way from the fit to the best known, ..."""

FEW_LISTED, HALVINGS, FEW_WORK = 4000, 6, 5e8
"""... how many sets it may list, at levels that are halved in, so often, and the multiplications of all that."""

QUICK = 1e-8
"""Times the problem's gradient scale: where a quick fit ends at the latest, and ..."""

HOPELESS = 1e-9
"""... by what part of U a set must be above it for a fit to end before."""

MOST_WORDS = 1 << 22
"""Words about what a listing decided; where there are more, it is not used for a proof."""

ROW_NUMBERS, ENTRIES_AT_ONCE = 8, 32e6
"""Numbers a fit keeps for each row, and how many of them, of data in a file, threads may keep together."""

FIT_STEPS, ROW_WORK, ROW_WORK_HUBER = 5, 150, 10
"""Newton steps a fit takes, about, and the multiplications a row's loss is worth in each (no logarithms for Huber)."""


@dataclass(frozen=True)
class Listed:
    """What a complete listing brought."""

    bound: float
    """No model of the region is below this; -infinity where all that came of it is a better model."""
    fit: Fit | None
    """The best model met, None if none is better than the incumbent."""
    sets: IntArray
    """(count, k at most) the sets that were listed, padded with -1."""
    nodes: int
    """Regions the listing examined."""
    points: ListedPoints | None = None
    """Its proof, on request."""


class ListedSets(NamedTuple):
    """The outcome of an enumeration."""

    sets: IntArray | None
    """(count, k at most), padded with -1."""
    words: IntArray
    """What was decided, if there was room for that."""
    nodes: int
    """Regions it examined."""
    work: float
    """Multiplications, roughly."""


def row_work_of(problem: Problem) -> float:
    """What the loss of a row is worth, in multiplications."""
    return ROW_WORK_HUBER if isinstance(problem.loss, Huber) else ROW_WORK


def fit_work_of(problem: Problem) -> float:
    """Multiplications of a fit of k columns."""
    return FIT_STEPS * problem.n * (row_work_of(problem) + problem.k**2)


def listable(problem: SubsetProblem) -> TypeGuard[Problem]:
    """Whether a listing can be thought of: columns one by one, and a loss with a curvature on intervals."""
    return (
        is_regression(problem, PLAIN_REGRESSION) and not problem.has(CLOSED_FORM) and problem.lam > 0.0
        and problem.d <= LARGEST and problem.units.free_columns and curvature_known(problem.loss)
    )  # fmt: skip


class MinorantEnumerator:
    """Bound to one problem and a good model of it; a pure function of what :meth:`explore` is given."""

    def __init__(
        self, problem: Problem, coef: FloatArray, options: BoundOptions, shown: bool = False,
        restricted: RestrictedSets | None = None,
    ) -> None:  # fmt: skip
        """With ``shown`` only what comes with a proof will do; ``restricted`` where ``problem`` is one without its
        restrictions.
        """
        self._problem, self._coef, self._options, self._shown = problem, coef, options, shown
        self._restricted = restricted

    @property
    def stopped(self) -> bool:
        """Whether it was stopped: then its list is incomplete and proves nothing."""
        return bool(self._options.stop[0])

    def explore(self, state: StateArray, upper: float) -> Listed | None:
        """A region (d,) by listing, where some model is known to cost ``upper``; None where that is not to be had."""
        return by_listing(self._problem, state, upper, self._coef, self._options, self._shown, self._restricted)


def by_listing(
    problem: Problem, state: StateArray, upper: float, coef: FloatArray, options: BoundOptions, shown: bool = False,
    restricted: RestrictedSets | None = None,
) -> Listed | None:  # fmt: skip
    """A region by listing; None where that is not to be had. ``coef`` (d,) is a good model, ``upper`` is U.

    With ``shown`` it comes with what proves it. For a problem whose restrictions were dropped, ``restricted`` gives the
    costs of its models.
    """
    slots = problem.k - int(np.count_nonzero(state == IN))
    if not (math.isfinite(upper) and 0 < slots < np.count_nonzero(state == FREE)):
        return None
    region = _Region(problem, state, slots, options, restricted)
    listing, too_long = region.tried(upper, coef, shown, region.least)
    best: Fit | None = None
    for _ in range(ATTEMPTS):
        if not too_long or options.stop[0] or restricted is not None:
            break
        better = region.better(upper, coef)
        if better is None:
            break
        best, upper, coef = better, better.value, better.coef
        listing, too_long = region.tried(upper, coef, shown, 0.0)
    if options.stop[0] or (listing is None and best is None):
        return None
    if listing is None:
        return Listed(-math.inf, best, np.empty((0, 0), dtype=np.int64), 0)
    return replace(listing, fit=listing.fit or best)


@dataclass(frozen=True)
class _Region:
    """A region to be listed, and how."""

    problem: Problem
    state: StateArray
    slots: int
    options: BoundOptions
    restricted: RestrictedSets | None

    @property
    def least(self) -> float:
        """The part of U that P at the fit must reach."""
        return NEAR_HUBER if isinstance(self.problem.loss, Huber) else NEAR

    @property
    def affordable(self) -> int:
        """How many sets may be fitted."""
        return int(min(LONGEST, max(SHORTEST, FIT_WORK / fit_work_of(self.problem))))

    def tried(self, upper: float, coef: FloatArray, with_proof: bool, least: float) -> tuple[Listed | None, bool]:
        """What a listing brings, if it can be made, and whether it is too long."""
        problem, options = self.problem, self.options
        if with_proof:
            witness = self._witness(upper, coef, least)
            return (None, False) if witness is None else self._shown(witness, upper)
        below = minorant(problem.objective, upper, coef, least, options.stop, options.threads)
        if below is None:
            return None, False
        if self.restricted is not None:
            return self._under_restrictions(below, upper, self.restricted)
        longest = MOST_LISTED if self.affordable > 0 else 0
        sets, _, nodes, _ = listed_sets(below, self.state, self.slots, options.stop, longest)
        if sets is None:
            return None, True
        shortlist = self._shortened(below, sets, upper)
        if shortlist is None or len(shortlist.sets) > self.affordable:
            return None, False
        outcome = fitted(problem, shortlist.sets, shortlist.models, shortlist.upper, nodes, options)
        if outcome is None:
            return None, False
        listing = outcome[0]
        return Listed(min(listing.bound, shortlist.bound), listing.fit or shortlist.best, sets, nodes), False

    def _under_restrictions(self, below: Minorant, upper: float, by: RestrictedSets) -> tuple[Listed | None, bool]:
        """The same where models of the problem without its restrictions are none to go by: no list is cut."""
        sets, _, nodes, _ = listed_sets(
            below, self.state, self.slots, self.options.stop, self.affordable, work=RESTRICTED_WORK
        )
        if sets is None:
            return None, False
        starts = least_models(below, sets, self.problem.d)
        outcome = fitted(self.problem, sets, starts, upper, nodes, self.options, by)
        return None if outcome is None else outcome[0], False

    def _witness(self, upper: float, coef: FloatArray, least: float) -> Shown | None:
        """A minorant that can be shown; without its intervals, which fits have no use for."""
        objective, options = self.problem.objective, self.options
        below = minorant(objective, upper, coef, least, options.stop, options.threads)
        if below is None:
            return None
        witness = minorant_certificate(objective, below, upper, options.stop, options.threads)
        if witness is None:
            return None
        return witness._replace(below=witness.below._replace(low=np.empty(0), high=np.empty(0)))

    def _shown(self, witness: Shown, upper: float) -> tuple[Listed | None, bool]:
        """The same with what proves it: all sets that this minorant leaves are fitted."""
        sets, words, nodes, _ = listed_sets(
            witness.below,
            self.state,
            self.slots,
            self.options.stop,
            self.affordable,
            MOST_WORDS,
            WORK if self.restricted is None else RESTRICTED_WORK,
        )
        if sets is None:
            return None, True
        starts = least_models(witness.below, sets, self.problem.d)
        outcome = fitted(self.problem, sets, starts, upper, nodes, self.options, self.restricted)
        if outcome is None:
            return None, False
        points = ListedPoints(words, outcome[1], witness.touching, witness.widths)
        return replace(outcome[0], points=points), False

    def _shortened(self, below: Minorant, sets: IntArray, upper: float, any_better: bool = False) -> Shortened | None:
        each = fit_work_of(self.problem)
        return shortened(
            self.problem, below, sets, upper, each, row_work_of(self.problem), self.affordable * each, self.options,
            any_better,
        )  # fmt: skip

    def better(self, upper: float, coef: FloatArray) -> Fit | None:
        """A better model than that which is known, from the sets with the least q; None where they have none."""
        below = minorant(self.problem.objective, upper, coef, 0.0, self.options.stop, self.options.threads, HALFWAY)
        if below is None:
            return None
        sets = self._few(below)
        shortlist = None if sets is None else self._shortened(below, sets, upper, any_better=True)
        if shortlist is None or shortlist.best is not None:
            return None if shortlist is None else shortlist.best
        rows = slice(0, SHORTEST)
        outcome = fitted(self.problem, shortlist.sets[rows], shortlist.models[rows], shortlist.upper, 0, self.options)
        return None if outcome is None else outcome[0].fit

    def _few(self, below: Minorant) -> IntArray | None:
        """The sets on which a minorant reaches a lower level than its own, where they are few but not too few."""
        q = below.quadratic
        least, sets = -0.5 * float(q.h @ np.linalg.solve(q.H, q.h)), None
        low, high, work = 0.0, 1.0, FEW_WORK
        for _ in range(HALVINGS):
            share = 0.5 * (low + high)
            lower = below._replace(threshold=least + share * (below.threshold - least))
            listing = listed_sets(lower, self.state, self.slots, self.options.stop, FEW_LISTED, work=work)
            work -= listing.work
            if listing.sets is None:
                high = share
            else:
                low, sets = share, listing.sets
            if work <= 0.0 or (listing.sets is not None and len(listing.sets) > FEW_LISTED // 4):
                break
        return sets


def listed_sets(
    below: Minorant, state: StateArray, slots: int, stop: BoolArray, longest: int, room: int = 0, work: float = WORK
) -> ListedSets:
    """All sets of the region whose minorant reaches its level.

    None where they are more than ``longest``, or take too much work, or more than ``room`` words where that is not 0.
    ``state`` (d,) is that of the columns.
    """
    q, d = below.quadratic, len(state)
    used = np.append(np.flatnonzero(state != OUT), np.arange(d, len(q.h)))
    included = np.where(np.append(state, np.full(len(q.h) - d, IN))[used] == IN, IN, FREE).astype(np.int8)
    part = q._replace(
        H=np.ascontiguousarray(q.H[np.ix_(used, used)]), h=np.ascontiguousarray(q.h[used]),
        lengths=np.ascontiguousarray(q.lengths[used]),
    )  # fmt: skip
    positions = np.full((longest, int(np.count_nonzero(included == IN)) + slots), -1, dtype=np.int64)
    record = decisions(room, len(part.h))
    ended, count, nodes, spent = list_sets(part, included, slots, below.threshold, work, stop, positions, record)
    words = record.words[: record.counts[WORDS]]
    if ended != COMPLETE or (room and record.counts[FULL]):
        return ListedSets(None, words, nodes, spent)
    about = words & 7 <= LEFT_OUT
    words[about] = 8 * used[words[about] >> 3] + (words[about] & 7)
    sets = np.where(positions[:count] >= 0, used[positions[:count]], -1)
    return ListedSets(np.where(sets < d, sets, -1), words, nodes, spent)


def fitted(
    problem: Problem, sets: IntArray, models: FloatArray, upper: float, nodes: int, options: BoundOptions,
    restricted: RestrictedSets | None = None,
) -> tuple[Listed, tuple[ModelPoint, ...]] | None:  # fmt: skip
    """Fit the loss on every set of a complete list; None after a stop midway. Also the models that prove bounds.

    None, too, where restrictions leave open what the models of a set cost.

    ``models`` (like ``sets``) are the coefficients to begin at; they are overwritten.

    First quickly, until a set is seen to be no better than U; those that are not are then fitted to the end.
    """
    bounds, stop_above = np.empty(len(sets)), upper + HOPELESS * abs(upper)
    threads = options.threads
    if is_kept(problem.A):
        threads = int(max(1, min(threads, ENTRIES_AT_ONCE // (ROW_NUMBERS * problem.n))))
    with parallel_section(threads):
        newton_bounds(
            problem.row_loss, problem.raw.AT, problem.y, problem.raw.norms, problem.lam, sets,
            problem.objective.gradient_tolerance(QUICK), stop_above, options.stop, bounds, models,
        )  # fmt: skip
    points = [_point(columns[columns >= 0], x) for columns, x in zip(sets, models, strict=True)]
    best, doubtful = None, np.flatnonzero(~(bounds >= upper)).tolist()
    if restricted is not None and len(doubtful) > MOST_CLOSED:
        return None
    for i in doubtful:
        if options.stop[0]:
            return None
        chosen = sets[i][sets[i] >= 0]
        if restricted is not None:
            closed = restricted.closed(chosen, upper)
            if closed is None:
                return None
            bounds[i], proof, better_fit = closed
            points[i] = points[i] if proof is None else proof
            best = better_fit if best is None or (better_fit is not None and better_fit.value < best.value) else best
            continue
        fit, better = fit_to_the_end(problem, chosen)
        if not bounds[i] >= better:
            bounds[i], points[i] = better, ModelPoint.from_dense(fit.coef)
        if fit.value < (upper if best is None else best.value):
            best = fit
    lowest = float(np.min(bounds, initial=upper))
    return (Listed(lowest, best, sets, nodes), tuple(points)) if math.isfinite(lowest) else None


def _point(columns: IntArray, x: FloatArray) -> ModelPoint:
    """The model with the first of some coefficients on these columns."""
    order = np.argsort(columns)
    return ModelPoint(columns[order].astype(np.int32), x[order])
