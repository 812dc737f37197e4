"""Squared hinge loss, max(0, 1 - t z)^2 with labels t, for the second checker."""

from __future__ import annotations

from fractions import Fraction as F

from ..algebra import as_float
from .base import Loss


class SquaredHinge(Loss):
    """The squared distance of t z from one, where it is below one."""

    name = "squared_hinge"
    labels = kinked = True

    def value(self, z: F, t: F) -> F:
        """The value, exactly."""
        return max(F(0), 1 - z * t) ** 2

    def minus_conjugate(self, g: F, t: F) -> F:
        """-g^2 / 4 - g t."""
        return -g * g / 4 - g * t

    def in_domain(self, g: F, t: F) -> F:
        """The nearest slope whose sign is not that of the label."""
        return min(g * t, F(0)) * t

    def bent(self, z: F, t: F, careful: bool = False) -> tuple[F, F]:
        """The slope, exactly, and two below one; careful: everywhere."""
        short = max(F(0), 1 - z * t)
        return -2 * t * short, F(2 if careful or short else 0)

    def slope_in_floats(self, z: float, t: float) -> float:
        """The slope."""
        return -2 * t * max(0.0, 1 - t * z)

    def room(self, g: F, t: F) -> tuple[float, float]:
        """The distance to zero."""
        return as_float(abs(g)), as_float(abs(g))
