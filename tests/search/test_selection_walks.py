"""Subtrees of column subset selection gone through in one call, against every selection there is."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from executors_for_tests import Here
from instances_for_tests import random_case
from samples import many, sample

from exactsel import ColumnSubsetProblem, Search, Settings, solve
from exactsel.bounds.base import BoundOptions
from exactsel.bounds.residuals import Residuals
from exactsel.enumeration import work_budget
from exactsel.enumeration.selections import SelectionEnumeration
from exactsel.errors import InvariantError
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.nodes.node import root_node
from exactsel.nodes.regions import as_region
from exactsel.nodes.subtree import moves_of, walked
from exactsel.proofs.recheck import Recheck
from exactsel.search.events import SubtreeClosed
from exactsel_certificates.formula import ColumnInstance
from exactsel_dev.reference.columns import selection_objective
from exactsel_dev.reference.subtree import retrace

TINY = 1e-9
"""Times ||A||²: what rounding may do to an objective, and (1000 times less) to a lower bound."""


def random_problem(seed):
    """Copies, zeros, constants, binary, few rows, badly scaled and correlated columns; some nearly multiples."""
    case, rng = random_case(seed, loss="quadratic", lam=1.0), np.random.default_rng(seed)
    A = np.array(case.A)
    if A.shape[1] < 4:
        return random_problem(seed + 10_000)
    if rng.random() < 0.3:
        A[:, 1] = -2.0 * A[:, 0] + rng.choice([0.0, 1e-12, 1e-6, 1e-2]) * A[:, 2]
    return ColumnSubsetProblem(A, max(2, case.k))


def random_state(rng, d, k):
    """A region with two places or more, some columns being out."""
    state = np.full(d, FREE, dtype=np.int8)
    state[rng.permutation(d)[: rng.integers(0, k - 1)]] = IN
    free = np.flatnonzero(state == FREE)
    state[free[rng.random(free.size) < 0.2]] = OUT
    return state


def values_of(problem, state):
    """The objective of every selection of a region by the checker's plain formula; more columns never cost more."""
    instance, included = ColumnInstance(np.array(problem.A), problem.k), np.flatnonzero(state == IN).tolist()
    free = np.flatnonzero(state == FREE).tolist()
    slots = min(problem.k - len(included), len(free))
    return {
        frozenset([*included, *more]): selection_objective(instance, [*included, *more])
        for more in combinations(free, slots)
    }


def holds(chosen, state):
    """Whether a selection lies in a region."""
    return all(j in chosen for j in np.flatnonzero(state == IN)) and not chosen & {*np.flatnonzero(state == OUT)}


@pytest.mark.parametrize("block", sample(4, 8))
def test_a_walk_leaves_no_better_selection_out(block):
    finished = unfinished = better = 0
    for seed in range(60 * block, 60 * block + 60):
        problem, rng = random_problem(seed), np.random.default_rng(seed)
        enumeration = SelectionEnumeration(problem, Residuals(problem), BoundOptions(threads=int(rng.integers(1, 3))))
        states = np.stack([random_state(rng, problem.d, problem.k) for _ in range(2)])
        scale = max(problem.null_objective, 1e-300)
        for state, budget in zip(states, (10**6, int(rng.integers(1, 4))), strict=True):
            values = values_of(problem, state)
            least = min(values.values())
            upper = least + float(rng.choice([0.0, 1e-3, 0.3])) * scale
            tolerance = 1e-6 * upper
            (walk,) = enumeration.explore(state[None], upper, tolerance, budget)
            if walk is None:
                continue
            finished, unfinished = finished + walk.finished, unfinished + (not walk.finished)
            in_reach = upper
            if walk.support is not None:
                better += 1
                in_reach = problem.fit(walk.support).value
                assert in_reach < upper + TINY * scale
                assert holds({*walk.support}, state), seed
            closed = {
                chosen: value for chosen, value in values.items()
                if not any(holds(chosen, left) for left in walk.open_states)
            }  # fmt: skip
            assert min(closed.values(), default=np.inf) >= min(walk.min_pruned_bound, upper) - 1e-12 * scale, seed
            assert walk.min_pruned_bound >= in_reach - 2.0 * tolerance - 1e-12 * scale
            assert np.all([value >= in_reach - tolerance - TINY * scale for value in closed.values()]), seed
            follows(problem, state, walk)
    assert finished > 20
    assert unfinished > 5
    assert better > 10


def follows(problem, state, walk):
    """The moves divide the region into what is closed, with the bound that was claimed, and what is left open."""
    node = root_node(state, 0.0)
    children = [as_region(root_node(left, 0.0)) for left in walk.open_states]
    told, _ = moves_of(walked(node, as_region(node), walk, children, "explored"))
    included, free = frozenset(np.flatnonzero(state == IN).tolist()), frozenset(np.flatnonzero(state == FREE).tolist())
    left = list(walk.open_states)
    instance = ColumnInstance(np.array(problem.A), problem.k)
    for piece in retrace(instance, included, free, told.moves.tolist(), None):
        if piece.bound is None:
            at = left.pop(0)
            assert {*np.flatnonzero(at == IN)} == {*piece.included}
            assert {*np.flatnonzero(at == FREE)} == {*piece.candidates}
        else:
            assert piece.bound >= walk.min_pruned_bound - TINY * problem.null_objective
    assert not left


@pytest.mark.smoke
def test_searches_end_where_those_without_walks_do(tmp_path, kernels_at_once):
    for seed in range(many(6, 40)):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((30, 14)) @ np.diag(0.7 ** np.arange(14)) @ rng.standard_normal((14, 14))
        problem = ColumnSubsetProblem(A, int(rng.integers(2, 6)))
        plain = solve(problem, subtrees=False, signals=())
        walked_through = solve(problem, signals=())
        assert walked_through.upper == pytest.approx(plain.upper, rel=1e-9)
        assert walked_through.reached
        assert walked_through.lower <= plain.upper
        assert walked_through.settings["closers"]["explored"]["subtrees"] >= 1
        options = {"shard": 1, "batch": 2, "signals": ()}
        serial = solve(problem, **options, executor="serial")
        assert solve(problem, **options, executor=Here()).tree_hash == serial.tree_hash
        search = Search(problem, Settings(), signals=())
        recheck = Recheck(problem)
        for event in search:
            recheck(event, search.state)
        assert recheck.bounds > 0


def test_workers_walk_what_the_root_is_divided_into(kernels_at_once, monkeypatch):
    monkeypatch.setattr(work_budget, "FIRST_WORK", 3e5)
    rng = np.random.default_rng(9)
    problem = ColumnSubsetProblem(rng.standard_normal((25, 16)) @ rng.standard_normal((16, 16)), 5)
    options, here = {"shard": 1, "batch": 4, "signals": ()}, Here()
    serial = solve(problem, **options, executor="serial")
    elsewhere = solve(problem, **options, executor=here)
    assert (elsewhere.tree_hash, elsewhere.lower) == (serial.tree_hash, serial.lower)
    assert here.given > 0
    assert elsewhere.settings["closers"]["explored"]["subtrees"] > 1


def test_a_walk_that_claims_too_much_is_found_out():
    rng = np.random.default_rng(3)
    problem = ColumnSubsetProblem(rng.standard_normal((20, 9)), 3)
    search = Search(problem, Settings(heuristics=()), signals=())
    with pytest.raises(InvariantError, match="what is said to prove it"):
        overstated(search, Recheck(problem))


def overstated(search, recheck):
    """Recheck a search whose walks are said to have closed all at more than the best objective known."""
    for event in search:
        if isinstance(event, SubtreeClosed):
            object.__setattr__(event.result, "min_pruned_bound", 1.001 * search.state.upper)
        recheck(event, search.state)


def test_a_short_walk_goes_on_in_the_search():
    """With far too little work for the root the search comes to the same end, and is resumed in the middle."""
    rng = np.random.default_rng(4)
    problem = ColumnSubsetProblem(rng.standard_normal((25, 22)) @ rng.standard_normal((22, 22)), 6)
    result = solve(problem, signals=())
    assert result.reached
    first = Search(problem, Settings(node_limit=40), signals=()).run()
    assert not first.reached
    assert first.lower <= result.upper


@pytest.mark.parametrize("size", [1e-59, 1.0, 1e59])
def test_extreme_units(size):
    rng = np.random.default_rng(5)
    problem = ColumnSubsetProblem(size * rng.uniform(0.1, 1.0, (12, 8)), 3)
    enumeration = SelectionEnumeration(problem, Residuals(problem), BoundOptions())
    best = min(problem.fit(chosen).value for chosen in combinations(range(8), 3))
    (walk,) = enumeration.explore(problem.root_state[None], 2.0 * best, 0.0, 10**6)
    assert walk.finished
    assert walk.min_pruned_bound <= best <= (1 + 1e-9) * walk.min_pruned_bound
