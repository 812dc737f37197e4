"""A result in hand is gone on with: more time, or a finer tolerance."""

from __future__ import annotations

import copy

import pytest
from every_search import SEARCHES

from exactsel import InputError, Search, Settings, solve
from exactsel.search import spilling
from exactsel.search.spilling import TemporaryRoom


@pytest.mark.parametrize("kind", SEARCHES)
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


@pytest.mark.parametrize("kind", ["quadratic, no walks", "huber, default", "columns", "groups"])
def test_a_finer_tolerance(kind, kernels_at_once):
    make, options = SEARCHES[kind]
    anew = 0
    for seed in range(900, 906):
        whole = solve(make(seed), **options, signals=())
        coarse = solve(make(seed), **options | {"rel_eps": 0.5}, signals=())
        fine = coarse.resume(rel_eps=1e-9, signals=())
        assert fine.reached
        assert fine.upper == pytest.approx(whole.upper, rel=1e-9)
        assert fine.upper - fine.lower <= 1e-9 * abs(fine.upper) + 1e-11 * fine.null_objective
        anew += fine.kept.state is not coarse.kept.state
        assert fine.kept.state.dropped >= fine.upper - 1e-9 * abs(fine.upper) - 1e-11 * fine.null_objective
    assert anew > 0, "the case to be tested"


def test_what_cannot_be_gone_on_with():
    make, options = SEARCHES["quadratic, default"]
    result = solve(make(900), **options, node_limit=1, signals=())
    with pytest.raises(InputError, match="seed is given, but only limits may change"):
        result.resume(seed=3)
    with pytest.raises(InputError, match="time_limit is -1"):
        result.resume(time_limit=-1)
    another = copy.copy(result)  # as another process gets one
    assert another.upper == result.upper
    with pytest.raises(InputError, match="this result has no search to go on with"):
        another.resume()


@pytest.fixture
def spilled(monkeypatch, tmp_path):
    """The result of a search that was saved and stopped while nodes were on the disk, and the whole one's."""
    monkeypatch.setattr(spilling, "CHUNK", 3)
    monkeypatch.setattr(spilling, "FEWEST", 2)
    make, options = SEARCHES["columns"]
    saving = {"checkpoint": tmp_path / "run.ckpt", "memory_limit": 1e-4, "node_limit": 12, "batch": 2}
    result = solve(make(900), **options, **saving, signals=())
    assert result.kept.state.frontier.cold > 0, "the case to be tested"
    return result, solve(make(900), **options, signals=())


@pytest.mark.parametrize("memory_limit", [1e-4, 4096.0])
def test_open_nodes_in_a_checkpoint_come_along(spilled, memory_limit, tmp_path):
    """The file was closed when the search ended; going on neither needs it open nor changes it."""
    result, whole = spilled
    before = (tmp_path / "run.ckpt").read_bytes()
    end = result.resume(memory_limit=memory_limit, signals=())
    assert isinstance(end.kept.state.frontier.room, TemporaryRoom)
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
    with pytest.raises(InputError, match="which has gone, or others have gone on with it; go on with resume="):
        result.resume(signals=())
