"""Data that are not held as a table: bounds of each column against brute force, and searches of some of the columns."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse
from samples import sample

from exactsel import Problem, solve
from exactsel.bounds.column_bounds import column_bounds
from exactsel.problem import design
from exactsel.solving import screening
from exactsel.studies import heuristics

ROOM = 1e-12
"""Part of the empty model's objective that the values of brute force may be off."""


@pytest.fixture
def on_demand(monkeypatch):
    """No matrix is small enough to become a table."""
    monkeypatch.setattr(design, "MOST_TABLE_BYTES", -1)
    monkeypatch.setattr(design, "MOST_ENTRIES", 2.0)


def drawn(seed):
    """Awkward sparse data (n, d), a target, and options of a problem."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 12)), int(rng.integers(1, 7))
    A = (rng.random((n, d)) < rng.choice([0.1, 0.3, 0.7])) * rng.choice([1.0, -2.0, 0.5], (n, d))
    kind = rng.integers(7)
    if d > 1 and kind < 3:
        A[:, 0] = (A[:, 1], -A[:, 1], np.ones(n))[kind]
    if kind == 3:
        A *= 10.0 ** rng.integers(-6, 6, d)
    if kind == 4:
        A[:, 0] = 0.0
    y = A @ (rng.standard_normal(d) * (rng.random(d) < 0.5)) + rng.choice([0.0, 0.1, 1.0]) * rng.standard_normal(n)
    y += rng.choice([0.0, 0.0, 5.0, 1e6])
    k = int(rng.choice([1, min(2, d), d, int(rng.integers(0, d + 1))]))
    loss = str(rng.choice(["quadratic", "quadratic", "quadratic", "huber", "logistic", "squared_hinge", "poisson"]))
    lam = float(rng.choice([0.01, 1.0, 30.0])) if loss != "quadratic" else float(rng.choice([0.0, 0.0, 0.1, 5.0]))
    intercept = bool(rng.integers(2)) and loss != "squared_hinge"
    if loss in ("logistic", "squared_hinge"):
        y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
        y[: min(n, 2)] = (1.0, -1.0)[: min(n, 2)]
        intercept = intercept and n > 1
    if loss == "poisson":
        y = rng.poisson(1.5, n) + 1.0 * (np.arange(n) == 0)
    must_not = [d - 1] if rng.random() < 0.2 and k < d else []
    options = {"loss": loss, "lam": lam, "fit_intercept": intercept, "must_not": must_not}
    return A, y, k, options | ({"delta": 0.7} if loss == "huber" else {})


def brute_force(problem, k):
    """The best objective of all, and of the models with each column that may be used."""
    allowed = [j for j in range(problem.d) if j not in problem.must_not]
    values = {S: problem.fit(S).value for m in range(k + 1) for S in combinations(allowed, m)}
    with_column = np.full(problem.d, np.inf)
    for j in allowed:
        with_column[j] = min((value for S, value in values.items() if j in S), default=np.inf)
    return min(values.values()), with_column


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
            assert not {*result.support} & {*problem.must_not}
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
    assert "of 3000 columns by" in result.settings["method"]


def test_what_takes_a_table_is_refused_in_one_sentence(on_demand, tmp_path):
    A, y, k, options = drawn(5)
    problem = Problem.prepared(scipy.sparse.csc_matrix(A), y, max(k, 1), **options)
    for refused in (
        lambda: solve(problem, proof=tmp_path / "p.proof"),
        lambda: np.asarray(problem.A),
        lambda: np.asarray(problem.AT),
        lambda: problem.gram,
    ):
        with pytest.raises(Exception, match=r"; .*\.$") as caught:
            refused()
        assert type(caught.value).__name__ == "UnsupportedError"
    with pytest.raises(Exception, match="memory limit"):
        solve(problem, memory_limit=1e-4)
