"""Rows, for the second checker: their weights, the intercept to take, and logarithms rounded outwards."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal, getcontext
from fractions import Fraction as F


def slope(loss: str, delta: float, z: float, y: float) -> float:
    """The derivative of the loss of one row, in the domain of the conjugate."""
    if loss == "huber":
        return min(max(z - y, -delta), delta)
    return -y * (1 - math.tanh(z * y / 2)) / 2


def intercept(loss: str, delta: float, z: Sequence[F], y: Sequence[F], weights: Sequence[F]) -> F:
    """About the c at which the weighted slopes at z + c sum to zero; any other would do as well."""
    rows = [(float(p), float(t), float(w)) for p, t, w in zip(z, y, weights, strict=True)]

    def total(c: float) -> float:
        return sum(w * slope(loss, delta, p + c, t) for p, t, w in rows)

    low, high = -1.0, 1.0
    while total(low) > 0 and low > -1e60:
        low *= 2
    while total(high) < 0 and high < 1e60:
        high *= 2
    for _ in range(1100):
        middle = low + (high - low) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if total(middle) > 0 else (middle, high)
    return F(min((low, high), key=lambda c: abs(total(c))))


def shares(slopes: Sequence[F], weights: Sequence[F], level: bool) -> list[F]:
    """What each slope is multiplied by: its weight and, with an intercept, what makes the sum zero."""
    if not level:
        return list(weights)
    plus = sum((w * g for w, g in zip(weights, slopes, strict=True) if g > 0), F(0))
    minus = -sum((w * g for w, g in zip(weights, slopes, strict=True) if g < 0), F(0))
    if plus == 0 or minus == 0:
        return [F(0)] * len(slopes)
    rising, falling = min(F(1), minus / plus), min(F(1), plus / minus)
    return [w * (rising if g > 0 else falling) for w, g in zip(weights, slopes, strict=True)]


def entropy(p: list[float]) -> F:
    """-sum p log p + (1 - p) log(1 - p), rounded downwards."""
    getcontext().prec = 50
    total = Decimal(0)
    for value in p:
        for q in (F(value), 1 - F(value)):
            part = Decimal(q.numerator) / Decimal(q.denominator)
            total -= part * part.ln() if part else 0
    return F(total) - F(len(p) + 1, 10**42)


def logistic(t: list[F]) -> F:
    """sum log(1 + exp(t)), rounded upwards."""
    getcontext().prec = 50
    parts = [Decimal(v.numerator) / Decimal(v.denominator) for v in t]
    total = sum((max(v, Decimal(0)) + (1 + (-abs(v)).exp()).ln() for v in parts), Decimal(0))
    return F(total) * (1 + F(len(t) + 8, 10**46)) + F(len(t), 10**46)
