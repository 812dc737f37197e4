"""Rows of Poisson loss in fractions, exponentials and logarithms with 50 digits, rounded to the side that is safe."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np

from exactsel_certificates.poisson import FAR
from exactsel_certificates.scaled import BITS, DIGITS, Scaled, decimal_of, fraction_of, scaled

OFF = Fraction(1, 10 ** (DIGITS - 6))
"""Part of the terms of a row that its value is moved by: far more than its rounding."""

LOWEST = -1000
"""Below this exponentials are taken for zero, or for 10^-400 where they must not be too small."""


def minus_conjugate(b: Fraction, y: float) -> Fraction:
    """-l* of a row at a slope b >= -y, rounded downwards."""
    count = Fraction(y)
    p = count + b
    with localcontext() as context:
        context.prec = DIGITS
        about = _logarithm(count) if count else Fraction(0)
        product = p * _logarithm(p / (count or 1)) if p else Fraction(0)
    return b * (1 - about) - product - OFF * (abs(b) * (1 + abs(about)) + abs(product) + p)


def steepness(z: Scaled, y: Scaled) -> Scaled:
    """About the slopes exp(z) - y of the rows at predictions z (n,), in the domain of l*."""
    means = means_of(z)
    exponent = min(means.exponent, y.exponent)
    return Scaled(means.at(exponent) - y.at(exponent), exponent)


def means_of(z: Scaled) -> Scaled:
    """About exp(z), in units of 2^-BITS; never negative, and no larger than exp(FAR)."""
    with localcontext() as context:
        context.prec = DIGITS + 140  # the largest have 131 digits before the point
        values = [_exponential(min(fraction_of(v, z.exponent), Fraction(FAR))) for v in z.values]
        return Scaled(np.array([round(Fraction(v) * 2**BITS) for v in values], dtype=object), -BITS)


def poisson_loss(z: Scaled, y: Any, weights: Any) -> Fraction:
    """The (weighted) sum of exp(z) - y z + y log y - y at predictions z (n,), rounded upwards."""
    w = np.ones(len(y)) if weights is None else weights
    total = Fraction(0)
    for value, count, weight in zip(z.values, y.tolist(), scaled(w).values, strict=True):
        if not weight:
            continue
        at, t = fraction_of(value, z.exponent), Fraction(count)
        if at > 2 * FAR:
            return Fraction(10) ** 400  # beyond doubles
        with localcontext() as context:
            context.prec = DIGITS
            mean = Fraction(_exponential(at)) if at > LOWEST else Fraction(1, 10**400)
            rest = t * (_logarithm(t) if t else Fraction(0))
        row = mean - t * at + rest - t
        room = OFF * (mean + abs(t * at) + abs(rest) + t)
        total += Fraction(int(weight)) * (max(row, Fraction(0)) + room)
    return total * Fraction(2) ** scaled(w).exponent


def _exponential(at: Fraction) -> Decimal:
    return decimal_of(at).exp() if at > LOWEST else Decimal(0)


def _logarithm(value: Fraction) -> Fraction:
    return Fraction(decimal_of(value).ln())
