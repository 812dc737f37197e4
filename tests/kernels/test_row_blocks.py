"""The rows of a loss, passed over in blocks: what one thread makes of all of them at once."""

from __future__ import annotations

import numpy as np
import pytest

from exactsel.problem import rows as rows_module
from exactsel.problem.regression import Problem
from exactsel.problem.rows import BLOCK, Rows, Unusable, fit_all, known_fit


def problem_of(loss, n, weights=False, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, 4)) * [1.0, 1e3, 1e-3, 7.0]
    A[n // 2] = 0.0
    y = A[:, 0] + rng.normal(size=n)
    y = np.where(y > 0, 1.0, -1.0) if loss == "logistic" else y
    row_weights = rng.integers(1, 4, size=n).astype(float) if weights else None
    return Problem.prepared(A, y, 2, loss=loss, lam=0.1, intercept=weights, weights=row_weights)


@pytest.mark.parametrize("loss", ["huber", "logistic"])
@pytest.mark.parametrize("weights", [False, True])
def test_blocks_make_what_all_rows_at_once_make(loss, weights):
    problem = problem_of(loss, 2 * BLOCK + 5, weights)
    rows = Rows(problem.objective)
    columns = problem.AT * rows.scale[:4, None]
    B = np.vstack([columns, np.full(problem.n, rows.one)]) if weights else columns
    assert rows.m == len(B)
    rng = np.random.default_rng(1)
    x, w = rng.normal(size=rows.m), rng.random(rows.n)
    assert np.allclose(rows.predictions(x), x @ B, rtol=1e-12, atol=1e-13)
    H = (B * w) @ B.T + np.diag(rows.ridge)
    assert np.allclose(rows.gram(w), H, rtol=1e-10, atol=1e-10)
    assert np.allclose(rows.products(w), B @ w, rtol=1e-9, atol=1e-10)
    widths = np.sqrt(np.einsum("ij,ij->j", B, np.linalg.solve(H, B)))
    assert np.allclose(rows.half_widths(np.linalg.cholesky(H).T), widths, rtol=1e-8)
    assert np.all(rows.lengths >= np.linalg.norm(B, axis=1))
    assert np.array_equal(rows.empty, ~np.any(B != 0, axis=0))


@pytest.mark.parametrize("loss", ["huber", "logistic"])
def test_the_result_is_that_of_one_thread_to_the_last_bit(loss, monkeypatch):
    monkeypatch.setattr(rows_module, "PART", 2 * BLOCK)
    problem = problem_of(loss, 4 * BLOCK + 5, weights=True)
    found = []
    for threads in (1, 2, 3):
        with Rows(problem.objective, threads=threads) as rows:
            x, value = fit_all(rows, np.zeros(rows.m))
            factor = np.linalg.cholesky(rows.gram(rows.at(rows.predictions(x))[2])).T
            found.append((x.tobytes(), value, rows.half_widths(factor).tobytes()))
    assert found[0] == found[1] == found[2]


def test_nothing_comes_of_it_once_told_to_stop():
    problem = problem_of("logistic", BLOCK + 1)
    rows = Rows(problem.objective)
    rows.stop[0] = True
    with pytest.raises(Unusable):
        known_fit(problem.objective, rows)
    rows.stop[0] = False
    _, value = known_fit(problem.objective, rows)
    assert value < problem.null_objective


@pytest.mark.parametrize("loss", ["huber", "logistic"])
def test_the_fit_is_known_for_each_objective_on_the_same_data(loss):
    """Asked for again with another lam, or another threshold, it is that of the other objective."""
    problem = problem_of(loss, 300)
    changes = [{"lam": 5.0}, *([{"delta": 0.2}] if loss == "huber" else [])]
    for changed in (problem, *(problem.replace(**change) for change in changes), problem):
        rows = Rows(changed.objective)
        x, value = known_fit(changed.objective, rows)
        everything = changed.replace(k=4).fit(range(4))
        assert value == pytest.approx(everything.value, rel=1e-9)
        assert np.allclose(x * rows.scale, everything.coef, rtol=1e-4, atol=1e-9)
