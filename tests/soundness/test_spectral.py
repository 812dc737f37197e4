"""The perspective relaxation on what a split from the spectrum leaves: valid, found by both checkers, not forged."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from recorded import instance_of as searched_instance
from recorded import refused, second_opinion, witness_of
from related_units import relations_of
from samples import sample

from exactsel import Problem, solve
from exactsel.bounds.base import BoundOptions
from exactsel.bounds.spectral import PreparedSpectral, SpectralBound
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.proofs.instance import instance_of
from exactsel_certificates.checking import verify
from exactsel_certificates.container import parse_proof, read_proof, written
from exactsel_dev.reference.replay import recomputed_bound


def wide_problem(seed):
    """A few more columns than rows; copies, constant columns, an intercept, lengths that differ a million times."""
    rng = np.random.default_rng([seed, 211])
    n, k = int(rng.integers(4, 10)), int(rng.integers(1, 4))
    d = n + int(rng.integers(1, 4))
    A = rng.integers(-2, 3, (n, d)).astype(float) if seed % 4 == 0 else rng.standard_normal((n, d))
    if seed % 5 == 1:
        A[:, 0] = 1.0
    if seed % 9 == 2:
        A[:, 2] = -A[:, 1]
    if seed % 3 == 0:
        A *= 10.0 ** rng.integers(-3, 4, d)
    y = 2.0 * rng.standard_normal(n) + A[:, -1]
    lam = float(rng.choice([0.0, 0.0, 0.01, 0.3]))
    if seed % 7 == 3:
        return Problem.prepared(A, y, k, lam=lam, intercept=True, weights=rng.integers(1, 4, n).astype(float))
    return Problem(A, y, k, lam=lam)


def least(problem, included, free):
    slots = min(problem.k - len(included), len(free))
    sets = itertools.combinations(free, slots) if slots >= 0 else ()
    return min((problem.fit([*included, *chosen]).value for chosen in sets), default=np.inf)


@pytest.mark.parametrize("seed", sample(40, 2000, smoke=3))
def test_bounds_are_below_the_best_model_of_a_node_and_no_more_than_their_witness_proves(seed):
    problem = wide_problem(seed)
    prepared = SpectralBound().prepare(problem, BoundOptions())
    if not isinstance(prepared, PreparedSpectral):
        return
    rng, room = np.random.default_rng(seed), 1e-9 * problem.null_objective
    for state in (rng.choice([OUT, FREE, FREE, FREE, IN], problem.d).astype(np.int8) for _ in range(4)):
        state[np.flatnonzero(state == IN)[problem.k - 1 :]] = FREE
        included, free = np.flatnonzero(state == IN).tolist(), np.flatnonzero(state == FREE).tolist()
        best = least(problem, included, free)
        told = prepared.tighten(state[None], [None], np.inf, best)
        assert told.answers.bound[0] <= best + room
        proven = recomputed_bound(searched_instance(problem), included, free, witness_of(told.proofs[0], problem.d))
        assert told.answers.bound[0] <= proven + room
        for j in free:
            rest = [each for each in free if each != j]
            assert told.answers.bound_out[0, j] <= least(problem, included, rest) + room
            assert told.answers.bound_in[0, j] <= least(problem, [*included, j], rest) + room


@pytest.mark.parametrize("seed", sample(25, 1000))
def test_searches_are_proven_and_what_they_rest_on_cannot_be_forged(seed, tmp_path):
    problem, file = wide_problem(seed), tmp_path / "run.exsel"
    best, null = least(problem, [], range(problem.d)), problem.null_objective
    result = solve(problem, bound="spectral", signals=(), proof=file)
    assert result.lower <= best + 1e-9 * null
    assert result.upper == pytest.approx(best, abs=1e-6 * null)
    instance, proof = instance_of(problem), read_proof(file)
    verdict = verify(proof, instance)
    assert verdict.verified, verdict.reason
    assert second_opinion(instance, file.read_bytes(), **relations_of(instance)) == ""
    if not proof.curvature_split.size or result.lower < 1e-3 * null:
        return
    higher = result.lower + 1e-3 * null
    for forged in (
        replace(proof, lower=higher, upper=1e300),
        replace(proof, lower=higher, upper=1e300, curvature=8.0 * proof.curvature),
        replace(proof, lower=higher, upper=1e300, split_scale=1e-3 * proof.split_scale),
        replace(proof, lower=higher, upper=1e300, split_scale=3.0 * proof.split_scale),
        replace(proof, lower=higher, upper=1e300, curvature_split=proof.curvature_split[:0]),
    ):
        assert not verify(parse_proof(written(forged)), instance).verified
        assert refused(second_opinion(instance, written(forged), **relations_of(instance)))


@pytest.mark.parametrize("lam", [0.0, 0.1])
def test_wide_data_that_the_split_alone_left_open_close(lam):
    rng = np.random.default_rng(1)
    A = rng.standard_normal((200, 400))
    problem = Problem(A, A[:, :5] @ np.ones(5) + 0.7 * rng.standard_normal(200), 5, lam=lam)
    result = solve(problem, signals=())
    assert result.settings["bound"] == "spectral"
    assert result.reached
    assert result.support == (0, 1, 2, 3, 4)
    assert result.nodes < 2000


@pytest.mark.smoke
def test_with_an_intercept_and_no_ridge_claims_are_about_bounded_models(tmp_path):
    """What centring rounds says nothing of models of any size; such a search ended with a lower bound of 0."""
    rng, file = np.random.default_rng(4), tmp_path / "run.exsel"
    A = rng.standard_normal((20, 30))
    problem = Problem.prepared(A, A[:, :2].sum(axis=1) + 0.3 * rng.standard_normal(20), 2, intercept=True)
    result = solve(problem, bound="spectral", signals=(), proof=file)
    assert result.reached
    assert result.valid_for.startswith("models with |x_j| ||a_j|| <=")
    instance, proof = instance_of(problem), read_proof(file)
    assert proof.curvature_split.size
    assert verify(proof, instance).verified
    assert second_opinion(instance, file.read_bytes(), **relations_of(instance)) == ""
