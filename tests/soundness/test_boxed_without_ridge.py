"""Signs and bounds with lam = 0 for other losses: against brute force, and proofs by both checkers."""

from __future__ import annotations

import numpy as np
import pytest
from boxed_files import claiming, random_proof
from corrupted import check
from recorded import second_opinion

from exactsel import Problem, boxed, solve
from exactsel.proofs.instance import instance_of
from exactsel_certificates.checking import problem_hash, verify
from exactsel_certificates.container import parse_proof, read_proof

"""Seeds of one test."""


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
