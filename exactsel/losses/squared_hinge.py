"""Squared hinge loss l(z, y) = max(0, 1 - y z)^2, y in {-1, +1}: the loss of the L2-SVM."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from exactsel.losses.adjusted import adjustable
from exactsel.losses.logistic import check_labels
from exactsel.types import FloatArray


class SquaredHinge(NamedTuple):
    """Conjugate y b + b^2/4 on y b <= 0."""

    name = "squared_hinge"
    smoothness = 2.0
    infimum = 0.0

    @staticmethod
    def point_value(loss: Any, z: float, y: float) -> float:
        short = max(0.0, 1.0 - y * z)
        return short * short

    @staticmethod
    def point_derivative(loss: Any, z: float, y: float) -> float:
        return -2.0 * y * max(0.0, 1.0 - y * z)

    @staticmethod
    def point_curvature(loss: Any, z: float, y: float) -> float:
        return 2.0 if y * z < 1.0 else 0.0

    @staticmethod
    def point_majorizer(loss: Any, z: float, y: float) -> float:
        # From the flat part, too, the parabola has to reach what lies far on the other side.
        return 2.0

    @staticmethod
    def rows_value(loss: Any, z: FloatArray, y: FloatArray) -> FloatArray:
        short = np.maximum(0.0, 1.0 - y * z)
        return short * short

    @staticmethod
    def rows_derivative(loss: Any, z: FloatArray, y: FloatArray) -> FloatArray:
        return -2.0 * y * np.maximum(0.0, 1.0 - y * z)

    @staticmethod
    def rows_curvature(loss: Any, z: FloatArray, y: FloatArray) -> FloatArray:
        return np.where(y * z < 1.0, 2.0, 0.0)

    @staticmethod
    def rows_majorizer(loss: Any, z: FloatArray, y: FloatArray) -> FloatArray:
        return np.full(z.size, 2.0)

    @staticmethod
    def point_prox(loss: Any, u: float, step: float, y: float) -> float:
        return u if y * u >= 1.0 else (u + 2.0 * step * y) / (1.0 + 2.0 * step)

    @staticmethod
    def point_conjugate(loss: Any, b: float, y: float) -> float:
        return y * b + 0.25 * b * b

    @staticmethod
    def point_conjugate_derivative(loss: Any, b: float, y: float) -> float:
        return y + 0.5 * b

    @staticmethod
    def point_project(loss: Any, b: float, y: float) -> float:
        return y * min(y * b, 0.0)

    def check_target(self, y: FloatArray) -> None:
        """Labels must be -1 or +1."""
        check_labels(y, "squared hinge loss")

    def check_parameters(self) -> None:
        """There are none."""


AdjustedSquaredHinge = adjustable(SquaredHinge)
"""Squared hinge loss with row weights or an intercept."""
