"""A design matrix that provides products and single columns, and is never held as a table.

Dense data are numpy arrays: :class:`Objective` and the methods multiply them as they are. Data that no memory holds as
a table answer the same expressions, ``AT @ b``, ``x @ AT``, ``AT[columns]``, in the transposed layout (d, n) that the
code has. What is taken off each column, its mean, is taken off products: nothing is filled in.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from exactsel.deadlines import ask
from exactsel.errors import InputError, UnsupportedError, either
from exactsel.rounding import UNIT
from exactsel.types import FloatArray, IntArray

MOST_TABLE_BYTES = 2**28
"""Bytes of A, or of A'A, up to which sparse data become a table of doubles: there everything is quicker with it."""

MOST_ENTRIES = 0.2
"""Part of the entries that may differ from zero where data stay sparse; with more of them a table takes less."""

MOST_PART_BYTES = 2**30
"""Bytes of some of the columns as a table."""


class Summary(NamedTuple):
    """Statistics from one pass over the numbers of a matrix."""

    unusable: int
    """Entries that are no finite numbers."""
    smallest: float
    """Size of the smallest that is not zero, ..."""
    largest: float
    """... and of the largest."""
    totals: FloatArray
    """(d,) sums of the columns, ..."""
    squares: FloatArray
    """(d,) ... and of their squares, in doubles."""


class DesignColumns(ABC):
    """The columns (d, n) of A, each less its mean where :attr:`means` says so."""

    __array_ufunc__ = None
    """So that ``x @ self`` calls this class and not numpy."""

    ndim = 2
    dtype = np.dtype(np.float64)

    def __init__(self, d: int, n: int, means: FloatArray | None = None) -> None:
        self.shape = (d, n)
        self.means = means
        """(d,) what is taken off the columns; None for nothing."""
        self._summary: Summary | None = None

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def T(self) -> DesignMatrix:
        """The same as a matrix (n, d)."""
        return DesignMatrix(self)

    @property
    @abstractmethod
    def as_given(self) -> DesignColumns:
        """The columns with nothing taken off."""

    @abstractmethod
    def centred(self, means: FloatArray) -> DesignColumns:
        """The columns as given less ``means`` (d,); nothing is copied."""

    @abstractmethod
    def divided(self, by: FloatArray) -> DesignColumns:
        """The columns, and what is taken off them, divided by powers of two (d,)."""

    @abstractmethod
    def of_columns(self, columns: IntArray) -> DesignColumns:
        """Some of the columns (m,), less what is taken off them."""

    @abstractmethod
    def stored(self, columns: IntArray) -> FloatArray:
        """Some columns (m, n), nothing taken off, as a table."""

    @abstractmethod
    def products(self, b: FloatArray) -> FloatArray:
        """A'b (d,), nothing taken off."""

    @abstractmethod
    def combined(self, x: FloatArray) -> FloatArray:
        """Ax (n,), nothing taken off."""

    @abstractmethod
    def summed_up(self) -> Summary:
        """Statistics from one pass over the original numbers."""

    @property
    def summary(self) -> Summary:
        """The same, remembered."""
        if self._summary is None:
            self._summary = self.summed_up()
        return self._summary

    @property
    @abstractmethod
    def bytes_in_memory(self) -> int:
        """Bytes that the columns take in memory, with what a pass over them takes besides."""

    @property
    @abstractmethod
    def counts(self) -> IntArray:
        """(d,) rows in which the columns are not zero, at most."""

    @abstractmethod
    def touched(self, values: FloatArray) -> FloatArray:
        """For each column (d,) the sum of ``values`` (n,) over the rows in which it is not zero."""

    @abstractmethod
    def feed(self, digest: hashlib._Hash) -> None:
        """Have a hash take in what defines the columns as given."""

    def __array__(self, *_: object, **__: object) -> NDArray[Any]:
        raise _as_table(self.shape)

    def __matmul__(self, b: FloatArray) -> FloatArray:
        ask()
        product = self.products(b)
        return product if self.means is None else product - self.means * float(np.sum(b))

    def __rmatmul__(self, x: FloatArray) -> FloatArray:
        ask()
        combined = self.combined(x)
        return combined if self.means is None else combined - float(self.means @ x)

    def __getitem__(self, key: object) -> FloatArray:
        """``self[j]`` (n,), ``self[columns]`` (m, n) or ``self[columns, rows]``, as tables."""
        columns, rows = key if isinstance(key, tuple) else (key, slice(None))
        if isinstance(columns, slice):
            columns = np.arange(*columns.indices(len(self)))
        chosen = np.asarray(columns)
        if chosen.dtype == np.bool_:
            chosen = np.flatnonzero(chosen)
        if 8 * chosen.size * self.shape[1] > MOST_PART_BYTES:
            raise _as_table((chosen.size, self.shape[1]))
        table = self.stored(np.atleast_1d(chosen))
        if self.means is not None:
            table = table - self.means[np.atleast_1d(chosen), None]
        part = table if chosen.ndim else table[0]
        return np.asarray(part[..., rows])

    def squares(self) -> FloatArray:
        """Squared lengths of the columns (d,), less their means where these are taken off."""
        summary, n = self.summary, self.shape[1]
        if self.means is None:
            return summary.squares
        off: FloatArray = summary.squares - 2.0 * self.means * summary.totals + n * self.means**2
        # A constant column leaves nothing but rounding.
        return np.where(off > 64.0 * n * UNIT * summary.squares, off, 0.0)


class SparseColumns(DesignColumns):
    """Columns stored by their entries: those of column j are the places ``starts[j]`` up to ``starts[j + 1]``."""

    def __init__(
        self, starts: IntArray, rows: NDArray[np.int32], values: FloatArray, n: int, means: FloatArray | None = None
    ) -> None:
        super().__init__(starts.size - 1, n, means)
        self.starts, self.rows, self.values = starts, rows, values
        """(d + 1,); the rows of the entries, ascending in each column; what they hold."""

    @classmethod
    def of(cls, rows: IntArray, columns: IntArray, values: NDArray[Any], shape: tuple[int, int]) -> SparseColumns:
        """From entries in any order, no two in one place."""
        n, d = shape
        order = np.lexsort((rows, columns))
        starts = np.zeros(d + 1, dtype=np.int64)
        np.cumsum(np.bincount(columns, minlength=d), out=starts[1:])
        return cls(starts, rows[order].astype(np.int32), np.asarray(values[order], dtype=np.float64), n)

    @property
    def as_given(self) -> SparseColumns:
        """See :class:`DesignColumns`."""
        return self._with_means(None)

    def centred(self, means: FloatArray) -> SparseColumns:
        """See :class:`DesignColumns`."""
        return self._with_means(means)

    def of_columns(self, columns: IntArray) -> SparseColumns:
        """See :class:`DesignColumns`."""
        places, lengths = self._places(columns)
        starts, means = np.append(0, np.cumsum(lengths)), None if self.means is None else self.means[columns]
        return SparseColumns(starts, self.rows[places], self.values[places], self.shape[1], means)

    def stored(self, columns: IntArray) -> FloatArray:
        """See :class:`DesignColumns`."""
        table = np.zeros((columns.size, self.shape[1]))
        places, lengths = self._places(columns)
        table[np.repeat(np.arange(columns.size), lengths), self.rows[places]] = self.values[places]
        return table

    def products(self, b: FloatArray) -> FloatArray:
        """See :class:`DesignColumns`."""
        return self._added_up(self.values * b[self.rows])

    def combined(self, x: FloatArray) -> FloatArray:
        """See :class:`DesignColumns`."""
        used = np.flatnonzero(x)
        if 2 * used.size < len(self):
            places, lengths = self._places(used)
            weights = self.values[places] * np.repeat(x[used], lengths)
            return np.asarray(np.bincount(self.rows[places], weights, self.shape[1]), dtype=np.float64)
        weights = self.values * np.repeat(x, self.counts)
        return np.asarray(np.bincount(self.rows, weights, self.shape[1]), dtype=np.float64)

    def summed_up(self) -> Summary:
        """See :class:`DesignColumns`."""
        values, sizes = self.values, np.abs(self.values)
        mask = np.isfinite(values)
        with np.errstate(over="ignore", invalid="ignore"):
            totals, squares = self._added_up(values), self._added_up(values * values)
        return Summary(
            int(np.count_nonzero(~mask)), float(sizes[values != 0.0].min(initial=np.inf)),
            float(sizes.max(initial=0.0)), totals, squares,
        )  # fmt: skip

    @property
    def bytes_in_memory(self) -> int:
        """See :class:`DesignColumns`; products of all entries are made at once."""
        return self.starts.nbytes + self.rows.nbytes + 3 * self.values.nbytes

    @property
    def counts(self) -> IntArray:
        """See :class:`DesignColumns`."""
        return np.diff(self.starts)

    def touched(self, values: FloatArray) -> FloatArray:
        """See :class:`DesignColumns`."""
        return self._added_up(values[self.rows])

    def feed(self, digest: hashlib._Hash) -> None:
        """See :class:`DesignColumns`."""
        for part, kind in ((self.starts, "<i8"), (self.rows, "<i4"), (self.values, "<f8")):
            digest.update(np.ascontiguousarray(part, dtype=kind).data)

    def divided(self, by: FloatArray) -> SparseColumns:
        """See :class:`DesignColumns`."""
        values, means = self.values / np.repeat(by, self.counts), None if self.means is None else self.means / by
        return SparseColumns(self.starts, self.rows, values, self.shape[1], means)

    def _with_means(self, means: FloatArray | None) -> SparseColumns:
        columns = SparseColumns(self.starts, self.rows, self.values, self.shape[1], means)
        columns._summary = self._summary
        return columns

    def _places(self, columns: IntArray) -> tuple[IntArray, IntArray]:
        """Where the entries of some columns are, one column after the other, and how many each has."""
        first, lengths = self.starts[columns], self.starts[columns + 1] - self.starts[columns]
        ends = np.cumsum(lengths)
        total = int(ends[-1]) if ends.size else 0
        return np.repeat(first - (ends - lengths), lengths) + np.arange(total), lengths

    def _added_up(self, terms: FloatArray) -> FloatArray:
        """Sums of the terms of each column (d,)."""
        filled = np.flatnonzero(self.counts)
        total = np.zeros(len(self))
        if filled.size:
            total[filled] = np.add.reduceat(terms, self.starts[filled])
        return total


class DesignMatrix:
    """A matrix (n, d) whose columns are :class:`DesignColumns`."""

    __array_ufunc__ = None
    ndim = 2
    dtype = np.dtype(np.float64)

    def __init__(self, columns: DesignColumns) -> None:
        self.T = columns
        self.shape = columns.shape[::-1]

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, *_: object, **__: object) -> NDArray[Any]:
        raise _as_table(self.shape)

    def __getitem__(self, key: object) -> FloatArray:
        """``self[:, columns]`` (n, m), or ``self[:, j]`` (n,), as tables; rows of all columns are refused."""
        if not isinstance(key, tuple):
            raise _as_table(self.shape)
        rows, columns = key
        return np.asarray(self.T[columns, rows].T)

    def table(self) -> FloatArray:
        """All of it as a table, :class:`UnsupportedError` where that is too large."""
        return self.T[:].T

    def __matmul__(self, x: FloatArray) -> FloatArray:
        return x @ self.T

    def of_columns(self, columns: ArrayLike) -> DesignMatrix:
        """The matrix with some of its columns; itself where these are all."""
        if np.array_equal(columns, np.arange(self.shape[1])):
            return self
        return self.T.of_columns(np.asarray(columns, dtype=np.int64)).T


def _as_table(shape: tuple[int, ...]) -> UnsupportedError:
    size = 8 * shape[0] * shape[1] / 2**20
    return UnsupportedError(
        f"a table of {shape[0]} x {shape[1]} numbers ({size:.4g} MiB) is needed here, but the data are held "
        f"as none; use {either('exactsel.heuristics.run', 'exactsel solve --method forward')}, or keep fewer features."
    )


def is_design(data: object) -> bool:
    """Whether data are not held as a table."""
    return isinstance(data, DesignColumns | DesignMatrix)


def typed_as_array(data: DesignColumns | DesignMatrix) -> FloatArray:
    """Data that are not held as a table, to type checkers an array: they answer the same expressions."""
    return cast("FloatArray", data)


def with_table_for(
    needs: Iterable[object], data: ArrayLike | DesignMatrix, names: Sequence[str] | None
) -> tuple[ArrayLike | DesignMatrix, Sequence[str] | None]:
    """Data (n, d), as a table where one of the ``needs`` is neither None nor False, and names."""
    needed = any(value is not None and value is not False for value in needs)
    return data.table() if needed and isinstance(data, DesignMatrix) else data, names


def refuse_design(AT: object, what: str) -> None:
    """:class:`UnsupportedError` where data (d, n) are not held as a table."""
    if isinstance(AT, DesignColumns):
        raise UnsupportedError(
            f"{what} is needed here, but the data, {AT.shape[1]} x {len(AT)}, are held as no table; use another "
            f"method, such as forward, or keep fewer features."
        )


def freeze(AT: FloatArray | DesignColumns, y: FloatArray) -> None:
    """Make the data read-only; those that are not held as a table are never written to."""
    if not isinstance(AT, DesignColumns):
        AT.flags.writeable = False
    y.flags.writeable = False


def checked_design(matrix: DesignMatrix, smallest: float, largest: float) -> DesignMatrix:
    """The matrix; :class:`InputError` where its numbers cannot be used, entries beyond the two sizes among them."""
    if 0 in matrix.shape:
        raise InputError(f"A is empty (shape {matrix.shape[0]} x {matrix.shape[1]}); give at least one row and column.")
    stats = matrix.T.summary
    if stats.unusable:
        raise InputError(
            f"A holds {stats.unusable} value(s) that are NaN or infinite; remove or fill in those entries first."
        )
    if stats.smallest < smallest or stats.largest > largest:
        raise InputError(
            f"A holds entries from {stats.smallest:.3g} to {stats.largest:.3g} in size, but between {smallest:g} and "
            f"{largest:g} was expected, so that no square underflows or overflows; rescale the columns of A."
        )
    return matrix


def stays_sparse(rows: int, columns: int, entries: int) -> bool:
    """Whether a sparse matrix of this size is worked on as it is, and not as a table."""
    table = 8 * columns * max(rows, columns)
    return table > MOST_TABLE_BYTES and entries <= MOST_ENTRIES * rows * columns


def some_of(AT: FloatArray, columns: IntArray) -> FloatArray:
    """Some of the columns (d, n), as a table where all of them are one."""
    return AT.of_columns(columns) if isinstance(AT, DesignColumns) else AT[columns]


def squared_lengths(AT: FloatArray | DesignColumns) -> FloatArray:
    """Squared lengths of columns (d, n)."""
    return AT.squares() if isinstance(AT, DesignColumns) else np.einsum("ij,ij->i", AT, AT)


def design_hash(header: bytes, AT: DesignColumns, *vectors: FloatArray | None) -> str:
    """sha256 over ``header``, the columns as given, and the ``vectors`` there are."""
    digest = hashlib.sha256(b"exactsel-design-v1\0" + header)
    AT.feed(digest)
    for vector in vectors:
        if vector is not None:
            digest.update(vector.astype("<f8").tobytes())
    return digest.hexdigest()
