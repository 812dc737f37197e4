"""The inverse K of a symmetric positive definite matrix when one row and column leaves or joins."""

from __future__ import annotations

from exactsel._jit import njit
from exactsel.kernels.linalg import cholesky, dot, inverse_from_cholesky
from exactsel.types import FloatArray, IntArray

DEPENDENT = 1e-12
"""A column counts as dependent when no more than this share of its squared norm is left after elimination."""


@njit
def drop_from_inverse(K: FloatArray, m: int, i: int) -> None:
    """Remove row and column i of the inverse in K[:m, :m]; the last one takes place i, and K[:m-1, :m-1] is left.

    Schur complement: the inverse of what stays is K - k_i k_i' / K_ii.
    """
    last = m - 1
    for a in range(m):
        if a != i:
            factor = K[a, i] / K[i, i]
            for b in range(m):
                if b != i:
                    K[a, b] -= factor * K[i, b]
    if i != last:
        for a in range(last):
            K[i, a] = K[last, a]
        K[i, i] = K[last, last]
        for a in range(last):
            K[a, i] = K[i, a]


@njit
def border_inverse(K: FloatArray, m: int, w: FloatArray, pivot: float) -> None:
    """Append a last row and column h with diagonal entry h_0, given w = K h and ``pivot`` = h_0 - h'w."""
    for a in range(m):
        factor = w[a] / pivot
        for b in range(m):
            K[a, b] += factor * w[b]
        K[a, m] = -factor
        K[m, a] = -factor
    K[m, m] = 1.0 / pivot


@njit
def product(K: FloatArray, m: int, h: FloatArray, out: FloatArray) -> None:
    """out[:m] = K[:m, :m] @ h[:m]."""
    for a in range(m):
        out[a] = dot(K[a, :m], h[:m])


@njit
def invert(H: FloatArray, m: int, K: FloatArray) -> bool:
    """Write the inverse of H (m, m), lower triangle given and overwritten, to K[:m, :m]; False when dependent."""
    for i in range(m):
        K[i, i] = H[i, i]
    if not cholesky(H):
        return False
    for i in range(m):
        if not H[i, i] * H[i, i] > DEPENDENT * K[i, i]:
            return False
    inverse = inverse_from_cholesky(H)
    for a in range(m):
        for b in range(m):
            K[a, b] = inverse[a, b]
    return True


@njit
def copy_fit(m: int, columns: IntArray, factor: FloatArray, to: IntArray, factor_to: FloatArray) -> None:
    """Copy m columns with their factor, an inverse (m, m) and, in the last row, coefficients."""
    last = factor.shape[0] - 1
    for a in range(m):
        to[a], factor_to[last, a] = columns[a], factor[last, a]
        for b in range(m):
            factor_to[a, b] = factor[a, b]
