"""Comma- and tab-separated files, read with the standard library, so that every number is the nearest float."""

from __future__ import annotations

import csv
import gzip
import io
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from exactsel.errors import InputError
from exactsel.frames import Column
from exactsel.types import FloatArray

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "-"})
"""Cells that mean that there is no value, in small letters."""

DELIMITERS = ",;\t"


def read_text_table(file: Path) -> list[Column]:
    """The columns of a text table whose first line may hold their names.

    Commas, semicolons and tabs separate cells, whichever the first line has most of. Without names the columns are
    called ``column 0`` and so on. A first column without a name among others, as pandas writes its index, is taken
    for row labels and left out with a warning.

    Raises
    ------
    InputError
        When rows have different lengths, or there are none.
    """
    rows = _rows(file)
    if not rows:
        raise InputError(f"{file} is empty; a table has a line of names and a line for every observation.")
    header = None if all(_number(cell) is not None for cell in rows[0]) else [cell.strip() for cell in rows[0]]
    body = rows if header is None else rows[1:]
    if not body:
        raise InputError(f"{file} has a line of names but no observations; add a line for each.")
    width = len(rows[0])
    ragged = next((number for number, row in enumerate(rows, 1) if len(row) != width), None)
    if ragged is not None:
        raise InputError(
            f"row {ragged} of {file} has {len(rows[ragged - 1])} cells, but the first has {width}; make them equal."
        )
    names = header if header is not None else [f"column {j}" for j in range(width)]
    columns = [_column(name, cells) for name, cells in zip(names, zip(*body, strict=True), strict=True)]
    if header is not None and header[0] == "" and width > 1:
        warnings.warn(f"the first column of {file} has no name; it is taken for row labels.", stacklevel=4)
        return columns[1:]
    return columns


def _rows(file: Path) -> list[list[str]]:
    data = file.read_bytes()
    if file.suffix.lower() == ".gz":
        data = gzip.decompress(data)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{file} is not UTF-8 text; save it as UTF-8.") from None
    first = text.partition("\n")[0]
    delimiter = max(DELIMITERS, key=first.count)
    try:
        return [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row]
    except csv.Error as error:
        raise InputError(f"{file} is no table of cells ({error}); save it again as comma-separated text.") from None


def _column(name: str, cells: Sequence[str]) -> Column:
    try:
        values: FloatArray = np.array([float(cell) for cell in cells])
    except ValueError:
        pass
    else:
        if not (np.isnan(values).any() or any("_" in cell for cell in cells)):
            return Column(name, values)
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
