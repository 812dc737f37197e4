"""Proofs of problems under linear equalities: both checkers accept honest ones and reject those that are not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from equality_cases import EqualityCase, drawn
from recorded import second_opinion
from samples import sample

from exactsel import solve, verify
from exactsel.proofs.instance import instance_of
from exactsel_certificates.__main__ import main as first_command
from exactsel_certificates.checking import verify as check
from exactsel_certificates.container import read_proof, written
from exactsel_certificates.standalone.__main__ import main as second_command
from exactsel_certificates.standalone.file import Malformed


def portfolio(**changes) -> EqualityCase:
    rng = np.random.default_rng(3)
    A = 0.01 * rng.normal(size=(30, 6))
    free = np.full(6, np.inf)
    case = EqualityCase(
        A, A @ rng.dirichlet(np.ones(6)) + 0.002 * rng.normal(size=30), 3, 0.0, np.ones((1, 6)), np.ones(1),
        np.zeros(6), free,
    )  # fmt: skip
    return replace(case, **changes)


def proven(case, path):
    """The problem, the result, and its proof."""
    problem = case.problem()
    return problem, solve(problem, proof=path), read_proof(path)


def rejected(problem, proof) -> bool:
    """Whether both checkers reject a proof."""
    first = check(proof, instance_of(problem))
    try:
        second = second_opinion(problem, written(proof))
    except Malformed:
        second = "malformed"
    assert bool(second) == (not first.verified), (second, first.reason)
    return not first.verified


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", sample(40, 400, smoke=2))
def test_both_checkers_accept_what_a_solve_writes(seed, tmp_path):
    case = drawn(np.random.default_rng([seed, 8]))
    if case.optimum() == np.inf:
        return
    problem, result, proof = proven(case, tmp_path / "p.exsel")
    assert verify(problem, tmp_path / "p.exsel").verified
    assert proof.equality_size.size == len(case.right)
    # Scales are rounded, which a large size of equalities multiplies: the second checker has them exactly.
    if not result.valid_for and not case.options.get("standardize"):
        assert second_opinion(problem, (tmp_path / "p.exsel").read_bytes()) == ""


@pytest.mark.parametrize("options", [{}, {"fit_intercept": True}, {"sample_weight": np.arange(1.0, 31.0)}])
def test_claims_beyond_the_optimum_are_rejected(options, tmp_path):
    problem, result, proof = proven(portfolio(options=options), tmp_path / "p.exsel")
    assert not rejected(problem, proof)
    assert rejected(problem, replace(proof, lower=result.upper * (1 + 1e-5), upper=result.upper * (1 + 1e-4)))
    assert rejected(problem, replace(proof, upper=result.lower * (1 - 1e-5), lower=0.0))


def test_models_that_miss_an_equality_are_rejected(tmp_path):
    problem, _, proof = proven(portfolio(), tmp_path / "p.exsel")
    for share in (1e-9, 1e-3, 1.0):
        moved = proof.model_value.copy()
        moved[0] *= 1.0 - share
        assert rejected(problem, replace(proof, model_value=moved, upper=1.0, lower=0.0))


def test_the_relaxed_optimum_is_no_model(tmp_path):
    """What costs least without the equalities may not be shown for what meets them."""
    problem, _, proof = proven(portfolio(), tmp_path / "p.exsel")
    free, scale = problem.coefficient_bounds.fit_within(np.arange(6)).coef, problem.preparation.made.scale
    free = free[proof.model_index] / scale[proof.model_index]
    assert rejected(problem, replace(proof, model_value=free * 0.9, upper=1.0))


@pytest.mark.parametrize("sizes", [[], [1.5], [-2.0], [0.0], [2.0, 2.0], [1e300]])
def test_sizes_that_are_none_are_rejected(sizes, tmp_path):
    problem, _, proof = proven(portfolio(), tmp_path / "p.exsel")
    assert rejected(problem, replace(proof, equality_size=np.array(sizes, dtype=np.float64)))


def test_any_powers_of_two_are_sizes_but_prove_less(tmp_path):
    problem, _, proof = proven(portfolio(), tmp_path / "p.exsel")
    smaller = replace(proof, equality_size=proof.equality_size * 2.0**-8)
    assert rejected(problem, smaller)
    assert not rejected(problem, replace(smaller, lower=0.0))


def test_dual_vectors_are_rejected(tmp_path):
    problem, _, proof = proven(portfolio(), tmp_path / "p.exsel")
    assert rejected(problem, replace(proof, dual_value=np.zeros(30)))


def test_other_equalities_are_another_problem(tmp_path):
    problem, _, proof = proven(portfolio(), tmp_path / "p.exsel")
    for other in (portfolio(right=np.array([2.0])), portfolio(rows=np.array([[1.0] * 5 + [2.0]]))):
        assert rejected(other.problem(), proof)
    free = replace(proof, equalities=False)
    assert rejected(problem, free)


@pytest.mark.parametrize("command", [first_command, second_command])
def test_checkers_take_equalities_as_texts(command, tmp_path):
    case = portfolio(rows=np.array([[1.0, 0.0, -2.0, 0.0, 0.0, 0.0], [1.0] * 6]), right=np.array([0.0, 1.0]))
    names = np.array(["a", "b b", "c", "d", "e", "f"])
    np.savez(tmp_path / "data.npz", A=case.A, y=case.y, k=3, lam=0.0, feature_names=names)
    solve(case.problem(), proof=tmp_path / "p.exsel")
    about = [str(tmp_path / "p.exsel"), str(tmp_path / "data.npz"), "--nonnegative", "all", "--sum-to", "1"]
    assert command([*about, "--equality", "a - 2*c = 0"]) == 0
    assert command([*about, "--equality", "a - 2*`b b` = 0"]) == 3
    assert command(about) == 3
    assert command([*about, "--equality", "a - 2*c = 0", "--equality", "2*a - 4*c = 0"]) == 0
    assert command([*about, "--equality", "a - 2*c = 0", "--equality", "2*a - 4*c = 1"]) == 2
    assert command([*about, "--equality", "a - 2*c = nan"]) == 2
    assert command([*about, "--equality", "a - a = 0"]) == 2
    assert command([*about, "--equality", "a - 2*z = 0"]) == 2
    assert command([*about, "--equality", "a - 2*c"]) == 2
