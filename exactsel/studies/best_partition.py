"""List the sets of k columns up to a level by searches: find one, divide what is left, and search there.

Let S = {s1, ..., sk} be a set that was found in a region. Every other set of k columns in it lacks some of S; with s_i
the first one it lacks it is in the region that has s1, ..., s_(i-1) and not s_i (Lawler 1972). Each of these is a
problem like the first, with columns that must and must not be in, and is searched until a set up to the level is found
or none is left. This takes about k searches for each listed set, for any number of columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from exactsel.problem.numbered import Position
from exactsel.problem.regression import Problem
from exactsel.proofs.statement import statement_of
from exactsel.solving.api import solve
from exactsel.solving.outcome import Termination
from exactsel.solving.result import Result
from exactsel.studies.best_search import NO_BOUND, SLIGHTLY_LESS
from exactsel.studies.pool_search import MARGIN


@dataclass
class Partition:
    """The list of one size."""

    problem: Problem
    threshold: Callable[[], float]
    """The objective up to which sets are listed; it may fall as they are found."""
    found: Callable[[tuple[int, ...], float], None]
    """Called with each set that is found, and its objective."""
    search: Callable[[Problem, Result | None, float], Result]
    """Search a problem to an absolute tolerance, from where an earlier result of it stands."""
    cap: int
    valid_for: str = ""
    """What the list is restricted to, in words."""

    def run(self) -> str:
        """List; why that ended."""
        units = self.problem.units
        regions, count = [(units.force_in, units.force_out)], 0
        while regions:
            included, outside = regions.pop()
            if units.d - len(outside) < self.problem.k:
                continue
            problem = self.problem.replace(force_in=map(Position, included), force_out=map(Position, outside))
            columns, reason = self._one(problem)
            if reason:
                return reason
            if columns is None:
                continue
            count += 1
            if count > self.cap:
                return "cap"
            free = [j for j in columns if j not in included]
            for place, without in enumerate(free):
                regions.append(((*included, *free[:place]), (*outside, without)))
        return "complete"

    def _one(self, problem: Problem) -> tuple[tuple[int, ...] | None, str]:
        """A set of a region up to the level, None where there is none; and why that is not known, if it is not."""
        result = self.search(problem, None, NO_BOUND)
        while True:
            if result.termination is Termination.INTERRUPTED:
                return None, result.termination.value
            columns = whole(problem, result)
            value = statement_of(problem).upper(problem.fit(columns))
            threshold = self.threshold()
            if value <= (1.0 + MARGIN) * threshold:
                self.found(columns, value)
                return columns, ""
            if result.lower > threshold:
                self.valid_for = self.valid_for or result.valid_for
                return None, ""
            before = result.upper, result.lower
            result = self.search(problem, result, SLIGHTLY_LESS * (result.upper - threshold))
            if (result.upper, result.lower) == before:
                stopped = result.termination
                return None, stopped.value if not result.reached else Termination.PRECISION_LIMIT.value


def whole(problem: Problem, result: Result) -> tuple[int, ...]:
    """The columns of a result and, where these are fewer than k, others that may be in."""
    units, included = problem.units, {*result._shown}
    others = [j for j in range(units.d) if j not in included and j not in units.force_out]
    return tuple(sorted(included.union(others[: problem.k - len(included)])))


def searching(options: dict[str, Any], seconds: Callable[[], float | None]) -> Callable[..., Result]:
    """How a :class:`Partition` searches: with these options, for as many seconds as there are left."""

    def search(problem: Problem, before: Result | None, eps: float) -> Result:
        limits: dict[str, Any] = {"eps": eps, "rel_eps": 0.0, "time_limit": seconds()}
        if before is None:
            return solve(problem, **(options | limits))
        of_run = {name: options[name] for name in ("node_limit", "threads", "signals") if name in options}
        return before.resume(**limits, **of_run)

    return search
