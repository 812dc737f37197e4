"""The list of the best models over all sizes: every set of columns whose criterion is within a threshold.

The threshold is the n-th best criterion known, or a distance from the best. For each size it is a level of the
objective, up to which the sets of exactly so many columns are listed as :mod:`exactsel.studies.listing` does. What is
found lowers the threshold for the sizes that follow; so many models are first looked for among the neighbours of
those known, by exchanging, adding and dropping a column.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from exactsel.proofs.statement import statement_of
from exactsel.solving.settings import Settings, settings_of
from exactsel.studies.best_search import NO_BOUND, AcrossSizes
from exactsel.studies.listed import list_on
from exactsel.studies.listing import ListingState

GROWING = 4
"""Times that neighbours of the best models are looked at before anything is listed."""

MOST_NEIGHBOURS = 20_000
"""Neighbours looked at each time."""


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

    def _grow(self) -> None:
        """Look for as many good models as were asked for, so that the threshold is a low one from the start."""
        if self.top == 1:
            return
        seen: set[tuple[int, ...]] = set()
        for _ in range(GROWING):
            ranked = [model.support for model in self.across.ranked()[: self.top] if model.support not in seen]
            before = self.threshold
            for support in ranked:
                if self.across.over or len(seen) * self.across.problem.d > MOST_NEIGHBOURS:
                    return
                seen.add(support)
                self._take(self._neighbours(support))
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
        return [each for each in sets if units.constraint is None or _meets(units, each)]


def _meets(units: Any, support: tuple[int, ...]) -> bool:
    """Whether a set is one a model may have under the constraint."""
    return units.completed(support, max(len(support), 1)) == support


def settings_among(options: dict[str, Any]) -> dict[str, Any]:
    """Those of the options that are settings."""
    return {name: value for name, value in options.items() if name in settings_of()}
