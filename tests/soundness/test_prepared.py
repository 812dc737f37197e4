"""Prepared data against exact ones: every error that is stated is an upper estimate of the true one."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import examples

from exactsel.problem.preparing import sum_rounded_once
from exactsel_certificates.prepared import prepare

DIGITS = 120
LOSSES = ("quadratic", "huber", "logistic")


def random_data(seed, loss):
    """Data with offsets up to 1e15, constant columns, few rows, and weights that may be zero."""
    rng = np.random.default_rng([41, seed])
    n, d = int(rng.integers(1, 9)), int(rng.integers(1, 4))
    A = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-6, 6, d)
    if rng.random() < 0.3:
        A = np.round(A)
    A = A + rng.choice([0.0, 1.0, -1.0], d) * 10.0 ** rng.uniform(0, 15, d)
    if rng.random() < 0.3:
        A[:, rng.integers(d)] = rng.choice([0.0, 0.1, -3.7e14])
    y = rng.standard_normal(n) + rng.choice([0.0, 10.0 ** rng.uniform(0, 15)])
    if loss == "logistic":
        y = np.where(y > np.median(y), 1.0, -1.0)
    weights = None
    if rng.random() < 0.6:
        weights = rng.choice([0.0, 1.0, 3.0, 1e-6, 0.3, 1e6], n)
        weights[rng.integers(n)] = 0.7
    return A, y, weights


def exact(value):
    """A double as a decimal, all its digits."""
    return Decimal(Fraction(value).numerator) / Decimal(Fraction(value).denominator)


def dot(first, second):
    return sum((a * b for a, b in zip(first, second, strict=True)), Decimal(0))


class Exactly:
    """What preparation means, with 120 digits."""

    def __init__(self, loss, weights, intercept):
        self.included = loss == "quadratic"
        self.w = weights
        self.total, self.intercept = sum(weights, Decimal(0)), intercept
        self.roots = [w.sqrt() if self.included else Decimal(1) for w in weights]

    def size(self, column):
        """The scale of a column; whether it is constant must not depend on digits."""
        w, a = [Fraction(v) for v in self.w], [Fraction(v) for v in column]
        mean = sum(v * b for v, b in zip(w, a, strict=True)) / sum(w) if self.intercept else Fraction(0)
        square = sum(v * (b - mean) ** 2 for v, b in zip(w, a, strict=True)) / sum(w)
        return (Decimal(square.numerator) / Decimal(square.denominator)).sqrt() if square else Decimal(1)

    def length(self, vector):
        """Weighted where the weights stay with the loss."""
        counted = vector if self.included else [w.sqrt() * v for w, v in zip(self.w, vector, strict=True)]
        return dot(counted, counted).sqrt()

    def apart(self, made, column, taken, size):
        """How far a prepared column is from what it should be, and how much of it lies along the intercept."""
        should = [r * (a - taken) / size for r, a in zip(self.roots, column, strict=True)]
        off = [p - q for p, q in zip(made, should, strict=True)]
        along = dot(self.roots, made) / self.total.sqrt() if self.included and self.intercept else Decimal(0)
        return self.length(off), abs(along)


@pytest.mark.parametrize("loss", LOSSES)
@examples(250, 500)
@given(seed=st.integers(0, 2**32), intercept=st.booleans(), scale=st.booleans())
def test_stated_errors_are_upper_estimates(loss, seed, intercept, scale):
    A, y, weights = random_data(seed, loss)
    made = prepare(A, y, loss, weights, intercept, scale)
    counted = np.ones(len(y), dtype=bool) if weights is None or loss == "quadratic" else weights > 0
    with localcontext() as context:
        context.prec, context.Emin, context.Emax = DIGITS, -(10**9), 10**9
        w = [exact(v) for v in (np.ones(len(y)) if weights is None else weights)[counted]]
        true = Exactly(loss, w, intercept)
        for j in range(A.shape[1]):
            column, doubles = [exact(v) for v in A[counted, j]], [exact(v) for v in made.AT[j]]
            taken, size = exact(made.centre[0, j]) + exact(made.centre[1, j]), exact(made.scale[j])
            off, along = true.apart(doubles, column, taken, size)
            assert off <= exact(made.column_error[j])
            assert along <= exact(made.column_rest[j])
            should = true.size(column) if scale else Decimal(1)
            assert abs(size / should - 1) <= exact(made.scale_error)
            assert abs(should / size - 1) <= exact(made.scale_error)
        target, doubles = [exact(v) for v in y[counted]], [exact(v) for v in made.y]
        off, along = true.apart(doubles, target, sum(map(exact, made.target)), Decimal(1))
        assert off <= exact(made.target_error)
        assert along <= exact(made.target_rest)


@pytest.mark.smoke
@pytest.mark.parametrize("loss", LOSSES)
def test_the_errors_are_small(loss):
    """However far the data are from zero, what is left has nearly all its digits."""
    for seed in range(60):
        A, y, weights = random_data(seed, loss)
        made = prepare(A, y, loss, weights, True, True)
        lengths = np.sqrt(np.sum(made.AT**2 * (1.0 if made.weights is None else made.weights), axis=1))
        assert np.all(made.column_error <= 1e-13 * lengths + 1e-280)
        assert np.all(made.column_rest <= 1e-13 * lengths + 1e-280)
        assert made.scale_error <= 1e-13


def test_nothing_asked_is_nothing_done():
    A, y, _ = random_data(5, "quadratic")
    made = prepare(A, y, "quadratic")
    np.testing.assert_array_equal(made.AT.T, A)
    np.testing.assert_array_equal(made.y, y)
    assert not made.column_error.any()
    assert not made.column_rest.any()
    assert (made.target_error, made.target_rest, made.scale_error) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("value", [0.1, -3.7e14, 1e-300, 1e60])
def test_a_constant_column_is_zero_and_not_scaled(value):
    """Its mean rounds; what that leaves must not be blown up to a column."""
    for n in range(1, 40):
        made = prepare(np.full((n, 1), value), np.arange(float(n)), "quadratic", None, True, True)
        assert not made.AT.any()
        assert made.scale.tolist() == [1.0]


def test_a_column_that_is_constant_where_rows_count():
    """Rows of weight zero say nothing about a scale."""
    A, weights = np.array([[2.0], [2.0], [9.0]]), np.array([1.0, 3.0, 0.0])
    for loss in LOSSES:
        made = prepare(A, np.array([1.0, -1.0, 1.0]), loss, weights, True, True)
        assert not made.AT.any()
        assert made.scale.tolist() == [1.0]


def test_the_error_of_the_second_pass_matters():
    """One rounded mean leaves a mean of its own; this is the attack that found it."""
    y = 2.0**52 + np.array([1.0, 2.0, 1.0, 2.0, 3.0])
    made = prepare(np.array([[0.0], [1.0], [0.0], [1.0], [2.0]]), y, "quadratic", None, True, False)
    assert abs(made.y.sum()) <= 1e-14
    np.testing.assert_allclose(made.y, np.array([-0.8, 0.2, -0.8, 0.2, 1.2]), rtol=1e-14)


@pytest.mark.parametrize("spread", [1, 30, 140, 200])
def test_sums_of_products_are_rounded_once(spread):
    """Against fractions: products that cancel each other or the numbers beside them, zeros, very different sizes."""
    rng = np.random.default_rng(spread)
    for number in range(500):
        m = int(rng.integers(0, 6))
        first = rng.standard_normal((2, m)) * 10.0 ** rng.integers(-spread, spread + 1, (2, m))
        second = rng.standard_normal((2, m)) * 10.0 ** rng.integers(-spread // 2, spread // 2 + 1, (2, m))
        alone = rng.standard_normal(3).tolist()
        if m and number % 3 == 0:
            first[0, 0] = 0.0
        if m > 1 and number % 5 == 0:
            first[0, 1], second[0, 1] = -first[0, 0], second[0, 0]
        if m and number % 7 == 0:
            alone[0] = -float(first[0, 0] * second[0, 0])
        products = (Fraction(a) * Fraction(b) for a, b in zip(first.flat, second.flat, strict=True))
        assert sum_rounded_once(alone, first, second) == float(sum(map(Fraction, alone), Fraction(0)) + sum(products))
