"""Columns whose names are whole numbers, as pandas numbers unnamed ones, and the meaning of a number as a name.

A number is the position of a column, and a text its name. Where names are numbers, 2 may mean the third column or the
one called 2: where these are two columns a number is refused, and the text ``'2'`` says which is meant.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from exactsel.errors import InputError


class NumberedName(str):
    """The name of a column that was a whole number, as a text."""


class Position(int):
    """The position of a column that is no choice of the caller's, so that nothing else can be meant by it."""


def as_name(label: object) -> str:
    """What a column is called that has this label."""
    if isinstance(label, str):
        return label
    numbered = isinstance(label, int | np.integer) and not isinstance(label, bool | np.bool_)
    return NumberedName(label) if numbered else str(label)


def places_of(names: Sequence[str]) -> dict[str, list[int]]:
    """The numbers of each name, from 0."""
    places: dict[str, list[int]] = {}
    for j, name in enumerate(names):
        places.setdefault(name, []).append(j)
    return places


def check_position(number: int, names: Sequence[str] | None, what: str) -> None:
    """Refuse a number where it is not plain whether a column's position or its name is meant.

    Parameters
    ----------
    number : int
    names : sequence of str, optional
        Of all columns.
    what : str
        What names the column, for the message.

    Raises
    ------
    InputError
        When names are numbers, and the column at this position is called otherwise.
    """
    if isinstance(number, Position) or not any(isinstance(name, NumberedName) for name in names or ()):
        return
    assert names is not None
    there = names[number] if 0 <= number < len(names) else None
    if there == str(int(number)):
        return
    detail = f"the one at this position is called '{there}'" if there is not None else f"there are {len(names)} columns"
    raise InputError(
        f"{what} names column {int(number)}, but columns are called by numbers here and {detail}; give the name of the "
        f"column as a text, such as '{number if str(int(number)) in names else there or names[0]}'."
    )
