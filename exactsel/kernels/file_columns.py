"""Products of columns of a table that stays in its file, in single or double precision, less their means."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from exactsel._jit import in_numpy, njit
from exactsel.types import FloatArray


class FileColumns(NamedTuple):
    """Column j is ``table[j] * scale[j]`` less a constant, which takes ``shift[i] * shift[j]`` off a product."""

    table: Any
    """(d, n), as the file has it."""
    scale: FloatArray
    shift: FloatArray
    """(d,) root of n times what is taken off."""
    by_rows: bool
    """Whether the file has the table row by row, so that a pass over all columns goes along rows."""


def no_file(n: int) -> FileColumns:
    """None: of data that are in memory."""
    table = np.zeros((0, n))
    table.flags.writeable = False
    return FileColumns(table, np.zeros(0), np.zeros(0), False)


@njit
def file_dot(columns: FileColumns, i: int, j: int) -> float:
    """The product of columns i and j."""
    total = 0.0
    for row in range(columns.table.shape[1]):
        total += float(columns.table[i, row]) * float(columns.table[j, row])
    return float(total * columns.scale[i] * columns.scale[j] - columns.shift[i] * columns.shift[j])


@in_numpy(file_dot)
def _whole_file_dot(columns: FileColumns, i: int, j: int) -> float:
    one, other = (np.asarray(columns.table[column], dtype=np.float64) for column in (i, j))
    return float(float(one @ other) * columns.scale[i] * columns.scale[j] - columns.shift[i] * columns.shift[j])


@njit
def file_products(columns: FileColumns, q: int, out: FloatArray) -> None:
    """The products of column q with all columns."""
    if not columns.by_rows:
        for j in range(out.size):
            out[j] = file_dot(columns, q, j)
        return
    out[:] = 0.0
    for row in range(columns.table.shape[1]):
        value = float(columns.table[q, row])
        for j in range(out.size):
            out[j] += value * float(columns.table[j, row])
    for j in range(out.size):
        out[j] = out[j] * columns.scale[q] * columns.scale[j] - columns.shift[q] * columns.shift[j]


@in_numpy(file_products)
def _whole_file_products(columns: FileColumns, q: int, out: FloatArray) -> None:
    column = np.asarray(columns.table[q], dtype=np.float64)
    for first in range(0, out.size, 1000):
        some = slice(first, first + 1000)
        out[some] = np.asarray(columns.table[some], dtype=np.float64) @ column
    out[:] = out * columns.scale[q] * columns.scale - columns.shift[q] * columns.shift
