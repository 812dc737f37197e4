"""Factors coded as 0/1 columns, and what the coding of new rows must know of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exactsel.errors import InputError, option
from exactsel.problem.frames import MOST_LEVELS, Column

AUTO = "auto"
"""Factors: all columns of texts, and those a frame calls categorical."""


def is_categorical(column: Column) -> bool:
    """Whether a column is a factor by itself: it holds text, or its frame calls it categorical."""
    return column.kind == "text" or column.levels is not None


@dataclass(frozen=True)
class Factor:
    """A category, as it is coded in columns of 0 and 1."""

    levels: tuple[str | float, ...]
    """All the values that occur."""
    reference: str | float | None
    """The level for which all columns are 0; None where each level has its column."""

    @classmethod
    def of(cls, column: Column, all_levels: bool = False) -> Factor:
        """The levels of a column, see :func:`factor_columns`."""
        _refuse(column)
        levels = tuple(_levels(column, entries_of(column)))
        if len(levels) > MOST_LEVELS:
            raise InputError(
                f"column {column.name} has {len(levels)} different values, but a factor has at most {MOST_LEVELS}; "
                f"merge values, or leave it out ({option('drop', [column.name])})."
            )
        return cls(levels, None if (all_levels and len(levels) > 2) or not levels else levels[0])

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Factor:
        """Levels and reference as JSON has them; KeyError or TypeError for anything else."""
        reference, levels = plain["reference"], plain["levels"]
        if not all(
            type(level) in (str, int, float) for level in (*levels, *(() if reference is None else [reference]))
        ):
            raise TypeError
        return cls(tuple(levels), reference)

    @property
    def coded(self) -> tuple[str | float, ...]:
        """The levels that have a column."""
        return tuple(level for level in self.levels if level != self.reference)


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
        Levels in the order the frame gives them, or else sorted; levels that do not occur are omitted. Empty for a
        column of one value.

    Raises
    ------
    InputError
        For dates, missing values, and more than :data:`MOST_LEVELS` values.
    """
    return level_columns(column, Factor.of(column, all_levels).coded)


def level_columns(column: Column, levels: Sequence[str | float]) -> list[Column]:
    """The columns of 0 and 1 that say where a factor has each of these levels."""
    entries = entries_of(column)
    return [Column(f"{column.name}[{level_text(level)}]", (entries == level).astype(np.float64)) for level in levels]


def entries_of(column: Column) -> NDArray[Any]:
    """(n,) the entries of a factor, numbers or texts."""
    # As objects, for an array of texts takes for each as much as for the longest, and drops NULs at their ends.
    return np.array(column.texts, dtype=object) if column.values is None else column.values


def _refuse(column: Column) -> None:
    """:class:`InputError` for what is no factor."""
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


def _levels(column: Column, entries: NDArray[Any]) -> list[Any]:
    """The values that occur, in the order the frame gives, or sorted."""
    values: list[Any] = np.unique(entries).tolist()
    if column.levels is None:
        return values
    declared: list[Any] = [str(level) if column.values is None else float(level) for level in column.levels]
    occurring = set(values)
    ordered = [level for level in declared if level in occurring]
    return ordered + [level for level in values if level not in {*ordered}]


def level_text(level: str | float) -> str:
    """A level as it stands in the name of its column."""
    return level if isinstance(level, str) else str(int(level)) if level == int(level) else repr(level)
