"""Paths and lists of close models that are stopped anywhere, and gone on with, come to the end nobody stopped."""

from __future__ import annotations

import copy
import signal
from itertools import combinations

import numpy as np
import pytest
from samples import many
from sequences import KINDS, ONE_BY_ONE, listed, problem_of, said, told, wide_tau
from stopping import Stopping

from exactsel import InputError, near_optimal, solve, solve_path
from exactsel.search.events import RoundEnded
from exactsel.solving.settings import Settings
from exactsel.studies import pool_search
from exactsel.studies.solution_pool import list_on


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    """Listings look at few regions at a time, so that there is something to break off."""
    monkeypatch.setattr(pool_search, "BATCH", 3)


@pytest.mark.parametrize("kind", [pytest.param(KINDS[0], marks=pytest.mark.smoke), *KINDS[1:]])
def test_a_path_stopped_at_any_node_goes_on_to_the_same_end(kind):
    rng, steps = np.random.default_rng(5), 0
    for seed in range(900, 900 + many(1, 2)):
        problem = problem_of(kind, seed)
        whole = solve_path(problem, near=0.2, **ONE_BY_ONE)
        most, limit = max(result.nodes for result in whole.results), int(rng.integers(1, 3))
        path = solve_path(problem, near=0.2, node_limit=limit, **ONE_BY_ONE)
        while not (path.reached and path.complete):
            earlier, steps = path, steps + 1
            limit += int(rng.integers(1, 5))
            path = path.resume(node_limit=limit, signals=())
            for before, now in zip(earlier.results, path.results, strict=True):
                assert before.nodes <= now.nodes <= max(limit, before.nodes)
                assert (before.nodes == now.nodes) or not before.reached
                assert before.lower <= now.lower <= now.upper <= before.upper
            assert limit < most + 1000
        assert said(path)[1] == said(whole)[1]
        for now, then in zip(path.results, whole.results, strict=True):
            assert (now.nodes, now.upper, now.support, now.claim) == (then.nodes, then.upper, then.support, then.claim)
        again = path.resume(signals=())
        assert [result is before for result, before in zip(again.results, path.results, strict=True)] == [True] * len(
            path.results
        )
    assert steps > many(1, 2)


def test_a_path_that_was_interrupted_goes_on_by_the_same_tree():
    problem, stopped = problem_of("quadratic, no walks"), 0
    options = ONE_BY_ONE | {"signals": (signal.SIGINT,)}
    whole = solve_path(problem, near=0.2, **options)
    rounds = sum(result.nodes for result in whole.results)
    for at in range(1, rounds, 5):
        left = [at]

        def look(event, state, left=left):
            left[0] -= isinstance(event, RoundEnded)
            if left == [0]:
                left[0] = -1
                signal.raise_signal(signal.SIGINT)

        path = solve_path(problem, near=0.2, callback=look, **options)
        if path.interrupted:
            stopped += 1
            assert len(path.results) < len(whole.results) or not path.reached
            path = path.resume()
        assert not path.interrupted
        assert said(path) == said(whole)
    assert stopped > 2


def test_a_finer_tolerance_and_larger_sizes():
    problem = problem_of("quadratic, no walks")
    options = {"heuristics": "none", "subtrees": False, "signals": ()}
    coarse = solve_path(problem, rel_eps=0.5, **options)
    fine = coarse.resume(rel_eps=1e-9, signals=())
    whole = solve_path(problem.replace(k=5), rel_eps=1e-9, **options)
    assert [r.upper for r in fine.results] == [pytest.approx(r.upper, rel=1e-9) for r in whole.results[:3]]
    assert all(r.reached and r.settings["rel_eps"] == 1e-9 for r in fine.results)
    further = fine.resume(k=5, signals=())
    assert [r.problem["k"] for r in further.results] == [1, 2, 3, 4, 5]
    assert [result is before for result, before in zip(further.results, fine.results, strict=False)] == [True] * 3
    assert [told(r)[2:] for r in further.results[3:]] == [told(r)[2:] for r in whole.results[3:]]
    wider = further.resume(rel_eps=1e-3, signals=())
    assert [r.nodes for r in wider.results] == [r.nodes for r in further.results]


def test_ridge_weights_and_sizes_make_a_grid():
    problem = problem_of("quadratic, no walks")
    path = solve_path(problem, ks=[1, 2], lams=[1.0, 0.1], **ONE_BY_ONE)
    further = path.resume(k=3, signals=())
    assert said(further) == said(solve_path(problem, ks=[1, 2, 3], lams=[1.0, 0.1], **ONE_BY_ONE))


@pytest.mark.parametrize("kind", [pytest.param(KINDS[0], marks=pytest.mark.smoke), *KINDS[1:]])
def test_a_list_stopped_anywhere_is_what_trying_every_support_gives(kind):
    rng, steps = np.random.default_rng(6), 0
    for seed in range(900, 900 + many(2, 4)):
        problem = problem_of(kind, seed)
        values = {s: problem.fit(s).value for s in combinations(range(problem.d), problem.k)}
        best = min(values.values())
        tau = float(rng.choice([0.05, 0.3])) * max(best, 0.01 * problem.null_objective)
        nodes = solve(problem, **ONE_BY_ONE).nodes
        whole = near_optimal(problem, tau=tau, **ONE_BY_ONE)
        near = near_optimal(problem, tau=tau, node_limit=int(rng.integers(1, nodes + 3)), **ONE_BY_ONE)
        limits = (nodes + 1, nodes + 1 + int(rng.integers(1, 30)), None)
        for limit in limits:
            steps += not near.complete
            near = near.resume(node_limit=limit, signals=())
        room = 1e-8 * max(1.0, abs(best))
        found = {model.support for model in near.models}
        assert near.complete
        assert {s for s, value in values.items() if value <= best + tau - room} <= found
        assert found <= {s for s, value in values.items() if value <= best + tau + room}
        assert listed(near)[0] == listed(whole)[0]
        assert near.result.nodes == whole.result.nodes
    assert steps > many(2, 4)


def test_a_list_that_goes_on_bounds_what_one_nobody_stopped_does():
    problem = problem_of("quadratic, no walks")
    whole = near_optimal(problem, tau=wide_tau(problem), **ONE_BY_ONE)
    assert whole.regions > 10
    for limit in range(whole.result.nodes, whole.regions, 3):
        near = near_optimal(problem, tau=wide_tau(problem), node_limit=limit, **ONE_BY_ONE)
        assert (near.termination, near.regions, near.unique) == (
            "node_limit",
            limit,
            None if len(near.models) < 2 else False,
        )
        assert listed(near.resume(signals=())) == listed(whole)
    cut = near_optimal(problem, tau=wide_tau(problem), cap=2, **ONE_BY_ONE)
    assert cut.termination == "cap"
    assert listed(cut.resume(cap=1000, signals=())) == listed(whole)


def test_time_that_runs_out_inside_a_batch_leaves_no_trace(clock):
    problem = problem_of("quadratic, no walks")
    result = solve(problem, **ONE_BY_ONE)
    whole = near_optimal(problem, tau=wide_tau(problem), bound="apg", **ONE_BY_ONE)
    stopped = 0
    for calls in (1, 2, 4):
        bound = Stopping(calls, clock)
        state = pool_search.SolutionPool.begun(problem, result.upper, wide_tau(problem))
        near = list_on(result, state, 1000, Settings(bound=bound, time_limit=5.0), ())
        assert near.termination == "time_limit"
        stopped += near.regions > 0
        again = list_on(result, state, 1000, Settings(bound="apg"), ())
        assert listed(again) == listed(whole)
    assert stopped > 0


def test_what_cannot_be_gone_on_with():
    problem = problem_of("quadratic, no walks")
    path = solve_path(problem, near=0.1, node_limit=2, **ONE_BY_ONE)
    near = near_optimal(problem, tau=0.1, node_limit=2, **ONE_BY_ONE)
    for gone_on in (path, near):
        with pytest.raises(InputError, match="seed is given, but only limits may change"):
            gone_on.resume(seed=3)
        with pytest.raises(InputError, match="time_limit is -1"):
            gone_on.resume(time_limit=-1)
        with pytest.raises(InputError, match="cap is 0"):
            gone_on.resume(cap=0)
        for another in (copy.copy(gone_on), copy.deepcopy(gone_on)):
            with pytest.raises(InputError, match="has no state to resume, as it comes from elsewhere"):
                another.resume()
    with pytest.raises(InputError, match="cap is given, but only limits"):
        solve_path(problem, **ONE_BY_ONE).resume(cap=3)
    with pytest.raises(InputError, match="a list has no proof"):
        near_optimal(problem, tau=0.1, proof="run.exsel")
    assert path.resume(signals=()).complete
