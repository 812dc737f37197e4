"""Factors coded as 0/1 columns, and groups of columns as people write them down."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from exactsel.data.arrays import read_text
from exactsel.errors import InputError, option, warn_of_data
from exactsel.problem.checks import column_number
from exactsel.problem.frames import MOST_LEVELS, Column
from exactsel.problem.groups import matching

HOW = "write NAME=COLUMN,COLUMN;NAME=PATTERN* or name a .json or .csv file"


AUTO = "auto"
"""Factors: all columns of texts, and those a frame calls categorical."""


def is_categorical(column: Column) -> bool:
    """Whether a column is a factor by itself: it holds text, or its frame calls it categorical."""
    return column.kind == "text" or column.levels is not None


def coded(
    columns: Sequence[tuple[Column, bool]], all_levels: bool, where: str
) -> tuple[list[Column], tuple[str, ...], list[str]]:
    """The columns, factors among them coded; for each the name of its factor, or empty; and what cannot be coded.

    Columns that cannot be coded are left out, and a sentence says of each why.
    """
    kept: list[Column] = []
    labels: list[str] = []
    trouble: list[str] = []
    for column, is_factor in columns:
        try:
            block = factor_columns(column, all_levels) if is_factor else [column]
        except InputError as error:
            trouble.append(f"in {where}, {error}")
            continue
        if not block:
            warn_of_data(f"in {where}, column {column.name} has one value and is left out.")
        kept += block
        labels += [column.name if is_factor else ""] * len(block)
    return kept, tuple(labels), trouble


def factor_columns(column: Column, all_levels: bool = False) -> list[Column]:
    """The 0/1 columns of a factor in treatment coding, called ``name[level]``: one for each level but the first.

    Parameters
    ----------
    column : Column
    all_levels : bool
        Keep the first level, the reference, too, as models without an intercept need it. A factor of two levels is
        coded by one column in either case.

    Returns
    -------
    list of Column
        Levels in the order the frame gives them, or else sorted; those that do not occur are left out. Empty for a
        column of one value.

    Raises
    ------
    InputError
        For dates, missing values, and more than :data:`MOST_LEVELS` values.
    """
    if column.missing:
        raise InputError(
            f"column {column.name} holds {column.missing} missing values and cannot be a factor; make them a level "
            f"with {option('missing', 'mean')}, or remove those rows with {option('missing', 'drop-rows')}."
        )
    if column.values is None and column.kind != "text":
        raise InputError(
            f"column {column.name} holds {column.kind} and cannot be a factor; leave it out "
            f"({option('drop', [column.name])})."
        )
    if column.rounding is not None:
        raise InputError(
            f"column {column.name} holds numbers that no double is equal to, such as {column.rounding.example}, and "
            f"values could become equal; leave it out, or write its values as text."
        )
    # As objects, for an array of texts takes for each as much as for the longest, and drops NULs at their ends.
    entries: Any = np.array(column.texts, dtype=object) if column.values is None else column.values
    levels = _levels(column, entries)
    if len(levels) > MOST_LEVELS:
        raise InputError(
            f"column {column.name} has {len(levels)} different values, but a factor has at most {MOST_LEVELS}; merge "
            f"values, or leave it out ({option('drop', [column.name])})."
        )
    kept = levels if all_levels and len(levels) > 2 else levels[1:]
    return [Column(f"{column.name}[{_text(level)}]", (entries == level).astype(np.float64)) for level in kept]


def _levels(column: Column, entries: Any) -> list[Any]:
    """The values that occur, in the order the frame gives, or sorted."""
    found: list[Any] = np.unique(entries).tolist()
    if column.levels is None:
        return found
    declared: list[Any] = [str(level) if column.values is None else float(level) for level in column.levels]
    occurring = set(found)
    ordered = [level for level in declared if level in occurring]
    return ordered + [level for level in found if level not in {*ordered}]


def _text(level: str | float) -> str:
    return level if isinstance(level, str) else str(int(level)) if level == int(level) else repr(level)


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
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not all(map(_is_list, found.values())):
        raise InputError(f'{file} is no JSON object of lists; write {{"group": ["column", "column"]}}.')
    return found


def _is_list(held: Any) -> bool:
    return isinstance(held, list) and all(type(entry) in (str, int) for entry in held)


def _meant(entry: int | str, group: str, names: Sequence[str] | None) -> list[int | str]:
    """The columns a name, number or pattern stands for."""
    if not isinstance(entry, str) or (names is not None and entry in names):
        return [entry]
    number = column_number(entry)
    if number is not None:
        return [number]
    found = matching(entry, names, f"the group '{group}'")
    return [entry] if found is None else [*found]
