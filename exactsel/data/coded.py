"""The columns of a model, coded from those of a table as factors or a formula have them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from exactsel.errors import InputError, warn_of_data
from exactsel.problem.coding import ColumnCoding, Source
from exactsel.problem.factors import Factor, level_columns
from exactsel.problem.formula import Formula
from exactsel.problem.frames import Column
from exactsel.problem.preparing import AUTO


class CodedTable(NamedTuple):
    """The columns of a model."""

    columns: Sequence[Column]
    terms: tuple[str, ...]
    """The name of the term of each, empty for a column on its own."""
    heredity: tuple[str, ...] = ()
    """Lines that say which terms others need."""
    coding: ColumnCoding | None = None
    """How to compute them for other rows; None where they are the table's own."""

    def described(self, intercept: bool) -> dict[str, Any]:
        """What an instance says of its columns."""
        return {
            "feature_names": tuple(column.name for column in self.columns),
            "groups": self.terms if any(self.terms) else None, "hierarchy": self.heredity or None,
            "intercept": AUTO if intercept else False, "coding": self.coding,
        }  # fmt: skip


def coded_factors(
    columns: Sequence[tuple[Column, bool]], all_levels: bool, trouble: list[str], where: str, beside: str | None = None
) -> CodedTable:
    """The columns, factors among them coded; those that cannot be coded are dropped, with a note of the reason.

    Beside factors and an intercept a constant column is dropped, too, but for the offset, the column ``beside``.
    """
    table: list[Column] = []
    labels: list[str] = []
    sources: list[Source] = []
    factors: dict[str, Factor] = {}
    in_terms = any(is_factor for _, is_factor in columns)
    for column, is_factor in columns:
        if not is_factor and in_terms and not all_levels and column.name != beside and _is_constant(column):
            warn_of_data(f"in {where}, column {column.name} has one value and is left out.")
        elif not is_factor:
            table.append(column)
            labels.append("")
            sources.append(Source(column.name))
        elif (factor := _factor_of(column, all_levels, trouble, where)) is not None:
            factors[column.name] = factor
            table += level_columns(column, factor.coded)
            labels += [column.name] * len(factor.coded)
            sources += [Source(column.name, level) for level in factor.coded]
    return CodedTable(table, tuple(labels), coding=ColumnCoding(tuple(sources), factors) if factors else None)


def _factor_of(column: Column, all_levels: bool, trouble: list[str], where: str) -> Factor | None:
    """The factor; None where the column cannot be one, which is noted."""
    try:
        factor = Factor.of(column, all_levels)
    except InputError as error:
        trouble.append(f"in {where}, {error}")
        return None
    if not factor.coded:
        warn_of_data(f"in {where}, column {column.name} has one value and is left out.")
    return factor


def _is_constant(column: Column) -> bool:
    """Whether a column of numbers has one value: beside an intercept no model needs it, and terms cannot have it."""
    return column.values is not None and column.values.size > 1 and bool(np.all(column.values == column.values[0]))


def as_taken(held: Sequence[tuple[Column, bool]], formula: Formula, beside: str | None) -> tuple[list[Column], ...]:
    """The columns as a formula takes them, those that are to be factors being categories, and what stays beside it."""
    apart = [column for column, _ in held if column.name == beside and column.name not in formula.columns]
    taken = [
        replace(column, levels=()) if wanted and column.levels is None else column
        for column, wanted in held if column not in apart
    ]  # fmt: skip
    return taken, apart


def coded_terms(taken: Sequence[Column], apart: Sequence[Column], formula: Formula) -> CodedTable:
    """The columns of a formula's terms, and those beside them."""
    columns, labels, heredity, how = formula.coded(taken)
    sources = (*(Source(place=j) for j in range(len(columns))), *(Source(column.name) for column in apart))
    coding = ColumnCoding(sources, {}, how, formula.target if formula.computed_from else None)
    return CodedTable([*columns, *apart], (*labels, *("" for _ in apart)), heredity, coding)
