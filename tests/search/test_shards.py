"""How a round is cut into shards: by number, and where subtrees are walked by the work that is to be expected."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from instances_for_tests import random_case

from exactsel import Problem
from exactsel.enumeration.work_budget import WALK_WORK, SubtreeRecord, WorkBudget
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.nodes.node import root_node
from exactsel.nodes.regions import NodeDivided, SubtreeResult
from exactsel.search import pool
from exactsel.search.engine import Limits, _effort
from exactsel.solving.settings import Settings
from exactsel.solving.solver import Search

WORKS = st.lists(st.floats(0.0, 3e10), min_size=1, max_size=300)


@given(WORKS, st.integers(1, 64))
def test_all_nodes_in_order_and_no_shard_too_large(works, size):
    parts = pool.shards(range(len(works)), WorkBudget(left=1000), size, np.array(works))
    assert [node for part, _ in parts for node in part] == [*range(len(works))]
    assert all(0 < len(part) <= size for part, _ in parts)
    assert {work_budget.left for _, work_budget in parts} == {1000 // len(parts)}
    most = max(pool.WORTH, sum(works) / max(pool.DIVIDED, len(works) / size))
    loads = [sum(works[node] for node in part) for part, _ in parts]
    assert all(len(part) == 1 or load <= most * (1 + 1e-9) for load, (part, _) in zip(loads, parts, strict=True))
    # No two neighbours could have been one.
    for (one, _), (other, _), load, next_load in zip(parts, parts[1:], loads, loads[1:], strict=False):
        assert len(one) == size or load + works[other[0]] > most * (1 - 1e-9) or next_load > most


def test_without_anything_known_it_is_the_number_alone():
    parts = pool.shards(range(10), WorkBudget(), 4, np.zeros(10))
    assert [len(part) for part, _ in parts] == [4, 4, 2]


@pytest.mark.smoke
def test_what_is_expected_of_nodes():
    """A walk known by its places, one of which nothing is known, and nodes that are only bounded."""
    walks = SubtreeRecord(useful=1e10, typical={6: 5e8, 3: 1e5}, successes={6: 1}, passed_over={6: 1})
    assert walks.expected(3, 40, 9.0) == 10 * 40**2 + 1e5
    assert walks.expected(6, 40, 9.0) == 10 * 40**2 + (5e8 if walks.wants(6, 40) else 0.0)
    assert walks.expected(5, 40, 9.0) == 10 * 40**2 + walks.work > WALK_WORK
    search = Search(random_case(3, loss="quadratic", lam=0.1, d=9, n=12).problem().replace(k=4), Settings())
    search.run()
    states = np.array([[FREE] * 9, [IN, *[FREE] * 8], [IN, OUT, *[FREE] * 7], [IN, *[FREE] * 8]], dtype=np.int8)
    nodes = [root_node(state, 0.0) for state in states]
    found = search._expander.expected_work(nodes, WorkBudget(iterations=30, bound_calls=10, walks=walks))
    shapes = [(4, 9), (3, 9), (3, 8), (3, 9)]
    assert found.tolist() == [walks.expected(places, columns, 3.0) for places, columns in shapes]
    huber = Search(random_case(3, loss="huber", lam=0.1, d=9, n=12).problem(), Settings())
    huber.run()
    assert huber._expander.expected_work(nodes, WorkBudget(walks=walks)).tolist() == [0.0] * 4


def test_a_record_that_was_copied_stays():
    walks = SubtreeRecord(typical={3: 1.0})
    before = walks.copy()
    walks.note_walk(3, 10, 5e6, finished=True)
    assert before == SubtreeRecord(typical={3: 1.0}) != walks


def walked_search():
    """A search that walks subtrees, begun in shards."""
    rng = np.random.default_rng(3)
    A = rng.standard_normal((40, 34)) + rng.standard_normal((40, 1))
    problem = Problem(A, A[:, :5].sum(axis=1) + 9.0 * rng.standard_normal(40), 7, lam=0.5)
    return Search(problem, Settings(shard=4, batch=8))


def has_walked(outcome):
    return isinstance(outcome, SubtreeResult) or getattr(outcome, "unused_walk", None) is not None


def test_with_few_nodes_those_with_much_below_are_divided():
    search = walked_search()
    search.run()
    problem = search.problem
    states = np.array([[FREE] * 34, [IN, *[FREE] * 33], [OUT, *[FREE] * 33]], dtype=np.int8)
    nodes, walks = [root_node(state, 0.0) for state in states], SubtreeRecord(useful=1e11, successes={5: 1})
    efforts = [WorkBudget(iterations=30, bound_calls=10, walks=walks, divides_from=least) for least in (np.inf, 1.0)]
    walking, dividing = (
        search._expander.expand(nodes, problem.null_objective, work_budget).outcomes for work_budget in efforts
    )
    assert any(has_walked(outcome) for outcome in walking), "the case to be tested"
    assert all(isinstance(outcome, NodeDivided) for outcome in dividing)
    assert not any(has_walked(outcome) for outcome in dividing)


@pytest.mark.parametrize(("shard", "taken", "few"), [(4, 3, True), (4, pool.FEW, False), (None, 3, False)])
def test_what_is_few(shard, taken, few):
    search = walked_search()
    search.run()
    work_budget = _effort(search.state, Limits(8, shard=shard), taken)
    assert work_budget.divides_from == (pool.WORTH if few else np.inf)
