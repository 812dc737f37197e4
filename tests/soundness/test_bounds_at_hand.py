"""Bounds for when there is hardly any time: never above the best model, above nothing where they can be."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from samples import many

from exactsel import heuristics, solve, verify
from exactsel.bounds import fallback
from exactsel.bounds.fallback import fallback_bound, fallback_selection_bound
from exactsel.losses import Huber
from exactsel.problem.column_subset import ColumnSubsetProblem
from exactsel.problem.regression import Problem
from exactsel.search.watch import Watch


def data(rng, n, d):
    """Small whole numbers or normal ones, now and then with copies, constants, zeros, sums and odd units."""
    A = rng.integers(-2, 3, size=(n, d)).astype(float) if rng.random() < 0.5 else rng.normal(size=(n, d))
    for change in rng.choice(6, size=rng.integers(0, 3), replace=False):
        j, i = rng.integers(d), rng.integers(d)
        A[:, j] = (A[:, i], np.ones(n), np.zeros(n), A[:, i] + A[:, 0], 1e4 * A[:, j], 1e-4 * A[:, j])[change]
    return A


def stop_after(count):
    left = [count]

    def ask():
        left[0] -= 1
        return left[0] < 0

    return ask


def best_value(problem):
    k = min(problem.k, problem.d)
    return min(problem.fit(support).value for size in range(k + 1) for support in combinations(range(problem.d), size))


@pytest.mark.parametrize("cases", [16, pytest.param(250, marks=pytest.mark.slow)])
@pytest.mark.parametrize("loss", ["quadratic", "huber", "logistic"])
def test_no_model_is_below_a_bound_at_hand(loss, cases):
    rng = np.random.default_rng(0)
    sharp, given = 0, Huber(0.7) if loss == "huber" else loss
    for case in range(cases):
        n, d = int(rng.integers(1, 9)), int(rng.integers(1, 7))
        A, y = data(rng, n, d), np.round(rng.normal(size=n), 1)
        weights = rng.integers(1, 4, size=n) if case % 3 == 1 else None
        if loss == "logistic":
            y = np.where(y > 0, 1.0, -1.0)
        intercept = bool(case % 2) and (loss != "logistic" or len(set(y.tolist())) == 2)
        lam, k = 10.0 ** rng.integers(-6, 3), int(rng.integers(1, d + 1))
        ways = {} if case % 4 or d < 3 else {"force_in": [0], "force_out": [1]}
        problem = Problem.prepared(A, y, min(k, d), loss=given, lam=lam, intercept=intercept, weights=weights, **ways)
        best = min(
            (
                problem.fit(support).value
                for size in range(k + 1)
                for support in combinations(range(d), size)
                if not ways or (0 in support and 1 not in support)
            ),
            default=np.inf,
        )
        for support in ((), tuple(range(min(k, d)))):
            for count in (0, 3, 10**9):
                bound = fallback_bound(problem, problem.fit(support).coef, stop_after(count))
                assert bound <= best + 1e-12 * abs(best)
        sharp += bound > 0.5 * best
    assert sharp > 0.24 * cases


def test_descent_comes_close_to_the_relaxation():
    rng = np.random.default_rng(3)
    A = rng.normal(size=(60, 12))
    problem = Problem(A, A[:, 0] - A[:, 1] + 0.1 * rng.normal(size=60), 2, lam=1.0)
    best = best_value(problem)
    assert 0.9 * best < fallback_bound(problem, np.zeros(12), stop_after(10**9)) <= best


def test_a_multiple_is_above_nothing_however_small_it_must_be():
    rng = np.random.default_rng(4)
    A = 1e3 * rng.normal(size=(50, 10))
    for loss in ("quadratic", "huber", "logistic"):
        y = np.where(A[:, 0] > 0, 1.0, -1.0)
        problem = Problem(A, y, 3, loss=Huber(0.7) if loss == "huber" else loss, lam=1e-3)
        assert fallback_bound(problem, np.zeros(10), stop_after(0)) > 0.0


@pytest.mark.parametrize("eigenvalues", [2500, 0])
def test_no_selection_is_below_a_bound_at_hand(eigenvalues, monkeypatch):
    monkeypatch.setattr(fallback, "EIGENVALUES_UP_TO", eigenvalues)
    rng = np.random.default_rng(1)
    sharp = 0
    tried = many(100, 400)
    for _ in range(tried):
        n, d = int(rng.integers(1, 8)), int(rng.integers(1, 7))
        problem = ColumnSubsetProblem(data(rng, n, d), int(rng.integers(1, d + 1)))
        best, bound = best_value(problem), fallback_selection_bound(problem)
        assert 0.0 <= bound <= best + 1e-12 * problem.null_objective
        sharp += bound > 0.3 * best > 0.0
    assert sharp > tried * (0.25 if eigenvalues else 0.075)


@pytest.mark.parametrize("family", ["quadratic", "huber", "logistic", "css"])
def test_no_method_is_left_without_a_bound(family, monkeypatch):
    """A search whose time is up before its root is bounded: the bound at hand is what is said, and it holds."""
    rng = np.random.default_rng(2)
    A = rng.normal(size=(40, 8))
    y = A[:, 0] + 0.5 * rng.normal(size=40)
    if family == "css":
        problem = ColumnSubsetProblem(A, 3)
    else:
        problem = Problem(A, np.where(y > 0, 1.0, -1.0) if family == "logistic" else y, 3, loss=family, lam=0.5)
    method = "greedy-css" if family == "css" else "forward"
    monkeypatch.setattr("exactsel.solving.fallback.KEPT", 1.0)
    result = heuristics.run(method, problem, time_limit=0.5)
    assert result.nodes == 0
    assert result.termination == "time_limit"
    assert 0.0 < result.lower <= best_value(problem) * (1 + 1e-12)
    assert result.claim == "bounded"


def test_without_a_ridge_the_fit_on_all_columns_is_at_hand(monkeypatch):
    rng = np.random.default_rng(6)
    A = rng.normal(size=(30, 6))
    problem = Problem(A, A[:, 0] + rng.normal(size=30), 2, lam=0.0)
    monkeypatch.setattr("exactsel.solving.fallback.KEPT", 1.0)
    result = heuristics.run("forward", problem, time_limit=0.5)
    assert result.nodes == 0
    assert result.lower == pytest.approx(problem.fit(range(6)).value, rel=1e-9)
    assert result.lower <= best_value(problem)


def test_what_takes_long_to_prepare_is_not_begun(monkeypatch):
    monkeypatch.setattr("exactsel.studies.heuristics.MULTIPLICATIONS", 1e-9)
    rng = np.random.default_rng(7)
    A = rng.normal(size=(30, 6))
    problem = Problem(A, A[:, 0] + rng.normal(size=30), 2, lam=0.5)
    result = heuristics.run("omp", problem, time_limit=5.0)
    assert result.nodes == 0
    assert result.termination == "time_limit"
    assert "gram" not in problem.shared
    assert 0.0 < result.lower <= best_value(problem) <= result.upper * (1 + 1e-12)


@pytest.mark.parametrize("loss", ["quadratic", "huber", "logistic"])
def test_a_search_without_time_has_one(loss, tmp_path):
    rng, above = np.random.default_rng(5), 0
    tried = many(20, 40)
    for case in range(tried):
        n, d = int(rng.integers(2, 9)), int(rng.integers(1, 7))
        A, y = data(rng, n, d), np.round(rng.normal(size=n), 1)
        y = np.where(y > 0, 1.0, -1.0) if loss == "logistic" else y
        lam, k = 10.0 ** rng.integers(-3, 2), int(rng.integers(1, d + 1))
        problem = Problem.prepared(A, y, k, loss=Huber(0.7) if loss == "huber" else loss, lam=lam, intercept=False)
        result = solve(problem, time_limit=0.0, signals=())
        assert result.nodes == 0
        assert 0.0 <= result.lower <= best_value(problem) * (1 + 1e-12)
        assert result.claim == "bounded" or result.absolute_gap <= 1e-6 * max(
            result.upper, 0.01 * problem.null_objective
        )
        above += result.lower > 0.0
        if case % 8 == 0:
            proven = solve(problem, time_limit=0.0, signals=(), proof=tmp_path / "run.exsel")
            assert proven.lower <= verify(problem, proven.proof).lower
    assert above > tried // 2


def test_time_is_kept_for_it_while_kernels_are_compiled(clock):
    """Each watch is begun well before its early end: its thread would raise the flag at once after it."""
    with Watch(3600.0, gives_up=True, early=600.0) as watch:
        assert not watch.over
        clock.jump(3100.0)
        assert watch.over
        assert watch.reason == "time_limit"
    with Watch(3600.0, gives_up=True, early=600.0) as watch:
        watch.keep_result()
        clock.jump(3100.0)
        assert not watch.over
        clock.jump(600.0)
        assert watch.stopped
    with Watch(3600.0, early=600.0) as watch:
        clock.jump(3100.0)
        assert not watch.over


@pytest.mark.parametrize("cases", [12, pytest.param(400, marks=pytest.mark.slow)])
@pytest.mark.parametrize("loss", ["quadratic", "huber", "logistic", "poisson", "squared_hinge"])
def test_no_model_is_below_the_bound_of_a_heuristic(loss, cases):
    """Wide data with a small ridge, where the root's own bound says nothing and this one takes its place."""
    rng = np.random.default_rng(1)
    above = 0
    for _ in range(cases):
        n, d = int(rng.integers(2, 6)), int(rng.integers(2, 8))
        A, y = data(rng, n, d), np.round(rng.normal(size=n), 1)
        if loss == "poisson":
            A, y = np.clip(A, -3.0, 3.0), rng.poisson(2.0, n).astype(float)
        elif loss in ("logistic", "squared_hinge"):
            y = np.where(y > 0, 1.0, -1.0)
        lam, k = 10.0 ** rng.integers(-6, 1), int(rng.choice([1, 2, d]))
        problem = Problem(A, y, min(k, d), loss=Huber(0.7) if loss == "huber" else loss, lam=lam)
        best = best_value(problem)
        result = heuristics.run("forward", problem)
        assert result.lower <= best + 1e-9 * max(abs(best), problem.null_objective)
        assert result.upper >= best - 1e-9 * max(abs(best), problem.null_objective)
        above += result.lower > problem.infimum
    assert above > cases // 2, "the case to be tested"
