"""Open regions that wait in arrays are the nodes they stand for."""

from __future__ import annotations

import numpy as np
import pytest
from samples import sample

from exactsel.bounds.witness import InfimumPoint, ModelPoint
from exactsel.nodes.left_open import LeftBelow, LeftOpen
from exactsel.nodes.node import Node
from exactsel.nodes.points import Points
from exactsel.nodes.waiting import Waiting
from exactsel.problem.regression import Problem
from exactsel.search import commit
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


def random_left(rng, m, d=5):
    """Some regions, a few of which came with what proves their bound."""
    points = [ModelPoint.from_dense(rng.standard_normal(d) * (rng.random(d) < 0.5)) for _ in range(3)]
    held = Points.of(points)
    proofs, starts = rng.integers(-1, 3, m).tolist(), rng.integers(-1, 3, m).tolist()
    given = {row: (InfimumPoint(), None) for row in range(m) if min(proofs[row], starts[row]) < 0}
    bounds = rng.integers(0, 4, m).astype(float)
    states = rng.integers(0, 3, (m, d)).astype(np.int8)
    return LeftOpen(states, bounds.tolist(), np.zeros(m, dtype=bool), [1.0] * m, proofs, starts, given, held)


@pytest.mark.parametrize("most_hot", [4, 7, 16384])
@pytest.mark.parametrize("seed", sample(20, 20))
def test_the_frontier_is_that_of_nodes_made_at_once(seed, most_hot, monkeypatch):
    """Pushed, taken, pruned and looked at in any order, with equal bounds: the same nodes in the same order."""
    monkeypatch.setattr(frontier_module, "MOST_HOT", most_hot)
    rng = np.random.default_rng(seed)
    waiting, plainly, number = BestFirst(), BestFirst(), 0
    for _ in range(60):
        match rng.integers(6):
            case 0 | 1:
                left = random_left(rng, 4)
                for row in range(4):
                    region = Waiting(left.bounds[row], number, row, left, 7, 3)
                    waiting.push_region(region)
                    plainly.push(region.node())
                    number += 1
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


def test_what_was_open_stays_what_it_was():
    """The frontier goes on; who was told what was open before still has it."""
    rng = np.random.default_rng(1)
    left, frontier = random_left(rng, 6), BestFirst()
    for row in range(6):
        frontier.push_region(Waiting(left.bounds[row], row, row, left, 0, 1))
    kept = frontier.now()
    before = [plain(node) for node in frontier]
    frontier.take(4)
    assert isinstance(kept, OpenNodes)
    assert [plain(node) for node in kept] == before
    assert [plain(node) for node in kept[1:3]] == before[1:3]
    assert plain(kept[-1]) == before[-1]


def test_what_siblings_share_is_one_object():
    left = random_left(np.random.default_rng(3), 12)
    rows = [row for row in range(12) if left.proofs[row] == left.proofs[0] and left.proofs[row] >= 0] or [
        row for row in range(12) if left.proofs[row] == 1
    ]
    proofs = {id(left.node(row, row, 0, 1).proof) for row in rows}
    assert len(rows) > 1
    assert len(proofs) == 1


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
    left = random_left(np.random.default_rng(2), 6)
    below = LeftBelow(left, 2, (0, 3, 4))
    assert len(below) == 3
    assert [plain(one) for one in below] == [plain(left.region(row)) for row in (2, 3, 4)]
    assert [plain(one) for one in below[1:]] == [plain(left.region(row)) for row in (3, 4)]
    assert below.bounds() == left.bounds[2:5]
    with pytest.raises(IndexError):
        below[3]
