"""Quadratic loss, (z - y)^2 / 2, with l*(b) = b^2 / 2 + y b."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from exactsel_certificates.losses.base import FloatArray, Reals, Squares, residuals, whole
from exactsel_certificates.scaled import Scaled, fraction_of


@dataclass(frozen=True)
class Quadratic(Squares):
    """Half the squared residual."""

    name = "quadratic"
    quadratic = of_residuals = without_ridge = True
    steep = 1.0

    def values(self, z: Reals, y: Reals) -> Reals:
        return 0.5 * (z - y) ** 2

    def values_above(self, z: FloatArray, y: FloatArray, error: FloatArray) -> FloatArray:
        size = np.abs(z - y) + error
        return np.asarray(size * (size - 0.5 * size))

    def slopes(self, Z: FloatArray, y: FloatArray) -> FloatArray:
        return Z - y

    def bends(self, Z: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.ones(Z.shape), np.ones(Z.shape)

    def projected(self, G: FloatArray, y: FloatArray) -> FloatArray:
        return G

    def exact_value(self, z: Scaled, y: Scaled, w: Scaled) -> Fraction:
        r = residuals(z, y)
        return fraction_of(w.values @ (r.values * r.values), 2 * r.exponent + w.exponent) / 2

    def exact_slopes(self, z: Scaled, y: Scaled) -> tuple[Scaled, Scaled]:
        return residuals(z, y), whole([1] * y.values.size)
