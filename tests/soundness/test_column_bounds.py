"""Data that are not held as a table: bounds of each column against brute force, and searches of some of the columns."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from samples import sample
from sparse_cases import brute_force, drawn, on_demand

from exactsel import Problem, cross_validate, solve
from exactsel.bounds.column_bounds import column_bounds
from exactsel.solving import screening
from exactsel.studies import heuristics

ROOM = 1e-12
"""Part of the empty model's objective that the values of brute force may be off."""


__all__ = ["on_demand"]  # a fixture


@pytest.mark.parametrize("seed", sample(200, 4000, smoke=20))
def test_bounds_hold_for_all_models_and_for_those_with_a_column(seed, on_demand):
    A, y, k, options = drawn(seed)
    table = Problem.prepared(A, y, k, **options)
    problem = Problem.prepared(scipy.sparse.csc_matrix(A), y, k, **options)
    assert problem.objective.on_demand
    assert not table.objective.on_demand
    best, with_column = brute_force(table, k)
    room = ROOM * table.null_objective
    for coef in (np.zeros(problem.d), problem.fit(range(min(k, 1))).coef):
        found = column_bounds(problem, coef, lambda: False)
        assert 0.0 <= found.lower <= best + room
        assert np.all(found.with_column <= with_column + room)
        assert np.all(found.lower <= found.with_column + room)


@pytest.mark.parametrize("seed", sample(60, 1500, smoke=6))
def test_a_search_of_some_columns_says_what_holds_of_all(seed, on_demand, monkeypatch):
    A, y, k, options = drawn(seed)
    table = Problem.prepared(A, y, k, **options)
    problem = Problem.prepared(scipy.sparse.csr_matrix(A), y, k, **options)
    best, _ = brute_force(table, k)
    room = ROOM * table.null_objective
    for first in (1, 250):
        monkeypatch.setattr(screening, "FIRST_COLUMNS", first)
        for result in (solve(problem, signals=()), heuristics.run("omp", problem, signals=())):
            assert result.lower <= best + room
            assert result.upper >= best - room
            assert not {*result.support} & {*problem.force_out}
            if result.claim == "optimal":
                assert result.upper <= best + 1e-6 * best + 100 * room
    if options["lam"] > 0 or options["loss"] == "quadratic":
        assert solve(problem, signals=()).upper <= best + 1e-6 * best + 100 * room


def test_few_entries_make_the_bound_of_touched_rows_nearly_tight(on_demand):
    rng = np.random.default_rng(0)
    A = scipy.sparse.random(400, 3000, density=0.01, format="csc", random_state=rng, data_rvs=np.ones)
    y = np.asarray(A[:, [5, 70, 900]].sum(axis=1)).ravel() + 0.1 * rng.standard_normal(400)
    result = solve(Problem.prepared(A, y, 3, fit_intercept=True), signals=())
    assert result.reached
    assert {*result.support} == {5, 70, 900}
    assert "of 3000 features by" in result.settings["method"]


def test_what_takes_a_table_is_refused_in_one_sentence(on_demand):
    A, y, k, options = drawn(5)
    problem = Problem.prepared(scipy.sparse.csc_matrix(A), y, max(k, 1), **options)
    for refused in (
        lambda: solve(problem, details=True),
        lambda: np.asarray(problem.A),
        lambda: np.asarray(problem.AT),
        lambda: problem.gram,
        lambda: cross_validate(problem),
    ):
        with pytest.raises(Exception, match=r"; .*\.$") as caught:
            refused()
        assert type(caught.value).__name__ == "UnsupportedError"
    with pytest.raises(Exception, match="memory limit"):
        solve(problem, memory_limit=1e-4)
