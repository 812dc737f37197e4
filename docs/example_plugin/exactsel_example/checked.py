"""What a checker of proofs has to know of the loss in loss.py; it is to be believed, so it allows for all rounding."""

from dataclasses import dataclass

import numpy as np

from exactsel_certificates.losses.base import Loss


@dataclass(frozen=True)
class CheckedAsymmetric(Loss):
    """w r^2 / 2 with r = z - y, w = 1 where r < 0, else 1/4; l*(b) = y b + b^2 / (2 w)."""

    name = "asymmetric"
    steep = 1.0  # l'^2 <= 2 l, and l'' <= 1

    def values(self, z, y):
        return np.where(z < y, 0.5, 0.125) * (z - y) ** 2

    def values_above(self, z, y, error):
        # A convex function is largest at an end of an interval.
        low, high = z - y - error, z - y + error
        return np.maximum(np.where(low < 0, 0.5, 0.125) * low**2, np.where(high < 0, 0.5, 0.125) * high**2)

    def slopes(self, Z, y):
        return np.where(y > Z, 1.0, 0.25) * (Z - y)

    def bends(self, Z, y):
        return np.where(y > Z, 1.0, 0.25), np.ones(Z.shape)

    def projected(self, G, y):
        return G  # any number is a slope

    def minus_conjugate(self, G, y):
        squares, pulls = np.where(G < 0, 0.5, 2.0) * G * G, y * G
        return -(squares + pulls), squares + np.abs(pulls)
