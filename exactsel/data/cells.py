"""Cells of a text table as people write them: decimal commas, thousands, currencies, per cent, dates, no value.

What can be read in one way only is read. ``1,000`` may be a thousand or one: other cells of the column, then of the
file, decide, and where they do not somebody has to say which mark is the decimal one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from exactsel.types import FloatArray

MISSING = frozenset(
    {
        "", "na", "n/a", "#n/a", "#na", "<na>", "nan", "null", "none", "nil", "missing", "?", "-", "--", ".", "..", "*",
        "#value!", "#div/0!", "#ref!", "#name?", "#num!",
    }
)  # fmt: skip
"""Cells that mean that there is no value, in small letters."""

SIGNS = "$€£¥₹"
"""Currencies; like per cent they are taken off."""

_AROUND = re.compile(rf"^([+-]?)\s*[{SIGNS}]?\s*([+-]?)(.*?)\s*(?:[{SIGNS}]|%)?$")
_SPACES = dict.fromkeys(map(ord, "\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}'\N{RIGHT SINGLE QUOTATION MARK}"), None)

_GROUPS = {mark: re.compile(rf"^\d{{1,3}}(?:{re.escape(mark)}\d{{3}})+") for mark in ",."}
_EITHER = re.compile(r"^[1-9]\d{0,2}[,.]\d{3}$")
_DATE = re.compile(
    r"^(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](?:\d{4}|\d{2}))"
    r"(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?"
    r"(?:Z|[+-]\d{2}:?\d{2})?)?$"
)


def is_missing(cell: str) -> bool:
    """Whether the cell says that there is no value."""
    return cell.strip().lower() in MISSING


def number(cell: str) -> float | None:
    """The number a cell is, written as Python writes it; None for any other text and where there is no value."""
    try:
        return None if "_" in cell or is_missing(cell) else float(cell)
    except ValueError:
        return None


def is_date(cell: str) -> bool:
    """Whether it looks like a date, with a time or without."""
    return _DATE.match(cell.strip()) is not None


def bare(cell: str) -> str:
    """The cell without a currency, per cent, and what groups digits but neither comma nor point."""
    cell = cell.strip()
    if cell.isascii() and cell[:1].isdigit() and cell[-1:].isdigit():
        return cell
    around = _AROUND.match(cell.translate(_SPACES))
    return cell if around is None else around[1] + around[2] + around[3]


def decimal_mark(cells: Iterable[str]) -> str:
    """What a column's cells, bare, show to be the decimal mark: ``,`` or ``.``, both where they contradict each other,
    ``?`` where each can be read in two ways, or nothing where none has such a mark.
    """
    shown, undecided = set[str](), False
    for cell in cells:
        digits = cell.lstrip("+-")
        marks = [mark for mark in digits if mark in ",."]
        if not marks:
            continue
        if _EITHER.match(digits):
            undecided = True
        elif len(set(marks)) == 2 or marks.count(marks[-1]) == 1:
            shown.add(marks[-1])  # the last of two kinds, or one that groups no digits
        else:
            shown.add("." if marks[0] == "," else ",")  # the other one groups digits
    return "".join(sorted(shown)) or ("?" if undecided else "")


def as_number(cell: str, decimal: str) -> float | None:
    """The number a bare cell is with this decimal mark; None where it is none."""
    grouping = "." if decimal == "," else ","
    sign, digits = (cell[0], cell[1:]) if cell[:1] in ("+", "-") else ("", cell)
    if grouping in digits:
        whole, mark, rest = digits.partition(decimal)
        if _GROUPS[grouping].fullmatch(whole) is None or grouping in rest:
            return None
        digits = whole.replace(grouping, "") + mark + rest
    return number(sign + digits.replace(decimal, "."))


@dataclass(frozen=True)
class Cells:
    """What a column's cells are, once it is known how to read them."""

    values: FloatArray | None
    """(n,) numbers, nan where there is no value; None where some cell is no number."""
    how: tuple[str, ...] = ()
    """What was done to read them, for people."""


def read_cells(cells: Sequence[str], decimal: str) -> Cells:
    """The cells as numbers with this decimal mark."""
    values = np.full(len(cells), np.nan)
    signs, marks = set[str](), set[str]()
    for i, cell in enumerate(cells):
        if is_missing(cell):
            continue
        stripped = bare(cell)
        found = number(cell)
        if found is None or (decimal == "," and "." in stripped):
            found = as_number(stripped, decimal)
            signs.update(mark for mark in cell if mark in SIGNS or mark == "%")
            marks.update(mark for mark in stripped if mark in ",.")
        if found is None or (not np.isfinite(found) and "inf" not in cell.lower()):
            return Cells(None)
        values[i] = found
    how = [f"'{mark}' left out" for mark in sorted(signs)]
    if decimal == "," and marks:
        how.append("decimal commas")
    elif "," in marks:
        how.append("commas between thousands")
    return Cells(values, tuple(how))
