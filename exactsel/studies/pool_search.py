"""The listing behind :func:`exactsel.near_optimal`: it finds the sets of k columns within a threshold.

Its only state is a :class:`PoolState`, which can be kept, saved and continued. An interrupted step leaves no trace in
the state, so a resumed listing bounds the same regions as an uninterrupted one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from exactsel.bounds.base import PreparedBound, Tightened, scope_of
from exactsel.interrupts import dispensable
from exactsel.kernels.node import IN, OUT
from exactsel.nodes.branching import Branching
from exactsel.nodes.regions import NodeBounds
from exactsel.problem.interface import SubsetProblem
from exactsel.proofs.statement import statement_of
from exactsel.search.watch import Watch
from exactsel.types import IntArray, StateArray

BATCH = 64
"""Regions bounded at a time, the last found first."""

MARGIN = 1e-9
"""Times |threshold|, or a thousandth of the empty model's objective: regions are closed this much above the threshold,
so that rounding hides no model."""


@dataclass(frozen=True)
class NearModel:
    """A set of exactly k columns and the objective of the best model on it."""

    support: tuple[int, ...]
    value: float


@dataclass
class PoolState:
    """How far a listing has come."""

    best: float
    """The best objective known."""
    tau: float
    """How far above it a model may be."""
    open: list[tuple[StateArray, Any]]
    """Open regions, and the starting point of their bounds; the last ones come first."""
    found: list[NearModel] = field(default_factory=list)
    regions: int = 0
    """Regions that were bounded."""
    undecided: list[tuple[int, ...]] = field(default_factory=list)
    """Sets that are beyond the threshold up to rounding of a fit, while no bound confirms it."""
    restriction: str = ""
    """A scope some bound met while listing came with."""

    @classmethod
    def begun(cls, problem: SubsetProblem, best: float, tau: float) -> PoolState:
        """Nothing is listed yet."""
        return cls(best, tau, [(problem.root_state, None)])

    @property
    def threshold(self) -> float:
        """The best objective known, plus tau."""
        return self.best + self.tau

    def highest(self, problem: SubsetProblem) -> float:
        """What a model that is listed may cost, rounding included."""
        return self.threshold + MARGIN * max(abs(self.threshold), 1e-3 * problem.null_objective)

    def within(self, problem: SubsetProblem) -> list[NearModel]:
        """What was found and is within the threshold, as far as rounding lets one say."""
        highest = self.highest(problem)
        return [model for model in self.found if model.value <= highest]

    def lowered(self, problem: SubsetProblem, best: float, tau: float) -> PoolState:
        """The same where a better objective is known: regions closed stay closed below a lower threshold. A higher one
        begins anew.
        """
        before, best = self.threshold, min(self.best, best)
        if best + tau > before:
            return PoolState.begun(problem, best, tau)
        self.best, self.tau = best, tau
        return self


class PoolSearch:
    """A depth-first search that closes a region only where its bound is above the threshold.

    Parameters
    ----------
    problem, bound, branching
        What is listed, and by what means.
    state : PoolState
        Where it begins; the listing changes it.
    cap : int
        Models after which it ends.
    valid_for : str
        The restriction under which the best objective is the best, in words.
    """

    def __init__(
        self, problem: SubsetProblem, bound: PreparedBound, branching: Branching, state: PoolState, cap: int,
        valid_for: str,
    ) -> None:  # fmt: skip
        self.problem, self.bound, self.branching, self.cap = problem, bound, branching, cap
        self.statement, self.valid_for = statement_of(problem), valid_for
        self.state = state
        self._cutoff = (math.nan, math.nan)

    @property
    def cutoff(self) -> float:
        """The bound, for the numbers searched, at which a region is closed."""
        if self._cutoff[0] != self.state.best:
            self._cutoff = (self.state.best, self._above(self.state.highest(self.problem)))
        return self._cutoff[1]

    def _above(self, value: float) -> float:
        """The bound, for the numbers searched, that shows a model to cost more than ``value``."""
        return self.statement.needed(math.nextafter(value, math.inf), self.valid_for)

    def run(self, watch: Watch, node_limit: int | None = None, after: Callable[[], None] | None = None) -> str:
        """Take the space apart; why that ended. ``after`` is called after every batch of regions."""
        state = self.state
        while True:
            if watch.stopped:
                return watch.reason or "time_limit"
            if not state.open or len(state.found) > self.cap:
                with self._undone_if_stopped(watch), dispensable():
                    self._drop()
                if watch.stopped:
                    continue
                if len(state.found) > self.cap:
                    return "cap"
            if not state.open:
                return "precision" if state.undecided else "complete"
            if node_limit is not None and state.regions >= node_limit:
                return "node_limit"
            with self._undone_if_stopped(watch), dispensable():
                self._take(BATCH if node_limit is None else min(BATCH, node_limit - state.regions))
            if after is not None:
                after()

    @contextmanager
    def _undone_if_stopped(self, watch: Watch) -> Iterator[None]:
        """Put everything back as it was where the block is broken off: its bounds may be poor ones then."""
        state = self.state
        found, undecided = state.found, state.undecided
        kept = (len(found), len(undecided), state.best, state.regions, state.restriction)
        tail, length = state.open[-BATCH:], len(state.open)
        whole = False
        try:
            yield
            whole = not watch.stopped
        finally:
            if not whole:
                state.found, state.undecided = found[: kept[0]], undecided[: kept[1]]
                state.best, state.regions, state.restriction = kept[2:]
                state.open[length - len(tail) :] = tail

    def _take(self, count: int) -> None:
        """Bound the regions that come next."""
        state = self.state
        taken = state.open[-count:]
        del state.open[-count:]
        self._exclude([region for region, _ in taken if self._missed(region)])
        regions = [region for region in taken if self._single(region[0]) is None]
        if regions:
            self._divide(regions)

    def _drop(self) -> None:
        """Remove models that a better model has put beyond the threshold since they were found.

        A bound has to confirm it; models whose bound could not confirm it before are bounded again.
        """
        state, kept = self.state, self.state.within(self.problem)
        kept_supports = {model.support for model in kept}
        dropped = [model.support for model in state.found if model.support not in kept_supports]
        asked, state.undecided = [*state.undecided, *dropped], []
        states = np.full((len(asked), self.problem.d), OUT, dtype=np.int8)
        for row, support in zip(states, asked, strict=True):
            row[list(support)] = IN
        state.found = kept
        self._exclude(list(states))

    def _single(self, state: StateArray) -> IntArray | None:
        """The only set of k columns in a region; empty where there is none, None where there are several."""
        included, allowed = np.flatnonzero(state == IN), np.flatnonzero(state != OUT)
        if included.size == self.problem.k:
            return included
        if allowed.size == self.problem.k and self.problem.units.to_divide(state, self.problem.k) is not None:
            return allowed[:0]
        return allowed if allowed.size == self.problem.k else None if allowed.size > self.problem.k else allowed[:0]

    def _missed(self, state: StateArray) -> bool:
        """Whether the region holds one set of k columns and that, evaluated, is not within the threshold."""
        support = self._single(state)
        if support is None or support.size < self.problem.k:
            return False
        value = self.statement.upper(self.problem.fit(support))
        self.state.best = min(self.state.best, value)
        if value <= self.state.highest(self.problem):
            self.state.found.append(NearModel(tuple(int(j) for j in support), value))
        return value > self.state.highest(self.problem)

    def _exclude(self, states: list[StateArray]) -> None:
        """Make sure of the sets that are not within the threshold: only a bound can say so, a fit may be a bad one."""
        if not states:
            return
        alone = np.stack(states)
        for state in alone:
            support = self._single(state)
            state[:] = OUT
            state[support] = IN
        needed = self._above(self.state.threshold)
        tightened = self._noted(self.bound.tighten(alone, [None] * len(states), needed, self.state.best))
        open_still = np.flatnonzero(~(tightened.answers.bound >= needed)).tolist()
        self.state.undecided += [tuple(np.flatnonzero(alone[row] == IN).tolist()) for row in open_still]

    def _divide(self, regions: list[tuple[StateArray, Any]]) -> None:
        states = np.stack([state for state, _ in regions])
        tightened = self._noted(self.bound.tighten(states, [warm for _, warm in regions], self.cutoff, self.state.best))
        self.state.regions += len(regions)
        for row, (state, _) in enumerate(regions):
            if tightened.answers.bound[row] >= self.cutoff:
                continue
            column = self._column(NodeBounds(tightened, row), state)
            for decision in (IN, OUT):
                child = state.copy()
                child[column] = decision
                implied = self.problem.units.implied(child, self.problem.k)
                if implied is not None:
                    self.state.open.append((implied, tightened.warm[row]))

    def _noted(self, tightened: Tightened) -> Tightened:
        self.state.restriction = scope_of(self.bound, tightened) or self.state.restriction
        return tightened

    def _column(self, answer: NodeBounds, state: StateArray) -> int:
        view = answer.view(state)
        return int(view.candidates[self.branching.select(view)])
