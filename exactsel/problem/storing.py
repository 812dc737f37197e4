"""Storage of columns for the kernels: dense, or by their entries where most of a column is zero.

Where the loss has an intercept, a constant taken off a column changes nothing: dual vectors sum to zero, and the level
of the predictions is found again. So there a column may be stored by what differs from its most frequent value, and 0/1
columns that have been centred are as sparse as they were.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from exactsel.errors import UnsupportedError
from exactsel.kernels.columns import END, EQUAL, FIRST, PLACE, VALUES, Columns, RawData
from exactsel.problem.design import SparseColumns, refuse_design
from exactsel.rounding import UNIT
from exactsel.types import FloatArray, IntArray
from exactsel_mapped import nameless_beside, room_like

LEAST_ROWS = 500
"""With fewer rows vectors stay so close to the processor that whole columns are as good."""

FEW_VALUES = 0.2
"""Part of the rows up to which a column is stored by its entries (products then take no longer) ..."""

FEW_EQUAL = 0.3
"""... and where all its entries are equal, so that it needs no values."""

LOOKED_AT = 101
"""Rows that are sampled to decide whether it is worth while to read all of them."""

COLUMNS_AT_ONCE = 1000
"""Number of columns of which these rows are read at a time."""


def raw_data(AT: FloatArray, y: FloatArray, levelled: bool) -> RawData:
    """The data as kernels take them; see :func:`stored_columns`."""
    if isinstance(AT, SparseColumns):
        if AT.means is not None:
            raise UnsupportedError(
                "this takes the entries of the features, but means have been taken off sparse data that stay so; use "
                "another method, such as forward, or leave the intercept out."
            )
        norms = np.sqrt(AT.squares()) * (1.0 + (AT.shape[1] + 8) * UNIT)
        return RawData(*columns_by_entries(AT), y, norms)
    refuse_design(AT, "a table of the data")
    columns, norms = stored_columns(AT, levelled)
    return RawData(*columns, y, norms)


def columns_by_entries(AT: SparseColumns) -> Columns:
    """Columns that are stored by their entries already; what is taken off them, their means, are their bases."""
    d, n = AT.shape
    where = np.zeros((d, 5), dtype=np.int64)
    where[:, PLACE], where[:, FIRST], where[:, END] = -1, AT.starts[:-1], AT.starts[1:]
    where[:, VALUES] = AT.starts[:-1] + np.arange(d)
    whole, bases = np.empty((0, n)), 0.0 if AT.means is None else -AT.means
    whole.flags.writeable = False
    return Columns(whole, where, AT.rows.astype(np.uint32), np.insert(AT.values, AT.starts[:-1], bases))


def columns_of_none(n: int) -> Columns:
    """No columns, where kernels are handed another form of the data."""
    whole = np.empty((0, n))
    whole.flags.writeable = False
    return Columns(whole, np.zeros((0, 5), dtype=np.int64), np.zeros(0, dtype=np.uint32), np.zeros(0))


def stored_columns(AT: FloatArray, levelled: bool) -> tuple[Columns, FloatArray]:
    """The rows of AT (d, n), which are the columns of A, and upper estimates of their norms as stored (d,).

    ``levelled`` says that the loss has an intercept.
    """
    d, n = AT.shape
    where = np.zeros((d, 5), dtype=np.int64)
    rows, values = _Pieces(AT, np.uint32), _Pieces(AT, np.float64)
    squares = np.einsum("ij,ij->i", AT, AT)
    for j, base in _promising(AT, levelled) if n >= LEAST_ROWS else ():
        places = np.flatnonzero(AT[j] != base)
        # Rounded once, for which the allowance of sums over all rows has room.
        entries = AT[j][places] - base
        equal = not entries.size or bool(np.all(entries == entries[0]))
        sparse = (levelled or base == 0.0) and entries.size <= (FEW_EQUAL if equal else FEW_VALUES) * n
        if sparse:
            where[j, PLACE], where[j, END], squares[j] = -1, places.size, entries @ entries
            rows.add(places)
        if sparse or equal:
            where[j, EQUAL] = equal
            values.add(np.concatenate([[base], np.append(entries, 0.0)[:1] if equal else entries]))
    return Columns(*_packed(AT, where, rows, values)), np.sqrt(squares) * (1.0 + (n + 8) * UNIT)


def _promising(AT: FloatArray, levelled: bool) -> Iterator[tuple[int, float]]:
    """The columns that may be sparse or take two values only, from a sample of their rows, and their bases."""
    d, n = AT.shape
    for first in range(0, d, COLUMNS_AT_ONCE):
        sample = np.sort(AT[first : first + COLUMNS_AT_ONCE, :: max(1, n // LOOKED_AT)], axis=1)
        many = sample.shape[1]
        in_most_rows, one_of_two = sample[:, many // 2], np.where((sample == 0.0).any(axis=1), 0.0, sample[:, 0])
        bases = in_most_rows if levelled else one_of_two
        few = np.count_nonzero(sample[:, 1:] != sample[:, :-1], axis=1) < 2
        alike = np.count_nonzero(sample != bases[:, None], axis=1) <= 2 * FEW_VALUES * many
        for j in np.flatnonzero(few | alike).tolist():
            yield first + j, float(bases[j])


class _Pieces:
    """Vectors that become one, in memory or, for data in a file, in another file."""

    def __init__(self, AT: FloatArray, kind: DTypeLike) -> None:
        self.sizes: list[int] = []
        self._AT, self._kind, self._held = AT, kind, list[Any]()
        self._stream: IO[bytes] | None = None

    def add(self, vector: NDArray[Any]) -> None:
        """Put a vector behind the others."""
        piece = np.ascontiguousarray(vector, dtype=self._kind)
        self.sizes.append(piece.size)
        self._stream = self._stream or nameless_beside(self._AT)
        if self._stream is None:
            self._held.append(piece)
        else:
            self._stream.write(piece.data)

    def together(self) -> NDArray[Any]:
        """All of them in a row."""
        if self._stream is None:
            return np.concatenate([np.zeros(0, dtype=self._kind), *self._held])
        with self._stream:
            self._stream.flush()
            if not sum(self.sizes):
                return np.zeros(0, dtype=self._kind)
            # Of the type of a vector in memory; nothing writes to it.
            return np.asarray(np.memmap(self._stream, dtype=self._kind, mode="c", shape=(sum(self.sizes),)))


def _packed(
    AT: FloatArray, where: IntArray, rows: _Pieces, values: _Pieces
) -> tuple[FloatArray, IntArray, NDArray[np.uint32], FloatArray]:
    """The parts of :class:`Columns`; the places in ``where`` are filled in."""
    sparse = where[:, PLACE] < 0
    where[~sparse, PLACE] = np.arange(np.count_nonzero(~sparse))
    where[sparse, END] = np.cumsum(where[sparse, END])
    where[sparse, FIRST] = np.append(0, where[sparse, END])[:-1]
    where[sparse | (where[:, EQUAL] == 1), VALUES] = np.cumsum([0, *values.sizes])[:-1]
    whole = AT
    if sparse.any():
        whole = np.asarray(room_like(AT, (int(np.count_nonzero(~sparse)), AT.shape[1])))
        for place, j in enumerate(np.flatnonzero(~sparse)):
            whole[place] = AT[j]
    whole.flags.writeable = False  # as AT: another type, with which every kernel would be compiled again
    return whole, where, rows.together(), values.together()
