"""JSON from an untrusted file: reading it, and validating its shape before its values are used."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

Shape = Callable[[Any], bool]
"""Whether a value is what it should be."""

LONGEST = 2**28
"""Characters of a text."""

MEMORY = 2**30
"""Bytes its objects may take, by an estimate: ..."""

BYTES_OF_LIST, BYTES_OF_ENTRY = 64, 40
"""... so many for each list or object, and each entry."""

LARGEST = 2**53
"""The largest whole number."""


def read_json(text: str) -> dict[str, Any]:
    """The object a text holds; its numbers are finite, and whole ones no larger than :data:`LARGEST`.

    Raises
    ------
    ValueError
        Where it holds something else, or is too long or too deep.
    """
    lists, entries = text.count("[") + text.count("{"), text.count(",")
    if len(text) > LONGEST or BYTES_OF_LIST * lists + BYTES_OF_ENTRY * entries > MEMORY:
        raise ValueError("the text is too long")
    try:
        read = json.loads(text, parse_constant=_refused, parse_float=_finite, parse_int=_short)
    except RecursionError:
        raise ValueError("the text is nested too deeply") from None
    if not isinstance(read, dict):
        raise ValueError("the text is no object")
    return read


def _refused(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


def _finite(word: str) -> float:
    real = float(word)
    return real if math.isfinite(real) else _refused(word)


def _short(word: str) -> int:
    integer = int(word) if len(word) < 20 else 2 * LARGEST
    return integer if abs(integer) <= LARGEST else _refused(word)


def whole(least: int = 0, most: int = LARGEST) -> Shape:
    """A whole number."""
    return lambda value: type(value) is int and least <= value <= most


def number(least: float = -math.inf, most: float = math.inf) -> Shape:
    """A finite number."""

    def holds(value: object) -> bool:
        if type(value) is not int and type(value) is not float:
            return False
        return abs(value) <= sys.float_info.max and math.isfinite(value) and least <= value <= most

    return holds


def truth(value: object) -> bool:
    """True or False."""
    return isinstance(value, bool)


def text(value: object) -> bool:
    """Any text."""
    return isinstance(value, str)


def digest(value: object) -> bool:
    """A sha256 in hexadecimal digits."""
    return isinstance(value, str) and len(value) == 64 and all(mark in "0123456789abcdef" for mark in value)


def hexadecimal(nan: bool = False, finite: bool = False) -> Shape:
    """A float as :meth:`float.hex` writes it."""

    def holds(value: object) -> bool:
        if not isinstance(value, str):
            return False
        try:
            real = float.fromhex(value)
        except (ValueError, OverflowError):
            return False
        return (nan or not math.isnan(real)) and (not finite or math.isfinite(real))

    return holds


def among(*values: object) -> Shape:
    """One of some texts."""
    return lambda value: isinstance(value, str) and value in values


def maybe(shape: Shape) -> Shape:
    """None, or what has this shape."""
    return lambda value: value is None or shape(value)


def several(shape: Shape, different: bool = False) -> Shape:
    """A list of entries of one shape, which may have to be ``different`` ones."""

    def holds(value: object) -> bool:
        if not (isinstance(value, list) and all(shape(entry) for entry in value)):
            return False
        return not (different and len({*value}) != len(value))

    return holds


def row(*shapes: Shape) -> Shape:
    """A list of entries, each of its own shape."""

    def holds(value: object) -> bool:
        return isinstance(value, list) and len(value) == len(shapes) and all(map(_has, shapes, value))

    return holds


def _has(shape: Shape, value: object) -> bool:
    return shape(value)


def entries(shapes: Mapping[str, Shape], optional: Mapping[str, Shape] | None = None) -> Shape:
    """An object with these entries, perhaps some of the ``optional`` ones, and no others."""
    optional = optional or {}

    def holds(value: object) -> bool:
        if not isinstance(value, dict) or not shapes.keys() <= value.keys() <= shapes.keys() | optional.keys():
            return False
        return all((shapes.get(name) or optional[name])(entry) for name, entry in value.items())

    return holds


def table(shape: Shape) -> Shape:
    """An object of any names, with values of one shape."""
    return lambda value: isinstance(value, dict) and all(_has(shape, each) for each in value.values())


def both(first: Shape, other: Shape) -> Shape:
    """What has two shapes."""
    return lambda value: first(value) and other(value)


def together(*names: str) -> Shape:
    """An object that has all of these entries if it has the first one."""
    return lambda value: names[0] not in value or {*names} <= value.keys()


def plain(depth: int = 4) -> Shape:
    """Numbers, truth values and texts, and what lists and objects of them hold."""

    def holds(value: object) -> bool:
        if isinstance(value, dict | list):
            included = value.values() if isinstance(value, dict) else value
            return depth > 0 and all(plain(depth - 1)(entry) for entry in included)
        return value is None or isinstance(value, bool | str) or whole(-LARGEST)(value) or number()(value)

    return holds
