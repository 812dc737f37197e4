"""Squared hinge loss of labels -1 and 1: max(0, 1 - y z)^2, with l*(b) = b^2 / 4 + y b where y b <= 0."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from exactsel_certificates.losses.base import FloatArray, Reals, Squares, labels, of_labels, whole
from exactsel_certificates.scaled import Scaled, fraction_of


@dataclass(frozen=True)
class SquaredHinge(Squares):
    """The square of what a prediction is short of the margin."""

    name = "squared_hinge"
    kinked = True
    steep = 2.0
    stiff = 4

    def refused_target(self, y: FloatArray) -> str:
        return of_labels(self.name, y)

    def values(self, z: Reals, y: Reals) -> Reals:
        return np.maximum(0, 1 - y * z) ** 2

    def values_above(self, z: FloatArray, y: FloatArray, error: FloatArray) -> FloatArray:
        return np.asarray(np.maximum(0.0, 1.0 - y * z + error) ** 2)

    def slopes(self, Z: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(-2.0 * y * np.maximum(0.0, 1.0 - y * Z))

    def bends(self, Z: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.where(1.0 - y * Z > 0, 2.0, 0.0), np.full(Z.shape, 2.0)

    def projected(self, G: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(y * np.minimum(y * G, 0.0))

    def room(self, g: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.abs(g), np.abs(g)

    def exact_value(self, z: Scaled, y: Scaled, w: Scaled) -> Fraction:
        short = _short(z, labels(y))
        return fraction_of(int(w.values @ (short * short)), w.exponent + 2 * min(z.exponent, 0))

    def exact_slopes(self, z: Scaled, y: Scaled) -> tuple[Scaled, Scaled]:
        short = _short(z, labels(y))
        slopes = Scaled(-2 * labels(y) * short, min(z.exponent, 0))
        return slopes, whole([2 * int(value != 0) for value in short])

    def exact_majorizer(self, z: Scaled, y: Scaled) -> list[Fraction]:
        return [Fraction(2)] * y.values.size


def _short(z: Scaled, signs: NDArray[np.object_]) -> NDArray[np.object_]:
    """max(0, 1 - y z) at an exponent of at most 0."""
    exponent = min(z.exponent, 0)
    gaps = (1 << -exponent) - signs * z.at(exponent)
    return np.array([max(0, gap) for gap in gaps], dtype=object)
