"""Rows of Poisson loss l(z, y) = exp(z) - y z + y log y - y in doubles, y >= 0, rounded to the side that is safe.

Its conjugate is l*(b) = p log p - p - (y log y - y) with p = y + b >= 0, which is p log(p / y) + b (log y - 1). Written
so nothing cancels but terms of the size of b, where p is not small beside y and log(p / y) = log1p(b / y); where p is
small, log(p / y) itself is right. Exponentials and logarithms are taken to be right to 16 units of 2^-53.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]

U = 2.0**-53

FAR = 300.0
"""Slopes are never computed beyond this prediction: larger ones prove nothing of use."""

SMALL = 1e-200
"""Part of the count below which a mean counts as zero: the part of -l* that this omits is positive."""

TERMS = 20


def minus_poisson_conjugate(G: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """-l* of rows at slopes G (P, n) no smaller than -y, and sizes of which they are off by no more than 32 roundings.

    Where they are smaller than the truth by more, that is what :data:`SMALL` omits.
    """
    counted = np.where(y > 0, y, 1.0)
    # Without counts the conjugate is p log p - p, as if y were 1 in the logarithms.
    p, logarithm = y + G, np.log(counted)
    kept = p > SMALL * counted
    with np.errstate(all="ignore"):
        ratio = np.where((y > 0) & (p >= 0.5 * y), np.log1p(G / counted), np.log(p / counted))
    products = np.where(kept, p * np.where(kept, ratio, 0.0), 0.0)
    linear = G * (1.0 - logarithm)
    return linear - products, np.abs(G) * (1.0 + np.abs(logarithm)) + np.abs(products)


def poisson_values_above(z: FloatArray, y: FloatArray, error: FloatArray) -> FloatArray:
    """The loss of some rows (m,) at predictions that are off by ``error`` at most; no smaller.

    A convex function is largest at an end of an interval. What the logarithm of y is off by widens it.
    """
    counted = np.where(y > 0, y, 1.0)
    logarithm = np.log(counted)
    wide = error + 20.0 * U * (np.abs(z) + np.abs(logarithm) + 1.0)
    ends = (z - logarithm - wide, z - logarithm + wide)
    with np.errstate(all="ignore"):
        row = counted * np.maximum(exp_less_line(ends[0]), exp_less_line(ends[1]))
        plain = np.exp(z + wide)
    return np.asarray(np.where(y > 0, row, plain) * (1.0 + 64 * U) + 1e-300)


def exp_less_line(t: FloatArray) -> FloatArray:
    """e^t - 1 - t to 64 units: by its series where the difference would cancel."""
    inner = np.clip(t, -1.0, 1.0)
    series = np.ones(t.shape)
    for i in range(TERMS, 2, -1):
        series = 1.0 + inner / i * series
    return np.asarray(np.where(np.abs(t) < 1.0, 0.5 * inner * inner * series, np.expm1(t) - t))
