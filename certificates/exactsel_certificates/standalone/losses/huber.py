"""Huber's loss for the second checker: quadratic up to residuals of delta, and linear beyond."""

from __future__ import annotations

from fractions import Fraction as F

from ..algebra import as_float, near
from ..values import LARGEST, SMALLEST, double, refuse
from .base import Loss


class Huber(Loss):
    """r^2 / 2 for residuals r up to delta in size, and delta (|r| - delta / 2) beyond."""

    name = "huber"
    needs_ridge = False
    bounded_models = kinked = True

    def __init__(self, delta: object) -> None:
        """Raises :class:`Outside` where ``delta`` is not a positive double."""
        super().__init__(delta)
        number = double(delta)
        if number is None or not number >= SMALLEST:
            refuse("delta", delta, f"a number from {SMALLEST:g} to {LARGEST:g}")
        self.edge, self.delta, self.parameters = number, F(number), {"delta": number.hex()}

    def clipped(self, g: F) -> F:
        """The nearest number from -delta to delta."""
        return min(max(g, -self.delta), self.delta)

    def value(self, z: F, t: F) -> F:
        """The value, exactly."""
        r = abs(z - t)
        return r * r / 2 if r <= self.delta else self.delta * (r - self.delta / 2)

    def minus_conjugate(self, g: F, t: F) -> F:
        """-g^2 / 2 - g t."""
        return -g * g / 2 - g * t

    def in_domain(self, g: F, t: F) -> F:
        """The nearest slope from -delta to delta."""
        return self.clipped(g)

    def bent(self, z: F, t: F, careful: bool = False) -> tuple[F, F]:
        """The residual, clipped, and one up to delta; careful: delta / |r| beyond."""
        size = abs(z - t)
        bend = near(self.delta / size) if careful and size > self.delta else F(size <= self.delta)
        return self.clipped(z - t), bend

    def slope_in_floats(self, z: float, t: float) -> float:
        """The residual, clipped."""
        return min(max(z - t, -self.edge), self.edge)

    def gap(self, z: F, t: F) -> tuple[F, float]:
        """The residual, and zero."""
        return z - t, 0.0

    def room(self, g: F, t: F) -> tuple[float, float]:
        """The distance to the nearer end."""
        v, most = as_float(abs(g)), self.edge
        return max(0.0, most - v), (most - v) * (most + v) / most**2

    def tangent(self, z: F, low: F, high: F, t: F) -> tuple[F, F, F]:
        """A parabola of curvature at most one, exactly; a line where z is beyond delta."""
        bend = F(abs(z - t) <= self.delta)
        for end, excess in ((high, high - t - self.delta), (low, t - low - self.delta)):
            if bend and excess > 0:
                bend = min(bend, 1 - (excess / (end - z)) ** 2 if end != z else F(0))
        return self.value(z, t), self.clipped(z - t), bend
