"""Empty the regions of a solution pool by searches: find a model, divide what is left, and search there.

Let S = {s1, ..., sk} be a set that was found in a region. Every other set of k columns in it lacks some of S; with s_i
the first one it lacks it is in the region that has s1, ..., s_(i-1) and not s_i (Lawler 1972). Each of these is a
problem like the first, with columns that must and must not be in, and is searched until a set up to the threshold is
found or none is left. This takes about k searches for each model of the pool, for any number of columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactsel.kernels.node import IN, OUT
from exactsel.problem.numbered import Position
from exactsel.problem.regression import Problem
from exactsel.proofs.statement import statement_of
from exactsel.solving.api import solve
from exactsel.solving.outcome import Termination
from exactsel.solving.result import Result
from exactsel.studies.best_search import NO_BOUND, SLIGHTLY_LESS
from exactsel.studies.pool_search import OpenRegion, RegionSolver, SolutionPool
from exactsel.studies.size_supports import whole


@dataclass
class SearchedRegions(RegionSolver):
    """Searches one region after the other."""

    problem: Problem
    options: dict[str, Any]
    """Of the searches, as :func:`exactsel.solve` takes them."""
    seconds: Callable[[], float | None]
    """How long the next search may take."""

    def empty(self, pool: SolutionPool, regions: list[OpenRegion]) -> str:
        """Find one model of the region, and divide it by the columns of that."""
        ((state, _),) = regions
        included, outside = np.flatnonzero(state == IN).tolist(), np.flatnonzero(state == OUT).tolist()
        if self.problem.d - len(outside) < self.problem.k:
            return ""
        problem = self.problem.replace(force_in=map(Position, included), force_out=map(Position, outside))
        columns, reason = self._one(problem, pool)
        for column in columns:
            if column not in included:
                part = state.copy()
                part[column] = OUT
                pool.open.append((part, None))
                state = state.copy()
                state[column] = IN
        return reason

    def _one(self, problem: Problem, pool: SolutionPool) -> tuple[tuple[int, ...], str]:
        """A set of a region up to the threshold, empty where there is none; and why that is not known, if it is not."""
        result = self._searched(problem, None, NO_BOUND)
        while True:
            if result.termination is Termination.INTERRUPTED:
                return (), result.termination.value
            columns = whole(problem, result)
            value = statement_of(problem).upper(problem.fit(columns))
            if pool.add(columns, value):
                return columns, ""
            if result.lower > pool.threshold:
                pool.restriction = pool.restriction or result.valid_for
                return (), ""
            before = result.upper, result.lower
            result = self._searched(problem, result, SLIGHTLY_LESS * (result.upper - pool.threshold))
            if (result.upper, result.lower) == before:
                stopped = result.termination
                return (), stopped.value if not result.reached else Termination.PRECISION_LIMIT.value

    def _searched(self, problem: Problem, before: Result | None, eps: float) -> Result:
        """Search a problem to an absolute tolerance, from where an earlier result of it stands."""
        limits: dict[str, Any] = {"eps": eps, "rel_eps": 0.0, "time_limit": self.seconds()}
        if before is None:
            return solve(problem, **(self.options | limits))
        of_run = {name: self.options[name] for name in ("node_limit", "threads", "signals") if name in self.options}
        return before.resume(**limits, **of_run)
