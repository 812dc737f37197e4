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
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from exactsel._jit import available_threads, interpreted
from exactsel.algebra.threads import one_thread
from exactsel.bounds.minorant import minorant
from exactsel.kernels.node import FREE, IN
from exactsel.proofs.statement import statement_of
from exactsel.search.watch import Watch
from exactsel.solving.result import Termination
from exactsel.solving.settings import Settings, settings_of
from exactsel.studies.best_partition import Partition, searching
from exactsel.studies.best_search import NO_BOUND, AcrossSizes, Place, meets
from exactsel.studies.listed import list_on
from exactsel.studies.listing import MARGIN, ListingState
from exactsel.walks.listing import LARGEST, listed_sets

FEW_SETS = 3000
"""Fewer sets of a size than this are listed before a kernel has been loaded."""

MANY_SETS = 1_000_000
"""More sets than this are not taken apart region by region, where there is no minorant."""

MOST_SETS = 200_000
"""Sets a minorant may leave to be evaluated."""

QUICK = 1e-6
"""Part of a level that objectives worked out quickly may be off."""

GROWING = 4
"""Times that neighbours of the best models are looked at before anything is listed."""

MOST_NEIGHBOURS = 20_000
"""Neighbours looked at in all."""


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
        values = sorted(self.across.value(support) for support in self.across.models)
        nth = values[self.top - 1] if len(values) >= self.top else math.inf
        return nth if self.within is None else max(nth if self.top > 1 else -math.inf, values[0] + self.within)

    def run(self) -> None:
        """List all sizes, the most promising first, or as many as the limits leave time for."""
        across = self.across
        self._grow()
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
            found = None if below is None else listed_sets(below, state, places, watch.flag, MOST_SETS, work=math.inf)
            if watch.stopped:
                across.terminations.append(watch.reason or Termination.TIME_LIMIT.value)
        if found is None or found.sets is None or watch.stopped:
            return None
        whole = found.sets[np.count_nonzero(found.sets >= 0, axis=1) == place.size]  # others stand for smaller ones
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

    def _best_of(self, place: Place) -> tuple[int, ...]:
        """The best columns known of a size."""
        known = [(objective, s) for s, objective in self.across.models.items() if len(s) <= place.size]
        return min(known)[1]

    def _grow(self) -> None:
        """Look for as many good models as were asked for, so that the threshold is a low one from the start."""
        if self.top == 1:
            return
        seen: set[tuple[int, ...]] = set()
        looked_at = 0
        for _ in range(GROWING):
            ranked = [model.support for model in self.across.ranked()[: self.top] if model.support not in seen]
            before = self.threshold
            for support in ranked:
                seen.add(support)
                neighbours = self._neighbours(support)
                looked_at += len(neighbours)
                if self.across.over or looked_at > MOST_NEIGHBOURS:
                    return
                self._take(neighbours)
            if not self.threshold < before:
                return

    def _take(self, supports: Iterable[tuple[int, ...]]) -> None:
        """Note those of these models that are among the best so far."""
        across, statement = self.across, statement_of(self.across.problem)
        by_size: dict[int, list[tuple[int, ...]]] = {}
        for support in supports:
            by_size.setdefault(len(support), []).append(support)
        for size, sets in by_size.items():
            if size not in across.places or size not in across.sizes:
                continue
            problem = across.places[size].problem
            quick = problem.objectives(np.array(sets, dtype=np.int64).reshape(len(sets), size))
            order = np.argsort(quick, kind="stable")[: self.top]
            for row in order.tolist():
                if across.criterion.value(max(quick[row], 0.0), size) <= self.threshold:
                    across.note(sets[row], statement.upper(problem.fit(sets[row])))

    def _neighbours(self, support: tuple[int, ...]) -> list[tuple[int, ...]]:
        """The sets that differ in one column, or in one for another, and meet the demands."""
        units, inside = self.across.problem.units, set(support)
        free = [j for j in range(units.d) if j not in inside and j not in units.must_not]
        drop = [inside - {j} for j in support if j not in units.must_have]
        near = [*drop, *(inside | {j} for j in free), *(less | {j} for less in drop for j in free)]
        sets = [tuple(sorted(each)) for each in near]
        return [each for each in sets if meets(units, each)]


def settings_among(options: dict[str, Any]) -> dict[str, Any]:
    """Those of the options that are settings."""
    return {name: value for name, value in options.items() if name in settings_of()}
