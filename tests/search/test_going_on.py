"""A result in hand is gone on with: more time, or a finer tolerance."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from every_search import SEARCHES, every_second
from hypothesis import given
from hypothesis import strategies as st
from samples import many, sample

from exactsel import InputError, Search, Settings, solve
from exactsel.nodes.node import Node
from exactsel.search import spilling
from exactsel.search.reserve import Reserve
from exactsel.search.spilling import TemporaryNodeStore
from exactsel.testing.solving import Refused, solved
from exactsel_dev.campaigns.brute_force import Truth
from exactsel_dev.campaigns.judging import judged
from exactsel_dev.campaigns.random_instances import random_instance


@pytest.mark.parametrize("kind", every_second(0))
def test_to_the_end_of_the_same_search(kind, kernels_at_once):
    make, options = SEARCHES[kind]
    for seed in (900, 901):
        whole = Search(make(seed), Settings(**options), signals=()).run()
        result, steps = solve(make(seed), **options, node_limit=3, signals=()), 0
        while not result.reached and steps < 400:
            earlier, result = result, result.resume(node_limit=result.nodes + 3, signals=())
            steps += 1
            assert result.lower >= earlier.lower
            assert result.upper <= earlier.upper
            assert result.nodes > earlier.nodes
        assert result.reached
        assert result.upper == pytest.approx(whole.upper, rel=1e-9)


@pytest.mark.parametrize("kind", every_second(1))
def test_a_finer_tolerance(kind, kernels_at_once):
    """Finer and finer: what was closed within the old tolerance is opened again, and the search goes on."""
    make, options = SEARCHES[kind]
    again = 0
    for seed in range(900, 900 + many(2, 3)):
        whole = solve(make(seed), **options, signals=())
        result = solve(make(seed), **options | {"rel_eps": 0.5}, signals=())
        for finer in (0.2, 1e-2, 1e-5, 1e-9):
            before, result = result, result.resume(rel_eps=finer, signals=())
            assert result.reached
            assert result.lower >= before.lower
            assert result.upper <= before.upper
            assert result.nodes >= before.nodes
            assert result._kept.state is before._kept.state, "it goes on, and does not start again"
            assert result.absolute_gap <= finer * abs(result.upper) + 1e-11 * result.null_objective
            again += result.nodes > before.nodes
        assert result.upper == pytest.approx(whole.upper, rel=1e-9)
    assert again > 0, "the case to be tested"


@pytest.mark.parametrize("chunk", sample(1, 60, smoke=1))
def test_a_finer_tolerance_against_brute_force(chunk):
    again = 0
    for seed in range(5_000_000 + 60 * chunk, 5_000_000 + 60 * (chunk + 1)):
        instance = random_instance(seed)
        try:
            coarse = solved(instance, eps=0.0, rel_eps=0.4)
        except Refused:
            continue
        fine = coarse.resume(rel_eps=1e-7, signals=())
        again += fine.nodes > coarse.nodes
        assert judged(fine, Truth(instance)) == [], seed
        assert fine.lower >= coarse.lower
    assert again > 0, "the case to be tested"


def test_a_finer_tolerance_where_too_much_was_closed(monkeypatch, kernels_at_once):
    """Only the regions of the smallest bounds are kept: where others are asked for, the search begins anew."""
    monkeypatch.setattr(Reserve.__init__, "__defaults__", ((), float("inf"), 2))
    make, options = SEARCHES["huber, default"]
    options = options | {"subtrees": False}
    anew = 0
    for seed in range(900, 900 + many(6, 10)):
        whole = solve(make(seed), **options, signals=())
        coarse = solve(make(seed), **options | {"rel_eps": 0.5}, signals=())
        assert len(coarse._kept.state.reserve) <= 2
        fine = coarse.resume(rel_eps=1e-9, signals=())
        assert fine.reached
        assert fine.upper == pytest.approx(whole.upper, rel=1e-9)
        anew += fine._kept.state is not coarse._kept.state
    assert anew > 0, "the case to be tested"


@pytest.mark.parametrize("kind", ["quadratic, no walks", "huber, default", "columns", "groups of labels"])
def test_a_finer_tolerance_from_a_file(kind, kernels_at_once, tmp_path):
    make, options = SEARCHES[kind]
    again = 0
    for seed in range(900, 904):
        file = tmp_path / f"{seed}.ckpt"
        coarse = solve(make(seed), **options | {"rel_eps": 0.5}, signals=(), checkpoint=file)
        fine = solve(make(seed), resume=file, rel_eps=1e-9, signals=())
        assert fine.reached
        assert fine.lower >= coarse.lower
        assert fine.nodes >= coarse.nodes
        assert fine.upper == pytest.approx(solve(make(seed), **options, signals=()).upper, rel=1e-9)
        again += fine.nodes > coarse.nodes
    assert again > 0, "the case to be tested"


@given(st.lists(st.tuples(st.floats(0, 10), st.booleans()), max_size=30), st.integers(1, 8), st.floats(0, 10))
def test_a_reserve_keeps_the_smallest(closed, most, cutoff):
    """Held against a list: whatever was closed below the cut-off is taken out, or said to be gone."""
    reserve = Reserve(most=most)
    for number, (bound, again) in enumerate(closed):
        reserve.close(bound, Node(number, -1, 0, np.ones(1, np.int8), 0.0, None) if again else None)
    assert len(reserve) <= most
    assert reserve.lower() == min([bound for bound, _ in closed], default=np.inf)
    taken = {node.id for node in reserve.take_below(cutoff)}
    below = {number for number, (bound, _) in enumerate(closed) if bound < cutoff}
    assert taken <= below
    assert taken == below or reserve.outside < cutoff
    assert reserve.lower() >= cutoff or reserve.outside < cutoff


def test_what_cannot_be_gone_on_with():
    make, options = SEARCHES["quadratic, default"]
    result = solve(make(900), **options, node_limit=1, signals=())
    with pytest.raises(InputError, match="seed is given, but only limits may change"):
        result.resume(seed=3)
    with pytest.raises(InputError, match="time_limit is -1"):
        result.resume(time_limit=-1)
    another = copy.copy(result)  # as another process gets one
    assert another.upper == result.upper
    with pytest.raises(InputError, match="this result holds no search to continue"):
        another.resume()


@pytest.fixture
def spilled(monkeypatch, tmp_path):
    """The result of a search that was saved and stopped while nodes were on the disk, and the whole one's."""
    monkeypatch.setattr(spilling, "CHUNK", 3)
    monkeypatch.setattr(spilling, "FEWEST", 2)
    make, options = SEARCHES["columns, no walks"]
    saving = {"checkpoint": tmp_path / "run.ckpt", "memory_limit": 1e-4, "node_limit": 12, "batch": 2}
    result = solve(make(900), **options, **saving, signals=())
    assert result._kept.state.frontier.cold > 0, "the case to be tested"
    return result, solve(make(900), **options, signals=())


@pytest.mark.parametrize("memory_limit", [1e-4, 4096.0])
def test_open_nodes_in_a_checkpoint_come_along(spilled, memory_limit, tmp_path):
    """The file was closed when the search ended; going on neither needs it open nor changes it."""
    result, whole = spilled
    before = (tmp_path / "run.ckpt").read_bytes()
    end = result.resume(memory_limit=memory_limit, signals=())
    assert isinstance(end._kept.state.frontier.room, TemporaryNodeStore)
    assert (end.reached, end.support) == (True, whole.support)
    assert end.upper == pytest.approx(whole.upper, rel=1e-9)
    assert (tmp_path / "run.ckpt").read_bytes() == before


@pytest.mark.parametrize("others", ["removed it", "went on with it"])
def test_open_nodes_in_a_checkpoint_that_is_another_now(spilled, others, tmp_path):
    result, _ = spilled
    if others == "removed it":
        (tmp_path / "run.ckpt").unlink()
    else:
        make, options = SEARCHES["columns"]
        solve(make(900), resume=tmp_path / "run.ckpt", **options, signals=())
    with pytest.raises(InputError, match="which is gone, or another search has continued it; resume it with resume="):
        result.resume(signals=())
