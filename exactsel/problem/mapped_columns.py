"""Columns of a dense table that stays in its file, in single or double precision: read in blocks, never copied.

A block is converted to doubles when it is read, so products are those of the numbers in the file, as doubles.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exactsel.deadlines import ask
from exactsel.errors import UnsupportedError, option
from exactsel.kernels.file_columns import FileColumns
from exactsel.problem.design import DesignColumns, Summary
from exactsel.types import FloatArray, IntArray

AT_ONCE = 2**22
"""Numbers that are made doubles at a time."""

MOST_BYTES = 2**30
"""Bytes of the table in doubles up to which it is read as a whole."""


def stays_mapped(rows: int, columns: int, kind: np.dtype[Any]) -> bool:
    """Whether a table of this size and type of numbers is left in its file: a large one of more columns than rows."""
    is_float = kind.kind == "f" and kind.itemsize in (4, 8)
    return is_float and columns > rows and 8 * rows * columns > MOST_BYTES


class MappedColumns(DesignColumns):
    """Columns of an array (n, d) that is mapped from a file, row by row or column by column."""

    def __init__(
        self, table: NDArray[Any], means: FloatArray | None = None, divisors: FloatArray | None = None
    ) -> None:
        super().__init__(table.shape[1], table.shape[0], means)
        self.table, self.divisors = table, divisors
        """The numbers in the file; (d,) powers of two that divide the columns when they are read."""
        self._digest = b""
        """Of the numbers in the file, once there is a summary: a pass for it alone would come when time is over."""

    @property
    def as_given(self) -> MappedColumns:
        """See :class:`DesignColumns`."""
        return self._with_means(None)

    def centred(self, means: FloatArray) -> MappedColumns:
        """See :class:`DesignColumns`."""
        return self._with_means(means)

    def of_columns(self, columns: IntArray) -> DesignColumns:
        """See :class:`DesignColumns`; some of the columns are a table in memory."""
        if 8 * columns.size * self.shape[1] > MOST_BYTES:
            raise UnsupportedError(
                f"{columns.size} of {len(self)} columns are asked for, but a table of this size stays in its file "
                f"as it is; give the target in a file of its own, and exclude features with {option('force_out')}."
            )
        means = None if self.means is None else self.means[columns]
        return MappedColumns(self.stored(columns).T, means)

    def stored(self, columns: IntArray) -> FloatArray:
        """See :class:`DesignColumns`."""
        table = np.ascontiguousarray(self.table[:, columns].T, dtype=np.float64)
        return table if self.divisors is None else table / self.divisors[columns, None]

    def products(self, b: FloatArray) -> FloatArray:
        """See :class:`DesignColumns`."""
        total = np.zeros(len(self))
        for rows, columns, block in self.blocks():
            total[columns] += b[rows] @ block
        return total

    def combined(self, x: FloatArray) -> FloatArray:
        """See :class:`DesignColumns`."""
        used = np.flatnonzero(x)
        if used.size * self.shape[1] <= AT_ONCE:
            return np.asarray(x[used] @ self.stored(used))
        total = np.zeros(self.shape[1])
        for rows, columns, block in self.blocks():
            total[rows] += block @ x[columns]
        return total

    def summed_up(self) -> Summary:
        """See :class:`DesignColumns`."""
        unusable, smallest, largest = 0, np.inf, 0.0
        totals, squares, digest = np.zeros(len(self)), np.zeros(len(self)), hashlib.sha256()
        with np.errstate(over="ignore", invalid="ignore"):
            for _, columns, block in self.blocks():
                digest.update(np.ascontiguousarray(block).data)
                totals[columns] += block.sum(axis=0)
                squares[columns] += np.einsum("ij,ij->j", block, block)
                np.abs(block, out=block)
                most = float(block.max())
                unusable += 0 if most < np.inf else int(np.count_nonzero(~np.isfinite(block)))
                largest = max(largest, most)
                smallest = min(smallest, float(np.min(block, where=block > 0.0, initial=np.inf)))
        self._digest = digest.digest()
        return Summary(unusable, smallest, largest, totals, squares)

    @property
    def bytes_in_memory(self) -> int:
        """See :class:`DesignColumns`: a block, and what is worked out of it; pages of the file are the system's."""
        return 2 * 8 * min(AT_ONCE, self.table.size)

    @property
    def counts(self) -> IntArray:
        """See :class:`DesignColumns`; zeros are not counted here."""
        return np.full(len(self), self.shape[1])

    def touched(self, values: FloatArray) -> FloatArray:
        """See :class:`DesignColumns`."""
        return np.full(len(self), float(np.sum(values)))

    def feed(self, digest: hashlib._Hash) -> None:
        """See :class:`DesignColumns`."""
        if self.divisors is not None:
            digest.update(np.ascontiguousarray(self.divisors).data)
        _ = self.summary
        digest.update(self._digest)

    def divided(self, by: FloatArray) -> MappedColumns:
        """See :class:`DesignColumns`."""
        divisors = by if self.divisors is None else self.divisors * by
        columns = MappedColumns(self.table, None if self.means is None else self.means / by, divisors)
        summary = self.summary
        columns._digest = self._digest
        columns._summary = summary._replace(totals=summary.totals / by, squares=summary.squares / by**2)
        return columns

    @property
    def for_kernels(self) -> FileColumns:
        """The columns as kernels take them."""
        d, n = self.shape
        means = np.zeros(d) if self.means is None else self.means
        scale = np.ones(d) if self.divisors is None else 1.0 / self.divisors
        table = np.asarray(self.table).T
        table.flags.writeable = False
        return FileColumns(table, scale, np.sqrt(n) * means, not self.table.flags.f_contiguous)

    def _with_means(self, means: FloatArray | None) -> MappedColumns:
        columns = MappedColumns(self.table, means, self.divisors)
        columns._summary, columns._digest = self._summary, self._digest
        return columns

    def blocks(self) -> Iterator[tuple[slice, slice, FloatArray]]:
        """Rows and columns of a block, and its numbers, nothing taken off, in the order of the file.

        Raises
        ------
        TimeLimitError
            Where a time limit is over before the next block.
        """
        n, d = self.table.shape
        whole = slice(None)
        if self.table.flags.f_contiguous:
            step = max(1, AT_ONCE // n)
            parts = [(whole, slice(first, first + step)) for first in range(0, d, step)]
        else:
            step = max(1, AT_ONCE // d)
            parts = [(slice(first, first + step), whole) for first in range(0, n, step)]
        for rows, columns in parts:
            ask()
            block = np.array(self.table[rows, columns], dtype=np.float64)
            if self.divisors is not None:
                block /= self.divisors[columns]
            yield rows, columns, block
