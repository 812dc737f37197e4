"""Huber loss: r^2 / 2 up to abs(r) = delta, r = z - y, linear beyond; l*(b) = b^2 / 2 + y b where abs(b) <= delta."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from exactsel_certificates.losses.base import MINORANTS, FloatArray, Reals, Squares, U, residuals, whole
from exactsel_certificates.scaled import Scaled, fraction_of, scaled


@dataclass(frozen=True)
class Huber(Squares):
    """With a threshold."""

    delta: float

    name = "huber"
    serves = frozenset({MINORANTS})
    of_residuals = without_ridge = scoped = kinked = True
    steep = 1.0

    @classmethod
    def of(cls, delta: float) -> Huber:
        return cls(delta)

    def values(self, z: Reals, y: Reals) -> Reals:
        r, delta = np.abs(z - y), self.delta
        return np.where(r <= delta, 0.5 * r * r, delta * (r - 0.5 * delta))

    def values_above(self, z: FloatArray, y: FloatArray, error: FloatArray) -> FloatArray:
        size = np.abs(z - y) + error
        steep = np.minimum(size, self.delta)
        return np.asarray(steep * (size - 0.5 * steep))

    def slopes(self, Z: FloatArray, y: FloatArray) -> FloatArray:
        return np.clip(Z - y, -self.delta, self.delta)

    def bends(self, Z: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        size = np.abs(Z - y)
        return np.where(size <= self.delta, 1.0, 0.0), self.delta / np.maximum(size, self.delta)

    def projected(self, G: FloatArray, y: FloatArray) -> FloatArray:
        return np.clip(G, -self.delta, self.delta)

    def room(self, g: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        slack = self.delta - np.abs(g)
        return slack / self.delta * (1.0 + np.abs(g) / self.delta), slack

    def curvature_on(self, z: FloatArray, y: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
        # From the quadratic part an end t that is e outside of it allows 1 - (e / (t - z))^2; else nothing is known.
        delta = self.delta
        w = np.where(np.abs(z - y) * (1.0 + 4 * U) <= delta, 1.0, 0.0)
        for end, beyond in ((high, high - y), (low, y - low)):
            excess = beyond * (1.0 + 4 * U) - delta
            with np.errstate(all="ignore"):
                share = excess * (1.0 + 8 * U) / np.abs(end - z)
                allowed = 1.0 - share * share * (1.0 + 8 * U) - 4 * U
            w = np.minimum(w, np.where(excess > 0.0, np.where(share < 1.0, allowed, 0.0), 1.0))
        return w

    def exact_value(self, z: Scaled, y: Scaled, w: Scaled) -> Fraction:
        delta, total = Fraction(self.delta), Fraction(0)
        for weight, size in zip(w.values, _sizes(z, y), strict=True):
            steep = min(size, delta)
            total += int(weight) * steep * (size - steep / 2)
        return total * Fraction(2) ** w.exponent

    def exact_slopes(self, z: Scaled, y: Scaled) -> tuple[Scaled, Scaled]:
        r, delta = residuals(z, y), scaled([self.delta])
        lowest = min(delta.exponent, r.exponent)
        most, at = delta.at(lowest)[0], r.at(lowest)
        slopes = Scaled(np.array([min(max(v, -most), most) for v in at], dtype=object), lowest)
        return slopes, whole([int(abs(v) <= most) for v in at])

    def exact_majorizer(self, z: Scaled, y: Scaled) -> list[Fraction]:
        delta = Fraction(self.delta)
        return [delta / max(size, delta) for size in _sizes(z, y)]


def _sizes(z: Scaled, y: Scaled) -> list[Fraction]:
    """The sizes of the residuals."""
    r = residuals(z, y)
    return [abs(fraction_of(int(value), r.exponent)) for value in r.values]
