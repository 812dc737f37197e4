"""Open regions that wait in arrays are the nodes they stand for."""

from __future__ import annotations

import numpy as np
import pytest
from samples import sample

from exactsel.bounds.witness import InfimumPoint, ModelPoint
from exactsel.nodes.left_open import LeftBelow
from exactsel.nodes.node import Node
from exactsel.nodes.objects import MadeObjects
from exactsel.nodes.table import NodeTable
from exactsel.problem.regression import Problem
from exactsel.search import block_heap, commit
from exactsel.search import frontier as frontier_module
from exactsel.search.events import Finished
from exactsel.search.frontier import BestFirst
from exactsel.search.open_nodes import OpenNodes
from exactsel.solving.settings import Settings
from exactsel.solving.solver import Search
from tests.fixtures.recorded import plain


def hard(loss="logistic", n=100, d=60, k=10):
    rng = np.random.default_rng(5)
    A = rng.standard_normal((n, d)) + 0.5 * rng.standard_normal((n, 1))
    y = rng.standard_normal(n)
    return Problem(A, np.where(y > 0, 1.0, -1.0) if loss == "logistic" else y, k, loss=loss, lam=2.0)


def random_table(rng, m, first=0, d=5):
    """Some nodes in no order, which share what proves their bounds."""
    points = [
        *(ModelPoint.from_dense(rng.standard_normal(d) * (rng.random(d) < 0.5)) for _ in range(3)),
        InfimumPoint(),
    ]
    proofs, starts = rng.integers(0, 4, m).tolist(), rng.integers(0, 4, m).tolist()
    states = rng.integers(0, 3, (m, d)).astype(np.int8)
    return NodeTable.of([
        Node(first + i, 7, 3, states[i], float(rng.integers(0, 4)), points[proofs[i]], points[starts[i]], estimate=1.0)
        for i in range(m)
    ], d)  # fmt: skip


@pytest.mark.parametrize("small", [2, 4096])
@pytest.mark.parametrize("most_objects", [4, 7, 4096])
@pytest.mark.parametrize("seed", sample(20, 20))
def test_the_frontier_is_that_of_nodes_made_at_once(seed, most_objects, small, monkeypatch):
    """Pushed, taken, pruned and looked at in any order, with equal bounds: the same nodes in the same order."""
    monkeypatch.setattr(frontier_module, "MOST_OBJECTS", most_objects)
    monkeypatch.setattr(block_heap, "MOST_SMALL", small)
    rng = np.random.default_rng(seed)
    waiting, plainly, number = BestFirst(), BestFirst(), 0
    for _ in range(60):
        match rng.integers(6):
            case 0 | 1:
                table = random_table(rng, 6, number)
                third = table.rows["id"] % 3 == 0
                for part in (NodeTable(table.rows[chosen], table.objects, table.d) for chosen in (third, ~third)):
                    waiting.push_table(part)
                for node in table:
                    plainly.push(node)
                number += 6
            case 2:
                node = Node(number, -1, 0, np.zeros(5, dtype=np.int8), float(rng.integers(0, 4)), InfimumPoint())
                waiting.push(node)
                plainly.push(node)
                number += 1
            case 3:
                count = int(rng.integers(0, 4))
                assert [plain(n) for n in waiting.take(count)] == [plain(n) for n in plainly.take(count)]
            case 4:
                rank = int(rng.integers(0, 5))
                assert waiting.bound_at(rank) == plainly.bound_at(rank)
                assert waiting.lower() == plainly.lower()
                assert [plain(n) for n in waiting] == [plain(n) for n in plainly]
            case 5 if rng.random() < 0.3:
                cutoff = float(rng.integers(1, 4))
                assert [plain(n) for n in waiting.prune(cutoff)] == [plain(n) for n in plainly.prune(cutoff)]
        assert len(waiting) == len(plainly)
    assert number > 20


def test_small_tables_are_put_together():
    """However many closers leave something open, few tables are kept, and no more than what is open."""
    rng, frontier, number = np.random.default_rng(2), BestFirst(), 0
    for _ in range(40 * block_heap.MOST_SMALL):
        frontier.push_table(random_table(rng, 3, number))
        number += 3
        frontier.take(2)
    tables = [table for table, _ in frontier.blocks()]
    assert len(tables) <= block_heap.MOST_SMALL + 2
    assert sum(map(len, tables)) <= 2.1 * len(frontier)


def test_what_was_open_stays_what_it_was():
    """The frontier goes on; who was told what was open before still has it."""
    frontier = BestFirst()
    frontier.push_table(random_table(np.random.default_rng(1), 6))
    kept = frontier.now()
    before = [plain(node) for node in frontier]
    frontier.take(4)
    assert isinstance(kept, OpenNodes)
    assert [plain(node) for node in kept] == before
    assert [plain(node) for node in kept[1:3]] == before[1:3]
    assert plain(kept[-1]) == before[-1]


@pytest.mark.parametrize("loss", ["huber", "logistic"])
@pytest.mark.parametrize("options", [{}, {"memory_limit": 0.05}])
def test_the_search_is_that_of_nodes_made_at_once(loss, options, monkeypatch):
    """Same tree, no more memory, same open nodes at the end."""
    runs, sizes = [], []
    for at_once in (False, True):
        if at_once:
            monkeypatch.setattr(commit, "LeftBelow", type("Nothing", (), {}))
        search = Search(hard(loss), Settings(heuristics="none", node_limit=300, **options), signals=())
        events = list(search)
        assert isinstance(events[-1], Finished)
        runs.append((search.state.tree_hash, [plain(n) for n in events[-1].open_nodes]))
        sizes.append(search.state.open_bytes)
    assert len(runs[0][1]) > 10
    assert runs[0] == runs[1]
    assert sizes[0] < sizes[1]


def test_regions_below_a_node_are_a_sequence():
    table = random_table(np.random.default_rng(2), 6)
    overtaken = np.array([False, True, False])
    below = LeftBelow(table, 2, 5, overtaken, MadeObjects(table.objects))
    nodes = [*table][2:5]
    assert len(below) == 3
    assert below.numbers == (2, 3, 4)
    assert below.bounds() == [node.bound for node in nodes]
    assert [one.closed for one in below] == [None, "incumbent", None]
    for region, node in zip(below, nodes, strict=True):
        for name in ("state", "bound", "proof", "warm", "estimate"):
            assert plain(getattr(region, name)) == plain(getattr(node, name))
    assert [plain(one) for one in below[1:]] == [plain(below[1]), plain(below[2])]
    assert below[0].proof is below[0].proof, "what regions share is one object"
    opened = below.opened([70, 71, 72])
    assert [node.id for node in opened] == [70, 72]
    assert [node.state.tolist() for node in opened] == [nodes[0].state.tolist(), nodes[2].state.tolist()]
    with pytest.raises(IndexError):
        below[3]
