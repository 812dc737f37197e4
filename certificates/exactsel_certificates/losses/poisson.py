"""Poisson loss l(z, y) = exp(z) - y z + y log y - y, y >= 0, rounded to the side that is safe.

Its conjugate is l*(b) = p log p - p - (y log y - y) with p = y + b >= 0, which is p log(p / y) + b (log y - 1). Written
so nothing cancels but terms of the size of b, where p is not small beside y and log(p / y) = log1p(b / y); where p is
small, log(p / y) itself is right. Exponentials and logarithms are taken to be right to 16 units of 2^-53; in exact
arithmetic they have 50 digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

from exactsel_certificates.losses.base import ExactLoss, FloatArray, Reals, U
from exactsel_certificates.scaled import BITS, DIGITS, Scaled, decimal_of, fraction_of
from exactsel_certificates.sums import row_slices

FAR = 300.0
"""Slopes are never computed beyond this prediction: larger ones prove nothing of use."""

SMALL = 1e-200
"""Part of the count below which a mean counts as zero: the part of -l* that this omits is positive."""

TERMS = 20

OFF = Fraction(1, 10 ** (DIGITS - 6))
"""Part of the terms of a row that its value is moved by: far more than its rounding."""

LOWEST = -1000
"""Below this exponentials are taken for zero, or for 10^-400 where they must not be too small."""


@dataclass(frozen=True)
class Poisson(ExactLoss):
    """Half the deviance of a count, zero where the prediction is its logarithm."""

    name = "poisson"
    without_ridge = logarithms = True

    def refused_target(self, y: FloatArray) -> str:
        return "" if np.all(y >= 0.0) else "y holds numbers below 0, but poisson loss needs counts."

    def values(self, z: Reals, y: Reals) -> Reals:
        with np.errstate(over="ignore"):
            return np.exp(z) - y * (z + 1 - np.log(np.where(y > 0, y, 1)))

    def values_above(self, z: FloatArray, y: FloatArray, error: FloatArray) -> FloatArray:
        # A convex function is largest at an end of an interval. What the logarithm of y is off by widens it.
        counted = np.where(y > 0, y, 1.0)
        logarithm = np.log(counted)
        wide = error + 20.0 * U * (np.abs(z) + np.abs(logarithm) + 1.0)
        ends = (z - logarithm - wide, z - logarithm + wide)
        with np.errstate(all="ignore"):
            row = counted * np.maximum(exp_less_line(ends[0]), exp_less_line(ends[1]))
            plain = np.exp(z + wide)
        return np.asarray(np.where(y > 0, row, plain) * (1.0 + 64 * U) + 1e-300)

    def slopes(self, Z: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(np.exp(np.minimum(Z, FAR)) - y)

    def bends(self, Z: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        means = np.exp(np.minimum(Z, FAR))
        return means, means

    def projected(self, G: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(np.maximum(G, -y))

    def minus_conjugate(self, G: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        # Where rows are smaller than the truth by more than their roundings, that is what SMALL omits.
        counted = np.where(y > 0, y, 1.0)
        # Without counts the conjugate is p log p - p, as if y were 1 in the logarithms.
        p, logarithm = y + G, np.log(counted)
        mask = p > SMALL * counted
        with np.errstate(all="ignore"):
            ratio = np.where((y > 0) & (p >= 0.5 * y), np.log1p(G / counted), np.log(p / counted))
        products = np.where(mask, p * np.where(mask, ratio, 0.0), 0.0)
        linear = G * (1.0 - logarithm)
        return linear - products, np.abs(G) * (1.0 + np.abs(logarithm)) + np.abs(products)

    def levels(self, y: FloatArray, weights: FloatArray | None, Z: FloatArray) -> FloatArray:
        # The weighted sum of exp(z + c) is that of the counts; 0 where no c makes it so.
        top, means, counts = np.max(Z, axis=1), np.zeros(len(Z)), 0.0
        for rows in row_slices(y.size):
            w = 1.0 if weights is None else weights[rows]
            means += np.sum(w * np.exp(Z[:, rows] - top[:, None]), axis=1)
            counts += float(np.sum(w * y[rows]))
        with np.errstate(all="ignore"):
            c = np.log(counts) - np.log(means) - top
        return np.where(np.isfinite(c), c, 0.0)

    def room(self, g: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return y + g, y + g

    def steepness(self, y: FloatArray, weights: FloatArray | None, cost: float, eta: float) -> float:
        w = np.ones(1) if weights is None else weights
        if not eta <= 0.01 * float(np.sqrt(np.min(w))):
            return float("inf")
        return 1.03 * float(np.max(np.maximum(4.0 * y, 2.5 * cost / w)))

    def costs_nothing(self, y: FloatArray, intercept: bool) -> bool:
        # All counts are exp(c): log y is no double, so that sums of doubles, and of fractions, say a little more.
        return bool(np.all(y == y[0]) and (y[0] > 0 if intercept else y[0] == 1))

    def exact_value(self, z: Scaled, y: Scaled, w: Scaled) -> Fraction:
        total = Fraction(0)
        for value, count, weight in zip(z.values, y.values, w.values, strict=True):
            if not weight:
                continue
            at, t = fraction_of(value, z.exponent), fraction_of(count, y.exponent)
            if at > 2 * FAR:
                return Fraction(10) ** 400  # beyond doubles
            with localcontext() as context:
                context.prec = DIGITS
                mean = Fraction(_exponential(at)) if at > LOWEST else Fraction(1, 10**400)
                rest = t * (_logarithm(t) if t else Fraction(0))
            row = mean - t * at + rest - t
            room = OFF * (mean + abs(t * at) + abs(rest) + t)
            total += Fraction(int(weight)) * (max(row, Fraction(0)) + room)
        return total * Fraction(2) ** w.exponent

    def exact_slopes(self, z: Scaled, y: Scaled) -> tuple[Scaled, Scaled]:
        # About exp(z), in units of 2^-BITS; never negative, and no larger than exp(FAR).
        with localcontext() as context:
            context.prec = DIGITS + 140  # the largest have 131 digits before the point
            values = [_exponential(min(fraction_of(v, z.exponent), Fraction(FAR))) for v in z.values]
            means = Scaled(np.array([round(Fraction(v) * 2**BITS) for v in values], dtype=object), -BITS)
        exponent = min(means.exponent, y.exponent)
        return Scaled(means.at(exponent) - y.at(exponent), exponent), means

    def exact_minus_conjugate(self, slopes: Scaled, y: Scaled, w: Scaled) -> Fraction:
        total = Fraction(0)
        for g, t, v in zip(slopes.values, y.values, w.values, strict=True):
            total += int(v) * _minus_conjugate(fraction_of(g, slopes.exponent), fraction_of(t, y.exponent))
        return total * Fraction(2) ** w.exponent


def _minus_conjugate(b: Fraction, count: Fraction) -> Fraction:
    """-l* of a row at a slope b >= -y, rounded downwards."""
    p = count + b
    with localcontext() as context:
        context.prec = DIGITS
        about = _logarithm(count) if count else Fraction(0)
        product = p * _logarithm(p / (count or 1)) if p else Fraction(0)
    return b * (1 - about) - product - OFF * (abs(b) * (1 + abs(about)) + abs(product) + p)


def exp_less_line(t: FloatArray) -> FloatArray:
    """e^t - 1 - t to 64 units: by its series where the difference would cancel."""
    inner = np.clip(t, -1.0, 1.0)
    series = np.ones(t.shape)
    for i in range(TERMS, 2, -1):
        series = 1.0 + inner / i * series
    return np.asarray(np.where(np.abs(t) < 1.0, 0.5 * inner * inner * series, np.expm1(t) - t))


def _exponential(at: Fraction) -> Decimal:
    return decimal_of(at).exp() if at > LOWEST else Decimal(0)


def _logarithm(value: Fraction) -> Fraction:
    return Fraction(decimal_of(value).ln())
