"""Poisson loss with the log link, l(z, y) = exp(z) - y z + y log y - y for counts (or rates) y >= 0.

It is half the deviance: the constant makes it zero at z = log y, so that no row is ever below zero.

There is no Lipschitz constant of its derivative, and exp overflows. Beyond :data:`FAR` the loss continues as a straight
line here. That is nowhere above the loss, so every lower bound holds for the loss itself; and a model that predicts so
much costs more than the empty one, whose P(0) it would take a target or a weight beyond what is allowed to reach.

Values and slopes of a row near its minimum are both formed from t = z - log y, which is rounded once: they are those at
a prediction a rounding error from z, as what bounds allow for rounding supposes, and nothing cancels.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from exactsel.errors import InputError
from exactsel.losses.adjusted import adjustable
from exactsel.types import FloatArray

FAR = 300.0
"""Predictions beyond this, e^300 counts, are on the straight line."""

TERMS = 20
"""Of the series of e^t - 1 - t for abs(t) < 1; the remainder is below the last digit."""

SMALLEST = 1e-130
"""A mean below this is taken for this much where the logarithm must be finite."""

LARGEST_COUNT = 1e60


class Poisson(NamedTuple):
    """Conjugate p log p - p - (y log y - y) with p = y + b >= 0 and 0 log 0 = 0."""

    name = "poisson"
    smoothness = math.inf
    infimum = 0.0

    @staticmethod
    def point_value(loss: Any, z: float, y: float) -> float:
        near = min(z, FAR)
        mean = math.exp(near)
        value = mean
        if y > 0.0:
            t = near - math.log(y)
            if abs(t) < 1.0:
                value = 1.0
                for i in range(TERMS, 2, -1):
                    value = 1.0 + t / i * value
                value *= 0.5 * t * t * y
            else:
                value = mean - y * (1.0 + t)
        return value + (mean - y) * (z - near)

    @staticmethod
    def point_derivative(loss: Any, z: float, y: float) -> float:
        near = min(z, FAR)
        if y > 0.0:
            t = near - math.log(y)
            if abs(t) < 1.0:
                return y * math.expm1(t)
        return math.exp(near) - y

    @staticmethod
    def point_curvature(loss: Any, z: float, y: float) -> float:
        return math.exp(min(z, FAR))

    @staticmethod
    def point_majorizer(loss: Any, z: float, y: float) -> float:
        # No parabola holds everywhere. On the way up to the minimum the derivative is below its chord, so that the
        # parabola with the chord's slope holds; on the way down the curvature only falls.
        mean = math.exp(min(z, FAR))
        if y > mean:
            t = z - math.log(y)
            return max(mean, (mean - y) / t) if t < -1e-4 else y
        return mean

    @staticmethod
    def rows_value(loss: Any, z: FloatArray, y: FloatArray) -> FloatArray:
        near = np.minimum(z, FAR)
        mean, t = np.exp(near), near - np.log(np.where(y > 0.0, y, 1.0))
        series = np.ones(z.size)
        for i in range(TERMS, 2, -1):
            series = 1.0 + t / i * series
        value = np.where(abs(t) < 1.0, series * (0.5 * t * t * y), mean - y * (1.0 + t))
        return np.where(y > 0.0, value, mean) + (mean - y) * (z - near)

    @staticmethod
    def rows_derivative(loss: Any, z: FloatArray, y: FloatArray) -> FloatArray:
        near = np.minimum(z, FAR)
        t = near - np.log(np.where(y > 0.0, y, 1.0))
        return np.where((y > 0.0) & (abs(t) < 1.0), y * np.expm1(t), np.exp(near) - y)

    @staticmethod
    def rows_curvature(loss: Any, z: FloatArray, y: FloatArray) -> FloatArray:
        return np.exp(np.minimum(z, FAR))

    @staticmethod
    def rows_majorizer(loss: Any, z: FloatArray, y: FloatArray) -> FloatArray:
        mean, above = np.exp(np.minimum(z, FAR)), z - np.log(np.where(y > 0.0, y, 1.0))
        chord = np.divide(mean - y, above, out=y.copy(), where=above < -1e-4)
        return np.where(y > mean, np.where(above < -1e-4, np.maximum(mean, chord), y), mean)

    @staticmethod
    def point_prox(loss: Any, u: float, step: float, y: float) -> float:
        # Newton on the increasing, convex function z - u + step (e^z - y), from above its root: monotone.
        furthest = u + step * y
        if FAR + step * math.exp(FAR) <= furthest:
            return furthest - step * math.exp(FAR)
        z = furthest
        if furthest > 0.0:
            z = min(furthest, max(0.0, math.log(furthest) - math.log(step)))
        for _ in range(200):
            e = step * math.exp(min(z, FAR))
            move = (z - furthest + e) / (1.0 + e)
            z -= move
            if abs(move) <= 1e-15 * abs(z):
                break
        return z

    @staticmethod
    def point_conjugate(loss: Any, b: float, y: float) -> float:
        mean = y + b
        value = -mean
        if mean > 0.0:
            value += mean * math.log(mean)
        if y > 0.0:
            value += y - y * math.log(y)
        return value

    @staticmethod
    def point_conjugate_derivative(loss: Any, b: float, y: float) -> float:
        return math.log(max(y + b, SMALLEST))

    @staticmethod
    def point_project(loss: Any, b: float, y: float) -> float:
        return max(b, -y)

    def check_target(self, y: FloatArray) -> None:
        """No count is below zero."""
        lowest, largest = float(np.min(y)), float(np.max(y))
        if lowest < 0.0:
            raise InputError(f"the target y holds {lowest:g}, but poisson loss needs counts, from 0 on; correct y.")
        if largest > LARGEST_COUNT:
            raise InputError(f"the target y holds {largest:g}, but counts of at most {LARGEST_COUNT:g} were expected.")

    def check_parameters(self) -> None:
        """There are none."""


AdjustedPoisson = adjustable(Poisson)
"""Poisson loss with row weights or an intercept."""
