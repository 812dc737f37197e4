"""Limits on coefficients, lower_j <= x_j <= upper_j with 0 between the two: what a column takes off a bound.

What formula (2), and (3), find below the objective is a constant and, for every column, D w^2 / 2 - s w, where w is its
coefficient, D = lam in formula (2), and s = -a_j'b, or -g_j. A column that is free takes s^2 / (2 D) off the bound, and
one in a box

    c_j(s) = max of s w - (D/2) w^2 over lower_j <= w <= upper_j,

which is no more; with w >= 0 that is max(0, s)^2 / (2 D). c_j is convex in s and, 0 being in the box, at least 0.
Without a ridge, D = 0, the box is what is known of coefficients (radii.py), within the limits there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from exactsel_certificates.formula import Box, FloatArray


def within(box: Box | None, sizes: FloatArray | None) -> Box | None:
    """What coefficients (d,) can be by limits set and by sizes known; None where neither says anything."""
    if sizes is None:
        return box
    return Box(-sizes, sizes) if box is None else Box(np.maximum(box.lower, -sizes), np.minimum(box.upper, sizes))


def gains_above(box: Box, D: FloatArray, V: FloatArray, error: FloatArray) -> FloatArray:
    """c_j (P, d), rounded upwards, where -s is V (P, d), off by ``error``; D has a number for each, or each column.

    The best w is within a rounding of s / D or at a limit, so w loses nothing that counts; s - D w / 2 is at least
    half of s. Of a convex function on an interval the larger value at the ends is the largest. What is beyond doubles
    comes out infinite, and proves nothing.
    """
    most = np.where(np.isfinite(V) & np.isfinite(error), 0.0, np.inf)
    for s in (-V - error, -V + error):
        w = np.clip(np.where(s == 0.0, 0.0, s / D), box.lower, box.upper)
        gained = np.where(np.isfinite(w) & np.isfinite(s), w * (s - 0.5 * D * w), np.inf)
        most = np.maximum(most, np.where(w == 0.0, 0.0, gained))
    return np.asarray(most * (1.0 + 2.0**-48))


def gain(box: Box, D: Fraction, j: int, v: Fraction) -> Fraction:
    """c_j(-v), exactly; with D = 0 of a column that is limited on both sides."""
    lower, upper = float(box.lower[j]), float(box.upper[j])
    w = -v / D if D else Fraction(lower if v > 0 else upper)
    if np.isfinite(lower):
        w = max(w, Fraction(lower))
    if np.isfinite(upper):
        w = min(w, Fraction(upper))
    return w * (-v - D * w / 2)


class Outlier(NamedTuple):
    """A coefficient outside its limits."""

    column: int
    value: float
    lower: float
    upper: float

    def __str__(self) -> str:
        limits = f"{self.lower!r} and {self.upper!r}"
        return f"the model's coefficient of column {self.column} is {self.value!r}, but its limits are {limits}."


def outlier(box: Box, coef: Sequence[float] | FloatArray) -> Outlier | None:
    """The first coefficient (d,) of the data as given that is outside; None where all are inside."""
    coef = np.asarray(coef, dtype=np.float64)
    outside = np.flatnonzero(~((coef >= box.lower) & (coef <= box.upper)))
    if not outside.size:
        return None
    j = int(outside[0])
    return Outlier(j, float(coef[j]), float(box.lower[j]), float(box.upper[j]))
