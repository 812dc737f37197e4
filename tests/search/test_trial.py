"""The cheaper of two bounds in a tree of its own: against brute force, and where it is not worth its while."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from executors_for_tests import Here
from samples import many, sample

from exactsel import Problem, Search, Settings, solve, verify
from exactsel.bounds import split
from exactsel.bounds.apg import PreparedPerspective
from exactsel.bounds.split import PreparedSplit
from exactsel.closers import trial
from exactsel.closers.trial import CheaperFirst
from exactsel.enumeration.work_budget import SubtreeRecord
from exactsel.search.events import SubtreeClosed

SEEDS = sample(60, 2_000)


@pytest.fixture
def tried(monkeypatch):
    """Nothing else closes subtrees, and the trial may take its time."""
    monkeypatch.setattr(SubtreeRecord, "wants", lambda *_: False)
    monkeypatch.setattr(SubtreeRecord, "wants_unbounded", lambda *_, **__: False)
    monkeypatch.setattr(PreparedSplit, "_trial_budget", lambda *_: 10**9)
    monkeypatch.setattr(trial, "MOST_OPEN", 10**9)


def instance(seed):
    """Ties, copies, constant columns, columns of other magnitudes, more columns than rows, k = 1 and k = d."""
    rng = np.random.default_rng([2711, seed])
    n, d = int(rng.integers(3, 16)), int(rng.integers(2, 9))
    A = rng.standard_normal((n, d)) + rng.standard_normal((n, 1))
    kind = seed % 5
    if kind == 1:
        A = np.round(A)
        A[:, 0] = 1.0
    if kind == 2 and d > 2:
        A[:, 2] = A[:, 1]
    if kind == 3:
        A *= 10.0 ** rng.integers(-4, 5, d)
    y = A @ (rng.standard_normal(d) / np.maximum(np.linalg.norm(A, axis=0), 1e-9)) + rng.standard_normal(n)
    k = (1, d, int(rng.integers(1, d + 1)))[seed % 3]
    lam = (0.0, 0.1, 3.0)[int(rng.integers(3))]
    return Problem(A, y, k, lam=lam)


@pytest.mark.parametrize("seed", SEEDS)
def test_against_brute_force(seed, tried):
    problem = instance(seed)
    least = min(problem.fit(support).value for support in itertools.combinations(range(problem.d), problem.k))
    result = solve(problem, heuristics=(), signals=())
    slack = 1e-9 * problem.null_objective
    assert result.lower <= least + slack
    assert result.upper <= least * (1 + 1e-6) + slack


def test_what_closes_some_of_them_is_the_trial(tried):
    closed = 0
    for seed in range(40):
        events, _ = events_of(instance(seed), heuristics=())
        closed += [event.result.closer for event in events] == [CheaperFirst.name]
    assert closed >= 10


@pytest.mark.parametrize(
    "more", [{"fit_intercept": True}, {"sample_weight": np.linspace(0.5, 2.0, 30)}, {"force_in": [0], "force_out": [1]}]
)
def test_with_what_else_a_problem_may_have(more, tried):
    """Every search here is verified by its proof besides (conftest.py)."""
    rng = np.random.default_rng(8)
    A = rng.standard_normal((30, 12)) + rng.standard_normal((30, 1))
    y = A[:, 1] - A[:, 2] + rng.standard_normal(30)
    for lam in (0.0, 2.0):
        plain = solve(A, y, k=4, lam=lam, subtrees=False, signals=(), **more)
        result = solve(A, y, k=4, lam=lam, signals=(), **more)
        assert result.support == plain.support
        assert result.upper == pytest.approx(plain.upper, rel=1e-9)


def test_a_better_model_closes_all_that_is_open(tried, monkeypatch):
    """Against brute force, where the cut-off falls below the least bound within a trial."""
    seen, close = [], trial._Trial.close_from

    def noting(self, cutoff):
        before = len(self.open)
        close(self, cutoff)
        seen.append(before - len(self.open))

    monkeypatch.setattr(trial._Trial, "close_from", noting)
    monkeypatch.setattr(trial, "BATCH", 1)
    for seed in range(many(90, 1000)):
        problem = instance(seed)
        least = min(problem.fit(support).value for support in itertools.combinations(range(problem.d), problem.k))
        assert solve(problem, heuristics=(), signals=()).lower <= least + 1e-9 * problem.null_objective
    assert sum(map(bool, seen)) > 0


def test_where_the_dearer_bound_is_not_asked_the_tree_is_as_without_a_trial(monkeypatch):
    monkeypatch.setattr(SubtreeRecord, "wants", lambda *_: False)
    monkeypatch.setattr(SubtreeRecord, "wants_unbounded", lambda *_, **__: False)
    calls, tighten = [], PreparedPerspective.tighten
    monkeypatch.setattr(PreparedPerspective, "tighten", lambda *given: calls.append(1) or tighten(*given))
    problem, ends = correlated(lam=40.0), []
    for budget in (0, None):
        if budget is None:
            monkeypatch.setattr(CheaperFirst, "close", lambda *_: None)
        monkeypatch.setattr(PreparedSplit, "_trial_budget", lambda *_: 0)
        monkeypatch.setattr(split, "CLOSE", 0.0)
        calls.clear()
        result = solve(problem, signals=())
        ends.append((result.tree_hash, result.nodes, result.bound_calls, len(calls)))
    assert ends[0] == ends[1]
    assert ends[0][1] > 1


def correlated(lam=10.0):
    """A problem whose split is better at the root than a relaxation that is quick to finish."""
    rng = np.random.default_rng(3)
    A = rng.standard_normal((200, 120))
    signal = A[:, ::12].sum(axis=1)
    return Problem(A, signal + 1.2 * rng.standard_normal(200), 10, lam=lam)


def events_of(problem, **options):
    search = Search(problem, Settings(**options), signals=())
    return [event for event in search if isinstance(event, SubtreeClosed)], search


@pytest.mark.smoke
def test_it_is_an_outcome_like_any_other(tried, tmp_path):
    problem, file = correlated(), tmp_path / "tried.proof"
    events, search = events_of(problem)
    assert [event.result.closer for event in events] == [CheaperFirst.name]
    assert search.state.nodes == events[0].result.nodes + 1
    result = solve(problem, signals=(), proof=file)
    assert verify(problem, file).lower >= result.lower
    elsewhere = solve(problem, signals=(), shard=1, executor=Here())
    assert (elsewhere.upper, elsewhere.support) == (result.upper, result.support)
    finer = result.resume(rel_eps=1e-12)
    assert finer.lower >= result.lower
    assert finer.upper - finer.lower <= 1e-12 * finer.upper + 1e-9


def test_it_ends_where_every_node_is_divided(monkeypatch):
    monkeypatch.setattr(SubtreeRecord, "wants", lambda *_: False)
    monkeypatch.setattr(SubtreeRecord, "wants_unbounded", lambda *_, **__: False)
    rng = np.random.default_rng(4)
    A = rng.standard_normal((60, 30)) + 2 * rng.standard_normal((60, 1))
    problem = Problem(A, A @ rng.standard_normal(30) + rng.standard_normal(60), 8, lam=0.01)
    ends = []
    best = trial._Trial.best
    monkeypatch.setattr(trial._Trial, "best", lambda self, most: ends.append(self.nodes) or best(self, most))
    closed, search = events_of(problem)
    assert not closed
    assert 1 <= len(ends) <= 3
    assert search.state.walks.wasted > 0.0, "all work is told, that in vain as well"
    assert search.result().reached


def test_a_bound_that_was_asked_for_is_alone(monkeypatch):
    monkeypatch.setattr(CheaperFirst, "close", lambda *_: pytest.fail("tried"))
    for options in ({"bound": "split"}, {"subtrees": False}, {"branching": "largest"}):
        events_of(correlated(), **options)
