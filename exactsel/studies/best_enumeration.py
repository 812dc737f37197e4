"""A size at once: the sets of columns that quadratic minorants leave below a level, each fitted with the loss itself.

A model whose objective reaches the level lies on a set of columns on which a minorant of the objective on {P <= level}
reaches it (:mod:`exactsel.bounds.minorant`). A kernel enumerates these sets
(:mod:`exactsel.enumeration.below_minorant`). More minorants, each made where the last ones are weakest, shorten the
list (:mod:`exactsel.enumeration.minorant_cuts`). For quadratic loss the minorant is the objective. Every set that
remains has a bound of its own. So what is known afterwards is every model up to the level, and that no other is.

Where a fit takes little time all sizes are listed together before that, by fits
(:mod:`exactsel.enumeration.all_sizes`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from exactsel._jit import interpreted, parallel_section
from exactsel.algebra.threads import one_thread
from exactsel.bounds.base import BoundOptions
from exactsel.bounds.minorant import Minorant, minorant
from exactsel.enumeration.all_sizes import serves, sizes_listed
from exactsel.enumeration.below_minorant import LARGEST, QUICK, fit_work_of, listed_sets, row_work_of
from exactsel.enumeration.minorant_cuts import proven_at, shortened
from exactsel.kernels.listing_cuts import raise_bounds
from exactsel.kernels.node import FREE, IN
from exactsel.kernels.refit import newton_bounds
from exactsel.problem.boxed import with_free_coefficients
from exactsel.problem.capabilities import QUADRATIC_LOSS
from exactsel.problem.regression import Problem
from exactsel.search.watch import Watch
from exactsel.solving.outcome import Termination
from exactsel.solving.small import is_small
from exactsel.studies.best_search import AcrossSizes
from exactsel.studies.pool_search import OpenRegion, RegionSolver, SolutionPool
from exactsel.studies.size_supports import meets
from exactsel.types import FloatArray, IntArray

FEW_SETS = 3000
"""Where a small problem has no more sets of any size than this, no kernel is loaded for them."""

MOST_SETS = 200_000
"""Sets that a minorant may leave to be evaluated."""

NEARER = 0.45
"""Where minorants touch, on the way from the fit on all columns to the best model known: levels are further above that
one than in a search (lists of all sizes together have 22,000 sets where they have 97,000 at .75)."""

SHARE = 0.5
"""Part of the time left in which all sizes are to be listed together; after that there are other ways."""

FEW_LEFT = 50
"""So many are fitted as they are."""

NO_MINORANT = "no_minorant"
"""Why a pool is left as it is."""


class _Sets(NamedTuple):
    """What minorants leave."""

    sets: IntArray
    """(count, k at most) columns, padded with -1."""
    bounds: FloatArray
    """(count,) no model on a set is below its bound, as far as that is below what the list goes to."""


@dataclass
class SizeEnumeration(RegionSolver):
    """Fills the pool of a size at once, and leaves it as it is where that cannot be done."""

    across: AcrossSizes
    cap: int
    """Models of one size after which the list is cut short."""
    work: float = math.inf
    """Multiplications that enumerating a size may take."""
    valid_for: str = ""
    """A restriction under which its threshold may be one, in words."""

    @cached_property
    def loaded(self) -> bool:
        """Whether what it takes is worth being loaded."""
        problem, sizes = self.across.problem, self.across.sizes
        free = int(np.count_nonzero(problem.root_state == FREE))
        return not is_small(problem) or max(math.comb(free, min(size, free)) for size in sizes) > FEW_SETS

    def possible(self, size: int) -> bool:
        """Whether a size can be thought of: some of the columns are to be chosen, one by one."""
        problem = self.across.by_size[size].problem
        state = problem.root_state
        slots, free = size - int(np.count_nonzero(state == IN)), int(np.count_nonzero(state == FREE))
        return self.loaded and 0 < slots < free and problem.d <= LARGEST

    def fill_all(self, pools: Mapping[int, SolutionPool], top: int, falling: bool) -> set[int]:
        """Fill the pools of these sizes together; those of which that can be done, none where it takes too long.

        ``falling`` thresholds fall as better models, ``top`` of them, become known.
        """
        study, problem = self.across, with_free_coefficients(self.across.problem)
        sizes = [size for size in pools if self.possible(size)]
        if not sizes or not serves(problem):
            return set()
        levels = np.full(problem.d + 1, -np.inf)
        levels[sizes] = [self._needed(pools[size]) for size in sizes]
        # Sets are listed whether they meet a constraint or not, so those met are no models to go by.
        falling = falling and problem.units.constraint is None
        signals, remaining = study.options.get("signals", ()), study.time_left
        with (
            Watch(None if remaining is None else SHARE * remaining, signals) as watch,
            one_thread(),
            interpreted(False),
        ):
            listing = sizes_listed(problem, levels, top if falling else 0, watch.flag)
            if watch.interrupted:
                study.terminations.append(Termination.INTERRUPTED.value)
        if listing is None:
            return set()
        counts = np.count_nonzero(listing.sets >= 0, axis=1)
        for row, columns in enumerate(listing.sets):
            support = tuple(columns[: counts[row]].tolist())
            if meets(problem.units, support):
                study.known.guess(support, float(listing.values[row]))
        study.known.firm(top)
        filled = set()
        for size in sizes:
            pools[size].renew()
            needed = self._needed(pools[size])
            mask = (counts == size) & ~(listing.bounds >= needed)
            sets = _Sets(np.ascontiguousarray(listing.sets[mask, : max(size, 1)]), listing.bounds[mask])
            if needed <= listing.levels[size] and not self._take(pools[size], sets, needed):
                filled.add(size)
        return filled

    def empty(self, pool: SolutionPool, regions: list[OpenRegion]) -> str:
        """Add every model of the size; ``no_minorant`` where no minorants leave few sets, or that takes too much."""
        study, size = self.across, pool.problem.k
        if not self.possible(size):
            return NO_MINORANT
        problem = with_free_coefficients(study.by_size[size].problem)
        needed = self._needed(pool)
        threads, signals = study.threads, study.options.get("signals", ())
        with Watch(study.time_left, signals) as watch, one_thread(), interpreted(False):
            options = BoundOptions(threads, stop=watch.flag)
            coef = study.known.fitted(study.known.best_within(size)).coef
            below = minorant(problem.objective, needed, coef, 0.0, watch.flag, threads, NEARER, without_ridge=True)
            sets = None if below is None else _sets(problem, below, needed, self.work, options)
            if watch.stopped:
                study.terminations.append(watch.reason or Termination.TIME_LIMIT.value)
        return NO_MINORANT if sets is None or watch.stopped else self._take(pool, sets, needed)

    def _needed(self, pool: SolutionPool) -> float:
        """The bound, for the numbers searched, that shows a model to be above the threshold."""
        above, statement = math.nextafter(pool.threshold, math.inf), self.across.known.statement
        return float(min(statement.needed(above, each) for each in {"", self.valid_for}))

    def _take(self, pool: SolutionPool, sets: _Sets, needed: float) -> str:
        """Add the models of a list, and note the bound it proves for the size; why it proves none, if so.

        It does where the cap allows for all models, and rounding leaves of none open whether it reaches the threshold.
        """
        study, size = self.across, pool.problem.k
        problem, statement = with_free_coefficients(study.by_size[size].problem), study.known.statement
        lowest, undecided = needed, len(sets.sets) > self.cap
        order = np.argsort(sets.bounds, kind="stable")
        for row in order[: self.cap].tolist():
            if reason := study.stop_reason():
                return reason
            columns = sets.sets[row][sets.sets[row] >= 0]
            support = tuple(sorted(columns.tolist()))
            fit, bound = study.known.fitted(support), float(sets.bounds[row])
            if not problem.has(QUADRATIC_LOSS):
                bound = max(bound, proven_at(problem, fit))
            lowest = min(lowest, bound)
            if len(support) == size and meets(problem.units, support):
                value = study.known.models[support] if support in study.known.models else statement.upper(fit)
                undecided = (not pool.add(support, value) and bound < needed) or undecided
        if undecided:
            return "cap" if len(order) > self.cap else "precision"
        most = min(pool.threshold, study.upper_of(size))
        floor = pool.threshold if lowest >= needed else statement.lower(lowest, most, self.valid_for)
        study.floors[size] = max(floor, study.floors.get(size, -math.inf))
        return ""


def _sets(problem: Problem, below: Minorant, needed: float, work: float, options: BoundOptions) -> _Sets | None:
    """The sets whose models may reach ``needed``; None where they are too many, or after a stop."""
    state = problem.root_state
    sets = listed_sets(
        below, state, problem.k - int(np.count_nonzero(state == IN)), options.stop, MOST_SETS, work=work
    ).sets
    if sets is None:
        return None
    if problem.has(QUADRATIC_LOSS):
        bounds, models = np.full(len(sets), -np.inf), np.zeros((len(sets), sets.shape[1] + problem.objective.intercept))
        with parallel_section(options.threads):
            raise_bounds(
                below.quadratic, below.scale, below.threshold, needed, sets, problem.d, options.stop, bounds, models
            )
    else:
        models = np.zeros(sets.shape)
        if len(sets) > FEW_LEFT:
            each, row = fit_work_of(problem), row_work_of(problem)
            shortlist = shortened(problem, below, sets, needed, each, row, math.inf, options, every=True)
            if shortlist is None:
                return None
            sets, models = shortlist.sets, shortlist.models
        bounds = np.empty(len(sets))
        with parallel_section(options.threads):
            newton_bounds(
                problem.row_loss, problem.raw.AT, problem.y, problem.raw.norms, problem.lam, sets,
                problem.objective.gradient_tolerance(QUICK), needed, options.stop, bounds, models,
            )  # fmt: skip
    mask = ~(bounds >= needed)
    return _Sets(sets[mask], bounds[mask])
