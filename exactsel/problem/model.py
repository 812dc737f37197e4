"""The model for the original data, before any transformation for the search."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from exactsel.errors import InputError
from exactsel.files import write_bytes
from exactsel.problem.checks import checked_names
from exactsel.problem.coded_formula import check_single
from exactsel.problem.coding import ColumnCoding
from exactsel.problem.constraints import descriptions
from exactsel.problem.design import DesignMatrix, is_design
from exactsel.problem.frames import Column, frame_matrix, is_frame, numeric_matrix, table_columns
from exactsel.problem.interface import SubsetProblem, is_regression
from exactsel.problem.preparing import Preparation
from exactsel.to_plain import html_table
from exactsel.types import FloatArray, IntArray

FORMAT = 1
"""Of the files of :meth:`Model.save`."""

MANY_TEXTS, MANY_TERMS = 3, 6
"""More bounds or equalities, or terms of one, than these are counted in texts instead of listed."""


@dataclass(frozen=True)
class Model:
    """Coefficients of the columns as they were given; predictions are ``A @ coef + intercept``."""

    coef: FloatArray
    """(d,)"""
    intercept: float | None
    """None where the problem has none."""
    names: tuple[str, ...] | None = None
    """Of the columns, where they have names."""
    coding: ColumnCoding | None = None
    """How the columns are computed from those of a table, for a model with factors or a formula; else None."""

    @classmethod
    def of(cls, problem: SubsetProblem, coef: FloatArray) -> Model | None:
        """The model with these coefficients of the problem's columns; None where there are no coefficients."""
        if not coef.size:
            return None
        preparation, reduction = problem.preparation, problem.objective.reduction
        names, coding = problem.units.column_names, problem.units.coding
        if not is_regression(problem) or (preparation is None and reduction is None):
            return cls(coef, None, names, coding)
        undone, intercept = problem.as_given(coef)
        centred = (reduction is not None and reduction.intercept) or (preparation is not None and preparation.centred)
        return cls(undone, intercept if centred else None, names, coding)

    def predict(self, A: ArrayLike) -> FloatArray:
        """Predictions for rows.

        For logistic and squared hinge loss these are scores: positive ones speak for the label +1. For Poisson
        loss they are logarithms of the expected counts. With a formula such as ``log(y) ~ a + b`` they are on the
        scale of its left side, logarithms of y.

        Parameters
        ----------
        A : data frame, mapping of columns, array or sparse matrix (n, d)
            A table's columns are found by name where the model has names: in any order, among others, and only those
            in the model are needed. For a model with factors or a formula they are the columns of the table it was
            made from, which are coded as they were there. An array has all columns of the model, in its order.

        Returns
        -------
        array (n,)

        Raises
        ------
        InputError
            For rows that do not fit the model, and for a level of a factor that no row of the fit has.
        """
        if isinstance(A, Mapping) or ((self.names is not None or self.coding is not None) and is_frame(A)):
            columns, count = table_columns(A)
            chosen = np.flatnonzero(self.coef)
            by_name: FloatArray = self._chosen_columns(columns, chosen, count) @ self.coef[chosen]
            return by_name + (self.intercept or 0.0)
        matrix, _ = frame_matrix(A, None, rounded=True)
        try:
            rows: FloatArray | DesignMatrix = matrix if is_design(matrix) else np.asarray(matrix, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(
                "the rows to predict hold text, but an array has the coded features of the model; give a data frame, "
                "or a mapping of names to values, with the columns of the fit."
            ) from None
        if rows.ndim != 2 or rows.shape[1] != self.coef.size:
            raise InputError(
                f"the rows to predict have the shape {rows.shape}, but the model has {self.coef.size} features; give a "
                f"table with all of them, in the same order."
            )
        predicted: FloatArray = rows @ self.coef + (self.intercept or 0.0)
        return predicted

    def coefficients(self) -> dict[str | int, float]:
        """The coefficients that are not zero, by name, or by number where columns have no name of their own."""
        names = self.names or ()
        chosen = map(int, np.flatnonzero(self.coef))
        return {names[j] if j < len(names) and names.count(names[j]) == 1 else j: float(self.coef[j]) for j in chosen}

    def _repr_html_(self) -> str:
        rows = [(str(name), f"{value:.9g}") for name, value in self.coefficients().items()]
        rows += [] if self.intercept is None else [("(intercept)", f"{self.intercept:.9g}")]
        return html_table(rows, ("", "coefficient"))

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write the model to a file of JSON, for :meth:`load`; every number is kept to the last bit.

        Raises
        ------
        InputError
            For a formula whose terms cannot be written as plain data.
        OutputError
            When it cannot be written; an earlier file stays then.
        """
        text = {
            "exactsel_model": FORMAT, "intercept": self.intercept, "coef": self.coef.tolist(), "names": self.names,
            "coding": None if self.coding is None else self.coding.as_dict(),
        }  # fmt: skip
        write_bytes(file, json.dumps(text).encode())

    @classmethod
    def load(cls, file: str | os.PathLike[str]) -> Model:
        """Read a model that :meth:`save` has written.

        Raises
        ------
        InputError
            For a file that cannot be read, or holds something else.
        """
        try:
            record = json.loads(Path(file).read_bytes())
        except OSError as error:
            raise InputError(f"the model {Path(file)} cannot be read ({error.strerror}); check its name.") from None
        except (ValueError, RecursionError):
            record = None
        version = isinstance(record, dict) and record.get("exactsel_model")
        if version != FORMAT:
            held = "no model" if not version else f"a model of format {version!r}"
            raise InputError(f"{Path(file)} holds {held}, but one of format {FORMAT} was expected; write it with save.")
        try:
            coef = np.array(record["coef"], dtype=np.float64).reshape(len(record["coef"]))
            intercept = None if record["intercept"] is None else float(record["intercept"])
            names = checked_names(record["names"], coef.size)
            coding = None if record["coding"] is None else ColumnCoding.from_dict(record["coding"], coef.size)
            if not np.isfinite([*coef, intercept or 0.0]).all():
                raise ValueError
        except (AttributeError, KeyError, TypeError, ValueError):
            raise InputError(f"{Path(file)} is a damaged model; write it again with save.") from None
        return cls(coef, intercept, names, coding)

    def _chosen_columns(self, columns: Sequence[Column], chosen: IntArray, rows: int) -> FloatArray:
        """The columns (rows, chosen) of a table that the model needs, coded where its own were."""
        if self.coding is not None:
            return self.coding.values(columns, chosen.tolist(), rows)
        if self.names is None:
            raise InputError(
                f"the model has no names of features, so a mapping says nothing of them; pass an array of its "
                f"{self.coef.size} features in their order."
            )
        named = self._columns_named(columns, [self.names[j] for j in chosen])
        return named.reshape(rows, chosen.size)

    def _columns_named(self, columns: Sequence[Column], wanted: Sequence[str]) -> FloatArray:
        """The columns (n, wanted) of a frame that the model needs."""
        header = [column.name for column in columns]
        for name in wanted:
            if (self.names or ()).count(name) > 1:
                raise InputError(
                    f"the model has several features called '{name}', so a table's cannot be found by name; pass an "
                    f"array with all {self.coef.size} features in their order."
                )
            check_single(name, header, f", or pass an array with all {self.coef.size} in their order")
        return numeric_matrix([columns[header.index(name)] for name in wanted], "the rows to predict", rounded=True)


@dataclass(frozen=True)
class PreparedModel:
    """A model in the columns that were made ready for the search."""

    coef: FloatArray
    """(d,) coefficients of the columns as they were searched, that is, centred and scaled where the problem requests
    it. Empty for column subset selection, which has none."""
    preparation: Preparation | None = None
    """What was done to the data before, see :meth:`exactsel.Problem.prepared`; None where nothing was."""

    @classmethod
    def of(cls, problem: SubsetProblem, coef: FloatArray) -> PreparedModel:
        """The model with these coefficients (d,) of the columns as they are searched."""
        return cls(prepared_coef(problem, coef), preparation_of(problem))


def preparation_of(problem: SubsetProblem) -> Preparation | None:
    """The requested preparation of a problem's data; None where there is none."""
    preparation = problem.preparation
    return preparation if preparation is not None and preparation.asked else None


def column_ratio(problem: SubsetProblem) -> float:
    """Length of the longest column, divided by that of the shortest that is not zero, in units that matter.

    Without a ridge these are those of the columns that are searched, with one those of the problem as it was given.
    """
    objective = problem.objective
    if objective.before is not None and objective.asked_lam > 0.0:
        objective = objective.before
    return 1.0 / objective.shortest_share


def prepared_coef(problem: SubsetProblem, coef: FloatArray) -> FloatArray:
    """Coefficients of the columns as they were prepared (d,), from those of the columns as they are searched."""
    divisors = problem.objective.divisors
    return coef if divisors is None or not coef.size else coef / divisors


def searched_coef(problem: SubsetProblem, coef: FloatArray) -> FloatArray:
    """The way back from :func:`prepared_coef`."""
    divisors = problem.objective.divisors
    return coef if divisors is None or not coef.size else coef * divisors


def demands_text(problem: dict[str, Any]) -> str:
    """What the problem demands beside its size, for people; empty where that is nothing.

    ``problem`` is the problem as plain data (``describe()``).
    """
    names = problem.get("feature_names")
    words = [
        f"{what} {listed(problem[which], names, '{name} ({number})')}"
        for which, what in (("force_in", "in every model:"), ("force_out", "in no model:"))
        if problem.get(which)
    ]
    words += [*descriptions(problem, lambda unit: label(unit, names)), *_bounds_texts(problem.get("bounds"))]
    words += _equality_texts(problem)
    flags: tuple[tuple[str, str], ...]
    flags = (("intercept", "intercept, not penalised"), ("scale", "features scaled"), ("weights", "rows weighted"))
    flags += (("offset", "a given offset is added to each prediction"),)
    if problem.get("left_side"):
        words.append(f"the target is {problem['left_side']}")
    return "; ".join([*words, *(what for which, what in flags if problem.get(which))])


def _bounds_texts(bounds: list[list[float | None]] | None) -> list[str]:
    """The lower and upper bounds of coefficients, in words: alike ones together, or their number where many differ."""
    if not bounds:
        return []
    counts = Counter(pair for pair in zip(*bounds, strict=True) if pair != (None, None))
    if len(counts) > MANY_TEXTS:
        return [f"coefficients of {counts.total()} features within bounds"]
    columns = len(bounds[0])
    return [f"{_coefficients(count, columns)} {_between(*pair)}" for pair, count in counts.items()]


def _coefficients(count: int, columns: int) -> str:
    if count == columns:
        return "all coefficients"
    return f"coefficients of {count} features" if count > 1 else "the coefficient of 1 feature"


def _between(lower: float | None, upper: float | None) -> str:
    if lower is None or upper is None:
        return f"at most {upper:g}" if lower is None else f"at least {lower:g}"
    return f"from {lower:g} to {upper:g}"


def _equality_texts(problem: dict[str, Any]) -> list[str]:
    """The linear equalities of coefficients, in words; only their number where they are many."""
    equalities = problem.get("equalities") or []
    if len(equalities) > MANY_TEXTS:
        return [f"coefficients meet {len(equalities)} linear equalities"]
    names = problem.get("column_names" if problem.get("groups") else "feature_names")
    return [_equality_text(each["columns"], each["numbers"], each["right"], problem, names) for each in equalities]


def _equality_text(
    columns: list[int], numbers: list[float], right: float, problem: dict[str, Any], names: Sequence[str] | None
) -> str:  # fmt: skip
    if len(columns) == problem.get("columns", problem["d"]) and {*numbers} == {1.0}:
        return f"coefficients sum to {right:g}"
    if len(columns) > MANY_TERMS:
        return f"a linear equality of {len(columns)} coefficients"
    named = [label(j, names, "{name}", "x{number}") for j in columns]
    terms = " ".join(map(_term, named, numbers)).removeprefix("+ ")
    return f"coefficients meet {terms} = {right:g}"


def _term(name: str, number: float) -> str:
    return f"{'-' if number < 0 else '+'} {'' if abs(number) == 1.0 else f'{abs(number):g}*'}{name}"


def label(column: int, names: Sequence[str] | None, named: str = "{name} ({number})", plain: str = "{number}") -> str:
    """A column as people meet it: its name, if it has one, and its number; ``named`` and ``plain`` say how."""
    return named.format(name=names[column], number=column) if names else plain.format(number=column)


def listed(columns: Iterable[int], names: Sequence[str] | None, named: str = "{name}", between: str = ", ") -> str:
    """Columns in a line of text: their names, or their numbers where they have none; ``none`` where there are none."""
    return between.join(label(j, names, named) for j in columns) or "none"
