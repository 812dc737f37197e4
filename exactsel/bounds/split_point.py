"""The matrix of a split: what a :class:`exactsel.bounds.witness.SplitPoint` says of some columns."""

from __future__ import annotations

import numpy as np

from exactsel.bounds.witness import SplitPoint
from exactsel.kernels.split import row_sums
from exactsel.types import FloatArray, IntArray

SPLIT_UP_TO = 1200
"""Columns beyond which one eigendecomposition takes seconds."""

LARGEST_ENTRY = 1.0
"""Entries of N are kept within this size, so that E is off by no more than H is."""


def rounded(columns: IntArray, scale: FloatArray, N: FloatArray) -> SplitPoint:
    """N (m, m) for columns times ``scale``, in the precision it has in proofs."""
    return SplitPoint(columns.astype(np.int32), scale.copy(), N[np.tril_indices(len(N), -1)].astype(np.float16))


def rescaled(point: SplitPoint, columns: IntArray, scale: FloatArray) -> FloatArray:
    """The point's N on some columns, for these columns times another ``scale``."""
    N, point_scale = _on(point, columns)
    change = point_scale / scale
    return np.clip(N * np.outer(change, change), -LARGEST_ENTRY, LARGEST_ENTRY)


def split_matrix(point: SplitPoint, columns: IntArray, slots: int) -> FloatArray:
    """E = N + diag(t) on the candidates ``columns`` of a node with so many places, in the units of H.

    t_i is the sum of the places - 1 largest |N_ij| over these columns, so every principal submatrix of E on ``slots``
    of them is positive semidefinite.
    """
    N, scale = _on(point, columns)
    count = max(0, min(slots - 1, len(N) - 1))
    sums = np.empty(len(N))
    row_sums(N, sums, np.empty((len(N), count), dtype=np.int64))
    N[np.diag_indices(len(N))] = sums
    N *= scale[:, None]
    N *= scale
    return N


def sound(point: SplitPoint) -> bool:
    """Whether the arrays of a point go together: it may come from damaged data."""
    m = point.columns.size
    fits = point.scale.shape == (m,) and point.entries.shape == (m * (m - 1) // 2,)
    return bool(fits and np.all(np.diff(point.columns) > 0) and np.all(point.scale > 0))


def _on(point: SplitPoint, columns: IntArray) -> tuple[FloatArray, FloatArray]:
    """N and its scale on some columns; zeros where the point does not hold them."""
    m = point.columns.size
    N = np.zeros((m, m))
    N[np.tril_indices(m, -1)] = point.entries
    N += N.T
    if m == columns.size and np.array_equal(point.columns, columns):
        return N, point.scale
    rows = np.minimum(np.searchsorted(point.columns, columns), max(0, m - 1))
    included = np.flatnonzero(point.columns[rows] == columns) if m else np.zeros(0, dtype=np.int64)
    part, scale = np.zeros((columns.size, columns.size)), np.zeros(columns.size)
    part[np.ix_(included, included)] = N[np.ix_(rows[included], rows[included])]
    scale[included] = point.scale[rows[included]]
    return part, scale
