"""A bound for a search whose time was over before its first one, by passes over the data that take no preparing."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from exactsel.bounds.fallback import fallback_bound, fallback_fit_bound, fallback_selection_bound
from exactsel.interrupts import compiles_on, hurrying
from exactsel.problem.capabilities import CLOSED_FORM, COEFFICIENTS, PLAIN_REGRESSION
from exactsel.problem.interface import SubsetProblem, is_column_subset, is_regression
from exactsel.proofs.statement import statement_of
from exactsel.search.watch import Watch
from exactsel.solving.outcome import claim_of
from exactsel.solving.result import Result

if TYPE_CHECKING:
    from exactsel.solving.solver import Search

KEPT, MOST_KEPT = 0.4, 1.0
"""Part of a time limit that is kept for this as long as a search has no bound, and seconds, where that is enough."""

STEPS, PRODUCTS = 5, 1e9
"""Passes over the data from which on gradient steps say something, and products a core makes in a second."""

LONG_DOUBLES = 1e7
"""Entries a second of a fit on all columns that is worked out in long doubles, where columns are dependent."""


def seconds_kept(problem: SubsetProblem, time_limit: float | None) -> float:
    """Seconds reserved before the end of a time limit for the fallback bound; none where no such bound exists."""
    if time_limit is None:
        return 0.0
    needed, most = _seconds_needed(problem), KEPT * time_limit
    if not math.isfinite(needed) or (needed > most and not _steps_serve(problem)):
        return 0.0
    return min(max(MOST_KEPT, needed), most)


def bounded_in_time(problem: SubsetProblem, result: Result, seconds: float, signals: Sequence[int]) -> Result:
    """The result of a search, with the fallback bound where time was over before its own and there is such a bound."""
    in_time = _steps_serve(problem) or _seconds_needed(problem) <= max(seconds, MOST_KEPT)
    if result.nodes > 0 or result.termination != "time_limit" or not in_time:
        return result
    with hurrying(compiles_on()):
        return with_fallback_bound(problem, result, seconds, signals)


def run_in_time(search: Search) -> Result:
    """Run a search to its end or its limits, with the fallback bound where time is over before its first one."""
    search.has_fallback = True
    return bounded_in_time(search.problem, search.run(), search.time_left, search.signals)


def _seconds_needed(problem: SubsetProblem) -> float:
    """Approximate seconds the fallback bound takes; inf where there is none."""
    if not problem.has(COEFFICIENTS):
        short, long = sorted((float(problem.n), float(problem.d)))
        return long * short**2 / PRODUCTS
    if not problem.has(PLAIN_REGRESSION):
        return math.inf
    entries = float(problem.n) * problem.d
    if _steps_serve(problem):
        return STEPS * entries / PRODUCTS
    if not problem.has(CLOSED_FORM) or problem.d >= problem.n:  # all columns may fit y exactly: nothing else is known
        return math.inf
    return entries / LONG_DOUBLES + entries * problem.d / PRODUCTS


def _steps_serve(problem: SubsetProblem) -> bool:
    """Whether the fallback bound is one of gradient steps, which may end after each."""
    return problem.has(PLAIN_REGRESSION) and problem.objective.lam > 0


def with_fallback_bound(
    problem: SubsetProblem, result: Result, seconds: float | None, signals: Sequence[int]
) -> Result:
    """The result of a search that did not come as far as its first bound, with one that takes no preparing."""
    valid_for = ""
    if is_column_subset(problem):
        bound = fallback_selection_bound(problem)
    elif not is_regression(problem, PLAIN_REGRESSION):
        return result
    elif problem.lam == 0:
        if not problem.has(CLOSED_FORM) or problem.d >= problem.n:
            return result
        bound, valid_for = fallback_fit_bound(problem)
    else:
        with Watch(seconds, signals) as watch:
            of_slopes = fallback_bound(problem, result.prepared.coef, lambda: watch.stopped)
            bound, valid_for = of_slopes, problem.valid_for
    lower = statement_of(problem).lower(bound, result.upper, valid_for)
    if not lower > result.lower:
        return result
    claim = claim_of(result.upper, lower, result.tolerance)
    return dataclasses.replace(result, lower=lower, claim=claim, valid_for=valid_for)
