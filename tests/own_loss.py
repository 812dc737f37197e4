"""A loss a user might write, complete in one file: pseudo-Huber, a smooth version of Huber's."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from exactsel.errors import InputError
from exactsel.types import FloatArray


class PseudoHuber(NamedTuple):
    """width^2 (sqrt(1 + (r/width)^2) - 1) with r = z - y; its conjugate lives on abs(b) <= width."""

    width: float

    name = "pseudo-huber"
    smoothness = 1.0
    infimum = 0.0

    @staticmethod
    def point_value(loss: Any, z: float, y: float) -> float:
        u = (z - y) / loss.width
        return loss.width * loss.width * u * u / (1.0 + math.sqrt(1.0 + u * u))

    @staticmethod
    def point_derivative(loss: Any, z: float, y: float) -> float:
        u = (z - y) / loss.width
        return (z - y) / math.sqrt(1.0 + u * u)

    @staticmethod
    def point_curvature(loss: Any, z: float, y: float) -> float:
        u = (z - y) / loss.width
        return (1.0 + u * u) ** -1.5

    @staticmethod
    def point_majorizer(loss: Any, z: float, y: float) -> float:
        u = (z - y) / loss.width
        return 1.0 / math.sqrt(1.0 + u * u)

    @staticmethod
    def point_prox(loss: Any, u: float, step: float, y: float) -> float:
        # The derivative z + step * l'(z) - u is increasing in z and changes sign between u and y.
        low, high = min(u, y), max(u, y)
        for _ in range(200):
            z = 0.5 * (low + high)
            v = (z - y) / loss.width
            if z + step * (z - y) / math.sqrt(1.0 + v * v) > u:
                high = z
            else:
                low = z
        return 0.5 * (low + high)

    @staticmethod
    def point_conjugate(loss: Any, b: float, y: float) -> float:
        return y * b + loss.width * (loss.width - math.sqrt(max(loss.width * loss.width - b * b, 0.0)))

    @staticmethod
    def point_conjugate_derivative(loss: Any, b: float, y: float) -> float:
        return y + b / math.sqrt(max(1.0 - (b / loss.width) ** 2, 1e-14))

    @staticmethod
    def point_project(loss: Any, b: float, y: float) -> float:
        return min(max(b, -loss.width), loss.width)

    def check_target(self, y: FloatArray) -> None:
        """Any finite target suits."""

    def check_parameters(self) -> None:
        if not self.width > 0:
            raise InputError(f"width is {self.width}, but it must be a positive number.")
