"""A triangular factor of a table: made in pieces, so that it can be given up, and with columns taken out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from exactsel._jit import njit
from exactsel.algebra import dense
from exactsel.types import FloatArray

AT_ONCE = 2e9
"""Multiplications (about a fifth of a second) up to which a factor is made in one go."""

PANEL, CHUNK = 64, 512
"""Columns that are factorised at a time, and columns they are applied to between two questions whether to stop."""


def triangle_of(table: FloatArray, should_stop: Callable[[], bool]) -> FloatArray | None:
    """The upper triangular factor R of table (m, c) = QR, (min(m, c), c) and writable; None after a stop."""
    rows, width = table.shape
    size = min(rows, width)
    if rows * width * size <= AT_ONCE:
        return np.array(np.linalg.qr(table, mode="r"), order="C")
    work = np.array(table, order="F")
    for first in range(0, size, PANEL):
        last = min(first + PANEL, size)
        if should_stop():
            return None
        raw, tau, *_ = dense.lapack.dgeqrf(work[first:, first:last])
        work[first:last, first:last] = raw[: last - first]
        for start in range(last, width, CHUNK):
            if should_stop():
                return None
            part = work[first:, start : start + CHUNK]
            work[first:, start : start + CHUNK] = dense.lapack.dormqr("L", "T", raw, tau, part, lwork=64 * CHUNK)[0]
    return np.ascontiguousarray(np.triu(work[:size]))


@njit
def delete_column(triangle: FloatArray, position: int) -> None:
    """Take a column out of an upper triangular table (r, c), in place: the last column is left as it was.

    The columns behind move up, and rotations of neighbouring rows make the table triangular again.
    """
    rows, width = triangle.shape
    for i in range(rows):
        for j in range(max(position, i - 1), width - 1):
            triangle[i, j] = triangle[i, j + 1]
    for i in range(position, min(rows, width) - 1):
        along, below = triangle[i, i], triangle[i + 1, i]
        length = np.hypot(along, below)
        if length == 0.0:
            continue
        cosine, sine = along / length, below / length
        for j in range(i, width - 1):
            upper, lower = triangle[i, j], triangle[i + 1, j]
            triangle[i, j] = cosine * upper + sine * lower
            triangle[i + 1, j] = cosine * lower - sine * upper
        triangle[i + 1, i] = 0.0


@njit
def back_substituted(triangle: FloatArray, m: int) -> FloatArray:
    """The solution (m,) of the first m rows of an upper triangular table (r, c), whose column m is the right side."""
    x = np.empty(m)
    for i in range(m - 1, -1, -1):
        left = triangle[i, m]
        for j in range(i + 1, m):
            left -= triangle[i, j] * x[j]
        x[i] = left / triangle[i, i]
    return x
