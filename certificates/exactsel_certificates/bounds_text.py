"""Limits on coefficients as people write them: lines ``column,lower,upper``, and columns that are not negative."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence

import numpy as np

from exactsel_certificates.formula import Box

TITLES = ["column", "lower", "upper"]
"""An optional first line."""


def read_box(lines: Iterable[str], nonnegative: str, names: Sequence[str], d: int, most: float = np.inf) -> Box | None:
    """The limits on d coefficients; None where nothing is said.

    Parameters
    ----------
    lines : iterable of str
        A side left empty has no limit. Columns are named by one of ``names``, or else by number.
    nonnegative : str
        ``all``, or columns with commas between them, whose coefficients may not be negative.
    most : float
        What none may exceed in size.

    Raises
    ------
    ValueError
        When the lines say anything else, in one sentence.
    """
    rows = [row for row in ([cell.strip() for cell in row] for row in _cells(lines)) if any(row)]
    rows = rows[1:] if rows and [cell.lower() for cell in rows[0]] == TITLES else rows
    box, seen = Box(np.full(d, -np.inf), np.full(d, np.inf)), set[int]()
    for row in rows:
        if len(row) != len(TITLES):
            raise ValueError(f"the bounds hold a line of {len(row)} entries, but 'column,lower,upper' was expected.")
        j = _column(row[0], names, d)
        if j in seen:
            raise ValueError(f"the bounds name column {row[0]!r} twice; name it once.")
        seen.add(j)
        for side, text in zip(box, row[1:], strict=True):
            side[j] = _number(text) if text else side[j]
    free = [*range(d)] if nonnegative.strip() == "all" else _columns(nonnegative.strip(), names, d)
    box.lower[free] = np.maximum(box.lower[free], 0.0)
    box = Box(np.maximum(box.lower, -most), np.minimum(box.upper, most))
    return box if np.any(np.isfinite(box.lower) | np.isfinite(box.upper)) else None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"the bounds hold {text!r}, but a number was expected.") from None


def _cells(lines: Iterable[str]) -> list[list[str]]:
    try:
        return [*csv.reader(lines, strict=True)]
    except csv.Error as error:
        raise ValueError(f"the bounds are no lines of 'column,lower,upper' ({error}).") from None


def _columns(text: str, names: Sequence[str], d: int) -> list[int]:
    if text in names:
        return [_column(text, names, d)]
    return [
        _column(name.strip(), names, d) for row in _cells([text.replace(", ", ",")]) for name in row if name.strip()
    ]


def _column(name: str, names: Sequence[str], d: int) -> int:
    found = [j for j, known in enumerate(names) if known == name]
    if len(found) == 1:
        return found[0]
    if not found and name.isascii() and name.isdecimal() and len(name) <= 9 and int(name) < d:
        return int(name)
    raise ValueError(f"the bounds name {name!r}, but no single column is called that; give its number.")
