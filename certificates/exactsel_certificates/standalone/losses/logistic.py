"""Logistic loss, log(1 + exp(-t z)) with labels t, for the second checker; logarithms are rounded outwards."""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction as F

from ..algebra import BITS, DIGITS, UNIT, as_float, decimal, near
from .base import OFF, Loss

MORE_DIGITS = Context(prec=70)

FAR = 500
"""Intervals of predictions beyond this have no parabola: exponentials of huge numbers take long."""


class Logarithms(dict[int, int]):
    """x log x in whole units, right to one unit, cached once computed."""

    def __missing__(self, x: int) -> int:
        with localcontext(DIGITS):
            self[x] = int(Decimal(x) * Decimal(x).ln() * UNIT) if x > 1 else 0
        return self[x]


class Logistic(Loss):
    """The negative log-likelihood of labels."""

    name = "logistic"
    needs_ridge = False
    labels = bounded_models = by_leaves = True
    operations = 20

    def __init__(self, delta: object) -> None:
        """There is no parameter."""
        super().__init__(delta)
        self.pattern_logs = Logarithms()

    def value(self, z: F, t: F) -> F:
        """The value, rounded upwards."""
        return softplus(-z * t)

    def minus_conjugate(self, g: F, t: F) -> F:
        """The entropy of -g t."""
        return entropy(-g * t)

    def in_domain(self, g: F, t: F) -> F:
        """The nearest slope with -g t from 0 to 1."""
        return -min(max(-g * t, F(0)), F(1)) * t

    def bent(self, z: F, t: F, careful: bool = False) -> tuple[F, F]:
        """The slope, to 200 digits, and the second derivative."""
        with localcontext(MORE_DIGITS):
            gap = near(z * t, BITS)
            # Beyond 300 the smaller chance is below every digit that counts, and huge numbers take long.
            e = F((-decimal(min(abs(gap), F(300)))).exp())
        share = near((e if gap > 0 else 1) / (1 + e), BITS)
        return -t * share, near(share * (1 - share), 60)

    def slope(self, z: F, t: F) -> F:
        """The slope in doubles."""
        return -t * F(chance(as_float(z * t)))

    def slope_in_floats(self, z: float, t: float) -> float:
        """The slope."""
        return -t * chance(z * t)

    def in_floats(self, z: float, t: float) -> tuple[float, float, float]:
        """Value, slope and second derivative."""
        margin, share = z * t, chance(z * t)
        return math.log1p(math.exp(-abs(margin))) - min(margin, 0.0), -t * share, share * (1 - share)

    def room(self, g: F, t: F) -> tuple[float, float]:
        """The distance to the nearer end."""
        v = as_float(abs(g))
        return min(v, 1.0 - v), v * (1.0 - v)

    def tangent(self, z: F, low: F, high: F, t: F) -> tuple[F, F, F] | None:
        """A parabola through both ends at most; value and slope are off by less than :data:`OFF`."""
        if max(-low, high) > FAR:
            return None
        with localcontext(DIGITS):
            e = (-abs(decimal(z))).exp()
            part = F(e / (1 + e))
        value, bend = softplus(-t * z), part * (1 - part) - OFF
        slope = -t * (1 - part if t * z <= 0 else part)
        least = bend
        for end in (low, high):
            width = abs(end - z)
            rise = softplus(-t * end) - value - slope * (end - z) - OFF * (2 + width)
            secant = 2 * rise / width**2 if width else F(0)
            # No bend falls faster than exp(-width).
            least = min(least, max(secant, bend * (1 - width)))
        return value, slope, least


def chance(t: float) -> float:
    """1 / (1 + exp(t))."""
    e = math.exp(-abs(t))
    return e / (1 + e) if t > 0 else 1 / (1 + e)


def entropy(p: F) -> F:
    """-p log p - (1 - p) log(1 - p), rounded downwards."""
    with localcontext(DIGITS):
        total = Decimal(0)
        for q in (p, 1 - p):
            part = decimal(q)
            total -= part * part.ln() if part else 0
        return F(total) - F(2, 10**42)


def softplus(t: F) -> F:
    """log(1 + exp(t)), rounded upwards."""
    size = abs(t)
    with localcontext(DIGITS):
        # Beyond 200 the logarithm is below the allowance, and huge numbers take the exponential long.
        tail = (1 + (-decimal(size)).exp()).ln() if size <= 200 else Decimal(0)
        return max(t, F(0)) + F(tail) * (1 + F(9, 10**46)) + F(1, 10**46)
