"""A solution pool: the sets of k columns whose best model is below a threshold, and the loop that fills it.

    open <- one region, which holds all sets
    while regions are open:
        empty the last ones: their models join the pool, what is left of them is open
        models that the threshold has fallen below leave it

How regions are emptied is interchangeable (:class:`RegionSolver`): by bounds and branching, as here, by an enumeration
of what a minorant leaves (:mod:`exactsel.studies.best_enumeration`), or by searches, one for each model
(:mod:`exactsel.studies.best_partition`). The pool is the only state, which can be kept, saved and continued. A step
that is interrupted leaves no trace in it, so a resumed pool is filled as an uninterrupted one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from exactsel.bounds.base import PreparedBound, Tightened, scope_of
from exactsel.interrupts import dispensable
from exactsel.kernels.node import IN, OUT
from exactsel.nodes.branching import Branching
from exactsel.nodes.regions import NodeBounds
from exactsel.problem.interface import SubsetProblem
from exactsel.proofs.statement import statement_of
from exactsel.types import IntArray, StateArray

BATCH = 64
"""Regions bounded at a time, the last found first."""

MARGIN = 1e-9
"""Times |threshold|, or a thousandth of the empty model's objective: regions are closed this much above the threshold,
so that rounding hides no model."""

OpenRegion: TypeAlias = tuple[StateArray, Any]
"""A region, and the starting point of its bound."""

Support: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class NearModel:
    """A set of exactly k columns and the objective of the best model on it."""

    support: Support
    value: float


@dataclass
class SolutionPool:
    """The models below a threshold that are found, and the regions that may hold others."""

    problem: SubsetProblem
    best: float
    """The best objective known."""
    tau: float
    """How far above it a model may be."""
    open: list[OpenRegion]
    """The last ones come first."""
    found: list[NearModel] = field(default_factory=list)
    regions: int = 0
    """Regions that were bounded."""
    undecided: list[Support] = field(default_factory=list)
    """Sets that are beyond the threshold up to rounding of a fit, while no bound confirms it."""
    restriction: str = ""
    """A scope that some bound came with."""

    @classmethod
    def begun(cls, problem: SubsetProblem, best: float, tau: float) -> SolutionPool:
        """Nothing is found yet."""
        return cls(problem, best, tau, [(problem.root_state, None)])

    @property
    def threshold(self) -> float:
        """The best objective known, plus tau."""
        return self.best + self.tau

    @property
    def highest(self) -> float:
        """What a model of the pool may cost, rounding included."""
        return self.threshold + MARGIN * max(abs(self.threshold), 1e-3 * self.problem.null_objective)

    @property
    def within(self) -> list[NearModel]:
        """The models that are within the threshold, as far as rounding lets one say."""
        highest = self.highest
        return [model for model in self.found if model.value <= highest]

    def add(self, support: Support, value: float) -> bool:
        """Add a model, unless it is beyond the threshold; whether it is in the pool."""
        self.best = min(self.best, value)
        if value <= self.highest:
            self.found.append(NearModel(support, value))
            return True
        return False

    def renew(self) -> None:
        """Lower the threshold to what is known elsewhere."""

    def drop(self) -> list[Support]:
        """Drop the models beyond the threshold; those of which a bound has to confirm that they are."""
        before, self.found = self.found, self.within
        supports = {model.support for model in self.found}
        return [model.support for model in before if model.support not in supports]

    def lowered(self, best: float, tau: float) -> SolutionPool:
        """The same where a better objective is known: regions closed stay closed below a lower threshold. A higher one
        begins again.
        """
        before, best = self.threshold, min(self.best, best)
        if best + tau > before:
            return SolutionPool.begun(self.problem, best, tau)
        self.best, self.tau = best, tau
        return self

    def step(self, solver: RegionSolver, count: int, stopped: Callable[[], str]) -> str:
        """Empty the last regions, or with no ``count`` drop models; why that failed, if so.

        Then everything is as it was: bounds may be poor ones after a stop.
        """
        before = replace(self, open=[*self.open], found=[*self.found], undecided=[*self.undecided])
        reason = "failed"
        try:
            if count:
                taken, self.open = self.open[-count:], self.open[:-count]
                reason = solver.empty(self, taken) or stopped()
            else:
                beyond, self.undecided = [*self.undecided, *self.drop()], []
                solver.confirm(self, beyond)
                reason = stopped()
        finally:
            if reason:
                vars(self).update(vars(before))
        return reason


class RegionSolver:
    """A way to empty the regions of a pool. Derive from it."""

    batch = 1
    """Regions taken at a time."""

    def empty(self, pool: SolutionPool, regions: list[OpenRegion]) -> str:
        """Add the models of some regions to the pool, and to ``pool.open`` what is left of them; why it cannot be done,
        if so.
        """
        raise NotImplementedError

    def confirm(self, pool: SolutionPool, supports: list[Support]) -> None:
        """Make sure of sets that are beyond the threshold by a fit, which may be a bad one; else they are undecided."""
        pool.undecided += supports


def fill(
    pool: SolutionPool, solver: RegionSolver, cap: int, stopped: Callable[[], str], node_limit: int | None = None,
    after: Callable[[], None] | None = None,
) -> str:  # fmt: skip
    """Empty all regions of a pool; why that ended: ``complete``, ``precision``, ``cap`` (more models than that),
    ``node_limit``, or what the solver or ``stopped`` says. ``after`` is called after every batch of regions.
    """
    while True:
        if reason := stopped():
            return reason
        pool.renew()
        if not pool.open or len(pool.found) > cap:
            if pool.step(solver, 0, stopped):
                continue
            if len(pool.found) > cap:
                return "cap"
        if not pool.open:
            return "precision" if pool.undecided else "complete"
        if node_limit is not None and pool.regions >= node_limit:
            return "node_limit"
        batch = solver.batch if node_limit is None else min(solver.batch, node_limit - pool.regions)
        before, reason = pool.threshold, pool.step(solver, batch, stopped)
        if reason == "cap":
            pool.renew()
        if reason and not (stopped() or pool.threshold < before):
            return reason
        if after is not None:
            after()


class BoundedRegions(RegionSolver):
    """Closes a region only where its bound is above the threshold, and divides the others by a column.

    Parameters
    ----------
    problem, bound, branching
        What is listed, and by what means.
    valid_for : str
        The restriction under which the best objective is the best, in words.
    """

    def __init__(self, problem: SubsetProblem, bound: PreparedBound, branching: Branching, valid_for: str) -> None:
        self.problem, self.bound, self.branching = problem, bound, branching
        self.statement, self.valid_for = statement_of(problem), valid_for
        self.batch, self._cutoff = BATCH, (math.nan, math.nan)

    @dispensable()
    def empty(self, pool: SolutionPool, regions: list[OpenRegion]) -> str:
        """Evaluate the regions of a single set, and bound the others."""
        beyond = []
        for state, _ in regions:
            support = self._single(state)
            if support is not None and support.size == self.problem.k:
                value = self.statement.upper(self.problem.fit(support))
                beyond += [] if pool.add(tuple(support.tolist()), value) else [tuple(support.tolist())]
        self.confirm(pool, beyond)
        several = [region for region in regions if self._single(region[0]) is None]
        if several:
            self._divide(pool, several)
        return ""

    @dispensable()
    def confirm(self, pool: SolutionPool, supports: list[Support]) -> None:
        """Bound the regions of these single sets."""
        if not supports:
            return
        alone = np.full((len(supports), self.problem.d), OUT, dtype=np.int8)
        for row, support in zip(alone, supports, strict=True):
            row[list(support)] = IN
        needed = self._above(pool.threshold)
        tightened = self._noted(pool, self.bound.tighten(alone, [None] * len(supports), needed, pool.best))
        pool.undecided += [supports[row] for row in np.flatnonzero(~(tightened.answers.bound >= needed)).tolist()]

    def cutoff(self, pool: SolutionPool) -> float:
        """The bound, for the numbers searched, at which a region is closed."""
        if self._cutoff[0] != pool.threshold:
            self._cutoff = (pool.threshold, self._above(pool.highest))
        return self._cutoff[1]

    def _above(self, value: float) -> float:
        """The bound, for the numbers searched, that shows a model to cost more than ``value``."""
        return self.statement.needed(math.nextafter(value, math.inf), self.valid_for)

    def _single(self, state: StateArray) -> IntArray | None:
        """The only set of k columns in a region; empty where there is none, None where there are several."""
        included, allowed = np.flatnonzero(state == IN), np.flatnonzero(state != OUT)
        if included.size == self.problem.k:
            return included
        if allowed.size == self.problem.k and self.problem.units.to_divide(state, self.problem.k) is not None:
            return allowed[:0]
        return allowed if allowed.size == self.problem.k else None if allowed.size > self.problem.k else allowed[:0]

    def _divide(self, pool: SolutionPool, regions: list[OpenRegion]) -> None:
        states, cutoff = np.stack([state for state, _ in regions]), self.cutoff(pool)
        tightened = self._noted(pool, self.bound.tighten(states, [warm for _, warm in regions], cutoff, pool.best))
        pool.regions += len(regions)
        for row, (state, _) in enumerate(regions):
            if tightened.answers.bound[row] >= cutoff:
                continue
            view = NodeBounds(tightened, row).view(state)
            column = int(view.candidates[self.branching.select(view)])
            for decision in (IN, OUT):
                child = state.copy()
                child[column] = decision
                implied = self.problem.units.implied(child, self.problem.k)
                if implied is not None:
                    pool.open.append((implied, tightened.warm[row]))

    def _noted(self, pool: SolutionPool, tightened: Tightened) -> Tightened:
        pool.restriction = scope_of(self.bound, tightened) or pool.restriction
        return tightened
