"""Comma- and tab-separated files, read with the standard library, so that every number is the nearest float."""

from __future__ import annotations

import csv
import io
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from exactsel.data.arrays import TEXT_BYTES, read_bytes
from exactsel.data.sizes import COLUMN_BYTES, Budget
from exactsel.errors import InputError, escaped
from exactsel.problem.frames import Column
from exactsel.types import FloatArray

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "-"})
"""Cells that mean that there is no value, in small letters."""

DELIMITERS = ",;\t"

CELLS_AT_ONCE = 2**17
"""Cells turned into numbers in one go: as text they take many times the memory."""

PLACE_BYTES = 24
"""What a cell takes in the lists of a column of text, beside the text itself."""


def read_text_table(file: Path) -> list[Column]:
    """The columns of a text table whose first line may hold their names.

    Commas, semicolons and tabs separate cells, whichever the first line has most of. Without names the columns are
    called ``column 0`` and so on. A first column without a name among others, as pandas writes its index, is taken
    for row labels and left out with a warning.

    Raises
    ------
    InputError
        When rows have different lengths, or there are none, or more than may be unpacked.
    """
    table = _Table(file)
    first = next(table.rows(), None)
    if first is None:
        raise InputError(f"{file} is empty; a table has a line of names and a line for every observation.")
    header = None if all(_number(cell) is not None for cell in first) else [cell.strip() for cell in first]
    width = len(first)
    names = header if header is not None else [f"column {j}" for j in range(width)]
    columns = _columns(table, names, 1 if header is None else 2)
    if columns is None:
        raise InputError(f"{file} has a line of names but no observations; add a line for each.")
    if header is not None and header[0] == "" and width > 1:
        warnings.warn(
            f"the first column of {escaped(str(file))} has no name; it is taken for row labels.", stacklevel=4
        )
        return columns[1:]
    return columns


class _Table:
    """The cells of a text, which can be gone through several times."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.budget = Budget(file)
        self._data = read_bytes(file, self.budget)
        if b"\0" in self._data and not self._data.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise InputError(f"{file} holds NUL bytes, which no text does; save it as UTF-8 text.")
        self._pending = 0
        first = next(self._lines(), "")
        self.delimiter = max(DELIMITERS, key=first.count)
        self.budget.take(COLUMN_BYTES * first.count(self.delimiter))

    def rows(self) -> Iterator[list[str]]:
        """The rows that are not empty, each as long as the first."""
        width = 0
        try:
            for number, row in enumerate(filter(None, csv.reader(self._counted(), delimiter=self.delimiter)), 1):
                self._pending = 0
                width = width or len(row)
                if len(row) != width:
                    raise InputError(
                        f"row {number} of {self.file} has {len(row)} cells, but the first has {width}; make them equal."
                    )
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
            yield from io.TextIOWrapper(io.BytesIO(self._data), encoding="utf-8-sig", newline="")
        except UnicodeDecodeError:
            raise InputError(f"{self.file} is not UTF-8 text; save it as UTF-8.") from None


def _columns(table: _Table, names: Sequence[str], begin: int) -> list[Column] | None:
    """The columns; None where there are no rows. Those that are not all numbers are read a second time, as text."""
    parts: list[list[FloatArray] | None] = [[] for _ in names]
    empty = True
    for block in table.blocks(begin):
        empty = False
        for j, cells in enumerate(block):
            known = parts[j]
            found = None if known is None else _numbers(cells)
            if known is None or found is None:
                parts[j] = None
            else:
                table.budget.take(found.nbytes)
                known.append(found)
    if empty:
        return None
    others = [j for j, part in enumerate(parts) if part is None]
    texts = _texts(table, others, begin) if others else {}
    return [
        _column(name, texts[j]) if part is None else Column(name, np.concatenate(part))
        for j, (name, part) in enumerate(zip(names, parts, strict=True))
    ]


def _texts(table: _Table, places: Sequence[int], begin: int) -> dict[int, list[str]]:
    """The cells of some columns as they are; equal ones are kept once."""
    kept: dict[int, list[str]] = {j: [] for j in places}
    same: dict[str, str] = {}
    for block in table.blocks(begin):
        for j in places:
            table.budget.take(PLACE_BYTES * len(block[j]))
            for cell in block[j]:
                if cell not in same:
                    table.budget.take(TEXT_BYTES + sys.getsizeof(cell))
                    same[cell] = cell.strip()
                kept[j].append(same[cell])
    return kept


def _numbers(cells: Sequence[str]) -> FloatArray | None:
    """The cells as numbers, where all of them are."""
    try:
        values: FloatArray = np.array([float(cell) for cell in cells])
    except ValueError:
        return None
    return None if np.isnan(values).any() or any("_" in cell for cell in cells) else values


def _column(name: str, cells: Sequence[str]) -> Column:
    """A column of which not all cells are numbers."""
    missing = sum(cell.strip().lower() in MISSING for cell in cells)
    held = [cell.strip() for cell in cells if cell.strip().lower() not in MISSING]
    if all(_number(cell) is not None for cell in held):
        return Column(name, None, missing=missing)
    if {cell.lower() for cell in held} <= {"true", "false"} and not missing:
        return Column(name, np.array([float(cell.lower() == "true") for cell in held]))
    return Column(name, None, kind="text", missing=missing, texts=tuple(held))


def _number(cell: str) -> float | None:
    try:
        return None if "_" in cell or cell.strip().lower() in MISSING else float(cell)
    except ValueError:
        return None
