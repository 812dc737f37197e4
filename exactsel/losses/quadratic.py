"""Quadratic loss l(z, y) = (z - y)^2 / 2."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from exactsel.types import FloatArray


class Quadratic(NamedTuple):
    """Half the sum of squared residuals; conjugate ||b||^2/2 + y'b on all of R^n."""

    name = "quadratic"
    of_residuals = True
    smoothness = 1.0
    infimum = 0.0

    @staticmethod
    def point_value(loss: Any, z: float, y: float) -> float:
        return 0.5 * (z - y) * (z - y)

    @staticmethod
    def point_derivative(loss: Any, z: float, y: float) -> float:
        return z - y

    @staticmethod
    def point_curvature(loss: Any, z: float, y: float) -> float:
        return 1.0

    @staticmethod
    def point_majorizer(loss: Any, z: float, y: float) -> float:
        return 1.0

    @staticmethod
    def point_curvature_on(loss: Any, low: float, high: float, z: float, y: float) -> float:
        return 1.0

    @staticmethod
    def rows_value(loss: Any, z: FloatArray, y: FloatArray) -> FloatArray:
        return 0.5 * (z - y) * (z - y)

    @staticmethod
    def rows_derivative(loss: Any, z: FloatArray, y: FloatArray) -> FloatArray:
        return z - y

    @staticmethod
    def rows_curvature(loss: Any, z: FloatArray, y: FloatArray) -> FloatArray:
        return np.ones(z.size)

    rows_majorizer = rows_curvature

    @staticmethod
    def rows_curvature_on(loss: Any, low: FloatArray, high: FloatArray, z: FloatArray, y: FloatArray) -> FloatArray:
        return np.ones(z.size)

    @staticmethod
    def point_prox(loss: Any, u: float, step: float, y: float) -> float:
        return (u + step * y) / (1.0 + step)

    @staticmethod
    def point_conjugate(loss: Any, b: float, y: float) -> float:
        return 0.5 * b * b + y * b

    @staticmethod
    def point_conjugate_derivative(loss: Any, b: float, y: float) -> float:
        return b + y

    @staticmethod
    def point_project(loss: Any, b: float, y: float) -> float:
        return b

    def check_target(self, y: FloatArray) -> None:
        """Any finite target suits."""

    def check_parameters(self) -> None:
        """There are none."""
