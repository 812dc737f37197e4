"""Open nodes on a disk: the same nodes in the same order, whatever memory there is."""

from __future__ import annotations

import gc
import sqlite3

import numpy as np
import pytest
from every_search import SEARCHES, every_second
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded import plain

from exactsel import Problem, Search, Settings, solve, verify
from exactsel.bounds.witness import CurvedPoint, InfimumPoint, ModelPoint
from exactsel.errors import InputError, OutputError, OutputWarning
from exactsel.nodes.node import Node
from exactsel.nodes.sizes import node_bytes
from exactsel.search import frontier as frontiers
from exactsel.search import spilling
from exactsel.search.checkpoint import Checkpoint
from exactsel.search.events import RoundEnded
from exactsel.search.frontier import BestFirst
from exactsel.search.spilling import Spilling, TemporaryNodeStore

PROBLEM = SEARCHES["huber, default"][0](900)
WIDE = ("quadratic, no walks", "huber, default", "supergradient", "columns, no walks")
"""Searches with many open nodes."""

TIGHT = 1e-4
"""MiB: nothing stays in memory that need not."""


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(spilling, "CHUNK", 3)
    monkeypatch.setattr(spilling, "FEWEST", 2)


def a_node(number, bound):
    state = np.ones(PROBLEM.d, dtype=np.int8)
    proof = InfimumPoint() if number % 3 else ModelPoint.from_dense(np.full(PROBLEM.d, float(number)))
    return Node(number, number - 1, 2, state, bound, proof, proof if number % 2 else None, estimate=bound + 1.0)


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("push"), st.integers(0, 6)),
        st.tuples(st.just("take"), st.integers(1, 5)),
        st.tuples(st.just("spill"), st.just(0)),
        st.tuples(st.just("prune"), st.integers(3, 7)),
        st.tuples(st.just("look"), st.integers(0, 9)),
    ),
    max_size=60,
)


@pytest.mark.parametrize("most_objects", [5, 4096])
@given(actions=ACTIONS)
@settings(deadline=None)
def test_as_if_all_were_in_memory(most_objects, actions):
    usual, tested = BestFirst(), Spilling(TemporaryNodeStore(), PROBLEM)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frontiers, "MOST_OBJECTS", most_objects)
        _act(actions, usual, tested)


def _act(actions, usual, tested):
    for number, (action, value) in enumerate(actions):
        if action == "push":
            for one in (usual, tested):
                one.push(a_node(number, float(value)))
        elif action == "take":
            assert list(map(plain, tested.take(value))) == list(map(plain, usual.take(value)))
        elif action == "spill":
            tested.spill()
        elif action == "prune":
            assert list(map(plain, tested.prune(float(value)))) == list(map(plain, usual.prune(float(value))))
        else:
            assert tested.bound_at(value) == usual.bound_at(value)
            assert list(map(plain, tested)) == list(map(plain, usual))
            now = tested.now([a_node(999, 3.5)])
            assert [node.id for node in now] == [node.id for node in usual.now([a_node(999, 3.5)])]
            assert now[0].id == usual.now([a_node(999, 3.5)])[0].id
            assert [node.id for node in now[1:4]] == [node.id for node in usual.now([a_node(999, 3.5)])[1:4]]
        assert len(tested) == len(usual)
        assert tested.lower() == usual.lower()
    assert tested.cold == sum(len(chunk.bounds) for chunk in tested._cold) <= len(tested)


def test_a_store_that_is_gone_leaves_no_connection_open():
    store = TemporaryNodeStore()
    connection = store._connection
    del store
    gc.collect()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")


def test_points_of_more_curvatures_than_are_packed_together(monkeypatch):
    """As whoever writes a bound may hand them on: pieces of the order then have parts of many tables."""
    monkeypatch.setattr(frontiers, "MOST_OBJECTS", 50)
    monkeypatch.setattr(spilling, "CHUNK", 200)
    rng, usual, tested = np.random.default_rng(0), BestFirst(), Spilling(TemporaryNodeStore(), PROBLEM)
    for number in range(400):
        point = CurvedPoint(np.array([1], np.int32), rng.random(1), rng.random(PROBLEM.d))
        state = np.ones(PROBLEM.d, dtype=np.int8)
        node = Node(number, number - 1, 2, state, rng.random(), point, point, estimate=1.0)
        usual.push(node)
        tested.push(node)
    tested.spill()
    assert tested.cold > 100
    assert list(map(plain, tested.take(400))) == list(map(plain, usual.take(400)))


@pytest.mark.smoke
@pytest.mark.parametrize("kind", every_second(0, "weighted"))
def test_the_tree_is_the_same_whatever_the_memory(kind, kernels_at_once):
    make, options = SEARCHES[kind]
    options = {"batch": 2} | options
    spilled = 0
    for seed in (900, 901):
        usual = Search(make(seed), Settings(**options), signals=()).run()
        search = Search(make(seed), Settings(**options, memory_limit=TIGHT), signals=())
        for event in search:
            if isinstance(event, RoundEnded) and isinstance(search.state.frontier, Spilling):
                spilled += search.state.frontier.cold
                assert search.state.bound <= usual.upper
        tight = search.result()
        assert (tight.tree_hash, tight.nodes, tight.lower, tight.upper, tight.support) == (
            usual.tree_hash, usual.nodes, usual.lower, usual.upper, usual.support,
        )  # fmt: skip
        assert abs(search.state.open_bytes) < 5000, "what is counted as open comes back to nothing"
    assert spilled > 0 or kind not in WIDE


@pytest.mark.parametrize("kind", ["quadratic, no walks", "columns, no walks"])
def test_a_checkpoint_holds_what_is_on_the_disk(kind, kernels_at_once, tmp_path):
    make, options = SEARCHES[kind]
    problem, path, cold = make(900), tmp_path / "run.ckpt", []
    options = {**options, "batch": 2, "subtrees": False}
    whole = solve(problem, **options, signals=())

    def look(event, state):
        if isinstance(event, RoundEnded) and isinstance(state.frontier, Spilling):
            cold.append(state.frontier.cold)

    stopped = solve(
        problem, checkpoint=path, checkpoint_every=0, memory_limit=TIGHT, callback=look, proof=tmp_path / "run.exsel",
        node_limit=max(5, whole.nodes // 2), signals=(), **options,
    )  # fmt: skip
    assert stopped.termination == "node_limit"
    assert max(cold) > 0, "the case to be tested"
    again = solve(problem, resume=path, signals=())
    assert (again.upper, again.support) == (whole.upper, whole.support)
    assert again.reached
    assert verify(problem, tmp_path / "run.exsel").verified


def test_nodes_in_a_checkpoint_outlive_its_last_state(tmp_path, monkeypatch):
    """Where states can be saved no more, what was spilled to the file is still there."""
    save, saved = Checkpoint.save, []

    def full(self, *arguments):
        saved.append(1)
        if len(saved) > 3:
            raise OutputError("the checkpoint cannot be written (disk full).")
        save(self, *arguments)

    monkeypatch.setattr(Checkpoint, "save", full)
    make, options = SEARCHES["quadratic, no walks"]
    options = {**options, "batch": 2, "signals": ()}
    usual = solve(make(900), **options)
    with pytest.warns(OutputWarning, match=r"\(disk full\)\. The search continues without it\."):
        result = solve(
            make(900), checkpoint=tmp_path / "run.ckpt", checkpoint_every=0, memory_limit=TIGHT, **options
        )  # fmt: skip
    assert result.reached
    assert (result.nodes, result.support) == (usual.nodes, usual.support)


def test_a_full_disk_keeps_nodes_in_memory(monkeypatch):
    def full(self, data, keys):
        raise OutputError("open nodes cannot be written to the folder for temporary files (disk full).")

    make, options = SEARCHES["quadratic, no walks"]
    usual = solve(make(900), **options, batch=2, signals=())
    monkeypatch.setattr(TemporaryNodeStore, "add_chunk", full)
    with pytest.warns(OutputWarning, match=r"\(disk full\)\. Open nodes stay in memory\."):
        result = solve(make(900), **options, batch=2, memory_limit=TIGHT, signals=())
    assert result.termination == "memory_limit"
    assert result.open_nodes > 0
    assert result.lower <= usual.upper <= result.upper


def twelve_spilled(unit=1.0):
    frontier = Spilling(TemporaryNodeStore(), PROBLEM)
    for number in range(12):
        frontier.push(a_node(number, unit * number))
    frontier.spill()
    return frontier


def test_a_damaged_chunk_is_refused_and_counts_as_open():
    frontier = twelve_spilled()
    frontier.room._connection.execute("UPDATE chunk SET data = ?", (b"nothing",))
    assert len(frontier.take(6)) == 6
    with pytest.raises(InputError, match="is damaged; take an intact copy"):
        frontier.take(1)
    assert frontier.lower() == 6.0, "what cannot be read limits the bound"
    assert len(frontier) == 6
    with pytest.raises(InputError, match="is damaged"):
        list(frontier.prune(7.5))
    assert frontier.lower() == 6.0


def test_pruning_that_breaks_off_leaves_a_true_bound():
    """Nodes that were taken out but never told are not above the cutoff for all that is said."""
    search = Search(PROBLEM, Settings(heuristics="none"), signals=())
    state = search.state
    state.frontier = twelve_spilled(unit=0.125)
    value = state.value
    state.frontier._nodes.clear()
    state.frontier.room._connection.execute("UPDATE chunk SET data = ?", (b"nothing",))
    with pytest.raises(InputError, match="is damaged"):
        list(state.prune(0.75))
    assert len(state.frontier) == 0
    assert state.bound <= 0.75 < value


def test_an_interrupt_while_nodes_are_written_loses_none(monkeypatch):
    frontier = Spilling(TemporaryNodeStore(), PROBLEM)
    for number in range(12):
        frontier.push(a_node(number, float(number)))

    def interrupted(self, data, keys):
        raise KeyboardInterrupt

    monkeypatch.setattr(TemporaryNodeStore, "add_chunk", interrupted)
    with pytest.raises(KeyboardInterrupt):
        frontier.spill()
    assert [node.id for node in frontier] == list(range(12))


class BrokenOffError(Exception):
    """What somebody who looks on raises."""


def test_what_is_counted_as_open_survives_going_on(monkeypatch, tmp_path):
    """Nodes kept as objects are in tables in a search that goes on; so their bytes are counted anew."""
    monkeypatch.setattr(spilling, "CHUNK", 256)
    rng = np.random.default_rng(5)
    A = rng.standard_normal((60, 40)) + rng.standard_normal((60, 1))
    problem = Problem(A, A[:, :8].sum(axis=1) + 3.0 * rng.standard_normal(60), 8, loss="huber", lam=0.5)
    waiting, cold, path = [], [], tmp_path / "run.ckpt"

    def look(event, state):
        if isinstance(event, RoundEnded):
            frontier = state.frontier
            packed = sum(reader.nbytes for reader in frontier._blocks)
            assert state.open_bytes == packed + sum(map(node_bytes, frontier._nodes))
            waiting.append(len(frontier._blocks))
            cold.append(getattr(frontier, "cold", 0))
            if state.rounds % 4 == 0:
                raise BrokenOffError

    for memory_limit in (4096.0, 0.05, 4096.0, 0.02):
        how = {"resume": path} if path.exists() else {"checkpoint": path, "heuristics": ()}
        with pytest.raises(BrokenOffError):
            solve(problem, checkpoint_every=0, callback=look, memory_limit=memory_limit, threads=1, signals=(), **how)
    assert max(waiting) > 0
    assert max(cold) > 0
    assert solve(problem, resume=path, node_limit=0, signals=()).open_nodes > 0
