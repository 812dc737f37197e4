"""Arguments found to be of the kind they should be, each refused in one sentence or returned in clean form."""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from inspect import signature
from numbers import Real
from typing import Any, TypeVar

import numpy as np

from exactsel.errors import InputError
from exactsel.types import PathName

LONGEST = 60
"""Characters of a value that a message shows."""


def shown(value: object) -> str:
    """A value in a message: on one line, and not too long."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # a number of thousands of digits, or an object that cannot say what it is
        text = f"a {type(value).__name__}"
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


def switch(name: str, value: object) -> bool:
    """A switch; 0 and 1 will do."""
    if isinstance(value, bool | np.bool_) or (isinstance(value, int) and value in (0, 1)):
        return bool(value)
    raise InputError(f"{name} is {shown(value)}, but it is a switch; give True or False.")


def entries(name: str, value: object, what: str = "names or numbers") -> list[Any]:
    """The entries of a list; a single text or number is one entry."""
    if isinstance(value, str | bytes) or (np.isscalar(value) and value is not None):
        return [value]
    if value is None or isinstance(value, type) or not isinstance(value, Iterable):
        raise InputError(f"{name} is {shown(value)}, but {what} were expected; give a list, () for none.")
    return list(value)


def mapping(name: str, value: object) -> dict[str, Any]:
    """A mapping of names to values; None is none."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise InputError(f"{name} is {shown(value)}, but names with values were expected; give a dictionary.")
    return dict(value)


def file_name(name: str, value: object) -> PathName | None:
    """The name of a file, or None."""
    try:
        if value is None or (isinstance(value, str | os.PathLike) and b"\0" not in os.fsencode(value)):
            return value
    except (TypeError, UnicodeError):  # of a text that is no name on this system
        pass
    raise InputError(f"{name} is {shown(value)}, but the name of a file was expected; give a text, or leave it out.")


def function(name: str, value: object) -> Callable[..., Any] | None:
    """A function, or None."""
    if value is None or callable(value):
        return value
    raise InputError(f"{name} is {shown(value)}, but a function was expected; give one, or leave it out.")


def seconds(name: str, value: object) -> float:
    """A finite number of seconds."""
    try:
        number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    except OverflowError:
        number = math.inf
    if not 0 <= number < math.inf:
        raise InputError(f"{name} is {shown(value)}, but it must be a number of seconds from 0 on.")
    return number


def signal_numbers(name: str, value: object) -> list[int]:
    """The numbers of signals there are."""
    signals = whole_numbers(name, value)
    wrong = next((number for number in signals if number not in {*map(int, signal.Signals)}), None)
    if wrong is not None:
        raise InputError(f"{name} holds {shown(wrong)}, but no signal has this number; give signal.SIGINT, say.")
    return signals


def whole_numbers(name: str, value: object) -> list[int]:
    """The entries of a list of whole numbers."""
    elements = entries(name, value, "whole numbers")
    wrong = [
        entry for entry in elements if isinstance(entry, bool | np.bool_) or not isinstance(entry, int | np.integer)
    ]
    if wrong:
        raise InputError(f"{name} holds {shown(wrong[0])}, but whole numbers were expected; correct it.")
    return [int(entry) for entry in elements]


def numbers(name: str, value: object) -> list[float]:
    """The entries of a list of numbers."""
    elements = entries(name, value, "numbers")
    try:
        if not any(isinstance(entry, str | bytes | bool) for entry in elements):
            return [float(entry) for entry in elements]
    except (TypeError, ValueError, OverflowError):
        pass
    raise InputError(f"{name} is {shown(value)}, but numbers were expected; give a list of them.")


ALIASES = {
    "weights": "sample_weight", "intercept": "fit_intercept", "scale": "standardize", "nonnegative": "positive",
    "seed": "random_state", "threads": "n_jobs",
}  # fmt: skip
"""Other words for arguments, and their names: scikit-learn's, and those of the estimators."""

Given = TypeVar("Given")

Returned = TypeVar("Returned")


def by_name(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options, those given by another word (:data:`ALIASES`) by their names.

    Raises
    ------
    InputError
        Where one is given by both.
    """
    twice = next((alias for alias, name in ALIASES.items() if alias in options and name in options), None)
    if twice is not None:
        raise InputError(f"{ALIASES[twice]} and {twice} are both given, but mean the same; give {ALIASES[twice]}.")
    return {ALIASES.get(name, name): value for name, value in options.items()}


def with_aliases(function: Callable[..., Returned]) -> Callable[..., Returned]:
    """The function, to which arguments may be given by their names and by the words of :data:`ALIASES`."""
    parameters = signature(function).parameters
    called = {name: alias for alias, name in ALIASES.items() if alias in parameters}

    @wraps(function)
    def either(*arguments: object, **options: object) -> Returned:
        return function(*arguments, **{called.get(name, name): value for name, value in by_name(options).items()})

    return either


def every_core(n_jobs: Given) -> Given | None:
    """Threads as :class:`exactsel.Settings` have them, from scikit-learn's number of jobs: -1 is every core."""
    return None if isinstance(n_jobs, int) and n_jobs == -1 else n_jobs
