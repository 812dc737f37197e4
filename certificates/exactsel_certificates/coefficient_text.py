"""Limits and equalities of coefficients as people write them: ``column,lower,upper``, and ``a + b - 2*c = 1``."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence

import numpy as np

from exactsel_certificates.equalities import Equalities, independent, within_equalities
from exactsel_certificates.formula import Box

TITLES = ["column", "lower", "upper"]
"""An optional first line."""

TERM = re.compile(
    r"\s*([+-])?\s*(?:(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)\s*\*\s*)?(?:`([^`]+)`|([^\s+\-*=`]+))"
)
"""A sign, a number and a star where there is one, and a column."""


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


def _column(name: str, names: Sequence[str], d: int, where: str = "bounds") -> int:
    found = [j for j, known in enumerate(names) if known == name]
    if len(found) == 1:
        return found[0]
    if not found and name.isascii() and name.isdecimal() and len(name) <= 9 and int(name) < d:
        return int(name)
    raise ValueError(f"the {where} name {name!r}, but no single column is called that; give its number.")


def read_equalities(texts: Sequence[str], sum_to: float | None, names: Sequence[str], d: int) -> Equalities | None:
    """The equalities of d coefficients but for those that follow from others before, None where there are none.

    Columns are named by number or by a name among ``names``.

    Raises
    ------
    ValueError
        Where a text is no equality of finite numbers, or equalities contradict each other, in one sentence.
    """
    found = [_row(text, names, d) for text in texts]
    if sum_to is not None:
        found.append((np.ones(d), float(sum_to)))
    if not found:
        return None
    if not all(np.all(np.isfinite([*row, value])) for row, value in found):
        raise ValueError("the equalities hold a number that is not finite; correct it.")
    named = [row for row, _ in found if np.any(row)]
    if len(named) < len(found):
        raise ValueError("an equality holds no coefficient; leave it out.")
    kept = independent(named, [value for _, value in found])
    rows, right = np.array([found[i][0] for i in kept]), np.array([found[i][1] for i in kept]) + 0.0
    return Equalities(rows, right, np.ones(len(right)))


def limited(box: Box | None, equalities: Equalities, scaled: bool) -> Box | None:
    """Limits on coefficients with those that the equalities imply, as a solve states them; as they are where scaled."""
    if scaled:
        return box
    d = equalities.rows.shape[1]
    lower, upper = (np.full(d, -np.inf), np.full(d, np.inf)) if box is None else box
    upper = within_equalities(equalities.rows, equalities.right, lower, upper)
    return Box(lower, upper) if np.any(np.isfinite(lower) | np.isfinite(upper)) else None


def _row(text: str, names: Sequence[str], d: int) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], float]:
    left, sign, right = text.rpartition("=")
    row, position = np.zeros(d), 0
    try:
        value = float(right)
    except ValueError:
        sign = ""
    while sign and left[position:].strip():
        term = TERM.match(left, position)
        if term is None or (position > 0 and term[1] is None):
            sign = ""
            break
        row[_column(term[3] or term[4], names, d, "equalities")] += (-1.0 if term[1] == "-" else 1.0) * float(
            term[2] or 1.0
        )
        position = term.end()
    if not sign or not position:
        raise ValueError(f"the equality {text!r} cannot be read; write it as in a + b - 2*c = 1.")
    return row, value
