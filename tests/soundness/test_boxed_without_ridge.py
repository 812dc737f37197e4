"""Limits on coefficients without a ridge: dependent columns, other losses, and what proofs may say of them."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from boxed_cases import enumerated_fit, given_bounds
from boxed_files import claiming, random_proof
from corrupted import check
from recorded import refused, second_opinion
from related_units import relations_of
from samples import sample
from scipy.optimize import lsq_linear, nnls

from exactsel import GroupedProblem, Problem, boxed, solve
from exactsel.bounds.boxed_fit import BOUNDED_MODELS
from exactsel.problem.coefficient_bounds import independent
from exactsel.proofs.instance import instance_of
from exactsel_certificates.checking import problem_hash, verify
from exactsel_certificates.container import parse_proof, read_proof
from exactsel_certificates.formula import Box


def check_proofs(problem, file, best, scale):
    """Both checkers accept the proof, and none that claims more, or is about other limits, or about more models."""
    instance, proof, data = instance_of(problem), read_proof(file), file.read_bytes()
    verdict = verify(proof, instance)
    assert verdict.verified, verdict.reason
    assert ("10000" in verdict.valid_for) == (proof.valid_for != "")
    assert second_opinion(instance, data, **relations_of(instance)) == ""
    raised = claiming(proof, lower=best * (1.0 + 1e-6) + 1e-6 * scale, upper=1e300)
    assert not verify(parse_proof(raised), instance).verified
    assert refused(second_opinion(instance, raised, **relations_of(instance)))
    wider = replace(instance, box=Box(2.0 * instance.box.lower - 1.0, instance.box.upper))
    assert not verify(proof, wider).verified
    assert second_opinion(wider, data, **relations_of(instance)) != ""


@pytest.mark.parametrize("seed", sample(30, 1000, smoke=2))
def test_intercept_weights_and_scaling(seed, tmp_path):
    """One-hot columns beside an intercept; against every set, prepared by hand."""
    rng = np.random.default_rng([seed, 127])
    n, levels = int(rng.integers(6, 10)), rng.integers(0, 3, 12)
    A = np.column_stack([np.eye(3)[levels[:n]], rng.standard_normal((n, 2)) * 10.0 ** rng.integers(-3, 4, 2)])
    y = 5.0 + A[:, 0] + rng.standard_normal(n)
    weights = rng.integers(1, 4, n).astype(float) if seed % 3 == 0 else None
    k, scale, intercept = int(rng.integers(1, 5)), bool(seed % 5 == 0), bool(seed % 4)
    given = Problem.prepared(A, y, k, lam=0.0, intercept=intercept, weights=weights, scale=scale)
    finite = seed % 2 == 0 and not scale
    problem = boxed(given, () if finite else "all", [(j, -0.5, 0.3 + 0.1 * j) for j in range(5)] if finite else ())
    w = np.ones(n) if weights is None else weights
    centred = (A - intercept * np.average(A, axis=0, weights=w)) * np.sqrt(w)[:, None]
    off = (y - intercept * np.average(y, weights=w)) * np.sqrt(w)
    length = np.where(np.linalg.norm(centred, axis=0) > 0, np.linalg.norm(centred, axis=0), 1.0)

    def least(chosen):
        matrix = centred[:, chosen] / length[chosen]
        if not finite:
            return 0.5 * float(nnls(matrix, off)[1]) ** 2
        limits = [side[chosen] * length[chosen] for side in given_bounds(problem)]
        return float(lsq_linear(matrix, off, limits, method="bvls", tol=1e-14).cost)

    best = min(least([*chosen]) for chosen in itertools.combinations(range(5), k))
    null = 0.5 * float(off @ off)
    result = solve(problem, signals=(), proof=tmp_path / "run.exsel")
    assert result.lower <= best + 1e-10 * null
    assert result.upper == pytest.approx(best, abs=1e-6 * null)
    assert result.reached or best < 1e-3 * null
    assert not finite or result.valid_for == ""
    check_proofs(problem, tmp_path / "run.exsel", best, null)


@pytest.mark.parametrize("seed", sample(16, 500))
def test_groups_that_depend_on_each_other(seed, tmp_path):
    """Terms of one-hot columns with every level, limited on both sides or by signs."""
    rng = np.random.default_rng([seed, 131])
    n = 9
    A = np.column_stack([np.eye(2)[rng.integers(0, 2, n)], np.eye(2)[rng.integers(0, 2, n)], rng.standard_normal(n)])
    y = A @ [0.5, -0.3, 0.2, 0.4, 1.0] + 0.5 * rng.standard_normal(n)
    groups = GroupedProblem(Problem(A, y, 2, lam=0.0), ["a", "a", "b", "b", None])
    limits = [(j, -0.4, 0.6) for j in range(5)]
    problem = boxed(groups, "all") if seed % 2 else boxed(groups, (), limits)
    alone = boxed(groups.inner, "all") if seed % 2 else boxed(groups.inner, (), limits)
    sets = [groups.units.columns_of(chosen).tolist() for chosen in itertools.combinations(range(3), 2)]
    best = min(enumerated_fit(alone, columns) for columns in sets)
    result = solve(problem, signals=(), proof=tmp_path / "run.exsel")
    assert result.reached
    assert result.lower <= best + 1e-10 * problem.null_objective
    assert result.upper == pytest.approx(best, rel=1e-7)
    assert (result.valid_for == "") == (seed % 2 == 0) or independent(problem.objective)
    check_proofs(problem, tmp_path / "run.exsel", best, problem.null_objective)


def test_a_claim_about_bounded_models_is_none_about_all(tmp_path):
    """Without its scope a proof says nothing where a coefficient has no limit; within limits it needs none."""
    rng = np.random.default_rng(3)
    A = rng.standard_normal((8, 3))
    A = np.column_stack([A, A[:, 0]])
    y = A[:, 0] + A[:, 1] + 0.3 * rng.standard_normal(8)
    signed = boxed(Problem(A, y, 2, lam=0.0), "all")
    result = solve(signed, signals=(), proof=tmp_path / "run.exsel")
    assert result.reached
    assert result.valid_for == BOUNDED_MODELS
    assert "among models with" in result.claim_text
    instance, proof = instance_of(signed), read_proof(tmp_path / "run.exsel")
    forged = claiming(proof, valid_for="")
    assert verify(proof, instance).verified
    assert not verify(parse_proof(forged), instance).verified
    assert refused(second_opinion(instance, forged))
    both = boxed(Problem(A, y, 2, lam=0.0), (), [(j, 0.0, 3.0) for j in range(4)])
    assert solve(both, signals=(), proof=tmp_path / "both.exsel").valid_for == ""
    assert verify(read_proof(tmp_path / "both.exsel"), instance_of(both)).valid_for == ""


def test_columns_no_model_may_hold_need_no_limit(tmp_path):
    rng = np.random.default_rng(4)
    A = rng.standard_normal((6, 8))
    y = A[:, 0] - A[:, 1] + 0.3 * rng.standard_normal(6)
    limits = [(j, -0.5, 0.5) for j in range(7)]
    problem = boxed(Problem(A, y, 3, lam=0.0, force_out=[7]), (), limits)
    result = solve(problem, signals=(), proof=tmp_path / "run.exsel")
    assert result.reached
    assert result.valid_for == ""
    best = min(enumerated_fit(problem, chosen) for chosen in itertools.combinations(range(7), 3))
    assert result.upper == pytest.approx(best)
    check_proofs(problem, tmp_path / "run.exsel", best, problem.null_objective)


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
