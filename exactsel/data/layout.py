"""The layout of a text table: the separator of its cells, and whether its first column holds row names.

R's ``write.table`` writes no name above the names of the rows, so that the first line is one cell shorter than all
others. A comma at the end of every other line looks the same, and must not move the names by a column: the last cells
are not all empty, and the names of rows are all different.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence

from exactsel.data.cells import as_number, bare
from exactsel.errors import InputError

DELIMITERS = ",;\t|"

BLANKS = " "
"""The mark of a table whose cells are separated by one or more blanks."""


def delimiter_of(first: str, second: str = "") -> str:
    """What separates the cells, by the first two lines of a table.

    It is the mark the first line has most of; what is between others may be numbers with decimal commas. Blanks
    separate cells where there is no such mark in either line, and both lines then have as many cells, or the first has
    one less.
    """
    for mark in DELIMITERS.replace(",", ""):
        if mark in first and all(as_number(bare(cell), ",") is not None for cell in first.split(mark)):
            return mark
    if not any(mark in line for mark in DELIMITERS for line in (first, second)):
        wide, below = (len(next(cut([line], BLANKS), [])) for line in (first, second))
        if wide > 1 and below - wide in (0, 1):
            return BLANKS
    return max(DELIMITERS, key=first.count)


def cut(lines: Iterable[str], delimiter: str) -> Iterator[list[str]]:
    """The rows of cells that some lines hold; empty lines are skipped.

    Raises
    ------
    csv.Error
        When they are no table of cells.
    """
    apart = delimiter == BLANKS
    held = (line.strip(" \r\n") + "\n" for line in lines) if apart else lines
    return filter(None, csv.reader(held, delimiter=delimiter, skipinitialspace=apart))


def is_one_short(header: Sequence[str] | None, row: Sequence[str]) -> bool:
    """Whether a line of names has no name for the first cell of the rows below it."""
    return header is not None and len(row) == len(header) + 1


def check_row_names(names: Sequence[object], ends_empty: bool, where: str) -> None:
    """Refuse a first column without a name that cannot be the names of the rows.

    Parameters
    ----------
    names : sequence (n,)
        Its entries.
    ends_empty : bool
        Whether the last cell of every row is empty.
    where : str
        What messages call the table.

    Raises
    ------
    InputError
        When a name is there twice, or the last column is empty.
    """
    if ends_empty:
        raise InputError(
            f"in {where}, every row ends with an empty cell that the line of names does not have; take the mark at the "
            f"end of the rows away, or add one to the line of names."
        )
    if len({*names}) < len(names):
        raise InputError(
            f"the line of names of {where} is one cell shorter than the rows, but the first cells are no row names, as "
            f"one is there twice; give each column a name."
        )
