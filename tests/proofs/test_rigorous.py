"""The checker's bounds in doubles against its exact ones: never above, and not far below."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from corrupted import as_bytes, check
from hypothesis import given
from hypothesis import strategies as st
from make_proofs import FOLDER
from samples import examples

from exactsel_certificates import standalone
from exactsel_certificates.checking import problem_hash
from exactsel_certificates.container import EIGENVALUES, FIT, USE, parse_proof
from exactsel_certificates.exact import ExactBounds, float_above, float_below, root_above, root_below
from exactsel_certificates.formula import ColumnInstance, Instance
from exactsel_certificates.rigorous import RigorousBounds, leaves_convex, model_objective
from exactsel_certificates.scaled import scaled


def random_instance(seed, loss, spread=3.0):
    """Columns, rows and lam of very different sizes."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 12)), int(rng.integers(1, 7))
    A = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-spread, spread, d)
    y = rng.standard_normal(n) * 10.0 ** rng.uniform(-2, 2)
    y = np.where(y > 0, 1.0, -1.0) if loss == "logistic" else y
    delta = float(np.median(np.abs(y))) if loss == "huber" else np.inf
    lam = float(10.0 ** rng.uniform(-6, 3))
    return Instance(A, y, int(rng.integers(0, d + 1)), loss, lam, delta), rng


def random_region(instance, rng):
    state = rng.integers(0, 3, instance.A.shape[1]).astype(np.uint8)
    included = np.flatnonzero(state == 2)
    state[included[instance.k :]] = 1
    return state, np.flatnonzero(state == 2).tolist(), np.flatnonzero(state == 1).tolist()


@pytest.mark.smoke
@examples(150, 300)
@given(st.integers(0, 2**32), st.sampled_from(["quadratic", "huber", "logistic"]))
def test_bounds_in_doubles_are_below_the_exact_ones(seed, loss):
    instance, rng = random_instance(seed, loss)
    plain, exact = RigorousBounds(instance), ExactBounds(instance)
    state, S, C = random_region(instance, rng)
    norms = np.linalg.norm(instance.A, axis=0)
    w = rng.standard_normal(norms.size) / np.where(norms > 0, norms, 1.0) * (rng.random(norms.size) < 0.7)
    B = plain.gradients(w[None, :])
    bound = plain.bounds(plain.at_duals(B), np.zeros(1, dtype=int), state[None, :])[0]
    truth = exact.at_dual(S, C, scaled(B[0]))
    assert Fraction(float(bound)) <= truth
    assert bound >= float(truth) - 1e-9 * (1.0 + abs(float(truth)))
    if loss == "quadratic":
        for curvature in (plain.ridge, 0.5 * instance.lam * (1 + rng.random(norms.size))):
            points = plain.at_models(w[None, :], curvature)
            bound = plain.bounds(points, np.zeros(1, dtype=int), state[None, :])[0]
            truth = exact.at_model(S, C, [Fraction(v) for v in w.tolist()], curvature)
            assert Fraction(float(bound)) <= truth
            assert bound >= float(truth) - 1e-9 * (1.0 + abs(float(truth)))
    value = model_objective(instance, w)
    assert Fraction(value) >= exact.objective(w) - Fraction(1, 10**40)
    assert value <= float(exact.objective(w)) * (1 + 1e-9)


@examples(60, 120)
@given(st.integers(0, 2**32))
def test_a_curvature_is_accepted_only_if_the_rest_is_convex(seed):
    """Multiples of a curvature on both sides of the largest one, against exact elimination."""
    instance, rng = random_instance(seed, "quadratic", spread=0.5)
    d = instance.A.shape[1]
    H = instance.A.T @ instance.A + instance.lam * np.eye(d)
    direction = rng.uniform(0.1, 1.0, d)
    scale = 1.0 / np.sqrt(direction)
    largest = float(np.linalg.eigvalsh(H * np.outer(scale, scale))[0])
    quadratic = standalone.LOSSES["quadratic"](1.0)
    other = standalone.Regression(instance.A.tolist(), instance.y.tolist(), 1, quadratic, instance.lam)
    for factor in (0.5, 1 - 1e-6, 1 - 1e-13, 1 - 1e-15, 1.0, 1 + 1e-15, 1 + 1e-13, 1 + 1e-6):
        D = factor * largest * direction
        if not leaves_convex(instance, D):
            continue
        M = [
            [v + (other.lam - Fraction(float(D[i])) if i == j else 0) for j, v in enumerate(r)]
            for i, r in enumerate(other.G)
        ]
        assert standalone.semidefinite(M)
    condition = float(np.trace(H)) / largest
    if condition < 1e6:
        assert leaves_convex(instance, 0.5 * largest * direction)


@pytest.mark.parametrize("loss", ["quadratic", "huber", "logistic"])
def test_an_objective_of_many_rows_is_as_sharp_as_one_of_few(loss):
    """Rows are summed without rounding: what is taken off for it does not grow with their number."""
    rng = np.random.default_rng(5)
    A, x = rng.standard_normal((4000, 3)), rng.standard_normal(3)
    y = A @ x + rng.standard_normal(4000)
    about = Instance(A, np.sign(y) if loss == "logistic" else y, 3, loss, 0.1, 1.3 if loss == "huber" else np.inf)
    shown, exact = Fraction(model_objective(about, x)), ExactBounds(about).objective(x)
    assert exact <= shown + Fraction(1, 10**40)
    assert shown <= exact * (1 + Fraction(3, 10**14))


def test_what_overflows_proves_nothing():
    A = np.array([[1.0, 6e307], [1.0, 6e307], [2.0, 6e307], [1.0, 6e307]])
    instance = Instance(A, np.array([3.0, -5.0, 8.0, 2.0]), 1, "quadratic", 1.0)
    plain = RigorousBounds(instance)
    point = plain.at_models(np.array([[0.5, 0.0]]), plain.ridge)
    assert np.isnan(point.terms[0, 1])
    assert np.isfinite(point.base[0])
    which = np.zeros(1, dtype=int)
    assert plain.bounds(point, which, np.array([[1, 1]], dtype=np.uint8))[0] == -np.inf
    assert plain.bounds(point, which, np.array([[2, 1]], dtype=np.uint8))[0] == -np.inf
    assert np.isfinite(plain.bounds(point, which, np.array([[1, 0]], dtype=np.uint8))[0])


@given(st.fractions(0, 10**9, max_denominator=10**12))
def test_roots_and_roundings_enclose(value):
    assert root_below(value) ** 2 <= value <= root_above(value) ** 2
    assert Fraction(float_below(value)) <= value <= Fraction(float_above(value))


@pytest.mark.parametrize("numbers", [[0.0, 0.0], [1.0, -0.5, 3e300], [5e-324, 1e308, 0.0]])
def test_scaled_integers_are_the_numbers(numbers):
    integers = scaled(numbers)
    assert [Fraction(2) ** integers.exponent * v for v in integers.values] == [Fraction(v) for v in numbers]


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e160, 1e300])
@pytest.mark.parametrize("loss", ["quadratic", "huber", "logistic", "css"])
def test_absurd_scales_raise_nothing_and_prove_nothing_untrue(loss, scale):
    """A proof of one problem, held against the same problem in absurd units."""
    for file in sorted((FOLDER / "valid").glob("*.exsel")):
        proof = parse_proof(file.read_bytes())
        instance = absurd(loss, scale)
        family = {"family": "css", "loss": ""} if loss == "css" else {"loss": loss}
        relabelled = replace(proof, **family, problem_hash=problem_hash(instance), curvature=proof.curvature[:0])
        tree = np.where(proof.tree == 8 * FIT + USE, 8 * EIGENVALUES + USE, proof.tree).astype(np.int32)
        for changed in (relabelled, replace(relabelled, tree=tree), replace(relabelled, valid_for="bounded models")):
            verdict = check(as_bytes(changed), instance)
            assert verdict.lower <= max(verdict.upper, 0.0)


def absurd(loss, scale):
    rng = np.random.default_rng(9)
    A, y = rng.standard_normal((8, 4)) * scale, rng.standard_normal(8) * scale
    if loss == "css":
        return ColumnInstance(A, 2)
    y = np.sign(y) if loss == "logistic" else y
    return Instance(A, y, 2, loss, 0.0 if loss == "quadratic" else 0.5, scale if loss == "huber" else np.inf)
