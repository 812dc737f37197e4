"""Entries of a Gram matrix, whole or row by row as rows are needed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exactsel._jit import atomic_swap, njit
from exactsel.kernels.columns import Columns, centred_dot
from exactsel.kernels.file_columns import FileColumns, file_dot, file_products, no_file
from exactsel.kernels.linalg import dot
from exactsel.problem.design import SparseColumns
from exactsel.problem.mapped_columns import MappedColumns
from exactsel.problem.storing import columns_by_entries, columns_of_none
from exactsel.types import FloatArray, IntArray

GRAM_COLUMNS = 4000
"""With more columns than this the d x d matrix is not formed; its rows are computed as they are needed."""

ROWS_BYTES = 2**30
"""Memory for rows computed on demand; once it is full, entries are computed one by one."""


class GramRows(NamedTuple):
    """The symmetric matrix with the entries left[i]'right[j].

    ``left``, ``right`` (d, r); ``rows`` (kept, d), row j being rows[row_of[j]] unless ``row_of`` (d,) is -1 there;
    ``used`` (1,): rows in use; ``diagonal`` (d,). Of sparse data the entries are those of the columns of ``sparse``
    instead: so few multiplications that no row is kept. Of a table in its file they are those of ``file``.
    """

    left: FloatArray
    right: FloatArray
    rows: FloatArray
    row_of: IntArray
    used: IntArray
    diagonal: FloatArray
    sparse: Columns
    file: FileColumns


def whole_matrix(matrix: FloatArray, data: FloatArray) -> GramRows:
    """A matrix (d, d) that is there; ``data`` is not read."""
    d = len(matrix)
    none = columns_of_none(data.shape[1])
    return GramRows(
        data, data, matrix, np.arange(d), np.full(1, d), np.diagonal(matrix).copy(), none, no_file(data.shape[1])
    )


def rows_on_demand(left: FloatArray, right: FloatArray) -> GramRows:
    """A matrix of which no row is known yet; both arrays (d, r) read-only."""
    d = len(left)
    # Memory that is not written to is not taken.
    slots = max(1, min(d, ROWS_BYTES // (8 * d)))
    diagonal = np.einsum("ij,ij->i", left, right)
    none = columns_of_none(left.shape[1])
    return GramRows(
        left, right, np.empty((slots, d)), np.full(d, -1), np.zeros(1, np.int64), diagonal, none, no_file(left.shape[1])
    )


def rows_of_sparse(AT: SparseColumns) -> GramRows:
    """A'A of sparse columns (d, n) less their means."""
    d, n = AT.shape
    nothing = np.empty((0, n))
    nothing.flags.writeable = False
    return GramRows(
        nothing, nothing, np.empty((0, d)), np.full(d, -1), np.zeros(1, np.int64), AT.squares(), columns_by_entries(AT),
        no_file(n),
    )  # fmt: skip


def rows_of_file(AT: MappedColumns) -> GramRows:
    """A'A of a table (d, n) that stays in its file, less the means of its columns."""
    d, n = AT.shape
    nothing = np.empty((0, n))
    nothing.flags.writeable = False
    slots = max(1, min(d, ROWS_BYTES // (8 * d)))
    return GramRows(
        nothing, nothing, np.empty((slots, d)), np.full(d, -1), np.zeros(1, np.int64), AT.squares(), columns_of_none(n),
        AT.for_kernels,
    )  # fmt: skip


@njit
def entry(gram: GramRows, i: int, j: int) -> float:
    """Entry (i, j)."""
    row = gram.row_of[i]
    if row >= 0:
        return float(gram.rows[row, j])
    row = gram.row_of[j]
    if row >= 0:
        return float(gram.rows[row, i])
    if gram.sparse.where.shape[0] > 0:
        return float(centred_dot(gram.sparse, i, j, gram.sparse.whole.shape[1]))
    if gram.file.table.shape[0] > 0:
        return float(file_dot(gram.file, i, j))
    return float(dot(gram.left[i], gram.right[j]))


@njit
def keep_row(gram: GramRows, i: int) -> None:
    """Compute row i and keep it, if there is room and it is not there; one thread at a time."""
    row = gram.used[0]
    if gram.row_of[i] >= 0 or row >= gram.rows.shape[0]:
        return
    if gram.file.table.shape[0] > 0:
        file_products(gram.file, i, gram.rows[row])
    else:
        for j in range(gram.rows.shape[1]):
            gram.rows[row, j] = dot(gram.left[i], gram.right[j])
    gram.used[0] += 1
    # Other threads may read meanwhile: they must not see the number of the row before the row.
    atomic_swap(gram.row_of, i, row)
