"""Building blocks: dots and products over a list of columns, Cholesky, inverse.

``AT`` is the transposed data: a matrix (d, n), so that a column of A is a contiguous row, or the columns as
:mod:`exactsel.kernels.columns` stores them. Products take four rows at a time, so that the vector they share is read,
and where it is the result written, a quarter as often.

Sums over rows are formed in blocks of :data:`BLOCK`, in any order within one, and block after block: what rounding does
to them hardly grows with the number of rows, see :func:`sum_roundings`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from exactsel._jit import choose_by_type, in_numpy, njit
from exactsel.types import FloatArray, IntArray

BLOCK = 4096
"""Rows added up at a time."""


@njit
def sum_roundings(n: int) -> int:
    """Roundings any term meets in a sum of n of them in blocks, at most."""
    return n if n <= BLOCK else BLOCK + n // BLOCK + 1


@njit(sums=True)
def dot(a: FloatArray, b: FloatArray) -> float:
    """a'b."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@in_numpy(dot)
def _whole_dot(a: FloatArray, b: FloatArray) -> float:
    return float(a @ b)


@njit
def add_scaled(out: FloatArray, scale: float, a: FloatArray) -> None:
    """out += scale * a."""
    for i in range(out.size):
        out[i] += scale * a[i]


@in_numpy(add_scaled)
def _add_whole(out: FloatArray, scale: float, a: FloatArray) -> None:
    out += scale * a[: out.size]


@njit
def extrapolate(ahead: FloatArray, new: FloatArray, old: FloatArray, momentum: float) -> None:
    """ahead = new + momentum * (new - old)."""
    for i in range(new.size):
        ahead[i] = new[i] + momentum * (new[i] - old[i])


@in_numpy(extrapolate)
def _extrapolate_whole(ahead: FloatArray, new: FloatArray, old: FloatArray, momentum: float) -> None:
    ahead[: new.size] = new + momentum * (new - old[: new.size])


@njit
def add_four(out: FloatArray, rows: FloatArray, which: IntArray, scales: FloatArray) -> None:
    """out += the four rows ``which``, each times its scale."""
    a, b, c, d = rows[which[0]], rows[which[1]], rows[which[2]], rows[which[3]]
    for i in range(out.size):
        out[i] += (scales[0] * a[i] + scales[1] * b[i]) + (scales[2] * c[i] + scales[3] * d[i])


@in_numpy(add_four)
def _add_whole_four(out: FloatArray, rows: FloatArray, which: IntArray, scales: FloatArray) -> None:
    out += scales @ rows[which]


@njit
def combine_rows(AT: FloatArray, columns: IntArray, x: FloatArray, out: FloatArray) -> None:
    """out = AT[columns]' @ x for a matrix AT and a compact, usually sparse x."""
    out[:] = 0.0
    which, scales, waiting = np.empty(4, dtype=np.int64), np.empty(4), 0
    for i in range(columns.size):
        if x[i] != 0.0:
            which[waiting], scales[waiting] = columns[i], x[i]
            waiting += 1
            if waiting == 4:
                add_four(out, AT, which, scales)
                waiting = 0
    for i in range(waiting):
        add_scaled(out, scales[i], AT[which[i]])


@njit(sums=True)
def four_dots(a: FloatArray, b: FloatArray, c: FloatArray, d: FloatArray, v: FloatArray, out: FloatArray) -> None:
    """Write a'v, b'v, c'v and d'v."""
    first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
    for i in range(v.size):
        first += a[i] * v[i]
        second += b[i] * v[i]
        third += c[i] * v[i]
        fourth += d[i] * v[i]
    out[0], out[1], out[2], out[3] = first, second, third, fourth


@in_numpy(four_dots)
def _whole_dots(a: FloatArray, b: FloatArray, c: FloatArray, d: FloatArray, v: FloatArray, out: FloatArray) -> None:
    out[0], out[1], out[2], out[3] = a @ v, b @ v, c @ v, d @ v


@njit
def long_dot(a: FloatArray, b: FloatArray) -> float:
    """a'b over rows, in blocks."""
    total = 0.0
    for first in range(0, b.size, BLOCK):
        total += dot(a[first : first + BLOCK], b[first : first + BLOCK])
    return total


@njit
def four_long_dots(a: FloatArray, b: FloatArray, c: FloatArray, d: FloatArray, v: FloatArray, out: FloatArray) -> None:
    """Write a'v, b'v, c'v and d'v over rows, in blocks."""
    four_dots(a[:BLOCK], b[:BLOCK], c[:BLOCK], d[:BLOCK], v[:BLOCK], out)
    if v.size > BLOCK:
        more = np.empty(4)
        for first in range(BLOCK, v.size, BLOCK):
            last = first + BLOCK
            four_dots(a[first:last], b[first:last], c[first:last], d[first:last], v[first:last], more)
            for t in range(4):
                out[t] += more[t]


@njit
def multiply_rows(AT: FloatArray, columns: IntArray, b: FloatArray, out: FloatArray) -> None:
    """out = AT[columns] @ b for a matrix AT."""
    in_fours = columns.size - columns.size % 4
    for i in range(0, in_fours, 4):
        j = columns[i : i + 4]
        four_long_dots(AT[j[0]], AT[j[1]], AT[j[2]], AT[j[3]], b, out[i : i + 4])
    for i in range(in_fours, columns.size):
        out[i] = long_dot(AT[columns[i]], b)


@choose_by_type("AT")
def predict(AT: Any, columns: IntArray, x: FloatArray, out: FloatArray) -> None:
    """out = A[:, columns] @ x for a compact, usually sparse x."""
    combine_rows(AT, columns, x, out)


@choose_by_type("AT")
def correlate(AT: Any, columns: IntArray, b: FloatArray, out: FloatArray) -> None:
    """out = A[:, columns]' @ b."""
    multiply_rows(AT, columns, b, out)


@njit
def symmetric_times_sparse(G: FloatArray, x: FloatArray, out: FloatArray) -> None:
    """out = G @ x for a symmetric G and a usually sparse x."""
    combine_rows(G, np.arange(x.size), x, out)


@njit
def cholesky(H: FloatArray) -> bool:
    """Overwrite the lower triangle of H with its Cholesky factor; False when a pivot is not safely positive."""
    for j in range(H.shape[0]):
        diagonal = H[j, j]
        pivot = diagonal - dot(H[j, :j], H[j, :j])
        if not pivot > 1e-14 * diagonal:
            return False
        root = pivot**0.5
        H[j, j] = root
        for i in range(j + 1, H.shape[0]):
            H[i, j] = (H[i, j] - dot(H[i, :j], H[j, :j])) / root
    return True


@njit
def cholesky_solve(factor: FloatArray, b: FloatArray) -> None:
    """Overwrite b with (factor factor')^{-1} b."""
    m = b.size
    for i in range(m):
        b[i] = (b[i] - dot(factor[i, :i], b[:i])) / factor[i, i]
    for i in range(m - 1, -1, -1):
        b[i] /= factor[i, i]
        for j in range(i):
            b[j] -= factor[i, j] * b[i]


@njit
def inverse_from_cholesky(factor: FloatArray) -> FloatArray:
    """(factor factor')^{-1} as a full symmetric matrix."""
    m = factor.shape[0]
    # Rows of `rows` are the rows of factor^{-T}, i.e. the columns of factor^{-1}, so every loop runs along memory.
    rows = factor[:0, :0].copy() if m == 0 else factor * 0.0
    for j in range(m):
        rows[j, j] = 1.0 / factor[j, j]
        for i in range(j + 1, m):
            rows[j, i] = -dot(factor[i, j:i], rows[j, j:i]) / factor[i, i]
    inverse = factor * 0.0
    for i in range(m):
        for j in range(i + 1):
            value = dot(rows[i, i:], rows[j, i:])
            inverse[i, j] = value
            inverse[j, i] = value
    return inverse
