"""Conformance checks for losses: convex, smooth, and every function consistent with its value."""

from __future__ import annotations

from typing import Any

import numpy as np

from exactsel._jit import without_compiling
from exactsel.errors import InputError
from exactsel.kernels.in_arrays import of_rows
from exactsel.losses.adjusted import can_be_adjusted
from exactsel.losses.base import DUAL_FUNCTIONS, Loss, curvature_known
from exactsel.problem.checks import make_loss
from exactsel.problem.regression import Problem
from exactsel.solving.api import solve
from exactsel.testing.cases import Truth, above
from exactsel.types import FloatArray

STEP = 1e-5
"""Of the difference quotients; their error is of the order of its square."""

POINTS = (-30.0, -3.0, -1.1, -0.4, -1e-3, 0.0, 0.2, 0.9, 1.7, 6.0, 40.0)


@without_compiling()
def check_loss(loss: Loss, targets: FloatArray | None = None, *, search: bool = True) -> None:
    """Assert that a loss keeps its contract.

    Its parameters and constants are accepted; its derivative is that of its value, increases, and no faster than
    ``smoothness``; curvature, majorizer and prox agree with it, and so does a curvature on an interval, where there is
    one; what is there in whole arrays agrees with the scalar functions; the conjugate, where there is one, satisfies
    Fenchel's equality; nothing overflows far out; a search with it finds the optimum of a small problem; and where it
    is declared to take an intercept no row is below zero, and a search with an intercept and row weights finds the
    optimum, too.

    Parameters
    ----------
    loss : str or Loss
        A registered name, or an object.
    targets : array, optional
        Targets to try; by default some numbers, -1 and +1 where the loss wants labels, or counts.
    search : bool
        False skips the search, which is interpreted.

    Raises
    ------
    InputError
        For what is no loss, and for a method that compiled kernels cannot take in, as it calls plain Python.
    """
    values = _targets(loss) if targets is None else np.asarray(targets, dtype=np.float64)
    subject = make_loss(loss, None, values)
    for y in values.tolist():
        _check_derivatives(subject, y)
        _check_prox(subject, y)
        if curvature_known(subject):
            _check_curvature_on(subject, y)
        if all(hasattr(subject, name) for name in DUAL_FUNCTIONS):
            _check_conjugate(subject, y)
        for far in (-1e15, 1e15):
            assert np.isfinite(subject.point_value(subject, far, y)), (
                f"{subject.name}: the value at z = {far:g} overflows"
            )
            assert np.isfinite(subject.point_derivative(subject, far, y)), (
                f"{subject.name}: the derivative at {far:g} overflows"
            )
    _check_in_arrays(subject, values)
    if search:
        _check_search(subject, values)


def _check_in_arrays(loss: Loss, targets: FloatArray) -> None:
    z, y = (each.ravel() for each in np.meshgrid(np.array(POINTS), targets))
    for name in ("value", "derivative", "curvature", "majorizer", "curvature_on"):
        args = (z - 0.5, z + 2.0, z, y) if name == "curvature_on" else (z, y)
        if hasattr(loss, f"rows_{name}"):
            point = getattr(loss, f"point_{name}")
            in_turn = [point(loss, *row) for row in zip(*(each.tolist() for each in args), strict=True)]
            np.testing.assert_allclose(
                of_rows(loss, name, *args), in_turn, rtol=1e-12, atol=1e-14,
                err_msg=f"{loss.name}: rows_{name} is not point_{name}",
            )  # fmt: skip


def _check_curvature_on(loss: Any, y: float) -> None:
    for z in POINTS:
        for low, high in ((z, z), (z - 1.0, z), (z - 0.3, z + 2.0), (z - 20.0, z + 20.0)):
            w = loss.point_curvature_on(loss, low, high, z, y)
            assert w >= 0.0, f"{loss.name}: the curvature on [{low:g}, {high:g}] is {w}, but it must not be negative"
            for t in np.linspace(low, high, 33).tolist():
                value, slope = loss.point_value(loss, z, y), loss.point_derivative(loss, z, y)
                quadratic = value + slope * (t - z) + 0.5 * w * (t - z) ** 2
                room = 1e-12 * (abs(value) + abs(slope * (t - z)) + w * (t - z) ** 2)
                assert loss.point_value(loss, t, y) >= quadratic - room, (
                    f"{loss.name}: the curvature on [{low:g}, {high:g}] from z = {z:g} is too large at {t:g}"
                )


def _targets(loss: Loss) -> FloatArray:
    numbers = np.array([-1.7, 0.0, 0.3, 2.5, 8.0])
    made = make_loss(loss, None, numbers)
    for targets in (numbers, np.array([-1.0, 1.0, 1.0]), np.array([0.0, 1.0, 2.0, 5.0])):
        try:
            made.check_target(targets)
        except InputError:
            continue
        return targets
    raise AssertionError(f"{loss} takes neither numbers nor labels nor counts; give targets it takes")


def _check_derivatives(loss: Loss, y: float) -> None:
    slopes = []
    for z in POINTS:
        here = f"{loss.name} at z = {z:g}, y = {y:g}"
        value, slope = loss.point_value(loss, z, y), loss.point_derivative(loss, z, y)
        assert value >= loss.infimum, f"{here}: the value {value} is below the infimum {loss.infimum}"
        assert value >= 0.0 or not can_be_adjusted(type(loss)), (
            f"{here}: the value {value} is below zero, so the loss must not be declared to take an intercept"
        )
        quotient = (loss.point_value(loss, z + STEP, y) - loss.point_value(loss, z - STEP, y)) / (2 * STEP)
        smoothness = loss.smoothness
        if np.isinf(smoothness):  # what the derivative rises by on the difference's own interval, twice
            ends = [loss.point_derivative(loss, z + side * STEP, y) for side in (-1, 1)]
            smoothness = (ends[1] - ends[0]) / STEP
        tolerance = 2 * STEP * smoothness + 1e-10 * (1.0 + abs(value)) / STEP
        assert abs(slope - quotient) <= tolerance, f"{here}: the derivative is {slope}, but differences give {quotient}"
        curvature, majorizer = loss.point_curvature(loss, z, y), loss.point_majorizer(loss, z, y)
        top = loss.smoothness * (1 + 1e-12)
        assert 0.0 <= curvature <= top, f"{here}: the curvature {curvature} is not between 0 and {loss.smoothness}"
        _check_curvature(loss, z, y, here)
        for t in POINTS:
            if np.isinf(loss.smoothness) and slope * (t - z) >= 0.0:
                continue  # up the hill, where no parabola need hold
            if np.isinf(loss.smoothness) and loss.point_derivative(loss, t, y) * slope < 0.0:
                continue  # ... and beyond the minimum
            parabola = value + slope * (t - z) + 0.5 * majorizer * (t - z) ** 2
            other = loss.point_value(loss, t, y)
            room = 1e-11 * (1.0 + abs(parabola) + abs(value))
            assert other <= parabola + room, (
                f"{here}: the majorizer {majorizer} is too small for t = {t:g}, or the derivative is slightly off"
            )
        slopes.append(slope)
    for i in range(1, len(POINTS)):
        rise, run = slopes[i] - slopes[i - 1], POINTS[i] - POINTS[i - 1]
        room = 1e-12 * (1.0 + abs(slopes[i]))
        assert rise >= -room, f"{loss.name}: the derivative falls before z = {POINTS[i]:g}, so it is not convex"
        assert rise <= loss.smoothness * run + room or np.isinf(loss.smoothness), (
            f"{loss.name}: the derivative rises faster than the smoothness {loss.smoothness} before z = {POINTS[i]:g}"
        )


def _check_curvature(loss: Loss, z: float, y: float, here: str) -> None:
    """Compare the curvature with difference quotients of the derivative; at a kink it lies between both sides."""
    below, slope, above_ = (loss.point_derivative(loss, z + side * STEP, y) for side in (-1, 0, 1))
    least, largest = sorted(((slope - below) / STEP, (above_ - slope) / STEP))
    curvature = loss.point_curvature(loss, z, y)
    room = 1e-6 * largest + 1e-9 * (1.0 + abs(z) + abs(y) + abs(slope))
    assert least - room <= curvature <= largest + room, (
        f"{here}: the curvature is {curvature}, but differences of the derivative give {least:.9g} to {largest:.9g}"
    )


def _check_prox(loss: Loss, y: float) -> None:
    for u in POINTS:
        for step in (1e-3, 0.7, 20.0):
            z = loss.point_prox(loss, u, step, y)
            residual = step * loss.point_derivative(loss, z, y) + z - u
            assert abs(residual) <= 1e-8 * (1.0 + abs(u) + step), (
                f"{loss.name}: prox({u:g}, step {step:g}, y = {y:g}) = {z} leaves the residual {residual:.3g}"
            )


def _check_conjugate(loss: Loss, y: float) -> None:
    for z in POINTS:
        b = loss.point_derivative(loss, z, y)
        here = f"{loss.name} at the slope {b:g} (z = {z:g}, y = {y:g})"
        value = loss.point_value(loss, z, y)
        conjugate = loss.point_conjugate(loss, b, y)
        room = 1e-9 * (1.0 + abs(b * z) + abs(value))
        assert abs(conjugate - (b * z - value)) <= room, f"{here}: the conjugate {conjugate} fails Fenchel's equality"
        attained = loss.point_conjugate_derivative(loss, b, y)
        assert np.isfinite(attained), f"{here}: the conjugate's derivative overflows"
        excess = loss.point_value(loss, attained, y) + conjugate - b * attained
        assert excess <= 1e-6 * (1.0 + abs(b * attained) + abs(value)), (
            f"{here}: the conjugate's derivative {attained} does not attain the conjugate"
        )
        projected = loss.point_project(loss, b, y)
        assert abs(projected - b) <= 1e-12 * (1.0 + abs(b)), f"{here}: a slope is in the domain, but projected away"


def _check_search(loss: Loss, targets: FloatArray) -> None:
    rng = np.random.default_rng(5)
    A = rng.standard_normal((14, 6))
    y = rng.choice(targets, 14)
    problems = [Problem(A, y, k, loss=loss, lam=0.5) for k in (1, 3)]
    if can_be_adjusted(type(loss)):
        y[:2] = targets.min(), targets.max()
        weights = rng.choice([0.5, 1.0, 3.0], 14)
        problems += [Problem.prepared(A, y, 2, loss=loss, lam=0.5, intercept=True, weights=weights)]
    for problem in problems:
        best = Truth(problem).best(np.ones(6, dtype=np.int8))
        result = solve(problem, signals=())
        assert result.reached, f"{loss.name}: a search of 6 columns ended with a gap of {result.gap:.3g}"
        assert not above(result.lower, best), f"{loss.name}: the lower bound {result.lower} is above the best, {best}"
        assert not above(best, result.upper), f"{loss.name}: the search found {result.upper}, below the best, {best}"
