"""A result in the names of statistics packages: params, aic, bic, fittedvalues, resid."""

from __future__ import annotations

import math

import numpy as np
import pytest

from exactsel import ColumnSubsetProblem, InputError, Problem, UnsupportedError, boxed, solve, solve_path
from exactsel.solving.stored import as_stored, from_stored

RNG = np.random.default_rng(8)
N = 60
A = RNG.normal([0.0, 3.0, -2.0, 0.5], [1.0, 2.0, 1.0, 0.3], (N, 4))
MEAN = 0.8 * A[:, 0] + 0.2 * A[:, 1]
Y = MEAN + RNG.normal(size=N)
LABELS = np.where(MEAN + RNG.normal(size=N) > 0.6, 1.0, -1.0)
COUNTS = RNG.poisson(np.exp(0.5 * MEAN)).astype(float)


def test_least_squares():
    result = solve(A, Y, 2)
    X = np.column_stack([np.ones(N), A[:, list(result.support)]])
    fit, (squares,), *_ = np.linalg.lstsq(X, Y, rcond=None)
    deviance = N * (math.log(2 * math.pi * squares / N) + 1)
    np.testing.assert_allclose(result.fittedvalues, X @ fit, rtol=1e-9)
    np.testing.assert_allclose(result.resid, Y - X @ fit, atol=1e-9)
    np.testing.assert_allclose(result.params, fit, rtol=1e-9)
    assert result.params.index[0] == "(intercept)"
    assert result.bic == pytest.approx(deviance + 4 * math.log(N), abs=1e-6)
    assert result.aic == pytest.approx(deviance + 8, abs=1e-6)


def test_classes_and_counts():
    classes = solve(A, LABELS, 2, loss="logistic", lam=0.0)
    share = 1 / (1 + np.exp(-classes.predict(A)))
    np.testing.assert_allclose(classes.fittedvalues, share)
    np.testing.assert_allclose(classes.resid, (LABELS > 0) - share)
    assert abs(classes.resid.sum()) < 1e-6  # as there is an intercept
    assert classes.bic == pytest.approx(-2 * np.sum(np.log(np.where(LABELS > 0, share, 1 - share))) + 3 * math.log(N))
    exposure = RNG.uniform(0.5, 2.0, N)
    counts = solve(A, COUNTS, 2, loss="poisson", lam=1e-6, offset=np.log(exposure))
    np.testing.assert_allclose(counts.fittedvalues, exposure * np.exp(counts.predict(A)))
    np.testing.assert_allclose(counts.resid, COUNTS - counts.fittedvalues, atol=1e-9)
    assert abs(counts.resid.sum()) < 1e-4


@pytest.mark.parametrize("options", [{}, {"fit_intercept": False}, {"standardize": True}, {"positive": True}])
@pytest.mark.parametrize("loss", ["quadratic", "huber"])
def test_offsets_are_counted_in(loss, options):
    offset = RNG.normal(0.0, 3.0, N)
    asked = {"loss": loss, "lam": 0.1, "delta": 1.0 if loss == "huber" else None, **options}
    result = solve(A * [1.0, 1e6, 1.0, 1.0], Y + offset, 2, offset=offset, **asked)
    np.testing.assert_allclose(result.fittedvalues, result.predict(A * [1.0, 1e6, 1.0, 1.0]) + offset, rtol=1e-9)
    np.testing.assert_allclose(result.resid + result.fittedvalues, Y + offset, rtol=1e-9)
    path = solve_path(A, Y + offset, 3, offset=offset, **asked)
    for each in path.results:
        np.testing.assert_allclose(each.fittedvalues, each.predict(A) + offset, rtol=1e-9)


def test_limits_weights_and_prepared_columns():
    weights = RNG.uniform(0.5, 2.0, N)
    problem = boxed(Problem.prepared(A, Y, 2, intercept=True, weights=weights), "all")
    result = solve(problem)
    np.testing.assert_allclose(result.resid, Y - result.predict(A))
    assert abs(weights @ result.resid) < 1e-9
    scaled = solve(A, Y, 2, scale=True)
    np.testing.assert_array_equal(scaled.coef, scaled.model.coef)
    np.testing.assert_allclose(scaled.prepared.coef, scaled.coef * A.std(axis=0), rtol=1e-9)


def test_where_they_are_not_defined():
    exact = solve(A, A @ [1.0, 0.0, 2.0, 0.0], 2)
    assert math.isnan(exact.bic)
    hinge = solve(A, LABELS, 2, loss="squared_hinge", lam=1.0)
    assert math.isnan(hinge.aic)
    columns = solve(ColumnSubsetProblem(A, 2))
    assert columns.coef.size == 0
    assert math.isnan(columns.bic)
    with pytest.raises(UnsupportedError, match="has no coefficients"):
        columns.fittedvalues  # noqa: B018


def test_a_result_that_was_stored():
    problem = Problem.prepared(A, Y, 2, intercept=True)
    result = solve(problem)
    again = from_stored(as_stored(result), problem)
    assert again.bic == result.bic
    np.testing.assert_array_equal(again.coef, result.coef)
    with pytest.raises(InputError, match="comes without its data"):
        again.resid  # noqa: B018
