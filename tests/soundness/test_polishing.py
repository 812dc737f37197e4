"""Bounds for thin margins: exact projections, exact fits and better points, never above the truth and often equal."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from fractions_of_doubles import dot, exact_objective, exact_optimum, gauss
from honest_cases import KINDS, honest_case
from hypothesis import given
from hypothesis import strategies as st
from instances_for_tests import random_case
from samples import examples, many

from exactsel import Problem, solve, verify
from exactsel.errors import UnsupportedError
from exactsel.solving import claim
from exactsel_certificates.container import read_proof
from exactsel_certificates.exact import RADIUS, ExactBounds, root_above
from exactsel_certificates.exact_selections import ExactSelections
from exactsel_certificates.formula import ColumnInstance, Instance
from exactsel_certificates.polishing import Polisher, shortened, solved
from exactsel_certificates.rigorous import RigorousBounds, leaves_convex, model_objective
from exactsel_certificates.scaled import scaled
from exactsel_certificates.selections import RECONSTRUCTION, SelectionBounds


@pytest.mark.parametrize("kind", KINDS)
def test_honest_proofs_are_accepted(kind, tmp_path):
    for seed in range(many(7, 12)):
        problem, options = honest_case(kind, seed)
        try:
            solve(problem, proof=tmp_path / "run.exsel", signals=(), **options)
        except UnsupportedError:
            continue
        assert (verdict := verify(problem, tmp_path / "run.exsel")).verified, f"{kind} {seed}: {verdict.reason}"


FOUND = [
    ("near columns", 1051), ("near columns", 1784), ("near columns", 100_153), ("wide rows", 1028),
    ("wide rows", 1201), ("wide rows", 1473), ("wide rows", 20_340), ("wide rows", 20_618), ("wide rows", 100_052),
    ("near without ridge", 100_122), ("thin ridge", 1359), ("thin ridge", 1469), ("huber", 36),
    ("near without ridge", 1006), ("near without ridge", 1215), ("near without ridge", 100_010),
    ("near without ridge", 100_090),
]  # fmt: skip
"""Proofs that were rejected though honest."""


def test_a_claim_its_own_proof_does_not_show_comes_down(tmp_path, monkeypatch):
    """File and result claim what the checker establishes, if that is less; how much less rounding decides."""
    problem, options = honest_case("wide rows", 1201)
    before = solve(problem, signals=(), **options)
    monkeypatch.setattr(claim, "EXACT_WORK", 0.0)
    result = solve(problem, proof=tmp_path / "run.exsel", signals=(), **options)
    assert result.lower == read_proof(tmp_path / "run.exsel").lower < before.lower
    assert result.upper == before.upper
    assert verify(problem, tmp_path / "run.exsel", exact_limit=0.0).verified


def test_a_claim_far_below_the_search_s_own_is_no_optimum(tmp_path, monkeypatch):
    """A checker that establishes nine tenths of the claim, whatever the machine: the gap is open again, and said so."""
    problem = random_case(700_134, d=8).problem()
    before = solve(problem, signals=(), threads=1)
    verdicts = []

    def harsh(*arguments, **limits):
        verdicts.append(verify(problem, tmp_path / "run.exsel"))
        return replace(verdicts[-1], verified=False, lower=0.9 * before.lower)

    monkeypatch.setattr(claim, "verify", harsh)
    result = solve(problem, proof=tmp_path / "run.exsel", signals=(), threads=1)
    assert before.reached
    assert before.lower > 0.0
    assert verdicts[0].verified
    assert result.lower == read_proof(tmp_path / "run.exsel").lower == 0.9 * before.lower
    assert result.upper == before.upper
    assert (result.claim.value, result.termination.value) == ("bounded", "precision_limit")
    assert verify(problem, tmp_path / "run.exsel").verified


@pytest.mark.smoke
@pytest.mark.parametrize(("kind", "seed"), FOUND)
def test_those_that_were_rejected(kind, seed, tmp_path):
    problem, options = honest_case(kind, seed)
    solve(problem, proof=tmp_path / "run.exsel", signals=(), **options)
    assert (verdict := verify(problem, tmp_path / "run.exsel")).verified, verdict.reason


@pytest.mark.parametrize(("seed", "rel_eps"), [(134, 1e-8), (186, 1e-9), (240, 1e-9)])
def test_small_tolerances_leave_room_for_what_a_proof_claims_less(seed, rel_eps, tmp_path):
    """Regions were closed at the tolerance itself, and the proof's claim came out beyond it."""
    problem = random_case(700_000 + seed, d=8).problem()
    result = solve(problem, proof=tmp_path / "run.exsel", signals=(), threads=1, rel_eps=rel_eps)
    assert result.reached
    assert result.absolute_gap <= rel_eps * result.upper


def test_copies_whose_ridge_is_lost_in_rounding(tmp_path):
    """Newton's systems of two copies of a column up to 2e5 are singular; the proof's models came from nowhere near."""
    first, steep = np.array([1.0, 2.0, 1.0, 1.0, 2.0, 1.0]) * 1e5, np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    few = np.array([1.0, 0.0, 0.0, 1.0, 0.0, 1.0]) * 1e-6
    A = np.column_stack([first, 0 * first, first, first, 0 * first + 5.0, 1e6 + steep, 1.0 - steep, few])
    problem = Problem(A, np.array([-1.0, 1.0, 1.0, -1.0, 1.0, -1.0]), 3, loss="logistic", lam=0.00013796362835334194)
    result = solve(problem, proof=tmp_path / "run.exsel", signals=(), threads=1)
    assert result.reached
    assert verify(problem, tmp_path / "run.exsel").verified


# --- column subset selection ---


def selection_value(A, chosen):
    """||A - S S+ A||^2 as a fraction."""
    columns = [[Fraction(v) for v in column] for column in A.T.tolist()]
    picked = [columns[j] for j in chosen]
    gram = [[dot(a, b) for b in picked] for a in picked]
    total = Fraction(0)
    for column in columns:
        right = [dot(a, column) for a in picked]
        total += dot(column, column) - dot(gauss(gram, list(right)), right)
    return total


def near_matrix(rng):
    n, d = int(rng.integers(2, 6)), int(rng.integers(2, 6))
    A = rng.integers(-3, 4, (n, d)).astype(float) if rng.random() < 0.3 else rng.standard_normal((n, d))
    for j in range(1, d):
        if rng.random() < 0.5:
            hair = float(rng.choice([0.0, 1e-13, 1e-9, 1e-6]))
            A[:, j] = A[:, rng.integers(j)] * rng.choice([1.0, -2.0, 3.0]) + hair * rng.standard_normal(n)
    return A * 10.0 ** rng.choice([0, 0, 50, -50], d)


@examples(80, 160)
@given(st.integers(0, 2**32))
def test_exact_selections_bound_every_selection_of_a_region(seed):
    rng = np.random.default_rng(seed)
    A = near_matrix(rng)
    d = A.shape[1]
    state = rng.integers(0, 3, d)
    included, candidates = np.flatnonzero(state == 2).tolist(), np.flatnonzero(state == 1).tolist()
    slots = int(rng.integers(0, len(candidates) + 1))
    exact = ExactSelections(ColumnInstance(A, d), RECONSTRUCTION)
    found = exact.bound(included, candidates, slots, False)
    truth = min(selection_value(A, [*included, *more]) for more in combinations(candidates, slots))
    assert Fraction(found) <= truth
    if slots <= 1 or slots == len(candidates):
        assert found >= float(truth) * (1.0 - 1e-15)
    # What is said of bounded reconstructions only is at least what is said of all.
    assert exact.bound(included, candidates, slots, True) >= found


def test_copies_of_a_near_column_share_what_it_hides():
    """Two near columns, each with a copy: bounded reconstructions reach twice as far as with one of them."""
    more, left, large = 14, 0.9e-9, 1e5
    unit, e = 1e4 * left * large, np.eye(more + 2)
    near = e[0] + left * e[1]
    others = [large * e[0] + 2 * unit * e[1] + unit * e[2 + i] for i in range(more)]
    A = np.column_stack([e[0], 2 * e[0], near, 2 * near, *others])
    exact = ExactSelections(ColumnInstance(A, 4), RECONSTRUCTION).bound([0, 1, 2, 3], [], 0, True)
    assert exact == pytest.approx(11.34, rel=1e-6)
    assert SelectionBounds(ColumnInstance(A, 4), True).bound([0, 1, 2, 3], []) <= exact


# --- quadratic loss ---


def thin_instance(rng, lam):
    n, d = int(rng.integers(2, 6)), int(rng.integers(1, 5))
    A = near_matrix(rng)[:, :d] if rng.random() < 0.5 else rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-6, 6, d)
    y = rng.standard_normal(len(A)) * 10.0 ** rng.uniform(-3, 3)
    return Instance(A, y, A.shape[1], "quadratic", lam)


@examples(60, 120)
@given(st.integers(0, 2**32), st.sampled_from([0.0, 1e-60, 1e-7, 1.0]))
def test_exact_least_squares(seed, lam):
    about = thin_instance(np.random.default_rng(seed), lam)
    polisher = Polisher(ExactBounds(about))
    columns = list(range(about.A.shape[1]))
    assert polisher.least_squares(columns) == exact_optimum(about)
    x = polisher.fit(columns)
    value = (
        exact_objective(about, np.array([0.0]))
        if not columns
        else ExactBounds(about).at_model(columns, [], x, np.full(len(columns), max(lam, 1.0)))
    )
    if lam == 1.0:
        assert exact_optimum(about) - value <= exact_optimum(about) * Fraction(1, 2**60)
        assert value <= exact_optimum(about)


@examples(60, 120)
@given(st.integers(0, 2**32))
def test_models_within_bounds_are_within_them(seed):
    about = thin_instance(np.random.default_rng(seed), 0.0)
    exact = ExactBounds(about)
    x = Polisher(exact).within_bounds(list(range(about.A.shape[1])))
    size = root_above(sum(Fraction(v) ** 2 for v in about.y.tolist()))
    for value, column in zip(x, about.A.T.tolist(), strict=True):
        assert abs(value) * root_above(sum(Fraction(v) ** 2 for v in column)) <= RADIUS * size * Fraction(1001, 1000)


def test_exact_solutions_of_singular_systems():
    one, two = Fraction(1), Fraction(2)
    assert solved([[one, two], [two, Fraction(4)]], [one, two]) == [1, 0]
    assert solved([[Fraction(0), Fraction(0)], [Fraction(0), Fraction(3)]], [Fraction(0), one]) == [0, Fraction(1, 3)]
    assert solved([], []) == []
    assert abs(shortened(Fraction(1, 3)) - Fraction(1, 3)) < Fraction(1, 2**390)
    assert shortened(Fraction(-7, 4)) == Fraction(-7, 4)
    assert shortened(Fraction(0)) == 0


@examples(60, 120)
@given(st.integers(0, 2**32), st.sampled_from(["quadratic", "huber", "logistic"]))
def test_polished_points_close_the_gap_of_a_convex_region(seed, loss):
    """On a region that is one convex problem the last point proves what its model costs, to many digits."""
    rng = np.random.default_rng(seed)
    about = thin_instance(rng, float(10.0 ** rng.uniform(-6, 0)))
    about = replace(about, loss=loss, delta=float(10.0 ** rng.uniform(-2, 1)) * float(np.abs(about.y).max()))
    if loss == "logistic":
        about = replace(about, A=about.A / np.abs(about.A).max(), y=np.where(about.y > 0, 1.0, -1.0))
    if loss != "quadratic":
        # Steps for logistic loss are not damped: from afar they need a ridge that holds them.
        spread = 4.0 if loss == "huber" else 0.5
        about = replace(about, weights=10.0 ** rng.uniform(-spread, spread, about.y.size))
    if loss == "logistic":
        about = replace(about, lam=1.0)
    exact, d = ExactBounds(about), about.A.shape[1]
    polisher, last = Polisher(exact), None
    for point in polisher.steps(range(d), [], [Fraction(0)] * d, np.full(d, about.lam)):
        last = point
    value = exact.at_dual(range(d), [], last.slopes)
    if loss == "quadratic":
        cost = polisher.least_squares(range(d))
    elif loss == "huber":
        cost = polisher._objective(last.x, Fraction(0))
    else:
        cost = exact.objective(np.array([float(v) for v in last.x]))
    assert value <= cost
    assert float(cost - value) <= 1e-7 * float(cost)


# --- underflow: what TINY allows for, at the corners of the domain ---

SIZES = [0, 0, 60, -60, -30, 30]


def corner(rng, loss):
    """Entries of 1e-60 beside 1e60 and beside denormal numbers, the smallest and largest lam, delta and weights."""
    n, d = int(rng.integers(1, 6)), int(rng.integers(1, 5))
    A = rng.uniform(0.1, 1.0, (n, d)) * rng.choice([1.0, -1.0], (n, d)) * 10.0 ** rng.choice(SIZES, d)
    hidden = rng.random((n, d)) < 0.3
    A = np.where(hidden, rng.choice([5e-324, -3e-310, 1e-200, 0.0], (n, d)), A)
    A[0] = 10.0 ** rng.choice([60, -60, 0], d)
    y = rng.uniform(-1.0, 1.0, n) * 10.0 ** float(rng.choice(SIZES))
    y = np.where(rng.random(n) < 0.2, 1e-320, y)
    y[0] = 10.0 ** rng.choice([60, -60])
    weights, intercept = None, False
    if loss == "logistic":
        y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    if loss != "quadratic":
        weights = 10.0 ** rng.choice([30.0, -30.0, 0.0], n) if rng.random() < 0.7 else None
        intercept = bool(rng.random() < 0.5)
    lam = float(10.0 ** rng.choice([-60, 60, 0, -30]))
    delta = float(10.0 ** rng.choice([-60, 60, 0]))
    return Instance(A, y, int(rng.integers(0, d + 1)), loss, lam, delta, (), (), weights, intercept)


def any_doubles(rng, shape):
    """From denormal numbers to the largest."""
    sizes = 10.0 ** rng.choice([-323.0, -310.0, -170.0, -120.0, -60.0, -1.0, 0.0, 60.0, 120.0, 170.0, 300.0], shape)
    return np.where(rng.random(shape) < 0.2, 0.0, sizes * rng.choice([1.0, -1.0], shape))


@examples(200, 400)
@given(st.integers(0, 2**32), st.sampled_from(["quadratic", "huber", "logistic"]))
def test_underflow_never_lifts_a_bound(seed, loss):
    rng = np.random.default_rng(seed)
    about = corner(rng, loss)
    n, d = about.A.shape
    plain, exact = RigorousBounds(about), ExactBounds(about)
    state = rng.integers(0, 3, d).astype(np.uint8)
    state[np.flatnonzero(state == 2)[about.k :]] = 1
    S, C = np.flatnonzero(state == 2).tolist(), np.flatnonzero(state == 1).tolist()
    W = any_doubles(rng, d)
    B = plain.projected(any_doubles(rng, (1, n)))
    for vectors in (B, plain.gradients(W[None, :])):
        if np.all(np.isfinite(vectors)):
            # The doubles' dual vector is made of these slopes, whichever side is then found to be the larger.
            bound = plain.bounds(plain.at_duals(vectors), np.zeros(1, dtype=int), state[None, :])[0]
            assert not np.isfinite(bound) or Fraction(float(bound)) <= truth_at(about, exact, S, C, vectors[0])
    if loss == "quadratic":
        for D in (plain.ridge, 10.0 ** rng.choice([-200.0, -120.0, 0.0, 120.0, 200.0], d)):
            bound = plain.bounds(plain.at_models(W[None, :], D), np.zeros(1, dtype=int), state[None, :])[0]
            x = [Fraction(v) for v in W.tolist()]
            assert not np.isfinite(bound) or Fraction(float(bound)) <= exact.at_model(S, C, x, D)


def truth_at(about, exact, S, C, vector):
    """What the slopes prove in exact arithmetic; with an intercept the objective of a model in the region."""
    if about.intercept:
        return exact.objective(np.zeros(about.A.shape[1]))
    return exact.at_dual(S, C, scaled(vector)) + logarithms(about)


def logarithms(about):
    """By how much those of exact.py may be off."""
    heaviest = 1.0 if about.weights is None else float(np.max(about.weights))
    return Fraction(about.y.size * heaviest) / 10**40 if about.loss == "logistic" else Fraction(0)


@examples(200, 400)
@given(st.integers(0, 2**32), st.sampled_from(["quadratic", "huber", "logistic"]))
def test_underflow_never_lowers_an_objective(seed, loss):
    rng = np.random.default_rng(seed)
    about = corner(rng, loss)
    x = any_doubles(rng, about.A.shape[1])
    about = replace(about, intercept=False)
    shown = model_objective(about, x)
    assert shown == np.inf or Fraction(shown) >= ExactBounds(about).objective(x) - logarithms(about)


def test_squares_that_vanish_are_multiplied_by_the_largest_ridge():
    about = Instance(np.array([[1e-60]]), np.zeros(1), 1, "quadratic", 1e60)
    for size in np.linspace(1e-163, 3e-162, 50):
        x = np.array([size])
        assert Fraction(model_objective(about, x)) >= ExactBounds(about).objective(x)


@examples(200, 400)
@given(st.integers(0, 2**32))
def test_convexity_at_the_corners(seed):
    rng = np.random.default_rng(seed)
    about = corner(rng, "quadratic")
    d = about.A.shape[1]
    D = np.diagonal(about.A.T @ about.A) * float(rng.choice([0.5, 0.1, 1e-14, 1.5])) + about.lam * 0.5
    if leaves_convex(about, D):
        exact = ExactBounds(about)
        for _ in range(5):
            w = rng.standard_normal(d) / np.sqrt(np.diagonal(about.A.T @ about.A))
            x = [Fraction(v) for v in w.tolist()]
            columns = [[Fraction(v) for v in column] for column in about.A.T.tolist()]
            z = [sum(c[i] * v for c, v in zip(columns, x, strict=True)) for i in range(about.A.shape[0])]
            assert dot(z, z) + sum((exact.lam - Fraction(D[j])) * x[j] ** 2 for j in range(d)) >= 0
