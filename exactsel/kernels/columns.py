"""Column subset selection: projections on chosen columns."""

from __future__ import annotations

import numpy as np

from exactsel.types import FloatArray, IntArray

NEGLIGIBLE = 1e-13
"""A direction left with less than this share of a column's length is rounding, not a direction."""


def orthonormal(columns: FloatArray) -> FloatArray:
    """An orthonormal basis of the span of the rows of ``columns`` (m, n), as rows (at most m, n).

    Gram-Schmidt, each row orthogonalised twice. A row that depends on earlier ones, up to rounding, adds nothing.
    """
    basis = np.empty((min(columns.shape), columns.shape[1]))
    size = 0
    for column in columns:
        length = np.linalg.norm(column)
        if length == 0.0 or size == len(basis):
            continue
        rest = column / length
        for _ in range(2):
            rest = rest - (basis[:size] @ rest) @ basis[:size]
        left = np.linalg.norm(rest)
        if left > NEGLIGIBLE:
            # A short remainder is mostly rounding: clean it once more.
            rest = rest / left
            rest = rest - (basis[:size] @ rest) @ basis[:size]
            basis[size] = rest / np.linalg.norm(rest)
            size += 1
    return basis[:size]


def residual(AT: FloatArray, chosen: IntArray) -> FloatArray:
    """What the chosen columns leave of every column: (A - S S⁺ A)' as (d, n)."""
    basis = orthonormal(AT[chosen])
    rest = AT - (AT @ basis.T) @ basis
    return rest - (rest @ basis.T) @ basis


def unexplained(AT: FloatArray, chosen: IntArray) -> float:
    """||A - S S⁺ A||_F²."""
    rest = residual(AT, chosen)
    return float(np.einsum("ij,ij->", rest, rest))
