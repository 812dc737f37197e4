"""Outcomes on their way from a worker: nothing is lost, and what is damaged is refused in a sentence."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pytest
from every_search import SEARCHES, every_second
from executors_for_tests import larger
from recorded import plain

from exactsel import InputError, Problem, Search, Settings
from exactsel.enumeration.native import NativeTree
from exactsel.enumeration.work_budget import SubtreeRecord, WorkBudget
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.nodes.left_open import LeftBelow
from exactsel.nodes.node import root_node
from exactsel.nodes.regions import FailedTrials, SubtreeResult
from exactsel.search.expand import Expander
from exactsel.search.packed_bytes import from_bytes
from exactsel.search.packed_round import packed_round, unpacked_round
from exactsel.search.packing import Packed
from exactsel.search.pool import merged, round_bytes, round_from_bytes, shard_bytes, shard_from

ODD = (np.nan, np.inf, -1.0, 1e300)
ABSURD = (-(2**63), -4, -2, -1, 0, 1, 3, 10**6, 2**62)


@pytest.mark.parametrize("kind", every_second(1, "the paper's"))
def test_shards_and_outcomes_survive(kind, kernels_at_once, monkeypatch):
    """A search all of whose rounds are done elsewhere: same events, same tree, and regions left open wait in arrays."""
    make, options = SEARCHES[kind]
    expand, waiting = Expander.expand, []

    def elsewhere(self, nodes, upper, work_budget):
        there = shard_from(from_bytes(shard_bytes(nodes, upper, work_budget)), self.problem)
        assert plain(there.nodes) == plain(tuple(nodes))
        assert (there.upper, there.work_budget) == (upper, work_budget)
        done = expand(self, *there)
        back = round_from_bytes(round_bytes(done), nodes, self.problem)
        assert plain(back) == plain(done)
        assert all(mine is outcome.node for mine, outcome in zip(nodes, back.outcomes, strict=True))
        waiting.extend(isinstance(one.children, LeftBelow) for one in back.outcomes if _searched(one))
        return back

    for seed in range(900, 902):
        whole = Search(make(seed), Settings(**options), signals=())
        told = [plain(event) for event in whole]
        with monkeypatch.context() as patch:
            patch.setattr(Expander, "expand", elsewhere)
            search = Search(make(seed), Settings(**options), signals=())
            assert [plain(event) for event in search] == told
        assert search.state.tree_hash == whole.state.tree_hash
    assert all(waiting)


def _searched(outcome):
    return isinstance(outcome, SubtreeResult) and isinstance(outcome.expansion, NativeTree)


@cache
def outcomes():
    """A problem, some nodes, and what became of them: divided, kept, searched below, and walked."""
    found = []
    for subtrees in (False, True):
        problem, options = larger()
        search = Search(problem, Settings(**options | {"subtrees": subtrees, "shard": 2}), signals=())
        for _ in search:
            if len(search.state.frontier) > 8:
                break
        nodes = search.state.frontier.take(6)
        done = search._expander.expand(nodes, search.state.value, WorkBudget(10**6, 10**6, 10**7))
        found.append((problem, nodes, packed_round(done)))
    huber = larger()[0]
    problem = Problem(huber.A, huber.y, 6, lam=0.5)
    search = Search(problem, Settings(), signals=())
    search.run()
    states = np.full((9, problem.d), FREE, dtype=np.int8)
    states[:, :2] = list(product((OUT, FREE, IN), repeat=2))
    nodes = [root_node(state, 0.0) for state in states]
    done = search._expander.expand(nodes, problem.null_objective, WorkBudget(walks=SubtreeRecord()))
    return [*found, (problem, nodes, packed_round(done))]


def damaged(packed, rng):
    """With one entry, type, size or array that is another one."""
    arrays, header = dict(packed.arrays), dict(packed.header)
    names = [name for name, array in arrays.items() if array.size]
    name = names[int(rng.integers(len(names)))]
    array = arrays[name].copy()
    match int(rng.integers(6)):
        case 0 | 1 | 2:
            odd = ODD if array.dtype.kind == "f" else [x for x in ABSURD if array.dtype.kind == "i"] or (0, 1, 3)
            info = np.iinfo(array.dtype) if array.dtype.kind in "iu" else None
            odd = [x for x in odd if info is None or info.min <= x <= info.max]
            array.flat[int(rng.integers(array.size))] = odd[int(rng.integers(len(odd)))]
            arrays[name] = array
        case 3:
            arrays[name] = array[:-1]
        case 4:
            with np.errstate(over="ignore"):
                arrays[name] = array.astype(np.float16)
        case 5:
            key = list(header)[int(rng.integers(len(header)))]
            header[key] = (None, -1, 10**9, "x", [], {}, [None])[int(rng.integers(7))]
    return Packed(header, arrays)


@pytest.mark.parametrize("which", [0, 1, 2])
def test_damaged_outcomes(which):
    """Refused, or read as an outcome for the same nodes."""
    problem, nodes, packed = outcomes()[which]
    refused = 0
    for seed in range(150):
        try:
            done = unpacked_round(damaged(packed, np.random.default_rng(seed)), nodes, problem)
        except InputError:
            refused += 1
            continue
        assert all(outcome.node is node for outcome, node in zip(done.outcomes, nodes, strict=True)), seed
    assert 0 < refused < 150, "both are to be seen"


def test_the_cases_to_be_damaged():
    kinds = [set(packed.arrays["outcome.kind"].tolist()) for _, _, packed in outcomes()]
    assert 1 in kinds[0]
    assert 3 in kinds[1]
    assert 2 in kinds[2]


def test_shards_in_another_order_than_that_of_bounds():
    """As a frontier of its own order gives them out."""
    problem, nodes, _ = outcomes()[0]
    there = shard_from(from_bytes(shard_bytes(nodes[::-1], 2.0, WorkBudget())), problem)
    assert plain(there.nodes) == plain(tuple(nodes[::-1]))
    packed = from_bytes(shard_bytes(nodes, 2.0, WorkBudget()))
    same = np.zeros_like(packed.arrays["nodes.node.id"])
    with pytest.raises(InputError, match="nodes that are there twice"):
        shard_from(Packed(packed.header, packed.arrays | {"nodes.node.id": same}), problem)


@pytest.mark.parametrize("said", [[1, 2], [1, 2, 3, 4], [1, -2, 3], [1, 2.5, 3], [2**40, 1, 1], "abc", None])
def test_failed_trials_that_cannot_have_been(said):
    problem, nodes, packed = outcomes()[0]
    with pytest.raises(InputError):
        unpacked_round(Packed(packed.header | {"failed_trials": said}, packed.arrays), nodes, problem)
    told = unpacked_round(Packed(packed.header | {"failed_trials": [3, 4, 5]}, packed.arrays), nodes, problem)
    assert told.failed_trials == FailedTrials(3, 4, 5)
    assert merged([told, told], 1.0).failed_trials == FailedTrials(6, 8, 10)
