"""Lists of columns as people write them: names or numbers with commas between them."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import TypeAlias

from exactsel.errors import InputError

Choice: TypeAlias = str | int


def meant(choices: Sequence[Choice], names: Sequence[str]) -> list[Choice]:
    """The columns one by one: a text that is no name may list several, separated by commas, those in double quotes
    with commas of their own.
    """
    columns: list[Choice] = []
    for choice in choices:
        if not isinstance(choice, str) or choice in names or "," not in choice:
            columns.append(choice)
        else:
            columns += [name.strip() for name in _listed(choice) if name.strip()]
    return columns


def _listed(text: str) -> list[str]:
    try:
        return next(csv.reader([text], skipinitialspace=True))
    except csv.Error as error:
        raise InputError(f"the columns {text!r} are no list of names with commas between them ({error}).") from None
