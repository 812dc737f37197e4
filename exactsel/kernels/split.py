"""The ascent to a split: steps on a symmetric N with zero diagonal (see bounds/split.py).

With t_i the sum of the r - 1 largest |N_ij| of row i, every r x r principal submatrix of N + diag(t) is diagonally
dominant. What is wanted is an N that leaves R = M - N - diag(t) positive semidefinite.
"""

from __future__ import annotations

import numpy as np

from exactsel._jit import njit
from exactsel.types import FloatArray, IntArray


@njit
def row_sums(N: FloatArray, sums: FloatArray, largest: IntArray) -> None:
    """The sum of the largest |N_ij| of every row, as many as ``largest`` (m, r - 1) has columns, and where they are.

    -1 in ``largest`` where a row has fewer that are not zero.
    """
    count = largest.shape[1]
    values = np.empty(max(1, count))
    for i in range(N.shape[0]):
        values[:] = 0.0
        largest[i, :] = -1
        if count == 0:
            sums[i] = 0.0
            continue
        for j in range(N.shape[0]):
            size = abs(N[i, j])
            if size > values[count - 1]:
                at = count - 1
                while at > 0 and values[at - 1] < size:
                    values[at] = values[at - 1]
                    largest[i, at] = largest[i, at - 1]
                    at -= 1
                values[at] = size
                largest[i, at] = j
        sums[i] = np.sum(values[:count])


@njit
def remainder(M: FloatArray, N: FloatArray, sums: FloatArray, R: FloatArray) -> None:
    """R = M - N - diag(sums)."""
    for i in range(M.shape[0]):
        for j in range(M.shape[0]):
            R[i, j] = M[i, j] - N[i, j]
        R[i, i] -= sums[i]


@njit
def descend(N: FloatArray, P: FloatArray, largest: IntArray, value: float, relaxation: float, G: FloatArray) -> None:
    """One Polyak step on f = ||(delta - R)_+||_F^2 / 2, whose smallest value is taken to be zero, in place.

    ``P`` is (delta - R)_+, ``value`` is f there; G receives the gradient with respect to N: P where N enters itself,
    and P_ii times the sign of N_ij for each entry that counts in the sum of row i.
    """
    m = N.shape[0]
    for i in range(m):
        for j in range(m):
            G[i, j] = P[i, j]
        G[i, i] = 0.0
    for i in range(m):
        half = 0.5 * P[i, i]
        for at in range(largest.shape[1]):
            j = largest[i, at]
            if j >= 0:
                change = half if N[i, j] > 0.0 else -half
                G[i, j] += change
                G[j, i] += change
    size = 0.0
    for i in range(m):
        for j in range(m):
            size += G[i, j] * G[i, j]
    if size <= 0.0:
        return
    step = relaxation * value / size
    for i in range(m):
        for j in range(m):
            N[i, j] -= step * G[i, j]
