"""Limits on coefficients with data that are not held as a table: bounds, fits and searches against brute force."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from boxed_cases import allowed_sets, smallest_on
from samples import sample
from sparse_cases import brute_force, drawn, drawn_limits, on_demand

from exactsel import Problem, UnsupportedError, best_model, boxed, certify, solve, solve_path, verify
from exactsel.bounds.column_bounds import column_bounds
from exactsel.problem.boxed import with_bounds
from exactsel.sklearn import BestSubsetRegressor
from exactsel.solving import screening
from exactsel.studies import heuristics
from exactsel_certificates import standalone
from exactsel_certificates.standalone.sparse import of_table

ROOM = 1e-9
"""Part of the empty model's objective that fits within limits may be off."""

__all__ = ["on_demand"]  # a fixture


def limited(seed):
    """The same limited problem on a table and on sparse columns, and k."""
    A, y, k, options = drawn(seed)
    limits = drawn_limits(seed, A.shape[1])
    table, sparse = (Problem.prepared(data, y, k, **options) for data in (A, scipy.sparse.csc_matrix(A)))
    assert sparse.objective.on_demand
    return with_bounds(table, *limits), with_bounds(sparse, *limits), k


@pytest.mark.parametrize("seed", sample(150, 3000, smoke=10))
def test_bounds_hold_for_all_models_and_for_those_with_a_column(seed, on_demand):
    table, problem, k = limited(seed)
    best, with_column = brute_force(table, k)
    room = ROOM * table.null_objective
    for coef in (np.zeros(problem.d), problem.fit(range(min(k, 1))).coef):
        found = column_bounds(problem, coef, lambda: False)
        assert 0.0 <= found.lower <= best + room
        assert np.all(found.with_column <= with_column + room)
        assert np.all(found.lower <= found.with_column + room)


@pytest.mark.parametrize("seed", sample(50, 1500, smoke=5))
def test_fits_are_those_on_the_table(seed, on_demand):
    table, problem, k = limited(seed)
    assert problem.hash != problem.without_coefficient_bounds.hash
    room = ROOM * table.null_objective
    supports = np.array([[j, (j + 1) % problem.d if k > 1 else -1] for j in range(problem.d)])
    supports[supports[:, 0] == supports[:, 1], 1] = -1
    quick = problem.objectives(supports)
    for support, value in zip(supports, quick, strict=True):
        fit = problem.fit(support[support >= 0])
        assert problem.coefficient_bounds.admit(fit.coef)
        assert fit.value == pytest.approx(table.fit(support[support >= 0]).value, abs=100 * room)
        assert np.isnan(value) or value >= fit.value - 100 * room


@pytest.mark.parametrize("seed", sample(50, 1500, smoke=5))
def test_a_search_of_some_columns_says_what_holds_of_all(seed, on_demand, monkeypatch):
    table, problem, k = limited(seed)
    best, _ = brute_force(table, k)
    room = ROOM * table.null_objective
    for first in (1, 250):
        monkeypatch.setattr(screening, "FIRST_COLUMNS", first)
        for result in (solve(problem, signals=()), heuristics.run("omp", problem, signals=())):
            assert result.valid_for or result.lower <= best + room
            assert result.upper >= best - room
            assert not np.any(problem.coefficient_bounds.violated(result.coef))
            assert not {*result.support} & {*problem.force_out}
            if result.claim == "optimal" and not result.valid_for:
                assert result.upper <= best + 1e-6 * best + 100 * room


def test_limits_screen_columns_that_a_free_model_might_hold(on_demand):
    """More columns than rows and no ridge: within limits the dual vector of a relaxation bounds all models."""
    rng = np.random.default_rng(0)
    A, y = rng.standard_normal((40, 400)), rng.standard_normal(40)
    y += A[:, 5] - A[:, 77]
    problem = Problem.prepared(scipy.sparse.csc_matrix(A), y, 2, fit_intercept=True)
    free, within = (column_bounds(each, np.zeros(400), lambda: False) for each in (problem, boxed(problem, max_coef=1)))
    assert free.lower == 0.0
    assert within.lower > 0.1 * problem.null_objective
    assert within.duals
    result = solve(boxed(problem, max_coef=1), signals=())
    assert result.support == (5, 77)
    assert result.reached
    assert result.lower == pytest.approx(solve(A, y, 2, max_coef=1, signals=()).upper, rel=1e-5)


def test_every_verb_says_of_sparse_columns_what_it_says_of_a_table(on_demand):
    A, y, _, _ = drawn(5)
    asked = {"max_coef": 0.2, "signals": ()}
    for data in (A, scipy.sparse.csc_matrix(A)):
        problem = boxed(Problem.prepared(data, y, 2, fit_intercept=True), max_coef=0.2)
        assert [fit.upper for fit in solve_path(problem, signals=()).results] == pytest.approx(
            [solve(A, y, k, **asked).upper for k in (1, 2)], rel=1e-6
        )
        assert best_model(data, y, **asked).lower <= best_model(A, y, **asked).best.criterion * (1.0 + 1e-9)
        assert certify(data, y, 2, support=[0], **asked).lower <= solve(A, y, 2, **asked).upper * (1.0 + 1e-9)
        estimator = BestSubsetRegressor(k=2, max_coef=0.2).fit(data, y)
        assert np.all(np.abs(estimator.coef_) <= 0.2)


@pytest.mark.parametrize("seed", sample(40, 1500, smoke=4))
def test_huber_loss_without_a_ridge_within_limits(seed, on_demand, tmp_path):
    rng = np.random.default_rng([seed, 7])
    n, d = int(rng.integers(2, 14)), int(rng.integers(1, 6))
    A = (rng.random((n, d)) < rng.choice([0.2, 0.5, 0.9])) * rng.choice([1.0, -2.0, 0.5], (n, d))
    A = A * rng.standard_normal((n, d)) if seed % 3 == 0 else A
    A[:, 0] = A[:, -1] if seed % 4 == 0 else A[:, 0]
    A = A * 10.0 ** rng.integers(-3, 4, d) if seed % 7 == 0 else A
    y = A @ rng.standard_normal(d) + rng.choice([0.1, 1.0]) * rng.standard_normal(n) + rng.choice([0.0, 5.0])
    k, size = int(rng.integers(1, d + 1)), float(rng.choice([0.05, 0.5, 3.0, 100.0]))
    options = {"loss": "huber", "lam": 0.0, "delta": 0.7, "fit_intercept": bool(rng.integers(2))}
    problem = boxed(Problem.prepared(scipy.sparse.csc_matrix(A), y, k, **options), max_coef=size)
    best = min(smallest_on(problem, chosen) for chosen in allowed_sets(problem))
    room = 1e-7 * problem.null_objective
    result = solve(problem, proof=tmp_path / "p.exsel", signals=())
    assert result.lower <= best + room
    assert best - room <= result.upper <= best * (1.0 + 1e-5) + 10.0 * room
    assert not np.any(problem.coefficient_bounds.violated(result.coef))
    assert verify(problem, tmp_path / "p.exsel").verified
    more = (0.7, (), (), None, options["fit_intercept"])
    limits = [[-size] * d, [size] * d]
    data = (tmp_path / "p.exsel").read_bytes()
    assert standalone.check(data, of_table(A.tolist()), y.tolist(), k, "huber", 0.0, *more, bounds=limits) == ""


def test_without_a_ridge_other_losses_ask_for_limits(on_demand):
    A, y, _, _ = drawn(5)
    huber = Problem.prepared(scipy.sparse.csc_matrix(A), y, 1, loss="huber", lam=0.0, delta=0.7)
    for asked in (huber, boxed(huber, bounds=[(0, None, 1.0)])):
        for run in (solve, lambda problem, **_: heuristics.run("omp", problem)):
            with pytest.raises(UnsupportedError, match="only where all coefficients are limited; give max"):
                run(asked, signals=())
    with pytest.raises(UnsupportedError, match="lam is 0, which with logistic loss data that are held as no table"):
        Problem.prepared(scipy.sparse.csc_matrix(A), np.sign(y - np.median(y) + 1e-9), 1, loss="logistic", lam=0.0)
