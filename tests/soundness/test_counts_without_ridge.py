"""Poisson loss with lam = 0: searches against brute force, proofs by both checkers, counts without a best model."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from samples import sample

from exactsel import Problem, best_model, solve
from exactsel.errors import InputError, UnsupportedError
from exactsel.problem.separation import separation
from exactsel.proofs.instance import instance_of
from exactsel_certificates.checking import verify
from exactsel_certificates.container import read_proof
from exactsel_certificates.standalone.checking import check

EACH = 10
"""Seeds of one test."""


def fitted(A, y, w, intercept):
    """The least objective on all columns, by damped Newton steps on columns of even size."""
    X = np.hstack([A, np.ones((len(A), 1))]) if intercept else A
    X = X / np.maximum(np.linalg.norm(X, axis=0), 1e-300)
    x, least = np.zeros(X.shape[1]), np.where(y > 0, y * np.log(np.where(y > 0, y, 1.0)) - y, 0.0)

    def value(x):
        with np.errstate(over="ignore"):
            return float(w @ (np.exp(X @ x) - y * (X @ x) + least))

    for _ in range(300):
        mean = np.exp(X @ x)
        gradient = X.T @ (w * (mean - y))
        step = np.linalg.lstsq((X.T * (w * mean)) @ X, gradient, rcond=1e-13)[0]
        length = 1.0
        while not value(x - length * step) <= value(x) and length > 1e-12:
            length *= 0.5
        x = x - length * step
        if gradient @ step <= 1e-15 * max(value(x), 1e-300):
            break
    return value(x)


def random_case(seed):
    """A small awkward problem: ties, columns of zeros, far from zero or of other units, weights of zero."""
    rng = np.random.default_rng([1500, seed])
    n, d = int(rng.integers(6, 30)), int(rng.integers(1, 6))
    kind = rng.integers(4)
    A = rng.integers(-2, 3, size=(n, d)).astype(float) if kind == 0 else rng.normal(size=(n, d))
    if kind == 1:
        A = A * 10.0 ** rng.integers(-9, 10, size=d)
    if kind == 2:
        A[:, rng.integers(d)] = 0.0
    if kind == 3:
        A = A + 100.0 * rng.integers(2, size=d)
    size = np.maximum(np.abs(A - A.mean(axis=0)).max(axis=0), 1e-300)
    y = rng.poisson(np.exp(np.clip((A - A.mean(axis=0)) / size @ rng.normal(size=d) + 1.0, -3.0, 3.0))).astype(float)
    weights = rng.uniform(0.2, 3.0, size=n) if rng.random() < 0.3 else None
    if weights is not None and rng.random() < 0.5:
        weights[rng.integers(n)] = 0.0
    return {
        "A": A, "y": y, "k": int(rng.choice([1, d, rng.integers(0, d + 1)])), "weights": weights,
        "intercept": bool(rng.integers(2)), "scale": bool(rng.integers(4) == 0),
    }  # fmt: skip


def look_at(seed, tmp_path):
    """Whether there was an answer; then all that is said is true, and a refusal says what is so."""
    given = random_case(seed)
    A, y, w = given["A"], given["y"], np.ones(len(given["y"])) if given["weights"] is None else given["weights"]
    try:
        problem = Problem.prepared(**given, loss="poisson", lam=0.0)
    except (InputError, UnsupportedError) as error:
        if not re.search("apart whose counts are 0|only zeros|no weight", str(error)):
            raise
        return False
    result, file = solve(problem, proof=tmp_path / "run.exsel", threads=1), tmp_path / "run.exsel"
    sets = itertools.combinations(range(A.shape[1]), given["k"])
    best = min(fitted(A[:, list(chosen)], y, w, given["intercept"]) for chosen in sets)
    room = 1e-12 * problem.null_objective
    assert result.lower <= best * (1.0 + 1e-11) + room, seed
    assert result.upper >= best * (1.0 - 1e-9) - room, seed
    assert result.upper <= best * (1.0 + 2e-6) + 1e-6 * problem.null_objective, seed
    verdict = verify(read_proof(file), instance_of(problem))
    assert verdict.verified, (seed, verdict.reason)
    assert verdict.lower <= best * (1.0 + 1e-11) + room, seed
    if A.size <= 60:
        weights = None if given["weights"] is None else given["weights"].tolist()
        said = check(
            file.read_bytes(), A.tolist(), y.tolist(), problem.k, "poisson", 0.0, 1.0, weights=weights,
            level=given["intercept"], scale=given["scale"],
        )  # fmt: skip
        assert said == "" or result.upper < 1e-12 * problem.null_objective, (seed, said)
    return True


@pytest.mark.parametrize("part", sample(4, 150, smoke=1))
def test_searches_and_proofs_agree_with_brute_force(part, tmp_path):
    solved = [look_at(seed, tmp_path) for seed in range(part * EACH, (part + 1) * EACH)]
    assert sum(solved) >= 4


def rare_counts(n=24):
    """Counts that are 0 wherever the last column is 1."""
    rng = np.random.default_rng(4)
    A = rng.normal(size=(n, 4))
    A[:, 3] = np.arange(n) % 3 == 0
    return A, np.where(A[:, 3] == 1, 0.0, rng.poisson(3.0, size=n) + 1.0)


def test_columns_that_tell_counts_of_zero_apart_are_named():
    A, y = rare_counts()
    with pytest.raises(InputError, match=r"column 3 tells 8 rows apart whose counts are 0.*give a positive lam"):
        Problem.prepared(A, y, 1, loss="poisson", lam=0.0, intercept=True)
    for way in ({"lam": 1e-3}, {"lam": 0.0, "must_not": [3]}):
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
    with pytest.raises(UnsupportedError, match=r"do not limit the coefficients of all columns.*lam=1e-6"):
        Problem.prepared(A, y, 2, loss="poisson", lam=0.0, intercept=True)
    assert solve(Problem.prepared(A, y, 2, loss="poisson", lam=1e-6, intercept=True)).reached


def test_powers_of_two_change_nothing():
    given = random_case(3) | {"scale": False}
    units, told = 2.0 ** np.arange(-20, 20, 8)[: given["A"].shape[1]], []
    for scale in (np.ones(len(units)), units):
        problem = Problem.prepared(**given | {"A": given["A"] * scale}, loss="poisson", lam=0.0)
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
