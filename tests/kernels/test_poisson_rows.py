"""Rows of Poisson loss: values, slopes and dual values against fifty digits, far out and next to the minimum."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction as F

import numpy as np
import pytest
from samples import sample

from exactsel.errors import InputError
from exactsel.kernels.levels import adjusted_dual
from exactsel.kernels.rows import dual_rows
from exactsel.losses import Poisson
from exactsel.losses.adjusted import adjusted
from exactsel_certificates.losses import exactly, loss_of
from exactsel_certificates.losses.poisson import exp_less_line
from exactsel_certificates.scaled import scaled
from exactsel_certificates.standalone.losses.poisson import Poisson as ExactPoisson

LOSS, CHECKED, EXACT = Poisson(), exactly(loss_of("poisson")), ExactPoisson(1.0)
ONE = scaled([1.0])
U = F(1, 2**53)


def logarithm(value):
    return F((Decimal(value.numerator) / Decimal(value.denominator)).ln())


def value_of(z, y):
    """The loss to fifty digits, from doubles."""
    z, y = F(z), F(y)
    with localcontext() as context:
        context.prec = 70
        mean = F((Decimal(z.numerator) / Decimal(z.denominator)).exp())
        return mean - y * z + (y * logarithm(y) if y else 0) - y


def minus_conjugate_of(b, y):
    """-l*(b) to fifty digits, from fractions."""
    p = y + b
    with localcontext() as context:
        context.prec = 70
        return p - (p * logarithm(p) if p else 0) - y + (y * logarithm(y) if y else 0)


def rows_of(seed, n=40):
    """Counts and predictions: next to the minimum, at its borders, far below and far above; rates near zero."""
    rng = np.random.default_rng([31, seed])
    y = rng.choice([0.0, 1.0, 2.0, 17.0, 0.3, 1e-3, 1e-20, 1e6, 1e15], n) * rng.choice([1.0, rng.random() + 0.5], n)
    minimum = np.log(np.where(y > 0, y, 1.0))
    far = rng.choice([1e-15, 1e-9, 1e-4, 0.1, 0.99, 1.01, 3.0, 40.0, 250.0], n) * rng.choice([-1.0, 1.0], n)
    return y, np.where(rng.random(n) < 0.1, minimum, np.minimum(minimum + far, 290.0))


@pytest.mark.parametrize("seed", sample(6, 300, smoke=2))
def test_rows_against_fifty_digits(seed):
    y, z = rows_of(seed)
    above = CHECKED.values_above(z, y, np.zeros(z.size))
    for row, (p, t) in enumerate(zip(z.tolist(), y.tolist(), strict=True)):
        true, value, slope = value_of(p, t), LOSS.point_value(LOSS, p, t), LOSS.point_derivative(LOSS, p, t)
        size = F(value) + F(abs(slope)) * F(abs(p) + abs(t) + abs(slope))
        # The value is that at a prediction a rounding error away, which counts where the slope vanishes.
        moved = F(math.exp(p) + t) * (8 * U * F(abs(p) + 50)) ** 2
        assert abs(F(value) - true) <= 32 * U * size + moved + F(1, 10**290), (p, t)
        assert true <= F(above[row]) <= true + 200 * U * (size + F(math.exp(p)) + F(abs(t * p)) + F(t)) + F(1, 10**290)
        exact = CHECKED.exact_value(scaled([p]), scaled([t]), ONE)
        assert true <= exact <= true + F(1, 10**40) * (F(math.exp(p)) + abs(F(t) * F(p)) + F(t) * 50) + F(1, 10**390)
        assert true <= EXACT.value(F(p), F(t))


@pytest.mark.parametrize("seed", sample(6, 300, smoke=2))
def test_dual_values_are_never_above_the_truth(seed):
    """In the kernel, with and without weights and an intercept, and by both checkers."""
    y, z = rows_of(seed)
    weights = np.random.default_rng(seed).choice([1.0, 0.3, 1e4], z.size)
    b = np.empty(z.size)
    for chosen in range(z.size):
        one = slice(chosen, chosen + 1)
        base, _ = dual_rows(LOSS, z[one].copy(), y[one], b[one])
        true = minus_conjugate_of(F(b[chosen]), F(y[chosen]))
        assert F(base) <= true, (z[chosen], y[chosen])
        value = F(LOSS.point_value(LOSS, z[chosen], y[chosen]))
        size = value + F(abs(b[chosen])) * F(abs(z[chosen]) + y[chosen] + 1)
        assert F(base) >= true - 200 * U * (size + F(b[chosen]) ** 2) - F(1, 10**290)
    G = np.maximum(b, -y)[None]
    rows, sizes = CHECKED.minus_conjugate(G, y)
    for g, t, row, size in zip(G[0].tolist(), y.tolist(), rows[0], sizes[0], strict=True):
        true = minus_conjugate_of(F(g), F(t))
        assert F(row) - 32 * U * F(size) <= true + F(1, 10**290), (g, t)
        exact = CHECKED.exact_minus_conjugate(scaled([g]), scaled([t]), ONE)
        assert exact <= true
        assert true - exact <= F(1, 10**40) * (F(size) + F(t) + 1)
        assert EXACT.minus_conjugate(F(g), F(t)) <= true
    base, _ = adjusted_dual(adjusted(LOSS, weights, False, z.size), z.copy(), y, b)
    slopes = [max(F(g) / F(w), -F(t)) for g, w, t in zip(b.tolist(), weights.tolist(), y.tolist(), strict=True)]
    each = (F(w) * minus_conjugate_of(g, F(t)) for g, w, t in zip(slopes, weights.tolist(), y.tolist(), strict=True))
    assert F(base) <= sum(each) + abs(F(base)) * F(1, 10**12)


def test_the_series():
    small = 10.0 ** np.linspace(-18, 1, 60)
    t = np.concatenate([np.linspace(-2.0, 2.0, 401), small, -10.0 * small])
    for at, found in zip(t.tolist(), exp_less_line(t), strict=True):
        with localcontext() as context:
            context.prec = 80
            true = F(Decimal(at).exp()) - 1 - F(at)
        assert abs(F(found) - true) <= 48 * U * true


def test_beyond_what_counts_it_is_a_straight_line():
    for y in (0.0, 3.0):
        assert LOSS.point_value(LOSS, 1e15, y) < math.inf
        assert LOSS.point_derivative(LOSS, 1e15, y) == LOSS.point_derivative(LOSS, 300.0, y)
        assert LOSS.point_value(LOSS, 301.0, y) <= float(value_of(301.0, y))
        assert LOSS.point_value(LOSS, -1e15, y) == pytest.approx(1e15 * y, rel=1e-12)


def test_counts_are_wanted():
    Poisson().check_target(np.array([0.0, 3.0, 2.5]))
    with pytest.raises(InputError, match=r"^the target y holds -1, but poisson loss needs counts, from 0 on"):
        Poisson().check_target(np.array([0.0, -1.0]))
