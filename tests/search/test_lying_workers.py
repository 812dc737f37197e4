"""Answers of workers that cannot be right are refused, and the search is the one that it is without them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from every_search import SEARCHES
from executors_for_tests import Here, changed, larger, same

from exactsel import Problem, Search, Settings, solve
from exactsel.bounds.witness import ModelPoint
from exactsel.enumeration.native import NativeTree
from exactsel.errors import InputError, UnsupportedError
from exactsel.kernels.moves import CLOSED
from exactsel.kernels.native_record import AT_ONCE
from exactsel.nodes.node import root_node
from exactsel.nodes.regions import NodeDivided, NodeKept, Round, SubtreeResult, as_region
from exactsel.nodes.subtree import Moves
from exactsel.proofs.spot_check import SpotCheck
from exactsel.search.packed_bytes import to_bytes
from exactsel.search.packing import pack
from exactsel.search.pool import round_bytes, round_from_bytes

SHARDED = {"shard": 1, "batch": 4}
D = larger()[0].d


def lying(change, when):
    """An executor some of whose answers have their outcomes changed."""

    def spoilt(number, answer):
        if not when(number):
            return answer
        return changed(executor, answer, lambda done: replace(done, outcomes=tuple(map(change, done.outcomes))))

    executor = Here(spoilt)
    return executor


def searched(outcome):
    return isinstance(outcome, SubtreeResult) and isinstance(outcome.expansion, NativeTree)


def lifted(outcome):
    if not isinstance(outcome, NodeDivided):
        return outcome
    return replace(outcome, rest=replace(outcome.rest, bound=outcome.rest.bound * (1 + 1e-6)))


def closing(outcome):
    if not isinstance(outcome, NodeDivided):
        return outcome
    return replace(outcome, rest=replace(outcome.rest, closed="bound", bound=1e6))


def smaller(outcome):
    if not isinstance(outcome, NodeDivided):
        return outcome
    state = outcome.rest.state.copy()
    state[np.flatnonzero(state == 1)[:1]] = 0
    return replace(outcome, rest=replace(outcome.rest, state=state))


def elsewhere(outcome):
    return replace(outcome, node=replace(outcome.node, bound=1e9, depth=99))


def contained(outcome):
    if not isinstance(outcome, NodeDivided):
        return outcome
    return replace(outcome, rest=replace(outcome.rest, closed="contained"))


def walked_away(outcome):
    """A subtree nobody walks here."""
    region = as_region(outcome.node)
    return SubtreeResult(outcome.node, region, "explored", (), 1e9, 1, work=1.0, expansion=Moves(np.array([CLOSED])))


def searched_away(outcome):
    nothing = np.zeros((0, 3), dtype=np.int64)
    search = NativeTree(
        1, 1, 1, np.inf, None, nothing, np.zeros(0), np.zeros((0, D), np.int8), np.zeros(0), nothing,
        np.zeros((0, D)), np.ones(D), None,
    )  # fmt: skip
    return SubtreeResult(outcome.node, as_region(outcome.node), "below", (), np.inf, 1, numbers=(), expansion=search)


def nothing_told(outcome):
    """Closed, and nobody says how."""
    return SubtreeResult(outcome.node, as_region(outcome.node), "explored", (), 1e9, 1)


def half_of_it(outcome):
    """A subtree of which a part is nowhere."""
    region = as_region(outcome.node)
    state = outcome.node.state.copy()
    state[np.flatnonzero(state == 1)[:1]] = 0
    return SubtreeResult(outcome.node, region, "below", (replace(region, state=state),))


def without_children(outcome):
    return replace(outcome, children=()) if isinstance(outcome, NodeDivided) else outcome


LIES = {
    "a bound": lifted, "a closed region": closing, "a region": smaller, "a reason": contained, "a walk": walked_away,
    "a search": searched_away, "silence": nothing_told, "half of it": half_of_it, "no children": without_children,
}  # fmt: skip


@cache
def larger_in_one_process():
    problem, options = larger()
    return problem, options, solve(problem, **options, executor="serial", signals=())


@pytest.mark.parametrize("lie", LIES)
def test_a_worker_that_lies_once_in_a_while(lie, kernels_at_once):
    problem, options, serial = larger_in_one_process()
    executor = lying(LIES[lie], lambda number: number % 7 == 1)
    assert same(solve(problem, **options, executor=executor, signals=()), serial)
    assert executor.given > 10


@pytest.mark.parametrize("demand", [{"force_out": (1,)}, {"force_in": (21,)}, {"hierarchy": {1: (21,), 2: (20,)}}])
def test_a_model_that_the_problem_does_not_admit(demand, kernels_at_once):
    plain, options = larger()
    problem = Problem(plain.A, plain.y, 5, lam=0.5, loss="huber", delta=1.0, **demand)
    serial = solve(problem, **options, executor="serial", signals=())
    best = plain.fit(solve(plain, signals=()).support)
    spoilt = []

    def better(number, answer):
        if number % 3:
            return answer
        spoilt.append(number)
        return changed(executor, answer, lambda done: replace(done, models=(best,)))

    executor = Here(better)
    assert same(solve(problem, **options, executor=executor, signals=()), serial)
    assert spoilt


def test_bounds_that_are_no_numbers():
    problem, _ = larger()
    node = root_node(problem.root_state, 0.0)
    walk, search = walked_away(NodeKept(node, as_region(node))), searched_away(NodeKept(node, as_region(node)))
    spoilt = (
        replace(walk, min_pruned_bound=np.nan),
        replace(search, expansion=replace(search.expansion, min_pruned_bound=np.nan)),
    )
    for outcome in spoilt:
        with pytest.raises(InputError, match=r"nan|other numbers in 'min_pruned_bound'"):
            round_from_bytes(round_bytes(Round((), (outcome,))), [node], problem)


def test_a_tree_that_leaves_workers_nothing_to_do():
    problem, _ = larger()
    with pytest.raises(UnsupportedError, match="takes one node after the other"):
        solve(problem, tree="state-space", bound="pdal", heuristics=(), executor="processes")


def test_a_search_that_was_not_begun_in_shards(tmp_path, kernels_at_once):
    problem, options = larger()
    file = tmp_path / "run.ckpt"
    solve(problem, heuristics=(), subtrees=False, node_limit=20, checkpoint=file, signals=())
    with pytest.raises(InputError, match="was begun without an executor, and so not in shards"):
        solve(problem, resume=file, executor=Here(), signals=())
    other = tmp_path / "other.ckpt"
    solve(problem, **options | {"node_limit": 60}, checkpoint=other, executor="serial", signals=())
    serial = solve(problem, **options, executor="serial", signals=())
    assert solve(problem, resume=other, executor=Here(), signals=()).upper == serial.upper


def test_what_a_worker_says_of_the_node_itself_is_not_taken(kernels_at_once):
    problem, options = larger()
    serial = solve(problem, **options, executor="serial", signals=())
    executor = lying(elsewhere, lambda number: True)
    assert same(solve(problem, **options, executor=executor, signals=()), serial)


def test_a_search_below_a_node_that_says_too_much(kernels_at_once):
    """What a kernel closed is looked at in part; here that part is all, and the kernel's word is too good."""
    make, options = SEARCHES["huber, default"]

    def better(outcome):
        if not searched(outcome) or not np.isfinite(outcome.min_pruned_bound):
            return outcome
        spoilt.append(outcome.node.id)
        return replace(outcome, expansion=replace(outcome.expansion, min_pruned_bound=outcome.min_pruned_bound + 1.0))

    found = 0
    for seed in range(900, 906):
        spoilt = []
        serial = solve(make(seed), **options | SHARDED, executor="serial", signals=())
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("exactsel.proofs.spot_check.SpotCheck.__init__.__defaults__", (1,))
            executor = lying(better, lambda number: number % 2)
            assert same(solve(make(seed), **options | SHARDED, executor=executor, signals=()), serial)
        found += len(spoilt)
    assert found > 0, "the case to be tested"


def left_higher(search):
    return replace(search, open_bounds=search.open_bounds * (1 + 1e-6))


def left_elsewhere(search):
    return replace(search, open_states=np.zeros_like(search.open_states))


@pytest.mark.parametrize("lie", [left_higher, left_elsewhere])
def test_regions_left_open_below_a_node(lie, kernels_at_once):
    """Looked at all together, and each of them: also where no subtree is looked at in full."""
    problem, options = larger()
    options = options | {"subtrees": True, "shard": 2, "batch": 8}
    lied = []

    def change(outcome):
        if not searched(outcome) or not len(outcome.children) or len(lied) > 1:
            return outcome
        lied.append(outcome.node.id)
        return replace(outcome, expansion=lie(outcome.expansion))

    serial = solve(problem, **options, executor="serial", signals=())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("exactsel.proofs.spot_check.SpotCheck.__init__.__defaults__", (10**9,))
        assert same(solve(problem, **options, executor=lying(change, lambda number: number % 2), signals=()), serial)
    assert lied, "the case to be tested"


def labels():
    """Where kernels close regions at once; too large for a proof to be written beside."""
    rng = np.random.default_rng(4)
    A = rng.standard_normal((340, 24)) + rng.standard_normal((340, 1))
    y = np.sign(A[:, :6].sum(axis=1) + 16 * rng.standard_normal(340))
    options = {"heuristics": (), "shard": 2, "batch": 8, "signals": ()}
    return Problem(A, y, 6, lam=0.5, loss="logistic"), options


def test_an_answer_whose_steps_do_not_prove_it():
    problem, options = labels()
    spoilt = []

    def better(outcome):
        if not searched(outcome) or not np.any(outcome.expansion.steps[:, 2] == AT_ONCE) or len(spoilt) > 1:
            return outcome
        spoilt.append(outcome.node.id)
        search = outcome.expansion
        return replace(
            outcome,
            expansion=replace(
                search, min_pruned_bound=search.min_pruned_bound + 20.0, step_bounds=search.step_bounds + 20.0
            ),
        )

    serial = solve(problem, **options, executor="serial")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("exactsel.proofs.spot_check.SpotCheck.__init__.__defaults__", (1,))
        assert same(solve(problem, **options, executor=lying(better, lambda number: number % 7 == 0)), serial)
    assert spoilt, "the case to be tested"


@pytest.mark.parametrize("answer", [b"", b"nonsense", to_bytes(pack([np.zeros(3)]))])
def test_an_answer_that_is_none(answer, kernels_at_once):
    problem, options = larger()
    serial = solve(problem, **options, executor="serial", signals=())
    executor = Here(lambda number, right: answer if number % 3 == 0 else right)
    assert same(solve(problem, **options, executor=executor, signals=()), serial)


@pytest.mark.parametrize("size", [1.0, 1e16, 1e150])
def test_a_bound_by_a_witness_with_coefficients_of_any_size(size):
    """What rounding may make of a bound is worked out from the witness, which is the worker's choice."""
    problem, options = larger()
    search = Search(problem, Settings(**options), signals=())
    node = root_node(problem.root_state, 0.0)
    point = ModelPoint(np.array([0], dtype=np.int32), np.array([size]))
    lie = replace(as_region(node), bound=1e6, proof=point, closed="bound")
    for _ in search:
        break
    check = SpotCheck(problem, search._expander, lambda: False)
    with np.errstate(all="ignore"):
        assert check([node], Round((), (NodeKept(node, lie, None, 0.0),))) != ""
