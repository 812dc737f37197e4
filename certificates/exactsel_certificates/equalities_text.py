"""Equalities on coefficients as people write them: ``a + b - 2*c = 1``."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from exactsel_certificates.equalities import Equalities, independent, within_equalities
from exactsel_certificates.formula import Box

TERM = re.compile(
    r"\s*([+-])?\s*(?:(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)\s*\*\s*)?(?:`([^`]+)`|([^\s+\-*=`]+))"
)
"""A sign, a number and a star where there is one, and a column."""


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
        row[_number(term[3] or term[4], names, d)] += (-1.0 if term[1] == "-" else 1.0) * float(term[2] or 1.0)
        position = term.end()
    if not sign or not position:
        raise ValueError(f"the equality {text!r} cannot be read; write it as in a + b - 2*c = 1.")
    return row, value


def _number(name: str, names: Sequence[str], d: int) -> int:
    if [*names].count(name) == 1:
        return [*names].index(name)
    if name not in names and name.isascii() and name.isdecimal() and len(name) < 10 and int(name) < d:
        return int(name)
    raise ValueError(f"the equalities name {name!r}, but no single column is called that; give its number.")
