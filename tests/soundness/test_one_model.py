"""Problems with one model, or whose optimum is the loss's infimum: proven, by bounds that both checkers accept."""

from __future__ import annotations

import numpy as np
import pytest
from recorded import second_opinion

from exactsel import Claim, Problem, solve
from exactsel.proofs.instance import instance_of
from exactsel_certificates.checking import verify
from exactsel_certificates.container import read_proof
from exactsel_certificates.given import GivenInstance, fitted_by_none, objective_above
from exactsel_certificates.standalone.losses import LOSSES
from exactsel_certificates.standalone.regression import Regression

N = 12
CLASSES = np.where(np.arange(N) % 3 == 0, 1.0, -1.0)


def target(loss):
    rng = np.random.default_rng(1)
    return {
        "quadratic": 3.0 + rng.standard_normal(N), "huber": 3.0 + rng.standard_normal(N), "logistic": CLASSES,
        "squared_hinge": CLASSES, "poisson": rng.poisson(2.0, N).astype(float),
    }[loss]  # fmt: skip


def proven(problem, file):
    """The result, called optimal, whose file both checkers accept, and no higher claim."""
    result = solve(problem, proof=file, threads=1)
    assert result.claim is Claim.OPTIMAL, str(result)
    assert result.claim.reached
    assert result.valid_for == ""
    proof, data = read_proof(file), file.read_bytes()
    verdict = verify(proof, instance_of(problem))
    assert verdict.verified, verdict.reason
    assert second_opinion(problem, data) == ""
    high = proof.upper * (1.0 + 1e-6) + 1e-300
    raised = data.replace(proof.lower.hex().encode(), high.hex().encode().ljust(len(proof.lower.hex())))
    if len(high.hex()) == len(proof.lower.hex()):
        assert second_opinion(problem, raised) != ""
    return result


CASES = [
    (loss, lam, intercept, weighted)
    for loss in ("quadratic", "huber", "logistic", "squared_hinge", "poisson")
    for lam in ((0.0, 1e-3) if loss in ("quadratic", "huber", "logistic") else (1e-3,))
    for intercept in (False, True)
    for weighted in (False, True)
]


def options_of(loss, lam, intercept, weighted):
    weights = np.random.default_rng(2).uniform(0.3, 2.0, N) if weighted else None
    options = {"loss": loss, "lam": lam, "intercept": intercept, "weights": weights}
    return options | ({"delta": 0.7} if loss == "huber" else {})


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("d", [3, 20])
def test_no_column_may_be_chosen(case, d, tmp_path):
    """k = 0, fewer columns than rows and more; with 20 columns these depend on each other and separate the classes."""
    A = np.random.default_rng(3).standard_normal((N, d))
    problem = Problem.prepared(A, target(case[0]), 0, **options_of(*case))
    result = proven(problem, tmp_path / "proof.exsel")
    assert result.support == ()
    assert result.upper == pytest.approx(problem.null_objective, rel=1e-12)


@pytest.mark.parametrize("case", [case for case in CASES if case[2]])
def test_columns_that_are_constant_beside_an_intercept(case, tmp_path):
    A = np.ones((N, 3)) * [1.0, 0.1, -7e5]
    problem = Problem.prepared(A, target(case[0]), 2, **options_of(*case))
    result = solve(problem, proof=tmp_path / "proof.exsel", threads=1)
    assert result.claim.reached
    assert result.upper == pytest.approx(problem.null_objective, rel=1e-12)
    assert result.absolute_gap <= 1e-6 * result.upper
    assert verify(read_proof(tmp_path / "proof.exsel"), instance_of(problem)).verified
    assert second_opinion(problem, (tmp_path / "proof.exsel").read_bytes()) == ""


@pytest.mark.parametrize("loss", ["quadratic", "huber", "logistic"])
def test_columns_of_zeros_alone(loss, tmp_path):
    problem = Problem(
        np.zeros((N, 4)), target(loss), 2, **({"delta": 0.7} if loss == "huber" else {}), loss=loss, lam=0
    )
    assert proven(problem, tmp_path / "proof.exsel").support == ()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("count", "intercept"), [(1.0, False), (1.0, True), (3.0, True), (7e8, True), (0.1, True)])
def test_counts_the_empty_model_fits(count, intercept, weighted, tmp_path):
    """The optimum is 0, the loss's infimum; the intercept is log 3, which is no double."""
    A = np.random.default_rng(4).standard_normal((N, 3))
    problem = Problem.prepared(A, np.full(N, count), 2, **options_of("poisson", 1e-3, intercept, weighted))
    result = proven(problem, tmp_path / "proof.exsel")
    assert (result.lower, result.upper) == (0.0, 0.0)


@pytest.mark.parametrize("loss", ["quadratic", "huber"])
@pytest.mark.parametrize("intercept", [False, True])
def test_targets_the_empty_model_fits(loss, intercept, tmp_path):
    A, delta = np.random.default_rng(5).standard_normal((N, 3)), {"delta": 0.7} if loss == "huber" else {}
    problem = Problem.prepared(
        A, np.full(N, 3.3 if intercept else 0.0), 2, loss=loss, intercept=intercept, lam=0, **delta
    )
    result = solve(problem, proof=tmp_path / "proof.exsel", threads=1)
    assert result.claim is Claim.OPTIMAL
    assert (result.lower, result.upper) == (0.0, 0.0)


def test_counts_it_does_not_fit_cost_something():
    """One count that differs, zeros and a missing intercept: the empty model costs what rows say."""
    A = np.ones((4, 1)) * [[1.0], [2.0], [0.0], [5.0]]
    for y, intercept, weights in (
        ([2.0, 2.0, 2.0, np.nextafter(2.0, 3.0)], True, None), ([2.0] * 4, False, None), ([0.0] * 4, True, None),
        ([2.0, 2.0, 2.0, 5.0], True, [1.0, 1.0, 1.0, 1e-20]),
    ):  # fmt: skip
        w = None if weights is None else np.array(weights)
        instance = GivenInstance(A, np.array(y), 1, "poisson", 1.0, intercept=intercept, weights=w)
        assert not fitted_by_none(instance)
        if any(y):
            assert objective_above(instance, np.zeros(1)) > 0.0
            assert Regression(A.tolist(), y, 1, LOSSES["poisson"](1.0), 1.0, weights, intercept).objective({}) > 0
    ignored = GivenInstance(
        A, np.array([2.0, 2.0, 2.0, 5.0]), 1, "poisson", 1.0, intercept=True, weights=np.array([1.0, 2.0, 3.0, 0.0])
    )
    assert fitted_by_none(ignored)
    assert objective_above(ignored, np.zeros(1)) == 0.0
