"""Tables of more rows than memory holds, read a block at a time.

Each kind of table is a :class:`Rows`: it knows the names of its columns, and yields the requested ones block by block,
as floats, nan where there is no value.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from exactsel.data.arrays import UTF_16, refusing_damage
from exactsel.data.cells import is_missing, plainly, read_cells
from exactsel.data.layout import check_row_names, cut, delimiter_of, is_one_short
from exactsel.data.lost import Lost
from exactsel.data.shipped import no_such_file
from exactsel.data.text import may_be_number
from exactsel.errors import InputError, UnsupportedError, option, warn_of_data
from exactsel.files import is_file
from exactsel.problem.doubles import EXACT, rounding_of_texts
from exactsel.problem.frames import Column, frame_columns, is_frame
from exactsel.types import FloatArray

ENTRIES = 2**21
"""Numbers of a block, at most, where a block can be as small as one likes."""

FIRST = 1000
"""Rows that are read ahead before a table is read."""

ENDINGS = (".npy", ".parquet", ".csv", ".tsv")
"""Of files that are read in blocks; the last two also with .gz."""


class Rows(Protocol):
    """A table that is read once, from its first row to its last."""

    where: str
    """What messages call it."""
    names: list[str]
    """Of the columns; empty texts where they have none."""
    lost: Lost
    """What the columns that have been yielded lose as doubles."""

    def blocks(self, places: Sequence[int]) -> Iterator[FloatArray]:
        """These columns (m, places), block by block."""
        ...


def rows_of(data: object, decimal: str | None = None, encoding: str | None = None) -> Rows:
    """The rows of a file (:data:`ENDINGS`), a data frame, lazy or not, or anything that has a shape and can be sliced.

    Raises
    ------
    InputError
        When it is none of these, or a library is missing.
    """
    if isinstance(data, str | os.PathLike):
        return _rows_of_file(Path(data), decimal, encoding)
    library = type(data).__module__.partition(".")[0]
    if library == "polars" and type(data).__name__ == "LazyFrame":
        return LazyRows(data)
    if library in ("dask", "dask_expr") and hasattr(data, "partitions") and hasattr(data, "columns"):
        return DaskRows(data)
    if is_frame(data):
        return FrameRows(data)
    if _is_sliceable(data):
        return ArrayRows(data, "the data")
    raise InputError(
        f"a {type(data).__name__} cannot be read in blocks; give a file ({', '.join(ENDINGS)}), a data frame, lazy or "
        f"not, an array, or an iterator of pairs (A, y)."
    )


def _rows_of_file(file: Path, decimal: str | None, encoding: str | None) -> Rows:
    if not is_file(file):
        raise no_such_file(file)
    ending = Path(file.stem).suffix.lower() if file.suffix.lower() == ".gz" else file.suffix.lower()
    if ending not in ENDINGS or (file.suffix.lower() == ".gz" and ending not in (".csv", ".tsv")):
        raise InputError(f"{file} is of no kind that is read in blocks; the kinds are {', '.join(ENDINGS)}.")
    with refusing_damage(file, "cannot be read as what its name says it is", "check the file or its ending"):
        if ending == ".npy":
            return ArrayRows(np.load(file, mmap_mode="r", allow_pickle=False), str(file))
        return ParquetRows(file) if ending == ".parquet" else TextRows(file, decimal, encoding)


def _is_sliceable(data: object) -> TypeGuard[Sliceable]:
    return len(getattr(data, "shape", ())) in (1, 2) and hasattr(data, "__getitem__")


def block_rows(columns: int) -> int:
    """Rows of a block of so many columns."""
    return max(1, ENTRIES // max(1, columns))


class Sliceable(Protocol):
    """An array, or what is sliced like one."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, d), or (n,)."""
        ...

    @property
    def dtype(self) -> DTypeLike:
        """The type of the entries; some have none."""
        ...

    def __getitem__(self, rows: slice, /) -> ArrayLike: ...


class ArrayRows:
    """A numpy array, a memory map, or what can be sliced like one (dask, h5py, zarr)."""

    def __init__(self, array: Sliceable, where: str) -> None:
        kind = np.dtype(array.dtype).kind if hasattr(array, "dtype") else "f"
        if kind not in "biuf":
            raise InputError(f"{where} has entries of type {array.dtype}; store plain numbers instead.")
        self.where, self._array, self.lost = where, array, Lost()
        self._width = array.shape[1] if len(array.shape) == 2 else 1
        self.names = [""] * self._width

    def blocks(self, places: Sequence[int]) -> Iterator[FloatArray]:
        """These columns, block by block."""
        all_of_them = [*places] == [*range(self._width)]
        called = [f"column {j} of {self.where}" if self._width > 1 else self.where for j in places]
        for rows in self._whole():
            columns = rows if all_of_them else rows[:, places]
            block = columns.astype(np.float64, copy=False)
            self.lost.add_table(called, columns, block)
            yield block

    def _whole(self) -> Iterator[NDArray[Any]]:
        array, step = self._array, block_rows(self._width)
        if isinstance(array, np.memmap) and array.flags.c_contiguous and array.filename is not None:
            # Pages of a memory map count as memory of the process until others need it.
            with open(array.filename, "rb") as stream:
                stream.seek(array.offset)
                for first in range(0, len(array), step):
                    count = min(step, len(array) - first)
                    numbers = np.fromfile(stream, dtype=array.dtype, count=count * self._width)
                    yield numbers.reshape(count, self._width)
            return
        for first in range(0, array.shape[0], step):
            yield np.asarray(array[first : first + step]).reshape(-1, self._width)


class ParquetRows:
    """A parquet file; pyarrow holds as much of it as it takes to unpack a group of rows."""

    def __init__(self, file: Path) -> None:
        try:
            import pyarrow.parquet
        except ImportError:
            raise UnsupportedError(f"reading {file.name} needs pyarrow; run: pip install 'exactsel[frames]'.") from None
        from exactsel.data.arrow import INDEX

        self.where, self._file, self.lost = str(file), file, Lost()
        self._opened = pyarrow.parquet.ParquetFile(file)
        self._schema = self._opened.schema_arrow
        self.names = [name for name in self._schema.names if not name.startswith(INDEX)]

    def blocks(self, places: Sequence[int]) -> Iterator[FloatArray]:
        """These columns, block by block."""
        import pyarrow

        from exactsel.data.arrow import floats_of, rounding_in

        names = [self.names[j] for j in places]
        for name in names:
            kind = self._schema.field(name).type
            kind = kind.value_type if pyarrow.types.is_dictionary(kind) else kind
            predicates = ("is_integer", "is_floating", "is_boolean", "is_decimal", "is_null")
            if not any(getattr(pyarrow.types, which)(kind) for which in predicates):
                raise _no_numbers(self.where, name, f"entries of type {kind}"[:60])
        with refusing_damage(self._file, "cannot be read as what its name says it is", "check the file"):
            batches = self._opened.iter_batches(batch_size=block_rows(len(names)), columns=names, use_threads=False)
            for batch in batches:
                batch.validate(full=True)  # or an offset out of range is followed to wherever it points
                columns = [floats_of(pyarrow, batch.column(name)) for name in names]
                for name, column in zip(names, columns, strict=True):
                    self.lost.add(_column_of(self, name), column, rounding_in(pyarrow, batch.column(name)))
                yield np.column_stack(columns) if columns else np.zeros((len(batch), 0))


class TextRows:
    """A table of cells. As it is gone through once only, what one cell says about others before it comes too late: a
    number with a comma, or any fraction between semicolons, needs ``decimal``.
    """

    def __init__(self, file: Path, decimal: str | None, encoding: str | None) -> None:
        self.where, self._file, self._decimal, self.lost = str(file), file, decimal, Lost()
        with file.open("rb") as raw:
            start = raw.read(2)
        self._encoding = encoding or ("utf-16" if start in UTF_16 else "utf-8-sig")
        first, second = (*islice(self._lines(), 2), "", "")[:2]
        self._skipped = int(first[:4].lower() == "sep=" and len(first.strip()) == 5)  # as some spreadsheets begin
        self._delimiter = first[4] if self._skipped else delimiter_of(first, second)
        head, *others = (*islice(self._cells(), 1 + FIRST), None)[: 1 + FIRST]
        if head is None:
            raise InputError(f"{file} is empty; a table has a line of names and a line for every observation.")
        self._header = not all(may_be_number(cell) for cell in head)
        names = [cell.strip() for cell in head] if self._header else [f"column {j}" for j in range(len(head))]
        below = [row for row in others if row]
        if below and is_one_short(names if self._header else None, below[0]):
            names = ["", *names]
            check_row_names([row[0] for row in below], not any(row[-1].strip() for row in below), str(file))
        self._labels = int(names[0] == "" and len(names) > 1)
        if self._labels:
            warn_of_data(f"the first column of {file} has no name; it is taken for row names.")
        self.names = names[self._labels :]

    def blocks(self, places: Sequence[int]) -> Iterator[FloatArray]:
        """These columns, block by block."""
        width, number = len(self.names) + self._labels, int(self._header)
        rows = islice(self._cells(), number, None)
        while held := list(islice(rows, block_rows(width))):
            for row in held:
                number += 1
                if len(row) != width:
                    raise InputError(
                        f"row {number} of {self.where} has {len(row)} cells, but the first has {width}; make them "
                        f"equal."
                    )
            columns = [self._numbers([row[j + self._labels] for row in held], self.names[j]) for j in places]
            yield np.column_stack(columns)

    def _cells(self) -> Iterator[list[str]]:
        """The rows that are not empty."""
        try:
            yield from cut(islice(self._lines(), self._skipped, None), self._delimiter)
        except csv.Error as error:
            raise InputError(
                f"{self.where} is no table of cells ({error}); save it again as comma-separated text."
            ) from None

    def _lines(self) -> Iterator[str]:
        try:
            with self._file.open("rb") as raw:
                stream: gzip.GzipFile | io.BufferedReader = (
                    gzip.GzipFile(fileobj=raw) if self._file.suffix.lower() == ".gz" else raw
                )
                with io.TextIOWrapper(stream, encoding=self._encoding, newline="") as text:
                    yield from text
        except LookupError:
            raise InputError(
                f"{option('encoding')} is '{self._encoding}', which no text is known by; give utf-8, say."
            ) from None
        except UnicodeError:
            raise InputError(
                f"{self.where} is not {self._encoding.upper().replace('-SIG', '')} text; say what it is with "
                f"{option('encoding')} (cp1252, latin-1, utf-16, say)."
            ) from None
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise InputError(f"{self.where} is truncated or damaged ({error}); copy it or write it again.") from None

    def _numbers(self, cells: Sequence[str], name: str) -> FloatArray:
        unclear = self._decimal is None and self._delimiter == ";" and any("." in cell for cell in cells)
        if self._decimal != "," and not unclear:
            try:
                plain = np.array(list(map(float, cells)))
                if not any("_" in cell for cell in cells):
                    return self._told(name, cells, plain)
            except ValueError:
                pass
        if unclear or (self._decimal is None and any("," in cell for cell in cells)):
            example = next(cell for cell in cells if "," in cell or "." in cell)
            raise InputError(
                f"in {self.where}, column {name or 'without a name'} holds cells like '{example[:30]}', in which the "
                f"mark may be a decimal one or group thousands; say which with "
                f"{option('decimal', ',')} or {option('decimal', '.')}."
            )
        values = read_cells(cells, self._decimal or ".").values
        if values is None:
            example = next((cell for cell in cells if not is_missing(cell) and not may_be_number(cell)), cells[0])
            raise _no_numbers(self.where, name, f"text, such as {example.strip()[:30]!r}")
        return self._told(name, cells, values)

    def _told(self, name: str, cells: Sequence[str], values: FloatArray) -> FloatArray:
        """The numbers in some cells of a column, what they lose taken note of."""
        rounding = None
        if np.fmax.reduce(np.abs(values), initial=0.0) >= EXACT:
            rounding = rounding_of_texts(cells, values, lambda cell: plainly(cell, self._decimal or "."))
        self.lost.add(_column_of(self, name), values, rounding)
        return values


class FrameRows:
    """A data frame that is in memory already."""

    where = "the data frame"

    def __init__(self, frame: Any) -> None:
        self._frame, self.lost = frame, Lost()
        try:
            import narwhals as nw
        except ImportError:
            raise UnsupportedError("data frames need narwhals; run: pip install 'exactsel[frames]'.") from None
        self._known = nw.from_native(frame, eager_only=True)
        self.names = [str(name) for name in self._known.columns]

    def blocks(self, places: Sequence[int]) -> Iterator[FloatArray]:
        """These columns, block by block."""
        step = block_rows(len(self.names))
        for first in range(0, len(self._known), step):
            yield _numbers_of(self._known[first : first + step].to_native(), places, self)


class LazyRows:
    """A lazy frame of polars, computed batch by batch."""

    where = "the data frame"

    def __init__(self, frame: Any) -> None:
        self._frame, self.lost = frame, Lost()
        self.names = list(frame.collect_schema().names())

    def blocks(self, places: Sequence[int]) -> Iterator[FloatArray]:
        """These columns, block by block."""
        chosen, step = self._frame.select([self.names[j] for j in places]), block_rows(len(places))
        if not hasattr(chosen, "collect_batches"):
            raise UnsupportedError(
                f"this version of polars ({sys.modules['polars'].__version__}) computes no lazy frame in batches; "
                f"install a newer one, or write it with sink_parquet and give that file."
            )
        for batch in chosen.collect_batches(chunk_size=step, maintain_order=True):
            yield _numbers_of(batch, range(len(places)), self)


class DaskRows:
    """A dask frame, computed partition by partition."""

    where = "the data frame"

    def __init__(self, frame: Any) -> None:
        self._frame, self.lost = frame, Lost()
        self.names = [str(name) for name in frame.columns]

    def blocks(self, places: Sequence[int]) -> Iterator[FloatArray]:
        """These columns, partition by partition."""
        chosen = self._frame[[self._frame.columns[j] for j in places]]
        for number in range(chosen.npartitions):
            yield _numbers_of(chosen.partitions[number].compute(), range(len(places)), self)


def _column_of(rows: Rows, name: str) -> str:
    """What messages call a column."""
    return f"in {rows.where}, column {name}"


def _numbers_of(frame: Any, places: Sequence[int], rows: Rows) -> FloatArray:
    columns = frame_columns(frame)
    vectors = [_values(columns[j], rows.where) for j in places]
    for j, values in zip(places, vectors, strict=True):
        rows.lost.add(_column_of(rows, columns[j].name), values, columns[j].rounding)
    return np.column_stack(vectors) if vectors else np.zeros((len(frame), 0))


def _values(column: Column, where: str) -> FloatArray:
    values = column.partial if column.values is None else column.values
    if values is None:
        raise _no_numbers(where, column.name, column.kind)
    return values


def _no_numbers(where: str, name: str, held: str) -> InputError:
    return InputError(
        f"in {where}, column {name or 'without a name'} holds {held}, but blocks of rows must hold numbers; leave it "
        f"out with {option('drop')}, or encode it before."
    )
