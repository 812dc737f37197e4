"""Cells of a text table as people write them: decimal commas, thousands, currencies, per cent, dates, no value.

What can be read in one way only is read. ``1,000`` may be a thousand or one: other cells of the column, then of the
file, decide. Where they do not, the user has to state the decimal mark.
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
_SPACES = " '\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}\N{RIGHT SINGLE QUOTATION MARK}"
_SPACED = re.compile(rf"^[1-9]\d{{0,2}}([{_SPACES}])\d{{3}}(?:\1\d{{3}})*(?!\d)")
_BETWEEN = re.compile(rf"\d[{_SPACES}]\d")
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
    """The cell without a currency, per cent, and spaces or apostrophes that group digits by three (``5'10`` stays)."""
    cell = cell.strip()
    if cell.isascii() and cell[:1].isdigit() and cell[-1:].isdigit() and not {*cell} & {" ", "'"}:
        return cell
    match = _AROUND.match(cell)
    if match is None:
        return cell
    digits = match[3]
    spaced = _SPACED.match(digits)
    if spaced is not None:
        digits = spaced[0].replace(spaced[1], "") + digits[spaced.end() :]
    return match[1] + match[2] + digits


def decimal_mark(cells: Iterable[str]) -> str:
    """What a column's cells, bare, show to be the decimal mark: ``,`` or ``.``, both where they contradict each other,
    ``?`` where each can be read in two ways, or nothing where none has such a mark.
    """
    decimals, undecided = set[str](), False
    for cell in cells:
        digits = cell.lstrip("+-")
        marks = [mark for mark in digits if mark in ",."]
        if not marks:
            continue
        if _EITHER.match(digits):
            undecided = True
        elif len(set(marks)) == 2 or marks.count(marks[-1]) == 1:
            decimals.add(marks[-1])  # the last of two kinds, or one that groups no digits
        else:
            decimals.add("." if marks[0] == "," else ",")  # the other one groups digits
    return "".join(sorted(decimals)) or ("?" if undecided else "")


def as_number(cell: str, decimal: str) -> float | None:
    """The number a bare cell is with this decimal mark; None where it is none."""
    plain = as_plain(cell, decimal)
    return None if plain is None else number(plain)


def plainly(cell: str, decimal: str) -> str | None:
    """A cell as :func:`read_cells` reads it, written the way Python writes numbers; None where it is no number."""
    stripped = bare(cell)
    plain = number(cell) is not None and not (decimal == "," and "." in stripped)
    return cell if plain else as_plain(stripped, decimal)


def as_plain(cell: str, decimal: str) -> str | None:
    """A bare cell with this decimal mark as Python would write it; None where marks group no digits by three."""
    grouping = "." if decimal == "," else ","
    sign, digits = (cell[0], cell[1:]) if cell[:1] in ("+", "-") else ("", cell)
    if grouping in digits:
        whole, mark, rest = digits.partition(decimal)
        if _GROUPS[grouping].fullmatch(whole) is None or grouping in rest:
            return None
        digits = whole.replace(grouping, "") + mark + rest
    return sign + digits.replace(decimal, ".")


@dataclass(frozen=True)
class Cells:
    """What a column's cells are, once it is known how to read them."""

    values: FloatArray | None
    """(n,) numbers, nan where there is no value; None where some cell is no number."""
    how: tuple[str, ...] = ()
    """What was done to read them, for people."""
    clash: tuple[str, str] | None = None
    """Two cells that seem to be in different units: of two currencies, or one in per cent and one not."""


def read_cells(cells: Sequence[str], decimal: str) -> Cells:
    """The cells as numbers with this decimal mark."""
    values = np.full(len(cells), np.nan)
    marks, units, spaced = set[str](), dict[str, str](), False  # units: a first cell of each
    for i, cell in enumerate(cells):
        if is_missing(cell):
            continue
        stripped = bare(cell)
        value = number(cell)
        if value is None or (decimal == "," and "." in stripped):
            value = as_number(stripped, decimal)
            marks.update(mark for mark in stripped if mark in ",.")
            spaced = spaced or _BETWEEN.search(cell) is not None
        if value is None or (not np.isfinite(value) and "inf" not in cell.lower()):
            return Cells(None)
        values[i] = value
        if value != 0.0:
            units.setdefault("".join(mark for mark in cell if mark in SIGNS or mark == "%"), cell)
    signs = sorted(units.keys() - {""})
    if len(signs) > 1 or ("%" in signs and "" in units):
        first, other = [*units.values()][:2]
        return Cells(None, clash=(first, other))
    how = [f"'{mark}' left out" for mark in signs]
    if decimal == "," and marks:
        how.append("decimal commas")
    elif "," in marks:
        how.append("commas between thousands")
    if spaced:
        how.append("spaces or apostrophes between thousands")
    return Cells(values, tuple(how))
