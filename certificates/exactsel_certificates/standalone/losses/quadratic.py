"""Quadratic loss, (z - t)^2 / 2, for the second checker; inner products give most of its bounds (regression.py)."""

from __future__ import annotations

from fractions import Fraction as F

from .base import Loss


class Quadratic(Loss):
    """Half the squared residual."""

    name = "quadratic"
    needs_ridge = False
    bounded_models = by_products = True

    def value(self, z: F, t: F) -> F:
        """Half the squared residual."""
        return (z - t) ** 2 / 2

    def minus_conjugate(self, g: F, t: F) -> F:
        """-g^2 / 2 - g t."""
        return -g * g / 2 - g * t

    def in_domain(self, g: F, t: F) -> F:
        """The slope itself."""
        return g

    def bent(self, z: F, t: F, careful: bool = False) -> tuple[F, F]:
        """The residual, and one."""
        return z - t, F(1)

    def slope(self, z: F, t: F) -> F:
        """The residual, with all its digits."""
        return z - t
