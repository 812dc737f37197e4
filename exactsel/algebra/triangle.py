"""The triangular factor of a matrix that has far more rows than columns."""

from __future__ import annotations

import numpy as np

from exactsel.types import FloatArray

LARGE, TALL = 5_000_000, 32
"""Entries, and rows a column, from which on a matrix is factorised some rows at a time."""

PART = 16
"""Rows of a part, a column; their errors add up to little more than those of one factorisation."""


def triangle(A: FloatArray, y: FloatArray | None = None) -> FloatArray:
    """R of A = QR, or of [A y], by rows from the top: (min(n, columns), columns).

    Of a tall matrix some rows are taken at a time, below the factor of those before. That is the same factor but for
    rounding (and signs of rows), and less than half the time: nothing of the size of the data is copied.
    """
    n, d = A.shape
    width = d if y is None else d + 1
    if n * width <= LARGE or n <= TALL * width:
        return np.asarray(np.linalg.qr(A if y is None else np.column_stack([A, y]), mode="r"))
    factor, rows = np.zeros((0, width)), max(PART * width, 4096)
    for first in range(0, n, rows):
        here = slice(first, first + rows)
        part = A[here] if y is None else np.column_stack([A[here], y[here]])
        factor = np.asarray(np.linalg.qr(np.vstack([factor, part]), mode="r"))
    return factor
