"""Poisson loss with lam = 0: counts without a best model, units, statistics (brute force: test_conformance.py)."""

from __future__ import annotations

import numpy as np
import pytest
from prepared_cases import ridgeless_counts, ridgeless_problem

from exactsel import Problem, best_model, solve
from exactsel.errors import InputError, UnsupportedError
from exactsel.problem.separation import separation


def rare_counts(n=24):
    """Counts that are 0 wherever the last column is 1."""
    rng = np.random.default_rng(4)
    A = rng.normal(size=(n, 4))
    A[:, 3] = np.arange(n) % 3 == 0
    return A, np.where(A[:, 3] == 1, 0.0, rng.poisson(3.0, size=n) + 1.0)


def test_columns_that_tell_counts_of_zero_apart_are_named():
    A, y = rare_counts()
    with pytest.raises(InputError, match=r"feature 3 tells 8 rows apart whose counts are 0.*give a positive lam"):
        Problem.prepared(A, y, 1, loss="poisson", lam=0.0, intercept=True)
    for way in ({"lam": 1e-3}, {"lam": 0.0, "force_out": [3]}):
        assert solve(Problem.prepared(A, y, 1, loss="poisson", intercept=True, **way)).reached


def test_which_rows_and_columns_do_so():
    A, y = rare_counts()
    problem = Problem.prepared(A, y, 1, loss="poisson", lam=1.0, intercept=True)
    found = separation(problem.objective, range(4))
    assert found.columns.tolist() == [3]
    assert np.array_equal(found.strict, y == 0)
    assert separation(problem.objective, range(3)) is None
    without = Problem.prepared(A - 2.0, y, 1, loss="poisson", lam=1.0)
    assert separation(without.objective, range(3)) is None


def test_dependent_columns_are_refused_with_the_way_on():
    A, y = rare_counts()
    A[:, 3] = A[:, 0] + A[:, 1]
    with pytest.raises(UnsupportedError, match=r"do not limit the coefficients of all features.*lam=1e-6"):
        Problem.prepared(A, y, 2, loss="poisson", lam=0.0, intercept=True)
    assert solve(Problem.prepared(A, y, 2, loss="poisson", lam=1e-6, intercept=True)).reached


def test_powers_of_two_change_nothing():
    given = ridgeless_counts(3) | {"scale": False}
    units, told = 2.0 ** np.arange(-20, 20, 8)[: given["A"].shape[1]], []
    for scale in (np.ones(len(units)), units):
        problem = ridgeless_problem(given | {"A": given["A"] * scale})
        result = solve(problem)
        told.append((result.tree_hash, result.lower, result.upper, (result.coef * scale).tolist()))
    assert told[0] == told[1]


def test_best_models_and_their_statistics():
    rng = np.random.default_rng(8)
    A = rng.normal(size=(60, 5))
    y = rng.poisson(np.exp(0.6 * A[:, 1] - 0.5 * A[:, 4] + 0.3)).astype(float)
    found = best_model(Problem.prepared(A, y, 5, loss="poisson", lam=0.0, intercept=True), criterion="bic", top=3)
    assert found.complete
    assert found.models[0].support == (1, 4)
