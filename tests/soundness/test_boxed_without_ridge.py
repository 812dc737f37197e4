"""Signs and bounds with lam = 0 for other losses: against brute force, and proofs by both checkers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from boxed_files import claiming, random_proof
from corrupted import check
from recorded import second_opinion
from samples import many
from scipy.optimize import minimize
from scipy.special import xlogy

from exactsel import Problem, boxed, solve
from exactsel.errors import InputError, UnsupportedError
from exactsel.proofs.instance import instance_of
from exactsel_certificates.checking import problem_hash, verify
from exactsel_certificates.container import parse_proof, read_proof
from exactsel_certificates.standalone.checking import check as check_alone

EACH = many(5, 12)
"""Seeds of one test."""


def rows_of(loss, delta, z, y):
    """Values and slopes of the rows."""
    if loss == "logistic":
        return np.logaddexp(0.0, -y * z), -y * np.exp(-np.logaddexp(0.0, y * z))
    if loss == "poisson":
        return np.exp(z) - y * z + xlogy(y, y) - y, np.exp(z) - y
    r = z - y
    slopes = np.clip(r, -delta, delta)
    return slopes * (r - 0.5 * slopes), slopes


def random_case(seed, loss):
    """A small problem with columns of different length, ties, and limits on some coefficients."""
    rng = np.random.default_rng([1700, seed])
    n, d = int(rng.integers(10, 30)), int(rng.integers(2, 6))
    A = rng.integers(-3, 4, size=(n, d)).astype(float) if seed % 3 == 0 else rng.normal(size=(n, d))
    eta = A @ rng.normal(size=d) * 0.5
    lengths = 10.0 ** rng.integers(-6, 7, size=d) if seed % 3 == 1 else np.ones(d)
    y = {
        "logistic": np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-0.4 * eta)), 1.0, -1.0),
        "poisson": rng.poisson(np.exp(np.clip(0.4 * eta, -3.0, 2.0))).astype(float),
        "huber": eta + rng.standard_t(2, n),
    }[loss]
    kinds = rng.integers(4, size=d)
    kinds[0] = max(kinds[0], 1)
    lower = np.select([kinds == 1, kinds == 2], [0.0, -rng.random(d)], -np.inf) / lengths
    upper = np.select([kinds == 3, kinds == 2], [0.0, rng.random(d)], np.inf) / lengths
    weights = rng.integers(1, 4, n).astype(float) if seed % 4 == 0 else None
    return A * lengths, y, lower, upper, lengths, int(rng.integers(1, d + 1)), bool(rng.integers(2)), weights


def least(loss, delta, X, y, w, low, high, intercept):
    """The least objective within limits, by a quasi-Newton method from scipy on columns of even length."""
    if intercept:
        X, low, high = np.column_stack([X, np.ones(len(X))]), [*low, -np.inf], [*high, np.inf]

    def both(x):
        values, slopes = rows_of(loss, delta, X @ x, y)
        return float(w @ values), X.T @ (w * slopes)

    limits = [(None if np.isinf(a) else a, None if np.isinf(b) else b) for a, b in zip(low, high, strict=True)]
    found = minimize(both, np.zeros(X.shape[1]), jac=True, bounds=limits, method="L-BFGS-B",
                     options={"maxiter": 3000, "ftol": 1e-16, "gtol": 1e-11})  # fmt: skip
    return float(found.fun)


def look_at(seed, loss, tmp_path):
    A, y, lower, upper, lengths, k, intercept, weights = random_case(seed, loss)
    try:
        problem = Problem.prepared(A, y, k, loss=loss, lam=0.0, intercept=intercept, weights=weights)
    except (InputError, UnsupportedError):  # no best model without limits
        return False
    limits = [(j, a, b) for j, (a, b) in enumerate(zip(lower, upper, strict=True)) if a > -np.inf or b < np.inf]
    limited = boxed(problem, bounds=limits)
    result, file = solve(limited, proof=tmp_path / "run.exsel", threads=1, signals=()), tmp_path / "run.exsel"
    delta, w = problem.loss_parameters.get("delta", 1.0), np.ones(len(y)) if weights is None else weights
    best = min(
        least(loss, delta, A[:, s] / lengths[s], y, w, (lower * lengths)[s], (upper * lengths)[s], intercept)
        for s in map(list, itertools.combinations(range(A.shape[1]), k))
    )
    room = 1e-10 * problem.null_objective
    assert result.lower <= best * (1.0 + 1e-10) + room, seed
    assert result.upper >= best * (1.0 - 1e-5) - 1e-6 * problem.null_objective, seed
    assert result.upper <= best * (1.0 + 2e-6) + 1e-6 * problem.null_objective, seed
    assert np.all((result.coef >= lower) & (result.coef <= upper)), seed
    assert result.problem["lam"] == 0.0
    assert result.reached, seed
    verdict = verify(read_proof(file), instance_of(limited))
    assert verdict.verified, (seed, verdict.reason)
    assert verdict.lower <= best * (1.0 + 1e-10) + room, seed
    above = best * (1.0 + 1e-9) + 1e-9 * problem.null_objective
    too_much = claiming(read_proof(file), lower=above, upper=1e300)
    assert not verify(parse_proof(too_much), instance_of(limited)).verified, seed
    if A.size <= 50:
        assert second_opinion(instance_of(limited), too_much) != "", seed
        said = check_alone(
            file.read_bytes(), A.tolist(), y.tolist(), k, loss, 0.0, delta, level=intercept,
            weights=None if weights is None else weights.tolist(), bounds=[lower.tolist(), upper.tolist()],
        )  # fmt: skip
        assert said == "", (seed, said)
    return True


@pytest.mark.parametrize("loss", ["huber", "logistic", "poisson"])
def test_against_every_set_of_columns(loss, tmp_path):
    assert sum(look_at(seed, loss, tmp_path) for seed in range(EACH)) >= EACH // 2


@pytest.mark.parametrize("loss", ["huber", "logistic", "poisson"])
def test_a_proof_within_tight_limits_shows_nothing_untrue_of_wide_ones(loss, tmp_path):
    """The forged file names the other problem; only what its witnesses show there counts."""
    A, y = signed_data(loss)
    problem = Problem.prepared(A, y, 2, loss=loss, lam=0.0, intercept=True)
    wide = boxed(problem, bounds=[(0, 0.0, np.inf)])
    file, found = tmp_path / "run.exsel", solve(wide, signals=())
    tight, best = boxed(problem, bounds=[(0, 0.0, 0.9 * found.coef[0])]), found.upper
    assert solve(tight, proof=file, signals=()).lower > best * 1.0001
    instance = instance_of(wide)
    forged = claiming(read_proof(file), problem_hash=problem_hash(instance), upper=1e300)
    verdict = verify(parse_proof(forged), instance)
    assert not verdict.verified
    assert verdict.lower <= best * (1.0 + 1e-9)
    assert second_opinion(instance, forged) != ""


@pytest.mark.parametrize("loss", ["huber", "logistic", "poisson"])
def test_without_what_limits_coefficients_nothing_is_shown(loss):
    """Any tree with any witnesses, in a file that names no point for limits."""
    A, y = signed_data(loss)
    limited = boxed(Problem.prepared(A, y, 2, loss=loss, lam=0.0, intercept=True), nonnegative="all")
    instance = instance_of(limited)
    for seed in range(10):
        proof = random_proof(np.random.default_rng(seed), limited, instance)
        verdict = check(claiming(proof, lower=1e-3), instance)
        assert not verdict.verified
        assert verdict.lower <= 0.0


def signed_data(loss):
    """A target that the first two columns explain with coefficients well above zero."""
    rng = np.random.default_rng(8)
    A = rng.normal(size=(40, 4))
    eta = A[:, 0] + 0.7 * A[:, 1]
    y = {"huber": eta + 0.5 * rng.normal(size=40), "poisson": rng.poisson(np.exp(0.6 * eta)).astype(float)}
    return A, y.get(loss, np.where(eta + rng.logistic(size=40) > 0, 1.0, -1.0))


@pytest.mark.long
@pytest.mark.parametrize("loss", ["huber", "logistic", "poisson"])
def test_thousands_against_every_set_of_columns(loss, tmp_path):
    """Some minutes: ``pytest -m long tests/soundness/test_boxed_without_ridge.py``."""
    assert sum(look_at(seed, loss, tmp_path) for seed in range(EACH, 1500)) >= 500
