"""The words a sweep is said with: what each may be, once, in tables of a config and in Python alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from exactsel import registry
from exactsel.data.missing import WAYS
from exactsel.errors import InputError, did_you_mean

PROBLEM_CLASSES = ("regression", "css")

LARGEST = 2**63 - 1
"""Whole number that a table can hold."""


@dataclass(frozen=True)
class Key:
    """One word."""

    check: Callable[[Any], Any]
    """The value as it is kept; raises :class:`ValueError` where it is no such thing."""
    demand: str
    """What it must be, for people."""
    many: bool = False
    """Whether a list of them makes a job of each."""


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST:
        raise ValueError
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise ValueError
    try:
        return float(value)
    except OverflowError:
        raise ValueError from None


def _from_one(value: object) -> int:
    number = _whole(value)
    if not number:
        raise ValueError
    return number


def _seconds(value: object) -> float:
    number = _number(value)
    if not number:
        raise ValueError
    return number


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError
    return value


def _switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


def _column(value: object) -> str | int:
    return _text(value) if isinstance(value, str) else _whole(value)


def _columns(value: object) -> list[str | int]:
    return [_column(entry) for entry in (value if isinstance(value, list | tuple) else [value])]


def _one_of(choices: tuple[str, ...]) -> Callable[[Any], str]:
    def check(value: object) -> str:
        if value not in choices:
            raise ValueError
        return str(value)

    return check


def _loss(value: object) -> str:
    name = _text(value)
    if name not in registry.names("losses"):
        registry.load("losses", name)  # says which there are
    return name


def _method(value: object) -> dict[str, Any]:
    table = dict(value) if isinstance(value, Mapping) else {"name": value}
    _text(table.get("name"))
    return table


def _generator(value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError
    return checked(value, GENERATOR, "in generate")


def checked(table: Mapping[str, Any], keys: Mapping[str, Key], where: str) -> dict[str, Any]:
    """The table with every value as it is kept; those that may be many are lists.

    Raises
    ------
    InputError
        For an unknown word, or a value that is not what it must be.
    """
    entries: dict[str, Any] = {}
    for name, value in table.items():
        if name not in keys:
            raise InputError(
                f"{where}, '{name}' is no key of a sweep{did_you_mean(name, keys)}; the keys are {', '.join(keys)}."
            )
        key = keys[name]
        several = isinstance(value, list | tuple)
        raw_values = value if several and key.many else [value]
        if not raw_values:
            raise InputError(f"{where}, {name} is an empty list, so there is nothing to run; give values, or leave it.")
        try:
            values = [key.check(each) for each in raw_values]
        except InputError as error:
            raise InputError(f"{where}, {error}") from None
        except (ValueError, TypeError):
            more = ", or a list of them," if key.many else ""
            raise InputError(f"{where}, {name} is {_shown(value)}, but {key.demand}{more} was expected.") from None
        entries[name] = values if key.many else values[0]
    return entries


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


_MANY_WHOLE = Key(_whole, "a whole number from 0 on", many=True)
_MANY_NUMBERS = Key(_number, "a finite number that is not negative", many=True)
_NUMBER = Key(_number, "a finite number that is not negative")
_SECONDS = Key(_seconds, "a positive number of seconds")
_SWITCH = Key(_switch, "true or false")
_COLUMNS = Key(_columns, "a list of columns of the table, by name or number,")
_FEATURES = Key(_columns, "a list of features, by name or number,")

GENERATOR: dict[str, Key] = {
    "name": Key(_text, "the name of a generator", many=True), "n": _MANY_WHOLE, "d": _MANY_WHOLE, "k": _MANY_WHOLE,
    "lam": _MANY_NUMBERS, "seed": _MANY_WHOLE,
}  # fmt: skip
"""Of an instance that is generated."""

READING: dict[str, Key] = {
    "target": Key(_column, "a column, by name or number, or a file"), "drop": _COLUMNS, "factors": _COLUMNS,
    "formula": Key(_text, "a text such as 'y ~ a + b'"),
    "missing": Key(_one_of(tuple(WAYS)), f"one of {', '.join(WAYS)}"),
    "decimal": Key(_one_of((",", ".")), "',' or '.'"), "encoding": Key(_text, "the name of an encoding"),
}  # fmt: skip
"""How files are read."""

DEMANDS: dict[str, Key] = {
    "force_in": _FEATURES, "force_out": _FEATURES, "intercept": _SWITCH, "scale": _SWITCH,
}  # fmt: skip
"""What is the same for all problems of a table."""

LIMITS: dict[str, Key] = {
    "time_limit": _NUMBER, "node_limit": Key(_whole, "a whole number from 0 on"), "eps": _NUMBER, "rel_eps": _NUMBER,
    "threads": Key(_from_one, "a whole number from 1 on"),
}  # fmt: skip
"""How far a job goes."""

KEYS: dict[str, Key] = {
    "instances": Key(_text, "a file or a pattern such as 'data/*.npz'", many=True),
    "generate": Key(_generator, "a table such as {name = 'hard', n = 100, d = 30}", many=True),
    "k": _MANY_WHOLE, "lam": _MANY_NUMBERS, "loss": Key(_loss, "the name of a loss", many=True),
    "delta": _MANY_NUMBERS,
    "method": Key(_method, "'solve', the name of a heuristic, or a table such as {name = 'solve', bound = 'apg'}",
                  many=True),
    "seed": _MANY_WHOLE,
    "problem": Key(_one_of(PROBLEM_CLASSES), "'regression' or 'css'"),
    **READING, **DEMANDS, **LIMITS, "give_up_after": _SECONDS,
}  # fmt: skip
"""Of a table ``[[sweep]]``, and of ``[defaults]``."""
