"""Values of a problem as they are given, checked for what they are, and names of units in lines of text.

A problem with other values is outside the domain.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, NoReturn, TypeGuard

SMALLEST, LARGEST = 1e-60, 1e60
"""Sizes of numbers in a problem."""


class Outside(Exception):
    """The problem is none a proof can speak of; the text says why, in one sentence."""


def refuse(name: str, value: object, expected: str) -> NoReturn:
    """Say that something else was expected."""
    raise Outside(f"{name} is {shown(value)}, but {expected} was expected.")


def shown(value: object) -> str:
    """A value of any type in a few letters."""
    number = whole(value)
    if isinstance(value, float) or (number is not None and abs(number) < 10**20):
        return repr(value)
    return ascii(value[:40]) if isinstance(value, str) else f"a {type(value).__name__}"


def whole(value: object) -> int | None:
    """A whole number; None where it is none."""
    return int(value) if isinstance(value, Integral) and not isinstance(value, bool) else None


def double(value: object) -> float | None:
    """A double: the value itself, or the whole number it is equal to; None where there is none within the limits."""
    if isinstance(value, float):
        return float(value) if abs(value) <= LARGEST else None
    number = whole(value)
    return float(number) if number is not None and abs(number) <= LARGEST and float(number) == number else None


def listed(name: str, values: object) -> Sequence[Any]:
    """A list."""
    if not isinstance(values, list | tuple):
        refuse(name, values, "a list")
    return values


def choice(name: str, units: object, count: int) -> list[int]:
    """Different columns or groups, by number."""
    entries = listed(name, units)
    numbers = [number for number in map(whole, entries) if number is not None and 0 <= number < count]
    if len(set(numbers)) < len(entries):
        raise Outside(f"{name} holds something else than different whole numbers from 0 to {count - 1}.")
    return numbers


class Unclear(Exception):
    """Lines say nothing that can be read; the text says why, in one sentence."""


def units_of(labels: list[str], columns: object, d: int) -> tuple[dict[str, set[int]], int]:
    """The units of each name, and how many there are, of d columns in groups by their labels, if there are any."""
    if not _texts(columns) or len(columns) not in (0, d):
        raise Unclear("the names of columns are no list of texts, one for each column; write them as such.")
    place: dict[str | int, int] = {}
    unit_of = [place.setdefault((labels[j] if j < len(labels) else "") or j, len(place)) for j in range(d)]
    names: dict[str, set[int]] = {}
    for j, name in enumerate(columns):
        names.setdefault(name, set()).add(unit_of[j])
    return names | {label: {place[label]} for label in labels if label in place}, len(place)


def said(lines: object) -> list[str]:
    """The lines that say something; ``#`` begins a comment."""
    if not _texts(lines):
        raise Unclear("a hierarchy or pairs are no list of texts; write them as such.")
    return [text for text in (line.split("#")[0].strip() for line in lines) if text]


def number_of(part: str, names: dict[str, set[int]], count: int) -> int:
    """The only unit of a name, or else that of a number."""
    name = part.strip()
    found = names.get(name, set())
    if len(found) == 1:
        return min(found)
    if not found and name.isascii() and name.isdigit() and len(name) < 10 and int(name) < count:
        return int(name)
    raise Unclear(f"{name!a} is the name of no column or group, or of several; give its number.")


def _texts(values: object) -> TypeGuard[list[str]]:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)
