"""Products of a few columns with each other, each one the same to the last bit for any other products computed."""

from __future__ import annotations

from exactsel._jit import njit
from exactsel.kernels.linalg import dot
from exactsel.types import FloatArray, IntArray

TOGETHER = 16
"""Rows that stay in the cache while others pass by."""


@njit
def pair_products(AT: FloatArray, columns: IntArray, known: int, out: FloatArray) -> None:
    """Write a_i'a_j of the listed columns into ``out`` (m, m), whose first ``known`` rows and columns are there."""
    for first in range(known, columns.size, TOGETHER):
        last = min(first + TOGETHER, columns.size)
        for j in range(last):
            row = AT[columns[j]]
            for i in range(max(first, j), last):
                product = dot(AT[columns[i]], row)
                out[i, j] = product
                out[j, i] = product
