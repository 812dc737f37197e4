"""Groups of columns as people write them down."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path

from exactsel.data.arrays import read_text
from exactsel.errors import InputError, option
from exactsel.problem.checks import column_number
from exactsel.problem.groups import matching

HOW = "write NAME=COLUMN,COLUMN;NAME=PATTERN* or name a .json or .csv file"


def read_groups(text: str, names: Sequence[str] | None) -> dict[str, list[int | str]]:
    """Groups from a text ``NAME=COLUMN,COLUMN;NAME=PATTERN*``, or from the file it names.

    Columns are numbers, names or patterns of names (``*``, ``?``). A .json file holds one object, name to list of
    columns; a .csv file lines ``column,group``.

    Raises
    ------
    InputError
        When that is no list of groups, or a pattern matches no column.
    """
    file = Path(text)
    is_file = file.suffix.lower() in (".json", ".csv") and "=" not in text
    named = _from_file(file) if is_file else _from_text(text)
    return {name: [j for entry in held for j in _meant(entry, name, names)] for name, held in named.items()}


def _from_text(text: str) -> dict[str, list[int | str]]:
    named: dict[str, list[int | str]] = {}
    for part in filter(None, (part.strip() for part in text.split(";"))):
        name, equals, columns = part.partition("=")
        if not equals or not name.strip():
            raise InputError(f"{option('groups')} holds '{part}', which is no group; {HOW}.")
        named.setdefault(name.strip(), []).extend(entry.strip() for entry in columns.split(",") if entry.strip())
    if not named:
        raise InputError(f"{option('groups')} names no group; {HOW}.")
    return named


def _from_file(file: Path) -> dict[str, list[int | str]]:
    try:
        text = read_text(file)
    except (OSError, ValueError) as error:
        raise InputError(f"the groups cannot be read from {file} ({error}); {HOW}.") from None
    if file.suffix.lower() == ".csv":
        try:
            rows = [[cell.strip() for cell in row] for row in csv.reader(text.splitlines()) if row]
        except csv.Error as error:
            raise InputError(f"{file} is no table of cells ({error}); write lines of column,group.") from None
        if not rows or any(len(row) != 2 or not row[1] for row in rows):
            raise InputError(f"{file} does not hold two cells in every line; write lines of column,group.")
        named: dict[str, list[int | str]] = {}
        for column, group in rows[1:] if rows[0] == ["column", "group"] else rows:
            named.setdefault(group, []).append(column)
        return named
    try:
        groups = json.loads(text)
    except (ValueError, RecursionError):
        groups = None
    if not isinstance(groups, dict) or not all(map(_is_list, groups.values())):
        raise InputError(f'{file} is no JSON object of lists; write {{"group": ["column", "column"]}}.')
    return groups


def _is_list(held: object) -> bool:
    return isinstance(held, list) and all(type(entry) in (str, int) for entry in held)


def _meant(entry: int | str, group: str, names: Sequence[str] | None) -> list[int | str]:
    """The columns a name, number or pattern stands for."""
    if not isinstance(entry, str) or (names is not None and entry in names):
        return [entry]
    number = column_number(entry)
    if number is not None:
        return [number]
    columns = matching(entry, names, f"the group '{group}'")
    return [entry] if columns is None else [*columns]
