"""R², deviance and residuals as textbooks have them, and times that add up."""

from __future__ import annotations

import json

import numpy as np
import pytest

from exactsel import ColumnSubsetProblem, GroupedProblem, Problem, solve
from exactsel.observers.log import times_text
from exactsel.report.run import run_page
from exactsel.solving.quality import rank_of

RNG = np.random.default_rng(0)
A = RNG.normal(size=(30, 4)) + 5.0
Y = A @ [1.0, -2.0, 0.0, 0.0] + 3.0 + RNG.normal(size=30)
LABELS = np.where(A[:, 0] + RNG.normal(size=30) > 5.0, 1.0, -1.0)
WEIGHTS = RNG.integers(0, 4, 30).astype(float)


def of(problem):
    return solve(problem, signals=()).quality


@pytest.mark.parametrize("loss", ["quadratic", "huber"])
def test_squares(loss):
    problem = Problem.prepared(A, Y, 2, loss=loss, lam=1e-6, intercept=True, scale=True)
    result, found = solve(problem), of(problem)
    residuals = Y - result.predict(A)
    r2 = 1 - residuals @ residuals / ((Y - Y.mean()) @ (Y - Y.mean()))
    assert found.explained == pytest.approx(r2)
    assert found.adjusted == pytest.approx(1 - (1 - r2) * 29 / 27)
    assert found.residual == pytest.approx(np.sqrt(np.mean(residuals**2)))
    assert str(found).startswith(f"R² {r2:.4g} (adjusted ")
    assert "against 0" not in str(found)


def test_dependent_columns_count_once():
    """A category with an intercept: its 0/1 columns add up to the constant one."""
    levels = RNG.integers(0, 3, 30)
    one_hot = (levels[:, None] == np.arange(3)).astype(float)
    problem = Problem.prepared(np.column_stack([one_hot, A[:, :1]]), Y, 2, lam=1e-3, intercept=True)
    found = of(GroupedProblem(problem, {"level": [0, 1, 2], "x": [3]}))
    assert found.adjusted == pytest.approx(1 - (1 - found.explained) * 29 / 26)


def test_without_an_intercept_it_is_against_nothing():
    result = solve(Problem(A, Y, 2))
    residuals = Y - result.predict(A)
    found = of(Problem(A, Y, 2))
    assert found.explained == pytest.approx(1 - residuals @ residuals / (Y @ Y))
    assert found.adjusted == pytest.approx(1 - (1 - found.explained) * 30 / 28)
    assert "against 0, as there is no intercept" in str(found)


@pytest.mark.parametrize("loss", ["quadratic", "logistic"])
def test_weights_are_rows_repeated(loss):
    target, rows = (LABELS if loss == "logistic" else Y), np.repeat(np.arange(30), WEIGHTS.astype(int))
    options = {"loss": loss, "lam": 0.1, "intercept": True}
    weighted = of(Problem.prepared(A, target, 2, weights=WEIGHTS, **options))
    repeated = of(Problem.prepared(A[rows], target[rows], 2, **options))
    for name in ("explained", "adjusted", "residual"):
        assert getattr(weighted, name) == pytest.approx(getattr(repeated, name), rel=1e-6, nan_ok=True)


def test_deviance():
    problem = Problem.prepared(A, LABELS, 2, loss="logistic", lam=0.1, intercept=True)
    scores = solve(problem).predict(A)
    share = np.mean(LABELS > 0)
    alone = -30 * (share * np.log(share) + (1 - share) * np.log(1 - share))
    found = of(problem)
    assert found.explained == pytest.approx(1 - np.sum(np.log1p(np.exp(-LABELS * scores))) / alone)
    assert found.residual == np.mean(np.sign(scores) == LABELS)
    assert str(found).startswith("deviance explained ")
    assert of(Problem(A, LABELS, 0, loss="logistic", lam=0.1)).explained == 0.0


def test_where_there_is_little_to_say():
    assert of(ColumnSubsetProblem(A, 2)) is None
    assert np.isnan(of(Problem.prepared(A, np.full(30, 2.0), 1, intercept=True)).explained)
    assert np.isnan(of(Problem.prepared(A[:3], Y[:3], 2, intercept=True)).adjusted)
    assert of(GroupedProblem(Problem(A, Y, 1, lam=0.1), [0, 0, 1, 1])).explained > 0.5


def test_times_add_up():
    times = {"prepare": 1.0, "heuristics": 2.0, "search": 3.0, "bound": 2.5, "compile": 0.0, "total": 7.0}
    assert (
        times_text(times) == "7.00 s: prepare 1.00   heuristics 2.00   search 3.00   other 1.00   (search: bound 2.50)"
    )
    assert times_text({**times, "compile": 4.0}).endswith("compiling, in all of these: 4.00")
    result = solve(Problem(A, Y, 2))
    assert result.times["compile"] >= 0.0


def test_in_json_and_in_the_report():
    result = solve(Problem(A, Y, 2, lam=0.1))
    told = json.loads(result.to_json())["quality"]
    assert told == {
        "r2": result.quality.explained, "r2_adjusted": result.quality.adjusted,
        "rms_residual": result.quality.residual, "against_mean": False,
    }  # fmt: skip
    assert f"<dt>R² against 0</dt><dd>{result.quality.explained:.4g} (adjusted" in run_page(result)
    labels = solve(Problem(A, LABELS, 2, loss="logistic", lam=0.1))
    assert set(json.loads(labels.to_json())["quality"]) == {"deviance_explained", "share_right", "against_mean"}
    assert json.loads(solve(ColumnSubsetProblem(A, 2)).to_json())["quality"] is None


@pytest.mark.parametrize("weights", [None, WEIGHTS + 1.0])
def test_residuals_of_counts_are_of_counts_with_an_offset_too(weights):
    exposure = RNG.uniform(0.5, 4.0, 30)
    counts = RNG.poisson(exposure * np.exp(0.3 * (A[:, 0] - 5.0))).astype(float)
    result = solve(A, counts, 2, loss="poisson", lam=1e-3, offset=np.log(exposure), sample_weight=weights, signals=())
    expected = np.sqrt(np.average(result.resid**2, weights=weights))
    assert result.quality.residual == pytest.approx(expected, rel=1e-9)


def test_ranks_are_those_of_a_factorisation_of_all_rows():
    rng = np.random.default_rng(3)
    for number in range(600):
        n, m = int(rng.integers(1, 40)), int(rng.integers(1, 8))
        rows = rng.standard_normal((m, n)) * 10.0 ** rng.integers(-3, 4, (m, 1))
        rows += (number % 2) * 10.0 ** rng.integers(9)
        if m > 1 and number % 3 == 0:
            rows[0] = rows[1] + 10.0 ** -rng.integers(2, 17) * rng.standard_normal(n)
        parts = [slice(0, n // 2), slice(n // 2, n)] if n > 1 else [slice(0, n)]
        factors = np.vstack([np.linalg.qr(rows[:, part].T, mode="r") for part in parts])
        expected = np.linalg.matrix_rank(np.linalg.qr(factors, mode="r"))
        assert rank_of(lambda part, rows=rows: rows[:, part], parts) == expected
