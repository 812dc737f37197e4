"""Every function of every loss against its definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loss_sums import loss_conjugate, loss_prox
from samples import examples

from exactsel.errors import InputError
from exactsel.kernels.rows import loss_curvature, loss_gradient, loss_value
from exactsel.losses import Huber, Logistic, Loss, Quadratic, SquaredHinge

LOSSES = (Quadratic(), Huber(0.7), Huber(3.0), Logistic(), SquaredHinge())
each_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)

# Where the pieces of the losses meet (y +- delta), and far out.
POINTS = np.array([-40.0, -3.5, -1.7, -1.0, -0.4, 0.0, 1e-9, 0.3, 0.5, 1.0, 1.7, 2.3, 4.0, 40.0])
STEPS = (1e-8, 1e-3, 0.1, 1.0, 7.0, 1e3, 1e6)


def targets(loss):
    return (-1.0, 1.0) if isinstance(loss, Logistic | SquaredHinge) else (-1.0, 0.0, 0.5, 2.0)


def cases(loss):
    return [(float(z), y) for z in POINTS for y in targets(loss)]


# Formulas written down a second time


def plain_value(loss, z, y):
    if isinstance(loss, Logistic):
        return np.logaddexp(0.0, -y * z)
    if isinstance(loss, SquaredHinge):
        return np.maximum(0.0, 1.0 - y * z) ** 2
    r = np.abs(z - y)
    if isinstance(loss, Quadratic):
        return r**2 / 2
    return np.where(r <= loss.delta, r**2 / 2, loss.delta * r - loss.delta**2 / 2)


def plain_derivative(loss, z, y):
    if isinstance(loss, Logistic):
        return -y * np.exp(-np.logaddexp(0.0, y * z))
    if isinstance(loss, SquaredHinge):
        return -2.0 * y * np.maximum(0.0, 1.0 - y * z)
    return z - y if isinstance(loss, Quadratic) else np.clip(z - y, -loss.delta, loss.delta)


def plain_conjugate(loss, b, y):
    if isinstance(loss, SquaredHinge):
        return b**2 / 4 + y * b
    if not isinstance(loss, Logistic):
        return b**2 / 2 + y * b
    return sum(0.0 if p <= 0.0 else p * math.log(p) for p in (-y * b, 1.0 + y * b))


def domain(loss, y):
    """Ends of the domain of the conjugate."""
    if isinstance(loss, Logistic):
        return (-1.0, 0.0) if y > 0 else (0.0, 1.0)
    if isinstance(loss, SquaredHinge):
        return (-5.0, 0.0) if y > 0 else (0.0, 5.0)
    return (-5.0, 5.0) if isinstance(loss, Quadratic) else (-loss.delta, loss.delta)


def in_domain(loss, y, count=41):
    low, high = domain(loss, y)
    # 1 - p must not round away at the very ends of the logistic domain.
    return np.linspace(low, high, count)


# Value, derivative, curvature


@each_loss
def test_it_is_a_loss(loss):
    assert isinstance(loss, Loss)
    assert loss.infimum == 0.0


@pytest.mark.smoke
@each_loss
def test_values_equal_the_formula(loss):
    for z, y in cases(loss):
        assert loss.point_value(loss, z, y) == pytest.approx(plain_value(loss, z, y), rel=1e-14, abs=1e-300)
        assert loss.point_value(loss, z, y) >= loss.infimum


@pytest.mark.smoke
@each_loss
def test_derivatives_equal_the_formula_and_differences(loss):
    h = 1e-5
    for z, y in cases(loss):
        derivative = loss.point_derivative(loss, z, y)
        assert derivative == pytest.approx(plain_derivative(loss, z, y), rel=1e-14, abs=1e-300)
        difference = (loss.point_value(loss, z + h, y) - loss.point_value(loss, z - h, y)) / (2 * h)
        assert derivative == pytest.approx(difference, rel=1e-6, abs=1e-5)


@each_loss
def test_curvatures_equal_differences(loss):
    h = 1e-6
    for z, y in cases(loss):
        curvature = loss.point_curvature(loss, z, y)
        assert 0.0 <= curvature <= loss.smoothness * (1 + 1e-15)
        at_a_kink = isinstance(loss, Huber) and abs(abs(z - y) - loss.delta) <= 2 * h
        at_a_kink |= isinstance(loss, SquaredHinge) and abs(y * z - 1.0) <= 2 * h
        if not at_a_kink:
            difference = (loss.point_derivative(loss, z + h, y) - loss.point_derivative(loss, z - h, y)) / (2 * h)
            assert curvature == pytest.approx(difference, abs=1e-6)


@each_loss
def test_smoothness_bounds_every_slope_of_the_derivative(loss):
    grid = np.linspace(-6.0, 6.0, 241)
    for y in targets(loss):
        derivative = np.array([loss.point_derivative(loss, z, y) for z in grid])
        slopes = np.diff(derivative) / np.diff(grid)
        assert np.all(slopes >= -1e-12)
        assert slopes.max() <= loss.smoothness * (1 + 1e-9)
        assert slopes.max() >= 0.9 * loss.smoothness


@pytest.mark.parametrize("loss", [Huber(0.7), Logistic()], ids=repr)
def test_no_overflow_far_out(loss):
    for z in (1e3, -1e3, 1e100, -1e100):
        for y in (-1.0, 1.0):
            assert math.isfinite(loss.point_value(loss, z, y))
            low, high = domain(loss, y)
            assert low <= loss.point_derivative(loss, z, y) <= high
            assert math.isfinite(loss.point_curvature(loss, z, y))


# Prox


def assert_is_prox(loss, z, u, step, y):
    """z + step l'(z) = u, as exactly as the terms, and z itself, can be computed."""
    rest = z - u + step * loss.point_derivative(loss, z, y)
    slope = 1.0 + step * loss.point_curvature(loss, z, y)
    terms = abs(u) + step * abs(loss.point_derivative(loss, z, y)) + slope * (abs(z) + abs(y))
    assert abs(rest) <= 1e-13 * terms


@each_loss
@pytest.mark.parametrize("step", STEPS)
def test_prox_satisfies_its_optimality_condition(loss, step):
    for u, y in cases(loss):
        for scaled in (u, u * step):
            assert_is_prox(loss, loss.point_prox(loss, scaled, step, y), scaled, step, y)


@examples(500, 1000)
@given(
    loss=st.sampled_from(LOSSES),
    exponent=st.floats(-8, 8),
    share=st.floats(-3, 3),
    y=st.sampled_from([-1.0, 1.0]),
)
def test_prox_satisfies_its_optimality_condition_anywhere(loss, exponent, share, y):
    step = 10.0**exponent
    for u in (share, share * step):
        assert_is_prox(loss, loss.point_prox(loss, u, step, y), u, step, y)


@pytest.mark.smoke
@each_loss
def test_prox_beats_its_neighbours(loss):
    for u, y in cases(loss):
        for step in (0.1, 1.0, 7.0):
            z = loss.point_prox(loss, u, step, y)
            near = z + np.array([0.0, -1.0, -0.1, -1e-3, 1e-3, 0.1, 1.0])
            costs = step * plain_value(loss, near, y) + (near - u) ** 2 / 2
            assert costs[0] <= costs.min() + 1e-12 * abs(costs[0])


# Conjugate


@each_loss
def test_conjugates_equal_the_formula(loss):
    for y in targets(loss):
        for b in in_domain(loss, y):
            expected = plain_conjugate(loss, float(b), y)
            assert loss.point_conjugate(loss, float(b), y) == pytest.approx(expected, rel=1e-12, abs=1e-14)


@pytest.mark.smoke
@each_loss
def test_conjugates_are_the_supremum(loss):
    grid = np.linspace(-60.0, 60.0, 240001)
    for y in targets(loss):
        for b in in_domain(loss, y, 21):
            best = np.max(b * grid - plain_value(loss, grid, y))
            assert loss.point_conjugate(loss, float(b), y) == pytest.approx(best, abs=1e-6)


@pytest.mark.smoke
@each_loss
def test_fenchel_equality_at_the_derivative(loss):
    for z, y in cases(loss):
        b = loss.point_derivative(loss, z, y)
        assert loss.point_conjugate(loss, b, y) == pytest.approx(
            b * z - loss.point_value(loss, z, y), rel=1e-9, abs=1e-9
        )


@each_loss
def test_conjugate_derivatives_invert_the_derivative(loss):
    for z in np.linspace(-6.0, 6.0, 49):
        for y in targets(loss):
            b = loss.point_derivative(loss, float(z), y)
            back = loss.point_conjugate_derivative(loss, b, y)
            flat = isinstance(loss, SquaredHinge) and y * z > 1.0
            if flat or (isinstance(loss, Huber) and abs(z - y) > loss.delta):
                assert loss.point_derivative(loss, back, y) == pytest.approx(b)
            else:
                assert back == pytest.approx(z, abs=1e-10)


@each_loss
def test_conjugate_derivatives_are_finite_at_the_ends(loss):
    for y in targets(loss):
        for b in domain(loss, y):
            assert math.isfinite(loss.point_conjugate_derivative(loss, b, y))
            assert math.isfinite(loss.point_conjugate(loss, b, y))


@each_loss
def test_project_finds_the_nearest_point(loss):
    for y in targets(loss):
        low, high = (-math.inf, math.inf) if isinstance(loss, Quadratic) else domain(loss, y)
        if isinstance(loss, SquaredHinge):
            low, high = (-math.inf, 0.0) if y > 0 else (0.0, math.inf)
        for b in (*POINTS, low, high, 1e30, -1e30):
            if math.isfinite(b):
                projected = loss.point_project(loss, float(b), y)
                assert projected == min(max(b, low), high)
                assert loss.point_project(loss, projected, y) == projected


# Sums over rows, compiled


@each_loss
def test_sums_over_rows(loss):
    z, y = map(np.array, zip(*cases(loss), strict=True))
    out = np.empty(z.size)
    assert loss_value(loss, z, y) == pytest.approx(plain_value(loss, z, y).sum(), rel=1e-12)
    loss_gradient(loss, z, y, out)
    np.testing.assert_allclose(out, plain_derivative(loss, z, y), rtol=1e-13)
    b = out.copy()
    expected = sum(plain_conjugate(loss, float(p), float(q)) for p, q in zip(b, y, strict=True))
    assert loss_conjugate(loss, b, y) == pytest.approx(expected, rel=1e-12, abs=1e-10)
    loss_curvature(loss, z, y, out)
    np.testing.assert_allclose(out, [loss.point_curvature(loss, p, q) for p, q in zip(z, y, strict=True)], rtol=1e-13)
    loss_prox(loss, z, 2.5, y, out)
    np.testing.assert_allclose(out, [loss.point_prox(loss, p, 2.5, q) for p, q in zip(z, y, strict=True)], rtol=1e-13)


# Checks of what users pass


def test_logistic_wants_labels():
    Logistic().check_target(np.array([-1.0, 1.0, 1.0]))
    with pytest.raises(InputError, match=r"holds the values 0, 1, but logistic loss needs labels -1 and \+1"):
        Logistic().check_target(np.array([0.0, 1.0]))


def test_squared_hinge_wants_labels():
    SquaredHinge().check_target(np.array([-1.0, 1.0, 1.0]))
    with pytest.raises(InputError, match=r"holds the values 2, but squared hinge loss needs labels -1 and \+1"):
        SquaredHinge().check_target(np.array([2.0]))


@pytest.mark.parametrize("delta", [0.0, -1.0, math.nan, math.inf])
def test_huber_wants_a_positive_threshold(delta):
    with pytest.raises(InputError, match="must be a positive number"):
        Huber(delta).check_parameters()


@pytest.mark.parametrize("loss", [Quadratic(), Huber(0.7)], ids=repr)
def test_any_target_suits_the_others(loss):
    loss.check_target(np.array([-3.5, 0.0, 1e9]))
    loss.check_parameters()
