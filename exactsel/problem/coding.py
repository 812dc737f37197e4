"""The coding of a model's columns from those of a table, so that a model predicts from raw rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from exactsel.problem.coded_formula import WHERE, CodedFormula, Level, check_levels, found_columns
from exactsel.problem.factors import Factor, entries_of
from exactsel.problem.frames import Column, numeric_matrix
from exactsel.types import FloatArray


@dataclass(frozen=True)
class Source:
    """Where one column of a model comes from: a column of the table, a level of one, or a formula."""

    column: str | None = None
    """The column of the table; None for a column of the formula."""
    level: Level | None = None
    """The level for which the column is 1; None where it is no factor's."""
    place: int = -1
    """The number of the column among those of the formula."""

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        if self.column is None:
            return {"formula": self.place}
        return {"column": self.column} | ({} if self.level is None else {"level": self.level})

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Source:
        """The way back; KeyError or TypeError for what is none."""
        if "formula" in plain:
            place = plain["formula"]
            if type(place) is not int:
                raise TypeError
            return cls(place=place)
        column, level = plain["column"], plain.get("level")
        if not isinstance(column, str) or type(level) not in (str, int, float, type(None)):
            raise TypeError
        return cls(column, level if level is None or isinstance(level, str) else float(level))


@dataclass(frozen=True)
class ColumnCoding:
    """How each column of a model is computed, as plain data."""

    sources: tuple[Source, ...]
    """One for each column of the model."""
    factors: Mapping[str, Factor]
    """Levels and reference level of the table's columns that are factors."""
    formula: CodedFormula | None = None
    target: str | None = None
    """What is predicted, where that is an expression of columns."""

    def of_columns(self, columns: Sequence[int]) -> ColumnCoding:
        """The same for some columns of the model alone."""
        return replace(self, sources=tuple(self.sources[j] for j in columns))

    def as_dict(self) -> dict[str, Any]:
        """Plain data; :class:`InputError` where the state of a formula is none."""
        factors = {name: {"levels": list(f.levels), "reference": f.reference} for name, f in self.factors.items()}
        return {
            "columns": [source.as_dict() for source in self.sources], "factors": factors,
            "formula": None if self.formula is None else self.formula.as_dict(), "target": self.target,
        }  # fmt: skip

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any], columns: int) -> ColumnCoding:
        """The coding of ``columns`` columns that :meth:`as_dict` wrote; KeyError, TypeError or ValueError otherwise."""
        formula = None if plain["formula"] is None else CodedFormula.from_dict(plain["formula"])
        sources = tuple(map(Source.from_dict, plain["columns"]))
        factors = {str(name): Factor.from_dict(held) for name, held in plain["factors"].items()}
        width = 0 if formula is None else formula.width
        misplaced = any(source.column is None and not 0 <= source.place < width for source in sources)
        unknown = any(source.level is not None and source.column not in factors for source in sources)
        if len(sources) != columns or misplaced or unknown or not isinstance(plain["target"], str | None):
            raise ValueError
        return cls(sources, factors, formula, plain["target"])

    def values(self, table: Sequence[Column], wanted: Sequence[int], rows: int) -> FloatArray:
        """The columns ``wanted`` of the model (rows, wanted) for the rows of a table.

        Raises
        ------
        InputError
            Where a column is missing, or is called like another one, for a level no row of the fit has, and for what
            holds no numbers.
        """
        sources = [self.sources[j] for j in wanted]
        values = np.zeros((rows, len(sources)))
        slots = [i for i, source in enumerate(sources) if source.column is not None]
        table = found_columns(table, [str(sources[i].column) for i in slots])
        named = {column.name: column for column in table}
        plain = [i for i in slots if sources[i].level is None]
        if plain:
            values[:, plain] = numeric_matrix([named[str(sources[i].column)] for i in plain], WHERE, rounded=True)
        entries: dict[str, Any] = {}
        for i in slots:
            name, level = str(sources[i].column), sources[i].level
            if level is not None and name not in entries:
                check_levels(named[name], self.factors[name].levels)
                entries[name] = entries_of(named[name])
            if level is not None:
                values[:, i] = entries[name] == level
        others = [i for i, source in enumerate(sources) if source.column is None]
        if others and self.formula is not None:
            places = [sources[i].place for i in others]
            values[:, others] = self.formula.values(table, places, rows)
        return values
