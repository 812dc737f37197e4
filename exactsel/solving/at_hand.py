"""A bound for a search whose time was over before its first one, by passes over the data that take no preparing."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from exactsel.bounds.at_hand import bound_at_hand, fit_bound_at_hand, selection_bound_at_hand
from exactsel.interrupts import compiles_on, hurrying
from exactsel.problem.column_subset import ColumnSubsetProblem
from exactsel.problem.interface import SubsetProblem
from exactsel.problem.regression import Problem
from exactsel.proofs.statement import statement_of
from exactsel.search.watch import Watch
from exactsel.solving.outcome import claim_of
from exactsel.solving.result import Result

KEPT, MOST_KEPT = 0.4, 1.0
"""Part of a time limit, and seconds, that are kept for this as long as a search has no bound."""

MOST_ENTRIES = 20_000_000
"""Entries of the data, a hundredth of a second for a pass, up to which that is enough for some steps."""

MOST_FITTED, MOST_MULTIPLICATIONS = 1_000_000, 1e9
"""Entries of the data and multiplications of their Gram matrix up to which the fit on all columns, which is worked out
from the data in long doubles where columns are dependent, takes a tenth of a second or so."""


def seconds_kept(problem: SubsetProblem, time_limit: float | None) -> float:
    """Before the end of a time limit, so that it holds with the bound at hand; none where there would be no such."""
    if time_limit is None or not _is_quick(problem):
        return 0.0
    return min(MOST_KEPT, KEPT * time_limit)


def bounded_in_time(problem: SubsetProblem, result: Result, seconds: float, signals: Sequence[int]) -> Result:
    """The result of a search, with a bound at hand where time was over before its own and some steps are quick."""
    if result.nodes > 0 or result.termination != "time_limit" or not _is_quick(problem):
        return result
    with hurrying(compiles_on()):
        return with_bound_at_hand(problem, result, seconds, signals)


def _is_quick(problem: SubsetProblem) -> bool:
    """Whether there is a bound at hand within a fraction of a second."""
    if not isinstance(problem, Problem) or problem.family != "regression":
        return False
    if problem.lam > 0:
        return problem.n * problem.d <= MOST_ENTRIES
    few = problem.n * problem.d <= MOST_FITTED and problem.n * problem.d**2 <= MOST_MULTIPLICATIONS
    return problem.is_quadratic and problem.d < problem.n and few


def with_bound_at_hand(problem: SubsetProblem, result: Result, seconds: float, signals: Sequence[int]) -> Result:
    """The result of a search that did not come as far as its first bound, with one that takes no preparing."""
    scope = ""
    if isinstance(problem, ColumnSubsetProblem):
        bound = selection_bound_at_hand(problem)
    elif not isinstance(problem, Problem) or problem.family != "regression":
        return result
    elif problem.lam == 0:
        if problem.d >= problem.n:  # all columns fit y, as far as anyone knows
            return result
        bound, scope = fit_bound_at_hand(problem)
    else:
        with Watch(seconds, signals) as watch:
            bound, scope = bound_at_hand(problem, result.prepared.coef, lambda: watch.stopped), problem.scope
    lower = statement_of(problem).lower(bound, result.upper, scope)
    if not lower > result.lower:
        return result
    claim = claim_of(result.upper, lower, result.tolerance)
    return dataclasses.replace(result, lower=lower, claim=claim, scope=scope)
