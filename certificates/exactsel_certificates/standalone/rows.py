"""Digits of rows' logarithms, and weights of rows with an intercept, for the second checker."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction as F

DIGITS = Context(prec=50)

BITS = 200
"""Binary digits of improved points, and of slopes at them."""

UNIT = 2**80
"""Of logarithms as whole numbers."""


def decimal(value: F) -> Decimal:
    """A fraction in the digits of the context."""
    return Decimal(value.numerator) / Decimal(value.denominator)


def shares(slopes: Sequence[F], weights: Sequence[F]) -> list[F]:
    """What each slope is multiplied by: its weight and, for those that outweigh the others, what makes the sum zero."""
    plus = sum((w * g for w, g in zip(weights, slopes, strict=True) if g > 0), F(0))
    minus = -sum((w * g for w, g in zip(weights, slopes, strict=True) if g < 0), F(0))
    if plus == 0 or minus == 0:
        return [F(0)] * len(slopes)
    rising, falling = min(F(1), minus / plus), min(F(1), plus / minus)
    return [w * (rising if g > 0 else falling) for w, g in zip(weights, slopes, strict=True)]
