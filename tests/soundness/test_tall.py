"""What is said of all rows, from the few that stand for them, against exact arithmetic on all rows."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from exactly import objective, stated
from hypothesis import given
from hypothesis import strategies as st
from samples import examples, sample

import exactsel
from exactsel.algebra.rotation import _by_cholesky, _by_householder, factorised, merged, to_hold_against
from exactsel.data.long_data import Reducer
from exactsel.testing.instances import TinyInstance
from exactsel_dev.campaigns.brute_force import Truth

SPECIAL = ("plain", "constant", "duplicate", "far", "nearly dependent", "zero", "tiny")


def blocks_of(A, y, weights, rng):
    """The rows in blocks of random sizes, empty ones included."""
    ends = [*sorted(rng.integers(0, len(A) + 1, rng.integers(0, 4)).tolist()), len(A)]
    parts = [slice(first, last) for first, last in zip([0, *ends[:-1]], ends, strict=True)]
    return [(A[part], y[part]) if weights is None else (A[part], y[part], weights[part]) for part in parts]


def tiny(rng):
    """A tiny problem with something awkward about it, and its rows in blocks."""
    n, d = int(rng.integers(1, 14)), int(rng.integers(1, 6))
    A = rng.integers(-3, 4, (n, d)).astype(float) if rng.random() < 0.5 else rng.standard_normal((n, d))
    y = 3 * rng.standard_normal(n) + rng.choice([0.0, 100.0])
    match rng.choice(SPECIAL):
        case "constant":
            A[:, 0] = 0.1
        case "duplicate":
            A[:, -1] = A[:, 0]
        case "far":
            A[:, 0] += 1e6
        case "nearly dependent":
            A[:, -1] = A[:, 0] + 1e-7 * rng.standard_normal(n)
        case "zero":
            A[:, 0] = 0.0
        case "tiny":
            A[:, 0] *= 1e-30
    weights = None
    if rng.random() < 0.4:
        weights = rng.choice([0.0, 0.3, 1.0, 7.0], n)
        weights[0] = max(weights[0], 0.3)
    options = {"lam": float(rng.choice([0.0, 0.01, 1.0])), "intercept": bool(rng.integers(2)), "weights": weights}
    return TinyInstance(A, y, int(rng.integers(0, d + 1)), **options)


def check(instance, rng):
    """One problem: bounds, the model, and its intercept."""
    blocks = blocks_of(instance.A, instance.y, instance.weights, rng)
    small = exactsel.gram(iter(blocks), intercept=instance.intercept, k=instance.k, lam=instance.lam, threads=1)
    result, truth = exactsel.solve(small.problem()), Truth(instance)
    said = result.full_data
    assert said.rows == instance.n
    assert said.lower <= said.upper
    assert said.upper >= truth.of_model(result.model.coef)
    if said.valid_for:
        best = truth.best_in_scope()
        assert best is None or said.lower <= best
    else:
        assert said.lower <= truth.high
        # The interval is narrow, unless the columns are so nearly dependent that their coefficients may be anything.
        assert said.upper - said.lower <= result.absolute_gap + 1e-6 * float(truth.empty) + 1e-12
    whole = stated(
        instance.A, instance.y, instance.k, lam=instance.lam, weights=instance.weights, level=instance.intercept
    )
    assert objective(whole, result.model.coef) <= said.upper
    assert (result.model.intercept is not None) == instance.intercept


@pytest.mark.smoke
@pytest.mark.parametrize("seed", sample(3, 3))
def test_bounds_hold_over_all_rows(seed):
    rng = np.random.default_rng(seed)
    for _ in range(100):
        check(tiny(rng), rng)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 120))
def test_bounds_hold_over_all_rows_of_thousands_of_problems(seed):
    rng = np.random.default_rng(seed)
    for _ in range(250):
        check(tiny(rng), rng)


def root(value: Fraction) -> Fraction:
    """The square root, to fifty digits."""
    with localcontext() as context:
        context.prec = 60
        return Fraction((Decimal(value.numerator) / Decimal(value.denominator)).sqrt())


def exact_length(A, v) -> Fraction:
    """||Av||, to fifty digits."""
    x = [Fraction(float(entry)) for entry in v]
    sums = (sum((Fraction(float(a)) * b for a, b in zip(row, x, strict=True)), Fraction(0)) for row in A)
    return root(sum((each * each for each in sums), Fraction(0)))


def differs(A, R, v) -> Fraction:
    return abs(exact_length(A, v) - exact_length(R, v))


@given(seed=st.integers(0, 10**6), spread=st.sampled_from([0, 3, 8, 12]), x=st.lists(st.floats(-10, 10), min_size=4))
@examples(60, 120)
def test_the_objective_is_that_of_all_rows_within_what_is_said(seed, spread, x):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((25, 3)) @ np.diag([1.0, 10.0**-spread, 10.0**spread])
    A[:, 2] += 10.0**spread * A[:, 0]
    y, weights = rng.standard_normal(25) + 5.0, rng.choice([0.0, 0.5, 2.0], 25)
    for intercept in (False, True):
        small = exactsel.gram(blocks_of(A, y, weights, rng), intercept=intercept, threads=1)
        model = np.array(x[:3]) / np.array([1.0, 10.0**-spread, 10.0**spread])
        whole = objective(stated(A, y, 3, lam=0.0, weights=weights, level=intercept), model)
        few = exact_length(np.column_stack([small.A, small.y]), [*model, -1.0])
        off = float(small.reduction.errors @ np.append(np.abs(model), 1.0))
        assert abs(root(2 * whole) - few) <= off
        assert off <= small.reduction.row_error * np.sqrt(1.0 + model @ model) * (1 + 1e-12)
        assert small.reduction.row_error <= 1e-9 * np.linalg.norm(np.column_stack([A, y]))


@pytest.mark.parametrize("condition", [0, 4, 8, 12])
def test_factors_are_off_by_no_more_than_they_say(condition):
    """Also along the vector that the columns send nearly to zero, where the relative error is largest."""
    rng = np.random.default_rng(condition)
    B = rng.standard_normal((60, 4))
    B[:, 3] = B[:, 2] + 10.0**-condition * B[:, 3]
    other = B + 0.1 * rng.standard_normal(B.shape) * [1, 1, 0, 0]
    held = to_hold_against(_by_householder(other).R)
    assert (held is None) == (condition > 8)
    directions = [*rng.standard_normal((5, 4)), np.linalg.svd(B)[2][-1], np.eye(4)[3] - np.eye(4)[2]]
    ways = [_by_householder(B), merged([factorised(B[:30], held), factorised(B[30:], held)]), factorised(B, held)]
    for factor in ways:
        for v in directions:
            assert differs(B, factor.R, v) <= factor.error @ np.abs(v)
        assert np.all(factor.error <= 1e-10 * np.linalg.norm(B, axis=0))


def test_both_ways_are_gone():
    rng = np.random.default_rng(0)
    mixed = rng.standard_normal((3, 3))
    B, held = rng.standard_normal((50, 3)) @ mixed, to_hold_against(rng.standard_normal((50, 3)) @ mixed)
    assert _by_cholesky(B, held.P) is not None
    assert _by_cholesky(np.ones((50, 3)), held.P) is None
    assert _by_cholesky(B[:2], held.P) is None
    empty = np.zeros((50, 3))
    empty[:, 1] = B[:, 1]
    part = to_hold_against(_by_householder(empty).R)
    assert part.used.tolist() == [1]
    assert not factorised(empty, part).R[:, [0, 2]].any()
    np.testing.assert_allclose(np.abs(factorised(B, part).R), np.abs(_by_householder(B).R))


def test_the_answer_depends_neither_on_blocks_nor_on_threads():
    rng = np.random.default_rng(5)
    A, y, weights = rng.standard_normal((9_000, 3)), rng.standard_normal(9_000), rng.uniform(0, 2, 9_000)
    weights[::7] = 0.0
    seen = []
    for sizes, threads in (([9_000], 1), ([1, 8_999], 2), ([4_000, 0, 5_000], 3)):
        reducer = Reducer(3, intercept=True, threads=threads)
        reducer._rows = 256
        reducer._part = reducer._empty()
        first = 0
        for size in sizes:
            part = slice(first, first + size)
            reducer.take(A[part], y[part], weights[part])
            first += size
        left = reducer.end()
        reducer.close()
        seen.append(
            (left.A.tobytes(), left.y.tobytes(), left.reduction.errors.tobytes(), left.reduction.means.tobytes())
        )
    assert seen[0] == seen[1] == seen[2]


def test_the_bound_does_not_grow_with_the_rows():
    rng = np.random.default_rng(6)
    relative = []
    for n in (4_000, 64_000):
        A = rng.standard_normal((n, 3))
        small = exactsel.gram(A, A.sum(axis=1) + rng.standard_normal(n), intercept=True)
        relative.append(small.reduction.row_error / np.linalg.norm(small.y))
    assert relative[1] <= 3 * relative[0] < 1e-11


def test_the_same_proof_and_answer_as_in_memory(tmp_path):
    rng = np.random.default_rng(7)
    A, weights = rng.standard_normal((3_000, 12)) + 4.0, rng.uniform(0.5, 2.0, 3_000)
    y = A[:, [1, 5, 8]].sum(axis=1) + rng.standard_normal(3_000)
    small = exactsel.gram(A, y, weights=weights, intercept=True, k=3, lam=0.5)
    few = small.problem()
    result = exactsel.solve(few, proof=tmp_path / "tall.exsel", rel_eps=1e-9)
    whole = exactsel.solve(A, y, 3, lam=0.5, weights=weights, intercept=True, rel_eps=1e-9)
    assert exactsel.verify(few, tmp_path / "tall.exsel").verified
    assert result.support == whole.support == (1, 5, 8)
    said = result.full_data
    assert said.lower <= whole.upper
    assert whole.lower <= said.upper
    assert said.upper - said.lower < 1e-7 * said.upper
    np.testing.assert_allclose(result.model.coef, whole.model.coef, rtol=1e-9)
    assert result.model.intercept == pytest.approx(whole.model.intercept, rel=1e-9)
    assert result.quality.as_dict() == pytest.approx(whole.quality.as_dict(), rel=1e-9)
