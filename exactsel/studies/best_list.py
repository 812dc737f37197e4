"""The list of the best models over all sizes: every set of columns whose criterion is within a threshold.

The threshold is the n-th best criterion known, or a distance from the best. For each size it is a level of the
objective, up to which the sets of exactly so many columns are listed as :mod:`exactsel.studies.listing` does. What is
found lowers the threshold for the sizes that follow; so many models are first looked for among the neighbours of
those known, by exchanging, adding and dropping a column.

Most sizes are taken apart by a kernel at once, on a quadratic minorant of the objective (:mod:`exactsel.walks.listing`;
for quadratic loss that is the objective). Where there is none, as where columns depend on each other and lam = 0, or
where there are very many, regions are bounded one by one, or searched (:mod:`exactsel.studies.best_partition`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from exactsel._jit import available_threads, interpreted
from exactsel.algebra.threads import one_thread
from exactsel.bounds.base import BoundOptions
from exactsel.bounds.minorant import Minorant, minorant
from exactsel.kernels.node import FREE, IN
from exactsel.problem.regression import Problem
from exactsel.proofs.statement import statement_of
from exactsel.search.watch import Watch
from exactsel.solving.result import Termination
from exactsel.solving.settings import Settings, settings_of
from exactsel.studies.best_neighbours import grow, nth_best
from exactsel.studies.best_partition import Partition, searching
from exactsel.studies.best_search import NO_BOUND, AcrossSizes, Place, meets
from exactsel.studies.listed import list_on
from exactsel.studies.listing import MARGIN, ListingState
from exactsel.types import BoolArray, IntArray
from exactsel.walks.listing import LARGEST, fit_work_of, listed_sets, row_work_of
from exactsel.walks.listing_cuts import shortened

FEW_SETS = 3000
"""Fewer sets of a size than this are listed before a kernel has been loaded."""

MANY_SETS = 1_000_000
"""More sets than this are not taken apart region by region, where there is no minorant."""

MOST_SETS = 200_000
"""Sets a minorant may leave to be evaluated."""

FEW_LEFT = 50
"""So many are evaluated as they are."""

QUICK = 1e-6
"""Part of a level that objectives worked out quickly may be off."""


@dataclass
class LevelState(ListingState):
    """A listing up to a level that stays where it is, whatever better model turns up."""

    level: float = math.inf

    @property
    def threshold(self) -> float:
        """The level."""
        return self.level


@dataclass
class BestList:
    """What is asked for, and how far it has come."""

    across: AcrossSizes
    top: int = 1
    """So many models, ..."""
    within: float | None = None
    """... and all whose criterion is at most this above the best."""
    cap: int = 1000
    """Models of one size after which the list is cut short."""

    def __post_init__(self) -> None:
        self.listed: set[int] = set()
        self.scope = ""

    @property
    def threshold(self) -> float:
        """The criterion up to which models are listed; inf where there are fewer models than were asked for."""
        nth = nth_best(self.across, self.top)
        if self.within is None:
            return nth
        return max(nth if self.top > 1 else -math.inf, self.across.best + self.within)

    def run(self) -> None:
        """List all sizes, the most promising first, or as many as the limits leave time for."""
        across = self.across
        if self.top > 1:
            grow(across, self.top)
        for size in sorted(across.sizes, key=lambda k: (across.criterion.value(across.places[k].upper, k), k)):
            if self._closed(size):
                continue
            if across.places[size].result is None:
                across.search(size, eps=NO_BOUND)
            if across.over:
                break
            if size == 0:  # one set of columns, which is met before anything else
                self.listed.add(size)
                continue
            self._list(size)
        for size in across.sizes:
            if self._closed(size):
                self.listed.add(size)

    @property
    def complete(self) -> bool:
        """Whether all models within the threshold are known."""
        return self.listed >= {*self.across.sizes}

    def _closed(self, size: int) -> bool:
        return self.across.lower_of(size)[0] > self._level(size)

    def _level(self, size: int) -> float:
        """The objective at which this size comes to the threshold; no set of columns is above the empty one."""
        return min(self.across.criterion.level(self.threshold, size), self.highest)

    @property
    def highest(self) -> float:
        """More than the objective of any set of columns."""
        return (1.0 + 1e-6) * self.across.problem.null_objective

    def _list(self, size: int) -> None:
        """List one size; where the list is cut short, go on with the lower threshold that what it has found makes."""
        across, place = self.across, self.across.places[size]
        result = place.result
        assert result is not None
        result = replace(result, scope=result.scope or self.scope or across.scope)
        level = self._level(size)
        state = LevelState(min(result.upper, level), 0.0, [(place.problem.root_state, None)], level=level)
        while True:
            at_once = self._at_once(place, state.level, result.scope)
            if across.over:
                return
            if at_once is not None:
                lower = self._level(size)
                if at_once:
                    self.listed.add(size)
                    return
                if lower < state.level:
                    state = replace(state, level=lower)
                    continue
            if self._many(place):
                self._by_searches(place)
                return
            settings = Settings(**settings_among(across.options) | {"time_limit": across.time_left})
            near = list_on(place.problem, result, state, self.cap, settings, across.options.get("signals", ()))
            for model in near.models:
                across.note(model.support, model.value)
            if near.complete:
                self.listed.add(size)
                self.scope = self.scope or near.scope
                return
            lower = self._level(size)
            if near.termination == "precision" and near.scope and not result.scope:
                result = replace(result, scope=near.scope)
                continue
            if near.termination != "cap" or not lower < state.level:
                across.terminations.append(near.termination)
                return
            state = replace(state, level=lower)

    def _many(self, place: Place) -> bool:
        """Whether a size has too many sets to be taken apart region by region, and no constraint on them."""
        units = place.problem.units
        free = units.d - len(units.must_have) - len(units.must_not)
        places = place.size - len(units.must_have)
        return units.constraint is None and places > 0 and math.comb(free, places) > MANY_SETS

    def _by_searches(self, place: Place) -> None:
        """List a size by searches of its parts."""
        across, size = self.across, place.size
        search = searching(across.options, lambda: across.time_left)
        partition = Partition(place.problem, lambda: self._level(size), across.note, search, self.cap)
        ended = partition.run()
        self.scope = self.scope or partition.scope
        if ended == "complete":
            self.listed.add(size)
        else:
            across.terminations.append(ended)

    def _at_once(self, place: Place, level: float, scope: str) -> bool | None:
        """List a size by a quadratic minorant of the objective, which a kernel takes apart; None where there is none.

        False where there are more sets than the cap allows, of which the best are noted.
        """
        problem, across = place.problem, self.across
        state = problem.root_state
        places = place.size - int(np.count_nonzero(state == IN))
        free = int(np.count_nonzero(state == FREE))
        if not 0 < places < free or problem.d > LARGEST or math.comb(free, places) <= FEW_SETS:
            return None
        statement = statement_of(problem)
        needed = min(statement.needed(math.nextafter(level, math.inf), each) for each in {"", scope})
        threads, signals = across.options.get("threads") or available_threads(), across.options.get("signals", ())
        with Watch(across.time_left, signals) as watch, one_thread(), interpreted(False):
            coef = problem.fit(self._best_of(place)).coef
            below = minorant(problem.objective, needed, coef, 0.0, watch.flag, threads, without_ridge=True)
            sets = None if below is None else self._sets(problem, below, needed, watch.flag, threads)
            if watch.stopped:
                across.terminations.append(watch.reason or Termination.TIME_LIMIT.value)
        if sets is None or watch.stopped:
            return None
        whole = sets[np.count_nonzero(sets >= 0, axis=1) == place.size]  # others stand for smaller ones
        sets = np.sort(whole, axis=1)[:, whole.shape[1] - place.size :]
        quick = problem.objectives(sets)
        rows = np.flatnonzero(~(quick > (1.0 + QUICK) * level))
        rows = rows[np.argsort(quick[rows], kind="stable")]
        for row in rows[: self.cap].tolist():
            support = tuple(sets[row].tolist())
            if meets(problem.units, support):
                value = statement.upper(problem.fit(support))
                if value <= (1.0 + MARGIN) * level:
                    across.note(support, value)
        return len(rows) <= self.cap

    def _sets(self, problem: Problem, below: Minorant, needed: float, stop: BoolArray, threads: int) -> IntArray | None:
        """The sets a minorant leaves, without those that more of them can drop; None where they are too many."""
        places = problem.k - int(np.count_nonzero(problem.root_state == IN))
        sets = listed_sets(below, problem.root_state, places, stop, MOST_SETS, work=math.inf).sets
        if sets is None or problem.is_quadratic or len(sets) <= FEW_LEFT:
            return sets
        left = shortened(
            problem, below, sets, needed, fit_work_of(problem), row_work_of(problem), math.inf,
            BoundOptions(threads, stop=stop), every=True,
        )  # fmt: skip
        return None if left is None else left.sets

    def _best_of(self, place: Place) -> tuple[int, ...]:
        """The best columns known of a size."""
        known = [(objective, s) for s, objective in self.across.models.items() if len(s) <= place.size]
        return min(known)[1]


def settings_among(options: dict[str, Any]) -> dict[str, Any]:
    """Those of the options that are settings."""
    return {name: value for name, value in options.items() if name in settings_of()}
