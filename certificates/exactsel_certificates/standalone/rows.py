"""Rows, for the second checker: their slopes, the intercept to take, and logarithms rounded outwards."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction as F

from .algebra import as_float, near
from .work import tally

DIGITS = Context(prec=50)

FARTHEST = 1e100
"""What is further from the median counts as so far where an intercept is looked for."""


def chance(t: float) -> float:
    """1 / (1 + exp(t))."""
    e = math.exp(-abs(t))
    return e / (1 + e) if t > 0 else 1 / (1 + e)


def slopes(loss: str, delta: F, z: Sequence[F], y: Sequence[F]) -> list[F]:
    """About the derivatives of the rows' losses at z, in the domain of the conjugate."""
    if loss == "huber":
        return [min(max(near(p - t), -delta), delta) for p, t in zip(z, y, strict=True)]
    if loss == "poisson":
        return [near(mean(p)) - t for p, t in zip(z, y, strict=True)]
    if loss == "squared_hinge":
        return [-2 * t * max(F(0), near(1 - p * t)) for p, t in zip(z, y, strict=True)]
    return [-t * F(chance(as_float(p * t))) for p, t in zip(z, y, strict=True)]


def intercept(loss: str, delta: F, z: Sequence[F], y: Sequence[F], weights: Sequence[F]) -> F:
    """About the c at which the weighted slopes at z + c sum to zero; any other would do as well.

    Doubles find it, but for what the rows differ from their median, so that a constant common to all costs no digits.
    """
    gaps = [p - t for p, t in zip(z, y, strict=True)] if loss == "huber" else list(z)
    middle = _median(gaps, weights)
    far = F(FARTHEST)  # so that no sum overflows, for any numbers in a file
    near_by = (as_float(min(max(g - middle, -far), far)) for g in gaps)
    rows = [(g, float(t), as_float(w)) for g, t, w in zip(near_by, y, weights, strict=True)]
    edge = as_float(delta)

    if loss == "poisson":
        counts = math.fsum(w * t for _, t, w in rows)
        means = math.fsum(w * math.exp(min(g, 600.0)) for g, _, w in rows)
        share = counts / means if means > 0 else 0.0
        return (F(math.log(share)) if 0 < share < math.inf else F(0)) - middle

    def total(c: float) -> float:
        tally(1 + len(rows) / 4)
        if loss == "huber":
            return math.fsum(w * min(max(g + c, -edge), edge) for g, _, w in rows)
        if loss == "squared_hinge":
            return math.fsum(-2 * w * t * max(0.0, 1 - t * (g + c)) for g, t, w in rows)
        return math.fsum(-w * t * chance((g + c) * t) for g, t, w in rows)

    return F(_crossing(total)) - middle


def _median(values: list[F], weights: Sequence[F]) -> F:
    """A value with at most half the weight below it and at most half above."""
    left, half = F(0), sum(weights, F(0)) / 2
    for value, weight in sorted(zip(values, weights, strict=True)):
        left += weight
        if left >= half:
            return near(value)
    return F(0)


def _crossing(total: Callable[[float], float]) -> float:
    """About where a rising function is zero."""
    if total(0.0) == 0:
        return 0.0  # as where all rows agree with their median, whose cost is then exactly zero
    low, high = -1.0, 1.0
    while total(low) > 0 and low > -1e300:
        low *= 2
    while total(high) < 0 and high < 1e300:
        high *= 2
    while True:
        middle = low + (high - low) / 2
        if not low < middle < high:
            return min((low, high), key=lambda c: abs(total(c)))
        low, high = (low, middle) if total(middle) > 0 else (middle, high)


def shares(slopes: Sequence[F], weights: Sequence[F]) -> list[F]:
    """What each slope is multiplied by: its weight and, for those that outweigh the others, what makes the sum zero."""
    plus = sum((w * g for w, g in zip(weights, slopes, strict=True) if g > 0), F(0))
    minus = -sum((w * g for w, g in zip(weights, slopes, strict=True) if g < 0), F(0))
    if plus == 0 or minus == 0:
        return [F(0)] * len(slopes)
    rising, falling = min(F(1), minus / plus), min(F(1), plus / minus)
    return [w * (rising if g > 0 else falling) for w, g in zip(weights, slopes, strict=True)]


def entropy(p: F) -> F:
    """-p log p - (1 - p) log(1 - p), rounded downwards."""
    with localcontext(DIGITS):
        total = Decimal(0)
        for q in (p, 1 - p):
            part = Decimal(q.numerator) / Decimal(q.denominator)
            total -= part * part.ln() if part else 0
        return F(total) - F(2, 10**42)


def logistic(t: F) -> F:
    """log(1 + exp(t)), rounded upwards."""
    size = abs(t)
    with localcontext(DIGITS):
        # Beyond 200 the logarithm is below the allowance, and huge numbers take the exponential long.
        tail = Decimal(0)
        if size <= 200:
            tail = (1 + (-Decimal(size.numerator) / Decimal(size.denominator)).exp()).ln()
        return max(t, F(0)) + F(tail) * (1 + F(9, 10**46)) + F(1, 10**46)


FAR = 300
"""Predictions of Poisson loss beyond this are replaced by it where slopes are computed."""


def mean(z: F) -> F:
    """About exp(z), not beyond exp(FAR)."""
    with localcontext(DIGITS):
        return F(_decimal(min(z, F(FAR))).exp()) if z > -1000 else F(0)


def counted(g: F, t: F) -> F:
    """-l* of a row of Poisson loss with the count t, at the slope g >= -t, rounded downwards."""
    p = t + g
    with localcontext(DIGITS):
        about = F(_decimal(t).ln()) if t else F(0)
        product = p * F(_decimal(p / (t or 1)).ln()) if p else F(0)
    return g * (1 - about) - product - F(1, 10**44) * (abs(g) * (1 + abs(about)) + abs(product) + p)


def poisson(z: F, t: F) -> F:
    """exp(z) - t z + t log t - t, rounded upwards."""
    if z > 2 * FAR:
        return F(10) ** 400
    with localcontext(DIGITS):
        expected = F(_decimal(z).exp()) if z > -1000 else F(1, 10**400)
        rest = t * F(_decimal(t).ln()) if t else F(0)
    row = expected - t * z + rest - t
    return max(row, F(0)) + F(1, 10**44) * (expected + abs(t * z) + abs(rest) + t)


def _decimal(value: F) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)
