"""Rounds and searches as plain arrays and back: nothing that matters is lost on the way."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from every_search import PLAIN, SEARCHES, every_second
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded import plain
from samples import examples, many

from exactsel import InputError, Search, Settings
from exactsel.bounds.witness import CurvedPoint, DualPoint, EigenvaluePoint, FitPoint, InfimumPoint, ModelPoint
from exactsel.enumeration.work_budget import SubtreeRecord, WorkBudget
from exactsel.errors import UnsupportedError
from exactsel.nodes.node import Node
from exactsel.nodes.table import NodeTable
from exactsel.search import engine
from exactsel.search.events import LowerBoundRaised
from exactsel.search.expand import Expander
from exactsel.search.frontier import DepthFirst
from exactsel.search.packed_bytes import from_bytes
from exactsel.search.packed_nodes import nodes_from, packed_nodes
from exactsel.search.packed_round import packed_round, unpacked_round
from exactsel.search.packing import Packed, pack, unpack
from exactsel.search.saved import pack_state, state_from_parts, state_parts, unpack_state
from exactsel.solving.choose import make as registered


def stored(packed, tmp_path):
    """The same after it has been a file without pickle and a line of JSON."""
    file = tmp_path / "packed.npz"
    np.savez(file, **packed.arrays)
    header = json.loads(json.dumps(packed.header, allow_nan=False))
    with np.load(file, allow_pickle=False) as arrays:
        return Packed(header, {name: arrays[name] for name in arrays.files})


@pytest.mark.smoke
@pytest.mark.parametrize("kind", every_second(1))
def test_rounds_survive(kind, kernels_at_once, monkeypatch, tmp_path):
    """A search all of whose rounds are done elsewhere: same events, same tree."""
    make, options = SEARCHES[kind]
    expand, rounds = Expander.expand, 0

    def elsewhere(self, nodes, upper, work_budget):
        nonlocal rounds
        rounds += 1
        held = stored(packed_nodes(NodeTable.of(nodes, self.problem.d)), tmp_path)
        there = [*nodes_from(held, self.problem, in_best_first_order=False)]
        (work_budget,) = unpack(stored(pack([work_budget]), tmp_path), self.problem)
        assert plain(there) == plain(nodes)
        result = expand(self, there, upper, work_budget)
        back = unpacked_round(stored(packed_round(result), tmp_path), there, self.problem)
        assert plain(back) == plain(result)
        return back

    for seed in range(900, 903):
        whole, events = Search(make(seed), Settings(**options), signals=()), []
        told = [plain(event) for event in whole]
        with monkeypatch.context() as patch:
            patch.setattr(Expander, "expand", elsewhere)
            search = Search(make(seed), Settings(**options), signals=())
            events = [plain(event) for event in search]
        assert events == told
        assert search.state.tree_hash == whole.state.tree_hash
    assert rounds > 2


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("kind", every_second(0))
def test_a_search_goes_on_from_what_was_packed(kind, ahead, kernels_at_once, monkeypatch, tmp_path):
    """Packed between any two rounds; what comes of it is the search that was not interrupted."""
    make, options = SEARCHES[kind]
    if ahead:
        monkeypatch.setattr(engine, "AHEAD", 1)
    options = {"batch": 2, "frontier": "best-first"} | options
    packed_at = 0
    for seed in range(900, 900 + many(1, 3)):
        problem = make(seed)
        whole, kept = Search(problem, Settings(**options), signals=()), []
        for event in whole:
            if isinstance(event, LowerBoundRaised) and not whole.state.in_flight:
                kept.append([bytes(part) for part in state_parts(whole.state)])
        packed_at += len(kept)
        for parts in kept[:: max(1, len(kept) // 3)]:
            frontier = registered("frontiers", options["frontier"])
            state = state_from_parts(parts, problem, frontier, whole.state.statement)
            packed = from_bytes(parts[0])
            assert plain(list(pack_state(state).arrays.values())) == plain(list(packed.arrays.values()))
            again = Search(problem, Settings(**options), state=state, signals=())
            result, expected = again.run(), whole.result()
            assert (result.tree_hash, result.nodes, result.lower, result.upper, result.support, result.valid_for) == (
                expected.tree_hash, expected.nodes, expected.lower, expected.upper, expected.support,
                expected.valid_for,
            )  # fmt: skip
    assert packed_at > 0 or ahead


def test_a_search_short_of_memory_comes_back_to_its_own_order():
    problem = SEARCHES["quadratic, no walks"][0](900)
    options = Settings(**PLAIN, subtrees=False, batch=1, memory_limit=0.001, frontier="weighted")
    search = Search(problem, options, signals=())
    relieved = 0
    for _ in search:
        if search.state.guard.usual is not None and not search.state.in_flight:
            relieved += 1
            frontier = registered("frontiers", "weighted")
            state = state_from_parts(map(bytes, state_parts(search.state)), problem, frontier)
            assert isinstance(state.frontier, DepthFirst)
            assert [plain(node) for node in state.frontier] == [plain(node) for node in search.state.frontier]
            state.end()
            assert state.frontier is frontier
            assert len(frontier) == len(search.state.frontier)
    assert relieved > 0, "the case to be tested"


def test_a_state_belongs_to_one_problem():
    make, options = SEARCHES["huber, default"]
    search = Search(make(900), Settings(**options), signals=())
    search.run()
    packed = pack_state(search.state)
    with pytest.raises(InputError, match=r"belongs to another problem; give the one it was made for\.$"):
        unpack_state(packed, make(901), registered("frontiers", "best-first"))
    older = Packed(packed.header | {"state": packed.header["state"] | {"version": 0}}, packed.arrays)
    with pytest.raises(InputError, match=r"layout 0, but this version reads layout 12; use the version"):
        unpack_state(older, make(900), registered("frontiers", "best-first"))


# --- any node ---

FLOATS = st.floats(allow_nan=False)
D = 5


def vector(rng, size=D):
    return np.array([rng.choice([0.0, -0.0, 1.5, -1e300, 5e-324, rng.standard_normal()]) for _ in range(size)])


@st.composite
def nodes(draw):
    """Some nodes that share points, as siblings do."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    curvature = vector(rng)
    point = ModelPoint.from_dense(vector(rng))
    proofs = [
        InfimumPoint(), FitPoint(), EigenvaluePoint(), point, ModelPoint.from_dense(np.zeros(D)),
        CurvedPoint(point.index, point.value, curvature),
        CurvedPoint(point.index, vector(rng, point.index.size), curvature), DualPoint(vector(rng, 7)),
    ]  # fmt: skip
    warm = [None, *proofs[3:7], vector(rng, 11), np.zeros(0), np.zeros((2, 0, 3)), np.array(1.5)]
    return [
        Node(
            draw(st.integers(0, 2**53)), draw(st.integers(-1, 2**53)), draw(st.integers(0, 99)),
            rng.integers(0, 3, D).astype(np.int8), draw(FLOATS), draw(st.sampled_from(proofs)),
            draw(st.sampled_from(warm)), draw(st.booleans()), draw(FLOATS),
        )
        for _ in range(draw(st.integers(1, 6)))
    ]  # fmt: skip


@examples(200, 400)
@given(nodes())
def test_nodes_survive_and_share_what_they_shared(some):
    problem = SimpleNamespace(d=D, n=7, k=D, units=SimpleNamespace(columns=D))
    back = [*nodes_from(packed_nodes(NodeTable.of(some, D)), problem, in_best_first_order=False)]
    assert plain(back) == plain(some)
    for get in (lambda node: node.proof, lambda node: node.warm, lambda node: getattr(node.proof, "curvature", None)):
        same = [[get(one) is get(other) for other in some] for one in some]
        assert [[get(one) is get(other) for other in back] for one in back] == same
    assert [one.warm is one.proof for one in back] == [one.warm is one.proof for one in some]


TABLES = st.dictionaries(st.integers(-1, 400), st.integers(0, 2**40), max_size=5)


@settings(deadline=None)
@given(TABLES, TABLES, st.dictionaries(st.integers(0, 400), FLOATS, max_size=5), st.none() | st.integers(0, 9), FLOATS)
def test_what_was_spent_survives(failures, successes, typical, left, horizon):
    work_budget = WorkBudget(5, 6, 7, horizon, left, SubtreeRecord(1.5, 0.5, failures, successes, typical, failures))
    assert unpack(pack([work_budget]), None) == [work_budget]
    assert unpack(pack([replace(work_budget, walks=None)]), None)[0].walks is None


def test_what_cannot_be_packed_is_refused_in_a_sentence():
    node = Node(0, -1, 0, np.zeros(2, dtype=np.int8), 0.0, InfimumPoint())
    with pytest.raises(UnsupportedError, match=r"type dict cannot be packed; a bound should hand on numpy arrays, or"):
        packed_nodes(NodeTable.of([replace(node, warm={"mine": 1})], 2))
    with pytest.raises(UnsupportedError, match=r"array of type object and 1 dimensions cannot be packed; .* int8"):
        packed_nodes(NodeTable.of([replace(node, warm=np.array([None]))], 2))
