"""Equalities on coefficients as people write them: ``a + b - 2*c = 1``."""

from __future__ import annotations

import re

from exactsel.errors import InputError

HOW = "write a sum of features, each with a number in front, as in 'a + b - 2*c = 1', names with blanks in backticks"

_TERM = re.compile(
    r"\s*(?P<sign>[+-])?\s*(?:(?P<number>\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)\s*\*\s*)?"
    r"(?:`(?P<quoted>[^`]+)`|(?P<name>[^\s+\-*=`]+))"
)
"""One term: a sign, a number and a star where there is one, and a feature."""


def read_equality(text: str) -> tuple[dict[str, float], float]:
    """The terms and the right-hand side of an equality; terms of the same feature are added up.

    Features are named, or numbered from 0. Names with blanks, or with one of ``+-*=``, stand in backticks.

    Raises
    ------
    InputError
        Where the text is no equality.
    """
    left, sign, right = text.rpartition("=")
    try:
        value = float(right)
    except ValueError:
        sign = ""
    if not sign or not left.strip():
        raise InputError(f"the equality {text!r} has no number on its right side; {HOW}.")
    terms: dict[str, float] = {}
    position = 0
    while left[position:].strip():
        term = _TERM.match(left, position)
        if term is None or (position > 0 and term["sign"] is None):
            raise InputError(f"the equality {text!r} cannot be read at {left[position:].strip()!r}; {HOW}.")
        name = term["quoted"] or term["name"]
        size = float(term["number"] or 1.0)
        terms[name] = terms.get(name, 0.0) + (-size if term["sign"] == "-" else size)
        position = term.end()
    return terms, value
