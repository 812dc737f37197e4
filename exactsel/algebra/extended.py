"""Inner products to twice the digits of a double, by exact products of slices (Ozaki, Ogita, Oishi, Rump 2012).

Every vector is cut into slices of so few bits that sums of products of two slices are exact in doubles, in whatever
order a library adds them up. What is left is to add a few dozen numbers an entry.
"""

from __future__ import annotations

import math

import numpy as np

from exactsel.algebra.threads import one_thread
from exactsel.types import FloatArray

DIGITS = 112
"""Bits below the product of two lengths that are kept at least."""

PRODUCT_ERROR = 2.0**-100
"""What :func:`extended_products` may be off by, times the lengths of the two vectors."""


def extended_products(vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The inner products of the rows of ``vectors`` (m, n), as sums of two arrays (m, m); the first is rounded well."""
    slices, m = _slices(vectors), len(vectors)
    high, low = np.zeros((m, m)), np.zeros((m, m))
    with one_thread():
        for total in range(len(slices)):
            for i in range(total + 1):
                term = slices[i] @ slices[total - i].T
                high, error = _sum(high, term)
                low += error
    return _sum(high, low)


def _slices(vectors: FloatArray) -> list[FloatArray]:
    """The rows as a sum of multiples of ever smaller powers of two, each slice of few bits."""
    n = max(2, vectors.shape[1])
    bits = (52 - math.ceil(math.log2(n))) // 2
    exponent = np.frexp(np.abs(vectors).max(axis=1, initial=0.0))[1].astype(float)[:, None]
    rest, slices = vectors.copy(), []
    for part in range(math.ceil((DIGITS + math.log2(n)) / bits)):
        anchor = 1.5 * np.exp2(exponent - bits * (part + 1) + 52.0)
        piece = (rest + anchor) - anchor
        slices.append(piece)
        rest = rest - piece
    return slices


def _sum(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """a + b, and what rounding took (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)
