"""Bounds of coefficients as people write them: a table of column, lower, upper, with commas between them."""

from __future__ import annotations

import csv
import math
from pathlib import Path

from exactsel.data.arrays import read_text
from exactsel.errors import InputError

TITLES = ["column", "lower", "upper"]
"""An optional first line."""

HOW = "write lines of 'column,lower,upper', a side without a limit left empty"


def read_bounds(path: str) -> list[tuple[str, float, float]]:
    """The columns, as they are named, with their bounds; infinite where a side is empty, ``inf`` or ``-inf``.

    Raises
    ------
    InputError
        When the file cannot be read or holds anything else.
    """
    file = Path(path)
    try:
        rows = [[cell.strip() for cell in row] for row in csv.reader(read_text(file).splitlines(), strict=True)]
    except (OSError, ValueError, csv.Error) as error:
        raise InputError(f"the bounds cannot be read from {file} ({error}); {HOW}.") from None
    said = [row for row in rows if any(row)]
    if said and [cell.lower() for cell in said[0]] == TITLES:
        said = said[1:]
    bounds: list[tuple[str, float, float]] = []
    for row in said:
        if len(row) != 3:
            raise InputError(f"the bounds in {file} hold a line of {len(row)} entries, but 3 were expected; {HOW}.")
        low, high = (_number(cell, default, file) for cell, default in zip(row[1:], (-math.inf, math.inf), strict=True))
        bounds.append((row[0], low, high))
    return bounds


def _number(cell: str, default: float, file: Path) -> float:
    if not cell:
        return default
    try:
        number = float(cell)
    except ValueError:
        number = math.nan
    if math.isnan(number):
        raise InputError(f"the bounds in {file} hold {cell!r}, but a number was expected; {HOW}.")
    return number
