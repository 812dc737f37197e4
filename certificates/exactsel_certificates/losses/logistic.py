"""Logistic loss of labels -1 and 1: log(1 + exp(-y z)); -l*(b) is the entropy of p = -y b, 0 <= p <= 1."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

from exactsel_certificates.losses.base import (
    LEAVES,
    MINORANTS,
    PATTERNS,
    ExactLoss,
    FloatArray,
    Reals,
    U,
    labels,
    of_labels,
)
from exactsel_certificates.scaled import BITS, DIGITS, Scaled, decimal_of, fraction_of

ROUNDED = 64 * U
"""Part of themselves that values and slopes may be off by, exponentials and logarithms by 16 units of 2^-53."""


@dataclass(frozen=True)
class Logistic(ExactLoss):
    """The deviance of a label, halved."""

    name = "logistic"
    serves = frozenset({LEAVES, PATTERNS, MINORANTS})
    without_ridge = scoped = logarithms = True
    steep = 0.25

    def refused_target(self, y: FloatArray) -> str:
        return of_labels(self.name, y)

    def values(self, z: Reals, y: Reals) -> Reals:
        t = -y * z
        return np.maximum(t, 0) + np.log1p(np.exp(-np.abs(t)))

    def values_above(self, z: FloatArray, y: FloatArray, error: FloatArray) -> FloatArray:
        t = -y * z + error
        return np.asarray(np.maximum(t, 0) + np.log1p(np.exp(-np.abs(t))))

    def slopes(self, Z: FloatArray, y: FloatArray) -> FloatArray:
        t = -y * Z
        e = np.exp(-np.abs(t))
        return np.asarray(-y * np.where(t >= 0.0, 1.0, e) / (1.0 + e))

    def bends(self, Z: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        e = np.exp(-np.abs(Z))
        half = np.maximum(np.abs(Z) / 2.0, 1e-4)
        return e / (1.0 + e) ** 2, np.tanh(half) / (4.0 * half)

    def projected(self, G: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(-y * np.clip(-y * G, 0.0, 1.0))

    def minus_conjugate(self, G: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        p = -y * G
        rows = np.where(p > 0, -p * np.log(p), 0.0) + np.where(p < 1, -(1.0 - p) * np.log1p(-p), 0.0)
        return rows, rows

    def room(self, g: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        p = np.abs(g)
        return p * (1.0 - p), np.minimum(p, 1.0 - p)

    def curvature_on(self, z: FloatArray, y: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
        # By the difference at each end or, where that has no digits, by l''(t) >= l''(z) exp(-|t - z|).
        bend, value, slope = self.bends(z, y)[0], self.values(z, y), self.slopes(z, y)
        w = bend
        for end in (low, high):
            width, there = end - z, self.values(end, y)
            size = there + value + np.abs(slope * width)
            with np.errstate(all="ignore"):
                secant = 2.0 * (there - value - slope * width - 2 * ROUNDED * size) / (width * width)
            secant = np.where(np.abs(width) > 1e-100, secant, 0.0)
            w = np.minimum(w, np.maximum(bend * np.exp(-np.abs(width)), secant))
        return np.asarray(w * (1.0 - 4 * ROUNDED))

    def exact_value(self, z: Scaled, y: Scaled, w: Scaled) -> Fraction:
        total = Fraction(0)
        with localcontext() as context:
            context.prec = DIGITS
            for value, label, weight in zip(z.values, labels(y), w.values, strict=True):
                t = decimal_of(fraction_of(-value * label, z.exponent))
                total += int(weight) * Fraction(max(t, Decimal(0)) + (1 + (-abs(t)).exp()).ln())
        off = Fraction(1, 10 ** (DIGITS - 4))
        return (total * (1 + 9 * off) + off * int(sum(w.values))) * Fraction(2) ** w.exponent

    def exact_slopes(self, z: Scaled, y: Scaled) -> tuple[Scaled, Scaled]:
        chances = [_chance(fraction_of(v * t, z.exponent)) for v, t in zip(z.values, labels(y), strict=True)]
        bends = np.array([p * (2**BITS - p) for p in chances], dtype=object)
        return Scaled(-labels(y) * np.array(chances, dtype=object), -BITS), Scaled(bends, -2 * BITS)

    def exact_minus_conjugate(self, slopes: Scaled, y: Scaled, w: Scaled) -> Fraction:
        chances = (abs(fraction_of(value, slopes.exponent)) for value in slopes.values)
        total = sum((int(v) * _entropy(p) for p, v in zip(chances, w.values, strict=True)), Fraction(0))
        return total * Fraction(2) ** w.exponent


def _chance(t: Fraction) -> int:
    """1 / (1 + exp(t)) in units of 2^-BITS, nearly."""
    if abs(t) > BITS:
        return 0 if t > 0 else 2**BITS
    with localcontext() as context:
        context.prec = DIGITS
        small = (-abs(decimal_of(t))).exp()
        chance = Fraction((small if t > 0 else Decimal(1)) / (1 + small))
    nearest: int = round(chance * 2**BITS)
    return nearest


def _entropy(p: Fraction) -> Fraction:
    """-p log p - (1 - p) log(1 - p), rounded downwards by less than 10^-40."""
    with localcontext() as context:
        context.prec = DIGITS
        total = Decimal(0)
        if 0 < p < 1:
            q, rest = decimal_of(p), decimal_of(1 - p)
            total -= q * q.ln() + rest * rest.ln()
    return Fraction(total) - Fraction(2, 10 ** (DIGITS - 8))
