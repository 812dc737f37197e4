"""Packed open nodes: they come back to the last bit, whatever is taken off, put together, written down or damaged."""

from __future__ import annotations

import numpy as np
import pytest
from every_search import SEARCHES
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded import plain
from samples import examples

from exactsel import InputError, Search, Settings
from exactsel.bounds.witness import (
    CurvedPoint,
    DualPoint,
    EigenvaluePoint,
    FitPoint,
    InfimumPoint,
    ModelPoint,
    SplitPoint,
)
from exactsel.nodes.node import Node
from exactsel.nodes.sizes import node_bytes
from exactsel.nodes.table import NodeTable, TableReader
from exactsel.search import frontier
from exactsel.search.packed_bytes import from_bytes, to_bytes
from exactsel.search.packed_nodes import nodes_from, packed_nodes
from exactsel.search.packing import Packed

PROBLEM = SEARCHES["huber, default"][0](900)
D, N = PROBLEM.d, PROBLEM.n


def a_point(rng):
    match rng.integers(10):
        case 0:
            return [InfimumPoint(), FitPoint(), EigenvaluePoint()][rng.integers(3)]
        case 1:
            return DualPoint(rng.standard_normal(N))
        case 2:
            columns = np.arange(2, dtype=np.int32)
            return SplitPoint(columns, np.ones(2), np.array([0.5], dtype=np.float16))
        case 3 | 4 | 5:
            kind = rng.integers(2)
            index = np.flatnonzero(rng.random(D) < 0.5).astype(np.int32)
            return CurvedPoint(index, rng.standard_normal(index.size), np.full(D, 1.0 + kind))
    return ModelPoint.from_dense(rng.standard_normal(D) * (rng.random(D) < 0.6))


def some_nodes(seed, count, points=a_point):
    """Nodes in order; some bounds are equal, some points shared."""
    rng = np.random.default_rng(seed)
    shared, nodes = [points(rng) for _ in range(1 + count // 3)], []
    for number in rng.permutation(3 * count)[:count].tolist():
        state = np.ones(D, dtype=np.int8)
        state[rng.random(D) < 0.4] = 0
        state[rng.permutation(D)[: rng.integers(PROBLEM.k + 1)]] = 2
        proof = shared[rng.integers(len(shared))]
        warm = [None, proof, shared[rng.integers(len(shared))], rng.standard_normal(3)][rng.integers(4)]
        bound = [float(rng.integers(4)), float(rng.standard_normal()), -np.inf][rng.choice(3, p=[0.5, 0.4, 0.1])]
        estimate = np.inf if rng.random() < 0.3 else float(rng.standard_normal())
        parent, depth = int(rng.integers(-1, 9)), int(rng.integers(9))
        nodes.append(Node(number, parent, depth, state, bound, proof, warm, bool(rng.integers(2)), estimate))
    return sorted(nodes, key=lambda node: (node.bound, node.id))


@settings(deadline=None)
@given(st.integers(0, 10**9), st.integers(1, 40))
def test_packed_nodes_are_the_same_nodes(seed, count):
    nodes, rng = some_nodes(seed, count), np.random.default_rng(seed)
    table = NodeTable.of(nodes, D)
    assert [plain(node) for node in table] == [plain(node) for node in nodes]
    assert [table.key(row) for row in range(count)] == [(node.bound, node.id) for node in nodes]
    for node in nodes:
        assert nodes[table.rows_before((node.bound, node.id))] is node
    first, end = sorted(rng.choice(count + 1, 2, replace=False).tolist())
    part = table.part(first, end)
    assert [plain(node) for node in part] == [plain(node) for node in nodes[first:end]]
    parts = [table.part(at, at + 1) for at in range(first)] + [part] + ([table.part(end, count)] if end < count else [])
    together = NodeTable.joined([parts[at] for at in rng.permutation(len(parts)).tolist()])
    assert [plain(node) for node in together] == [plain(node) for node in nodes]
    back = nodes_from(from_bytes(to_bytes(packed_nodes(together), level=0)), PROBLEM)
    assert [plain(node) for node in back] == [plain(node) for node in nodes]
    assert back.objects.nbytes == together.objects.nbytes


def test_nodes_that_share_a_point_share_it_again():
    point = ModelPoint.from_dense(np.ones(D))
    nodes = [Node(i, 0, 1, np.ones(D, dtype=np.int8), float(i), point, point) for i in range(4)]
    table = NodeTable.of(nodes, D)
    assert len(table.objects.points) == 1
    reader = TableReader(table.part(1, 4))
    taken = reader.take()
    assert taken.proof is taken.warm
    assert taken.proof.value.base is None, "a point that is kept does not keep all of them"
    assert len({id(one) for node in table for one in (node.proof, node.warm)}) == 1


@pytest.mark.parametrize(
    "odd",
    [
        ModelPoint(np.array([3, 1], dtype=np.int32), np.array([1.0, 2.0])),
        ModelPoint(np.array([1, 1], dtype=np.int32), np.array([1.0, 2.0])),
        ModelPoint(np.array([1], dtype=np.int64), np.array([1.0])),
        ModelPoint(np.array([1], dtype=np.int32), np.array([1.0], dtype=np.float32)),
        ModelPoint(np.array([1], dtype=np.int32), np.array([-0.0])),
        ModelPoint(np.zeros(0, dtype=np.int32), np.zeros(0)),
    ],
)
def test_points_that_no_search_makes_are_kept_as_they_are(odd):
    nodes = some_nodes(3, 6)
    nodes.append(Node(99, 0, 1, np.ones(D, dtype=np.int8), 9.0, odd, odd))
    assert [plain(node) for node in NodeTable.of(nodes, D)] == [plain(node) for node in nodes]


def test_many_columns_are_written_one_by_one():
    """A bit for each column would take more than the entries do."""
    rng = np.random.default_rng(0)

    def point(_):
        index = np.sort(rng.choice(100_000, 5, replace=False)).astype(np.int32)
        return ModelPoint(index, rng.standard_normal(5))

    nodes = some_nodes(4, 30, point)
    table = NodeTable.of(nodes, D)
    assert table.objects.points.columns.ndim == 1
    together = NodeTable.joined([table.part(20, 30), table.part(0, 20)])
    assert [plain(node) for node in together] == [plain(node) for node in nodes]


def test_packed_nodes_take_less():
    nodes = some_nodes(5, 300, lambda rng: ModelPoint.from_dense(rng.standard_normal(D)))
    assert 3 * NodeTable.of(nodes, D).nbytes < sum(map(node_bytes, nodes))


@pytest.mark.parametrize("kind", [kind for kind in SEARCHES if kind != "weighted"])
def test_the_tree_is_the_same_however_many_are_packed(kind, kernels_at_once, monkeypatch):
    make, options = SEARCHES[kind]
    results = []
    for most_objects in (4096, 4):
        monkeypatch.setattr(frontier, "MOST_OBJECTS", most_objects)
        result = Search(make(902), Settings(**{"batch": 2} | options), signals=()).run()
        results.append((result.tree_hash, result.nodes, result.lower, result.upper, result.support))
    assert results[0] == results[1]


ABSURD = (np.nan, np.inf, -1, 0, 1, 2, 3, 100, 127)


@st.composite
def damaged(draw):
    packed = packed_nodes(NodeTable.of(some_nodes(draw(st.integers(0, 5)), 12), D))
    arrays = dict(packed.arrays)
    place = draw(st.sampled_from(sorted(arrays)))
    array = arrays[place].copy()
    match draw(st.sampled_from(("entry", "entry", "entry", "shorter", "type", "shape", "missing"))):
        case "entry" if array.size:
            value = draw(st.sampled_from(ABSURD if array.dtype.kind == "f" else ABSURD[2:]))
            array.flat[draw(st.integers(0, array.size - 1))] = value if value >= 0 or array.dtype.kind != "u" else 255
        case "shorter":
            array = array[:-1]
        case "type":
            array = array.astype(draw(st.sampled_from(["int8", "int64", "float64", "bool"])))
        case "shape":
            array = array[None]
        case "missing":
            return Packed(packed.header, {key: one for key, one in arrays.items() if key != place})
    return Packed(packed.header, arrays | {place: array})


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")
@examples(300, 600)
@given(damaged())
def test_damage_is_refused_or_harmless(packed):
    """What is not refused are nodes of the problem, in order, whose numbers are numbers."""
    try:
        nodes = list(nodes_from(packed, PROBLEM))
    except InputError as error:
        refusal = str(error)
    else:
        refusal = ""
    if refusal:
        assert refusal.startswith("the packed search")
        return
    keys = [(node.bound, node.id) for node in nodes]
    assert keys == sorted(set(keys))
    for node in nodes:
        assert node.state.shape == (D,)
        assert node.state.min() >= 0
        assert node.state.max() <= 2
        assert node.proof is not None
        if isinstance(node.proof, ModelPoint):
            assert np.all(np.isfinite(node.proof.dense(D)))
