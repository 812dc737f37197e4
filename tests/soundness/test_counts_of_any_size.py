"""Poisson loss with counts from 1 to 1e12 and offsets: fits, bounds and claims against brute force, and proofs.

An oracle of its own begins at log(y + 1/2) and adds up deviances row by row, so that nothing cancels.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from recorded import second_opinion
from samples import sample

from exactsel import Problem, solve
from exactsel.errors import UnsupportedError
from exactsel.proofs.instance import instance_of
from exactsel_certificates.checking import verify
from exactsel_certificates.container import read_proof

EACH = 12
"""Seeds of one test."""

ROUNDED = 1e-8
"""Relative: what this oracle's objective may be off where predictions of 27 are rounded."""


def deviance(z, y):
    """Half of each row's, from how far z is from log y."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        t = z - np.log(y)
        near = y * (np.expm1(t) - t)
        small = np.abs(t) < 1e-3
        near = np.where(small, y * t * t * (0.5 + t / 6.0 + t * t / 24.0), near)
        return np.where(y > 0.0, near, np.exp(z))


def fitted(A, y, offset, lam, intercept):
    """The least objective of a model on all columns, by damped Newton steps begun at log(y + 1/2)."""
    X = np.hstack([A, np.ones((len(A), 1))]) if intercept else A
    ridge = np.full(X.shape[1], lam)
    ridge[A.shape[1] :] = 0.0

    def value(x):
        return float(deviance(X @ x + offset, y).sum() + 0.5 * ridge @ (x * x))

    root = np.sqrt(y + 0.5)
    least = (X * root[:, None]).T @ (root * (np.log(y + 0.5) - offset))
    starts = [np.linalg.lstsq((X.T * (y + 0.5)) @ X + np.diag(ridge), least, rcond=1e-15)[0], np.zeros(X.shape[1])]
    found = []
    for x in starts:
        for _ in range(500):
            mean = np.exp(np.minimum(X @ x + offset, 600.0))
            gradient = X.T @ (mean - y) + ridge * x
            step = np.linalg.lstsq((X.T * mean) @ X + np.diag(ridge), gradient, rcond=1e-16)[0]
            length, now = 1.0, value(x)
            while not value(x - length * step) <= now and length > 1e-14:
                length *= 0.5
            x = x - length * step
            if now - value(x) <= 1e-13 * now:
                break
        found.append(value(x))
    return min(found)


def random_case(seed):
    """Counts over up to twelve powers of ten, of two of a few columns of any unit; offsets in half of them."""
    rng = np.random.default_rng([4700, seed])
    n, d = int(rng.integers(12, 40)), int(rng.integers(2, 7))
    k = int(rng.integers(1, min(3, d) + 1))
    A = rng.normal(size=(n, d))
    offset = rng.normal(size=n) * rng.choice([0.0, 1.0, 4.0])
    eta = A[:, rng.choice(d, k, replace=False)] @ rng.normal(size=k)
    eta = (eta - eta.min()) / max(np.ptp(eta), 1e-9) * rng.uniform(1.0, np.log(1e12))
    y = rng.poisson(np.minimum(np.exp(eta + offset), 1e12)).astype(float)
    A = A * 10.0 ** rng.integers(-3, 4, size=d) if seed % 3 == 0 else A
    lam = float(rng.choice([0.0, 1e-6, 1e-3, 1.0]))
    return A, y, k, lam, bool(rng.integers(4)), offset if np.any(offset) else None


def look_at(seed, folder):
    """What is said is true, what is called optimal agrees to 1e-6, and the checkers take the proof."""
    A, y, k, lam, intercept, offset = random_case(seed)
    try:
        problem = Problem.prepared(A, y, k, loss="poisson", lam=lam, intercept=intercept, offset=offset)
    except UnsupportedError:  # with lam = 0: counts of 0 that columns tell apart
        assert lam == 0.0
        return None
    file = folder / "run.exsel"
    result = solve(problem, proof=file, threads=1)
    shift = np.zeros(len(y)) if offset is None else offset
    predicted = A @ result.coef + (result.model.intercept or 0.0) + shift
    own = float(deviance(predicted, y).sum() + 0.5 * lam * result.coef @ result.coef)
    sets = itertools.combinations(range(len(A.T)), k)
    best = min(own, *(fitted(A[:, list(S)], y, shift, lam, intercept) for S in sets))
    assert result.lower <= best * (1.0 + ROUNDED), (seed, result.lower, best)
    assert result.upper <= best * (1.0 + 1e-6) + 1e-9, (seed, result.upper, best)
    assert result.upper >= own * (1.0 - ROUNDED), (seed, result.upper, own)
    if result.claim == "optimal":
        assert result.upper - result.lower <= 1e-6 * result.upper, (seed, result)
    proof = read_proof(file)
    assert verify(proof, instance_of(problem)).verified, seed
    if len(y) * len(A.T) <= 100 and (lam > 0.0 or y.max() <= 1e5):
        # Without a ridge the two checkers round differently where counts are large, each less than is called optimal.
        assert second_opinion(problem, file.read_bytes()) == "", seed
    return result


@pytest.mark.parametrize("block", sample(4, 100))
def test_what_is_said_of_counts_of_any_size(block, tmp_path):
    for seed in range(EACH * block, EACH * (block + 1)):
        look_at(seed, tmp_path)


@pytest.mark.parametrize("lam", [0.0, 1e-3])
def test_counts_up_to_a_million_are_proven(lam):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        A = rng.normal(size=(60, 8))
        eta = A[:, 2] - A[:, 5]
        y = rng.poisson(np.exp((eta - eta.min()) / np.ptp(eta) * np.log(1e6)))
        result = solve(A, y, 2, loss="poisson", lam=lam)
        assert result.support == (2, 5)
        assert result.reached, (seed, result)
