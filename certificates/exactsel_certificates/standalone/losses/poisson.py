"""Poisson loss, exp(z) - t z + t log t - t with counts t, for the second checker; logarithms are rounded outwards."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import localcontext
from fractions import Fraction as F

from ..algebra import BITS, DIGITS, as_float, decimal, near
from ..values import Outside
from .base import Loss

FAR = 300
"""Predictions beyond this are replaced by it where slopes are computed."""


class Poisson(Loss):
    """Half the deviance of counts."""

    name = "poisson"
    needs_ridge = False
    operations = 20

    @classmethod
    def check_target(cls, y: Sequence[float]) -> None:
        """Counts are not negative."""
        if min(y) < 0:
            raise Outside(f"y holds {min(y):g}, but counts were expected with poisson loss.")

    def value(self, z: F, t: F) -> F:
        """The value, rounded upwards."""
        if z > 2 * FAR:
            return F(10) ** 400
        with localcontext(DIGITS):
            expected = F(decimal(z).exp()) if z > -1000 else F(1, 10**400)
            rest = t * F(decimal(t).ln()) if t else F(0)
        row = expected - t * z + rest - t
        return max(row, F(0)) + F(1, 10**44) * (expected + abs(t * z) + abs(rest) + t)

    def minus_conjugate(self, g: F, t: F) -> F:
        """The value at slopes g >= -t, rounded downwards."""
        p = t + g
        with localcontext(DIGITS):
            about = F(decimal(t).ln()) if t else F(0)
            product = p * F(decimal(p / (t or 1)).ln()) if p else F(0)
        return g * (1 - about) - product - F(1, 10**44) * (abs(g) * (1 + abs(about)) + abs(product) + p)

    def in_domain(self, g: F, t: F) -> F:
        """The nearest slope from -t on."""
        return max(g, -t)

    def bent(self, z: F, t: F, careful: bool = False) -> tuple[F, F]:
        """Mean less count, and mean."""
        expected = near(mean(z), BITS)
        return expected - t, near(expected, 60)

    def slope(self, z: F, t: F) -> F:
        """Mean less count, the mean in few digits."""
        return near(mean(z)) - t

    def room(self, g: F, t: F) -> tuple[float, float]:
        """The distance to -t."""
        return as_float(t + g), as_float(t + g)

    def costs_nothing(self, y: Sequence[F], level: bool) -> bool:
        """Whether all counts are alike, and the empty model predicts them: exp(c) at c = 0 or at their logarithm."""
        return all(v == y[0] for v in y) and (y[0] == 1 or (level and y[0] > 0))

    def shift(self, rows: Sequence[tuple[float, float, float]]) -> float:
        """The logarithm of counts by means."""
        counts = math.fsum(w * t for _, t, w in rows)
        means = math.fsum(w * math.exp(min(g, 600.0)) for g, _, w in rows)
        share = counts / means if means > 0 else 0.0
        return math.log(share) if 0 < share < math.inf else 0.0


def mean(z: F) -> F:
    """About exp(z), not beyond exp(FAR)."""
    with localcontext(DIGITS):
        return F(decimal(min(z, F(FAR))).exp()) if z > -1000 else F(0)
