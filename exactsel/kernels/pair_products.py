"""Products of a few columns with each other, each one the same to the last bit whatever others are asked for."""

from __future__ import annotations

from exactsel._jit import njit
from exactsel.kernels.linalg import dot
from exactsel.types import FloatArray, IntArray


@njit
def pair_products(AT: FloatArray, columns: IntArray, known: int, out: FloatArray) -> None:
    """Write a_i'a_j of the listed columns into ``out`` (m, m), whose first ``known`` rows and columns are there."""
    for i in range(known, columns.size):
        for j in range(i + 1):
            product = dot(AT[columns[i]], AT[columns[j]])
            out[i, j] = product
            out[j, i] = product
