"""A walk that finds a much better model, in a region of which more is known than the cut-off that goes with it.

The tolerance is half the objective. The node's bound is nearly the optimum, and valid; the walk begins from the empty
model and closes what it meets at half the objective it finds.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from samples import sample

from exactsel import Problem, Search, Settings
from exactsel.enumeration.work_budget import SubtreeRecord, WorkBudget
from exactsel.errors import InvariantError
from exactsel.nodes.regions import NodeKept, SubtreeResult
from exactsel.search.commit import commit, commit_models
from exactsel.search.invariants import check_round


def problem_of(seed):
    """Columns of which two explain most of the target, none alone half of it."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((14, 7))
    return Problem(A, A[:, 5] + A[:, 6] + 0.25 * rng.standard_normal(14), 2)


def best_of(problem):
    return min(problem.fit(s).value for s in combinations(range(problem.d), problem.k))


def begun(problem):
    """What expands nodes, the state of a search that knows the empty model only, and its root, taken out."""
    search = Search(problem, Settings(rel_eps=0.5, heuristics=(), batch=1, threads=1), signals=())
    running = iter(search)
    next(running)
    state, expander = search.state, search._expander
    running.close()
    (root,) = state.take(1)
    state.in_flight = []
    return expander, state, root


def committed(expander, state, node):
    """The outcome of a round of one node, after it has been committed."""
    state.highest = node.bound
    finished = expander.expand([node], state.value, WorkBudget(walks=SubtreeRecord()))
    list(commit_models(state, finished, expander))
    (outcome,) = finished.outcomes
    list(commit(state, outcome, expander, False))
    check_round(state)
    return outcome


@pytest.mark.parametrize("seed", sample(12, 12))
def test_the_lower_bound_does_not_fall(seed):
    problem = problem_of(seed)
    expander, state, root = begun(problem)
    optimum = best_of(problem)
    bound = 0.99 * optimum
    assert bound < expander.cutoff(state.value), "a region that is open when the walk begins"
    outcome = committed(expander, state, replace(root, id=5, parent=0, bound=bound))
    assert state.value == pytest.approx(optimum)
    assert isinstance(outcome, NodeKept)
    assert outcome.region.closed == "incumbent"
    assert outcome.unused_walk > 0, "the walk has found the model"
    assert state.floor == bound
    assert outcome.region.proof is root.proof


@pytest.mark.parametrize("seed", sample(12, 12))
def test_a_walk_that_shows_more_than_was_known_is_used(seed):
    problem = problem_of(seed)
    expander, state, root = begun(problem)
    outcome = committed(expander, state, replace(root, id=5, parent=0, bound=0.1 * best_of(problem)))
    assert isinstance(outcome, SubtreeResult)
    assert 0.1 * best_of(problem) < state.floor <= best_of(problem)


@pytest.mark.untrue
def test_a_bound_that_falls_without_a_better_model_is_still_an_error():
    expander, state, root = begun(problem_of(0))
    node = replace(root, id=5, parent=0, bound=0.1 * best_of(problem_of(0)))
    state.highest = 2.0 * state.value
    finished = expander.expand([node], state.value, WorkBudget(walks=SubtreeRecord()))
    list(commit(state, finished.outcomes[0], expander, False))
    with pytest.raises(InvariantError, match="the lower bound fell from"):
        check_round(state)
