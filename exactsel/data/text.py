"""Comma- and tab-separated files, read with the standard library, so that every number is the nearest float."""

from __future__ import annotations

import codecs
import csv
import io
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np

from exactsel.data.arrays import TEXT_BYTES, UTF_16, read_bytes
from exactsel.data.cells import as_number, bare, decimal_mark, is_date, is_missing, plainly, read_cells
from exactsel.data.layout import check_row_names, cut, delimiter_of, is_one_short
from exactsel.data.sizes import COLUMN_BYTES, Budget
from exactsel.deadlines import ask
from exactsel.errors import InputError, option, warn_of_data
from exactsel.problem.doubles import Rounding, may_round_texts, rounding_of_texts
from exactsel.problem.frames import SHOWN, Column
from exactsel.types import FloatArray

CELLS_AT_ONCE = 2**17
"""Cells turned into numbers in one go: as text they take many times the memory."""

PLACE_BYTES = 24
"""What a cell takes in the lists of a column of text, beside the text itself."""


@dataclass(frozen=True)
class Written:
    """The format of a text, as far as the user has stated it."""

    decimal: str | None = None
    """``,`` or ``.``"""
    encoding: str | None = None
    """A name Python knows."""


def read_text_table(file: Path, written: Written = Written()) -> list[Column]:
    """The columns of a text table whose first line may hold their names.

    Commas, semicolons, tabs and bars separate cells, whichever the first line has most of, or else blanks. Without
    names the columns are called ``column 0`` and so on. A first column without a name among others, as pandas and R
    write the names of rows, is dropped with a warning (:mod:`exactsel.data.layout`). Cells are read by
    :mod:`exactsel.data.cells`; what was not plain is said in a warning.

    Raises
    ------
    InputError
        When rows have different lengths, or there are none, or more than may be unpacked, or a column can be read in
        two ways.
    """
    table = _Table(file, written)
    header = table.header
    names = header if header is not None else [f"column {j}" for j in range(table.width)]
    columns = _columns(table, names, 1 if header is None else 2, written.decimal)
    if columns is None:
        raise InputError(f"{file} has a line of names but no observations; add a line for each.")
    if header is not None and header[0] == "" and table.width > 1:
        if table.short:
            check_row_names(_entries(columns[0]), table.ends_empty, str(file))
        warn_of_data(f"the first column of {file} has no name; it is taken for row names.")
        columns = columns[1:]
    _tell_of_names(file, [column.name for column in columns])
    return columns


def _entries(column: Column) -> list[object]:
    """What the column holds, None for each entry without a value; in no order."""
    held: Sequence[object] = column.texts if column.values is None else column.values.tolist()
    return [*held, *[None] * column.missing]


def may_be_number(cell: str) -> bool:
    """Whether the cell is a number with one decimal mark or the other."""
    return any(as_number(bare(cell), mark) is not None for mark in ".,") if cell.strip() else False


def _tell_of_names(file: Path, names: Sequence[str]) -> None:
    """Warn of names that are there twice, and of columns without one."""
    twice = sorted({name for name in names if name and names.count(name) > 1}) if len(set(names)) < len(names) else []
    unnamed = [str(j) for j, name in enumerate(names) if not name]
    for what, labels in (("more than one column is called", twice), ("there is no name for column", unnamed)):
        if labels:
            listing = ", ".join(labels[:SHOWN]) + (", …" if len(labels) > SHOWN else "")
            warn_of_data(f"in {file}, {what} {listing}; such columns can be named by their number, from 0.")


class _Table:
    """The cells of a text, which can be gone through several times."""

    def __init__(self, file: Path, written: Written) -> None:
        self.file = file
        self.budget = Budget(file)
        self._data = read_bytes(file, self.budget)
        self._encoding = written.encoding or _encoding_of(self._data, file)
        self._pending = self._skipped = 0
        first, second = (*islice(self._lines(), 2), "", "")[:2]
        if first[:4].lower() == "sep=" and len(first.strip()) == 5:  # as some spreadsheets begin their files
            self._skipped = 1
            first = first[4] + second
            self.delimiter = first[0]
        else:
            self.delimiter = delimiter_of(first, second)
        self.budget.take(COLUMN_BYTES * first.count(self.delimiter))
        self.width, self.short, self.ends_empty = 0, False, True
        self.header = self._names()
        """The names of the columns, the first one empty where none stands above the names of the rows."""

    def _names(self) -> list[str] | None:
        """The first row where it holds names; with it :attr:`width` and :attr:`short` are known."""
        rows = self.rows()
        first = next(rows, None)
        if first is None:
            raise InputError(f"{self.file} is empty; a table has a line of names and a line for every observation.")
        header = None if all(may_be_number(cell) for cell in first) else [cell.strip() for cell in first]
        self.short = is_one_short(header, next(rows, []))
        self.width = len(first) + self.short
        return ["", *header] if header is not None and self.short else header

    def rows(self) -> Iterator[list[str]]:
        """The rows that are not empty, each as long as the others; the first without what it is short of."""
        try:
            for number, row in enumerate(cut(self._counted(), self.delimiter), 1):
                self._pending = 0
                if self.width and len(row) != self.width - (self.short and number == 1):
                    which = "the second" if self.short else "the first"
                    raise InputError(
                        f"row {number} of {self.file} has {len(row)} cells, but {which} has {self.width}; make them "
                        f"equal."
                    )
                self.ends_empty = self.ends_empty and (number == 1 or not row[-1].strip())
                yield row
        except csv.Error as error:
            raise InputError(
                f"{self.file} is no table of cells ({error}); save it again as comma-separated text."
            ) from None

    def blocks(self, begin: int) -> Iterator[list[tuple[str, ...]]]:
        """Cells by column, of some rows at a time, from row number ``begin`` on (from 1)."""
        held: list[list[str]] = []
        for number, row in enumerate(self.rows(), 1):
            if number >= begin:
                held.append(row)
            if len(held) * len(row) >= CELLS_AT_ONCE:
                ask()
                yield [*zip(*held, strict=True)]
                held = []
        if held:
            yield [*zip(*held, strict=True)]

    def _counted(self) -> Iterator[str]:
        """The lines; one row of very many cells is refused before it is cut up."""
        for line in self._lines():
            self._pending += line.count(self.delimiter)
            if TEXT_BYTES * self._pending > self.budget.limit:
                self.budget.take(TEXT_BYTES * self._pending)
            yield line

    def _lines(self) -> Iterator[str]:
        try:
            lines = io.TextIOWrapper(io.BytesIO(self._data), encoding=self._encoding, newline="")
            for _ in range(self._skipped):
                next(lines, "")
            yield from lines
        except LookupError:
            raise InputError(
                f"{option('encoding')} is '{self._encoding}', which no text is known by; give utf-8, say."
            ) from None
        except UnicodeError:
            raise InputError(
                f"{self.file} is not {self._encoding.upper().replace('-SIG', '')} text; save it as UTF-8, or say what "
                f"it is with {option('encoding')} (cp1252, latin-1, utf-16, say)."
            ) from None


def _encoding_of(data: bytes, file: Path) -> str:
    """The encoding of a text that does not say which it is: UTF-8 where it can be that, else that of older Windows."""
    if data.startswith(UTF_16):
        return "utf-16"
    if b"\0" in data:
        raise InputError(
            f"{file} holds NUL bytes, which no text does; save it as UTF-8 text, or name its {option('encoding')}."
        )
    try:
        codecs.decode(data, "utf-8-sig")
    except UnicodeDecodeError:
        try:
            codecs.decode(data, "cp1252")
        except UnicodeDecodeError:
            return "utf-8-sig"
        warn_of_data(
            f"{file} is not UTF-8 text and read as Windows-1252; if names look wrong, give {option('encoding')}."
        )
        return "cp1252"
    return "utf-8-sig"


def _columns(table: _Table, names: Sequence[str], begin: int, decimal: str | None) -> list[Column] | None:
    """The columns; None where there are no rows. Those that are not all plain numbers are read again, as text."""
    parts = _plain(table, len(names), begin)
    if parts is None:
        return None
    plain = {j: np.concatenate(part) for j, part in enumerate(parts) if part is not None}
    texts = _texts(table, [j for j in range(len(names)) if j not in plain], begin)
    marks = {j: decimal_mark(bare(cell) for cell in cells if not is_missing(cell)) for j, cells in texts.items()}
    fractions = [j for j, values in plain.items() if np.any(values != np.trunc(values))]
    # Where commas may be decimal, 1.234 may be more than a thousand.
    if decimal == "," or (decimal is None and (table.delimiter == ";" or "," in marks.values())):
        marks |= _marks(table, fractions, begin)
    else:
        marks |= dict.fromkeys(fractions, ".")
    decimals = {mark for mark in marks.values() if mark in (",", ".")}
    in_file = decimal or (
        decimals.pop() if len(decimals) == 1 else "." if not decimals and table.delimiter != ";" else None
    )
    texts |= _texts(table, [j for j in fractions if decimal == "," or (marks[j] == "?" and in_file != ".")], begin)
    notes: dict[str, list[str]] = {}
    columns = []
    lost = _roundings(table, {j: values for j, values in plain.items() if j not in texts}, begin)
    for j, name in enumerate(names):
        ask()
        if j not in texts:
            columns.append(Column(name, plain[j], rounding=lost.get(j)))
            continue
        column_mark = marks[j]
        mark = decimal or (column_mark if column_mark in (",", ".") else "." if column_mark == "" else in_file)
        columns.append(_column(name, texts[j], mark, table.file, notes))
    _tell_how(table.file, notes)
    return columns


def _tell_how(file: Path, notes: dict[str, list[str]]) -> None:
    """Warn of what was done to read cells that are no plain numbers."""
    for how, names in notes.items():
        listing = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
        warn_of_data(f"in {file}, {how} in {listing}.")


def _plain(table: _Table, width: int, begin: int) -> list[list[FloatArray] | None] | None:
    """The blocks of the columns that are all plain numbers, None for others; None where there are no rows."""
    parts: list[list[FloatArray] | None] = [[] for _ in range(width)]
    empty = True
    for block in table.blocks(begin):
        empty = False
        for j, cells in enumerate(block):
            part = parts[j]
            numbers = None if part is None else _numbers(cells)
            if part is None or numbers is None:
                parts[j] = None
            else:
                table.budget.take(numbers.nbytes)
                part.append(numbers)
    return None if empty else parts


def _roundings(table: _Table, plain: dict[int, FloatArray], begin: int) -> dict[int, Rounding]:
    """What columns of plain numbers lose as doubles, where they lose anything."""
    looked_at = [j for j, values in plain.items() if may_round_texts(values)]
    roundings: dict[int, Rounding] = {}
    first = 0
    for block in table.blocks(begin) if looked_at else ():
        after = first + len(block[0])
        for j in looked_at:
            lost = rounding_of_texts(block[j], plain[j][first:after], ends=True)
            if lost is not None:
                roundings[j] = roundings[j].with_also(lost) if j in roundings else lost
        first = after
    return {j: lost for j, lost in roundings.items() if lost.count}


def _marks(table: _Table, places: Sequence[int], begin: int) -> dict[int, str]:
    """What the cells of some columns show to be the decimal mark, see :func:`exactsel.data.cells.decimal_mark`."""
    mark_sets: dict[int, set[str]] = {j: set() for j in places}
    for block in table.blocks(begin) if places else ():
        for j in places:
            mark_sets[j].add(decimal_mark(map(str.strip, block[j])))
    return {j: "".join(sorted(marks - {"", "?"})) or "?" for j, marks in mark_sets.items()}


def _texts(table: _Table, places: Sequence[int], begin: int) -> dict[int, list[str]]:
    """The cells of some columns as they are; equal ones are kept once."""
    texts: dict[int, list[str]] = {j: [] for j in places}
    same: dict[str, str] = {}
    for block in table.blocks(begin) if places else ():
        for j in places:
            table.budget.take(PLACE_BYTES * len(block[j]))
            for cell in block[j]:
                if cell not in same:
                    table.budget.take(TEXT_BYTES + sys.getsizeof(cell))
                    same[cell] = cell.strip()
                texts[j].append(same[cell])
    return texts


def _numbers(cells: Sequence[str]) -> FloatArray | None:
    """The cells as numbers, where all of them are."""
    try:
        values: FloatArray = np.array([float(cell) for cell in cells])
    except ValueError:
        return None
    return None if np.isnan(values).any() or any("_" in cell for cell in cells) else values


def _column(name: str, cells: Sequence[str], decimal: str | None, file: Path, notes: dict[str, list[str]]) -> Column:
    """A column of which not all cells are plain numbers; ``decimal`` is None where it is ambiguous."""
    absent = np.array([is_missing(cell) for cell in cells])
    missing = int(absent.sum())
    held = [cell for cell, gone in zip(cells, absent, strict=True) if not gone]
    reading = read_cells(cells, decimal or ".")
    if decimal is None and (reading.values is not None or read_cells(cells, ",").values is not None):
        example = next(cell for cell in held if "," in cell or "." in cell)
        raise InputError(
            f"in {file}, column {name} holds numbers like '{example}', in which the mark may be a decimal one or group "
            f"thousands; say which with {option('decimal', ',')} or "
            f"{option('decimal', '.')}."
        )
    if reading.clash is not None:
        return Column(name, None, kind="units", missing=missing, texts=reading.clash)
    if reading.values is not None and held:
        for how in reading.how:
            notes.setdefault(how, []).append(name)
        lost = None
        if may_round_texts(reading.values):
            lost = rounding_of_texts(cells, reading.values, lambda cell: plainly(cell, decimal or "."))
        whole = Column(name, reading.values, rounding=lost)
        return replace(whole, values=None, missing=missing, partial=reading.values) if missing else whole
    if not held:
        return Column(name, None, missing=missing, partial=np.full(len(cells), np.nan))
    if {cell.lower() for cell in held} <= {"true", "false"}:
        truths = np.array([np.nan if is_missing(cell) else float(cell.lower() == "true") for cell in cells])
        return Column(name, None, missing=missing, partial=truths) if missing else Column(name, truths)
    kind = "dates" if all(map(is_date, held)) else "text"
    return Column(name, None, kind=kind, missing=missing, texts=tuple(held), absent=absent if missing else None)
