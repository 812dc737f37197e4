"""Values of a problem as they are given, checked for what they are; a problem with others is outside the domain."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, NoReturn

SMALLEST, LARGEST = 1e-60, 1e60
"""Sizes of numbers in a problem."""


class Outside(Exception):
    """The problem is none a proof can speak of; the text says why, in one sentence."""


def refuse(name: str, found: object, expected: str) -> NoReturn:
    """Say that something else was expected."""
    raise Outside(f"{name} is {shown(found)}, but {expected} was expected.")


def shown(value: Any) -> str:
    """A value of any type in a few letters."""
    if isinstance(value, float) or (whole(value) is not None and abs(value) < 10**20):
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


def choice(name: str, units: Any, count: int) -> list[int]:
    """Different columns or groups, by number."""
    numbers = [number for number in map(whole, listed(name, units)) if number is not None and 0 <= number < count]
    if len(set(numbers)) < len(units):
        raise Outside(f"{name} holds something else than different whole numbers from 0 to {count - 1}.")
    return numbers
