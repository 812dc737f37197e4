"""Counting: is every principal submatrix of at most r columns of a symmetric matrix positive definite, by elimination?

The matrix is M - F'R but for its diagonal, which is given besides; only entries below the diagonal are looked at. One
column is eliminated at a time, until pairs are left: with w what is left of the diagonal, (l, j) passes where
t^2 < w_l w_j, which elimination of a matrix nearer than four roundings confirms. Comparisons are such that nan fails.

Where numba is installed, big counts are compiled: the same steps without tables between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exactsel_certificates.formula import FloatArray
from exactsel_certificates.rigorous import each_runs

BLOCK = 1 << 16
"""Numbers in a table of pairs."""

COMPILED_FROM = 3e8
"""Sets from which compiling pays."""


MOST = 10**18
"""Nobody counts more sets."""


def how_many(m: int, r: int) -> int:
    """How many sets of at most r there are of m columns, up to about MOST; one where one elimination shows all."""
    total, sets = 1, 1
    for q in range(min(m, r) if r < m else 0):
        sets = sets * (m - q) // (q + 1)
        total += sets
        if total > MOST:
            break
    return total


def all_hold(
    sound: NDArray[np.bool_], M: FloatArray, F: FloatArray, R: FloatArray, diagonal: FloatArray, r: int, work: float = 0
) -> NDArray[np.bool_]:
    """For matrices M (B, m, m), F and R (B, s, m), diagonals (B, m): ``sound`` and whether all sets of r hold.

    ``work`` is about how many sets there are.
    """
    with np.errstate(all="ignore"):
        ok: NDArray[np.bool_] = sound & (np.all(diagonal > 0, axis=1) if r > 0 else True)
        if r <= 1 or not np.any(ok):
            return ok
        kernel = _compiled() if work >= COMPILED_FROM and r <= 3 else None
        if r == 2 and kernel is None:
            return np.asarray(ok & _pairs_hold(M, F, R, diagonal))
        if r > 2:
            M, F, R = M - F.swapaxes(1, 2) @ R, F[:, :0], R[:, :0]
        if kernel is not None:
            passed = [bool(kernel(*arrays, r)) for arrays in zip(M, F, R, diagonal, strict=True)]
            return np.asarray(ok & np.array(passed))
        if r >= M.shape[1]:
            M[:, range(M.shape[1]), range(M.shape[1])] = diagonal
            return np.asarray(ok & each_runs(M))
        for i in range(1, M.shape[1]):
            row = M[:, i, :i]
            factor = row / diagonal[:, i, None]
            left = diagonal[:, :i] - factor * row
            ok = all_hold(ok, M[:, :i, :i], factor[:, None], row[:, None], left, r - 1, work)
        return ok


def _pairs_hold(M: FloatArray, F: FloatArray, R: FloatArray, diagonal: FloatArray) -> NDArray[np.bool_]:
    """The same for r = 2 where the diagonals are known to be positive."""
    B, m = diagonal.shape
    ok = np.ones(B, dtype=np.bool_)
    step = max(1, BLOCK // (B * m))
    for first in range(0, m, step):
        end = min(m, first + step)
        t = M[:, first:end, :end] - _product(F[:, :, first:end], R[:, :, :end])
        t *= t
        t[:, range(end - first), range(first, end)] = 0.0
        # Above the diagonal stands what stands below it, or rounded in another way: no harm is done by looking.
        ok &= np.all(t < diagonal[:, first:end, None] * diagonal[:, None, :end], axis=(1, 2))
    return ok


def _product(F: FloatArray, R: FloatArray) -> FloatArray:
    """F'R for each of (B, s, .) and (B, s, .)."""
    if F.shape[1] == 1:
        return np.asarray(F.swapaxes(1, 2) * R)
    return np.asarray(F.swapaxes(1, 2) @ R)


@cache
def _compiled() -> Callable[..., Any] | None:
    """The same for one matrix in loops, r 2 or 3 and for the latter F'R already taken off; None without numba."""
    try:
        from numba import njit
    except ImportError:
        return None

    @njit
    def pairs(M, F, R, diagonal):  # type: ignore[no-untyped-def]
        t = np.empty(len(diagonal))
        for l in range(len(diagonal)):
            row, w, passed = M[l], diagonal[l], 0
            for j in range(l):
                t[j] = row[j]
            for s in range(len(F)):
                factor, other = F[s, l], R[s]
                for j in range(l):
                    t[j] -= factor * other[j]
            for j in range(l):
                passed += t[j] * t[j] < w * diagonal[j]
            if passed < l or not w > 0:
                return False
        return True

    @njit
    def holds(M, F, R, diagonal, r):  # type: ignore[no-untyped-def]
        if r == 2:
            return pairs(M, F, R, diagonal)
        factors, left = np.empty(len(diagonal)), np.empty(len(diagonal))
        for i in range(1, len(diagonal)):
            pivot = M[i]
            for l in range(i):
                factors[l] = pivot[l] / diagonal[i]
                left[l] = diagonal[l] - factors[l] * pivot[l]
            for l in range(i):
                row, w, factor, passed = M[l], left[l], factors[l], 0
                for j in range(l):
                    t = row[j] - factor * pivot[j]
                    passed += t * t < w * left[j]
                if passed < l or not w > 0:
                    return False
        return True

    compiled: Callable[..., Any] = holds
    return compiled


def unproven(M: FloatArray, diagonal: FloatArray, r: int) -> Iterator[tuple[int, ...]]:
    """Sets of at most r columns of M (m, m), given with its diagonal (m,): every one that is not shown to hold."""
    for i in range(len(diagonal)) if r > 0 else ():
        row = M[i, :i]
        if not diagonal[i] > 0:
            for size in range(r):
                yield from ((i, *rest) for rest in combinations(range(i), size))
        elif r == 2:
            with np.errstate(all="ignore"):
                yield from ((i, int(j)) for j in np.flatnonzero(~(row * row < diagonal[i] * diagonal[:i])))
        elif r > 2:
            with np.errstate(all="ignore"):
                factor = row / diagonal[i]
                rest, left = M[:i, :i] - np.multiply.outer(factor, row), diagonal[:i] - factor * row
            yield from ((i, *chosen) for chosen in unproven(rest, left, r - 1))
