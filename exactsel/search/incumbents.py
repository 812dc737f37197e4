"""Better models from beside the search: portions of work for heuristics between its rounds."""

from __future__ import annotations

from collections.abc import Iterator

from exactsel.problem.capabilities import QUADRATIC_LOSS, RECONSTRUCTION
from exactsel.problem.interface import SubsetProblem
from exactsel.search.commit import commit_model, prune
from exactsel.search.events import Event
from exactsel.search.expand import Expander
from exactsel.search.state import SearchState
from exactsel.start.primal_heuristics import PrimalHeuristics

EIGENVALUES = 3e6, 2.0, 1 / 12
"""Multiplications as long as a bound takes in column subset selection: in any case, for each of d min(n, d)², and for
each of d³ (fitted to eight problems with 60 to 2,000 columns, within a factor of two)."""


def improve(state: SearchState, expander: Expander, improver: PrimalHeuristics) -> Iterator[Event]:
    """Run the heuristics that are due and those that were postponed, and commit the models they find."""
    work, any_model = work_done(state, expander.problem), False
    for fit, method in improver.postponed(state.incumbent):
        any_model = True
        yield from commit_model(state, fit, method)
    if improver.is_due(state.portions, work):
        for fit, method in improver.improve(state.portions, work, state.incumbent, state.bound):
            any_model = True
            yield from commit_model(state, fit, method)
    if any_model:
        yield from prune(state, expander)


def work_done(state: SearchState, problem: SubsetProblem) -> float:
    """The approximate number of multiplications so far; the same on every machine and for any number of threads."""
    n, d = float(problem.n), float(problem.d)
    entries = d * min(n, d)
    if problem.has(RECONSTRUCTION):
        call, times, part = EIGENVALUES
        return state.bound_calls * (call + times * entries * min(n, d) + part * d**3)
    iteration = entries if problem.has(QUADRATIC_LOSS) else n * d
    return max(state.iterations * iteration, state.walks.useful + state.walks.wasted) + state.bound_calls * entries
