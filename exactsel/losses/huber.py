"""Huber loss: quadratic up to ``delta``, linear beyond."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from exactsel.errors import InputError, option
from exactsel.losses.adjusted import adjustable
from exactsel.rounding import UNIT
from exactsel.types import FloatArray

SMALLEST_DELTA, LARGEST_DELTA = 1e-60, 1e60
"""Thresholds beyond these are refused: their squares could leave the range of doubles."""

ROUNDING = 16 * UNIT
"""What a few operations with doubles may do, as a part of the numbers that go in."""


class Huber(NamedTuple):
    """h(r) = r^2/2 for abs(r) <= delta, else delta*abs(r) - delta^2/2, with r = z - y.

    Conjugate ||b||^2/2 + y'b on abs(b_i) <= delta.
    """

    delta: float

    name = "huber"
    of_residuals = True
    smoothness = 1.0
    infimum = 0.0

    @staticmethod
    def point_value(loss: Any, z: float, y: float) -> float:
        r = abs(z - y)
        if r <= loss.delta:
            return 0.5 * r * r
        return float(loss.delta * (r - 0.5 * loss.delta))

    @staticmethod
    def point_derivative(loss: Any, z: float, y: float) -> float:
        return float(min(max(z - y, -loss.delta), loss.delta))

    @staticmethod
    def point_curvature(loss: Any, z: float, y: float) -> float:
        return 1.0 if abs(z - y) <= loss.delta else 0.0

    @staticmethod
    def point_majorizer(loss: Any, z: float, y: float) -> float:
        r = abs(z - y)
        return 1.0 if r <= loss.delta else float(loss.delta / r)

    @staticmethod
    def point_curvature_on(loss: Any, low: float, high: float, z: float, y: float) -> float:
        # The ends suffice, see base.py. With z in the quadratic part, an end t that is by `excess` outside of it has
        # D(t, z) = ((t - z)^2 - excess^2) / 2. Differences of doubles are judged on the scale of what they are of.
        if abs(z - y) + ROUNDING * (abs(z) + abs(y)) > loss.delta:
            return 0.0
        lowest = 1.0
        for t in (low, high):
            rounding = ROUNDING * (abs(t) + abs(z) + abs(y) + loss.delta)
            excess = abs(t - y) - loss.delta + rounding
            if excess > 0.0:
                width = abs(t - z) - rounding
                share = excess / width if width > excess else 1.0
                lowest = min(lowest, 1.0 - share * share)
        return max(0.0, lowest - ROUNDING)

    @staticmethod
    def rows_value(loss: Any, z: FloatArray, y: FloatArray) -> FloatArray:
        r = abs(z - y)
        return np.where(r <= loss.delta, 0.5 * r * r, loss.delta * (r - 0.5 * loss.delta))

    @staticmethod
    def rows_derivative(loss: Any, z: FloatArray, y: FloatArray) -> FloatArray:
        return np.clip(z - y, -loss.delta, loss.delta)

    @staticmethod
    def rows_curvature(loss: Any, z: FloatArray, y: FloatArray) -> FloatArray:
        return 1.0 * (abs(z - y) <= loss.delta)  # type: ignore[no-any-return]

    @staticmethod
    def rows_majorizer(loss: Any, z: FloatArray, y: FloatArray) -> FloatArray:
        return loss.delta / np.maximum(abs(z - y), loss.delta)  # type: ignore[no-any-return]

    @staticmethod
    def rows_curvature_on(loss: Any, low: FloatArray, high: FloatArray, z: FloatArray, y: FloatArray) -> FloatArray:
        lowest = np.ones(z.size)
        for t in (low, high):
            rounding = ROUNDING * (abs(t) + abs(z) + abs(y) + loss.delta)
            excess = abs(t - y) - loss.delta + rounding
            width = abs(t - z) - rounding
            share = np.divide(excess, width, out=np.ones(z.size), where=width > excess)
            lowest = np.where(excess > 0.0, np.minimum(lowest, 1.0 - share * share), lowest)
        included = abs(z - y) + ROUNDING * (abs(z) + abs(y)) <= loss.delta
        return np.where(included, np.maximum(0.0, lowest - ROUNDING), 0.0)

    @staticmethod
    def point_prox(loss: Any, u: float, step: float, y: float) -> float:
        r = (u - y) / (1.0 + step)
        if abs(r) <= loss.delta:
            return y + r
        return float(u - step * loss.delta if u > y else u + step * loss.delta)

    @staticmethod
    def point_conjugate(loss: Any, b: float, y: float) -> float:
        return 0.5 * b * b + y * b

    @staticmethod
    def point_conjugate_derivative(loss: Any, b: float, y: float) -> float:
        return b + y

    @staticmethod
    def point_project(loss: Any, b: float, y: float) -> float:
        return float(min(max(b, -loss.delta), loss.delta))

    def check_target(self, y: FloatArray) -> None:
        """Any finite target suits."""

    def check_parameters(self) -> None:
        """The threshold must be positive and finite."""
        if not (math.isfinite(self.delta) and self.delta > 0):
            raise InputError(
                f"delta is {self.delta}, but the Huber threshold must be a positive number; give {option('delta')}."
            )
        if not SMALLEST_DELTA <= self.delta <= LARGEST_DELTA:
            raise InputError(
                f"delta is {self.delta:g}, but a threshold between {SMALLEST_DELTA:g} and {LARGEST_DELTA:g} was "
                f"expected; rescale y."
            )


AdjustedHuber = adjustable(Huber)
"""Huber loss with row weights or an intercept."""
