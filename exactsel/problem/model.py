"""The model for the data as they were given, whatever was done to them before the search."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactsel.errors import InputError
from exactsel.problem.frames import frame_matrix
from exactsel.problem.interface import SubsetProblem
from exactsel.types import FloatArray

SHOWN = 3
"""Units of a hierarchy that are told one by one."""


@dataclass(frozen=True)
class Model:
    """Coefficients of the columns as they were given; predictions are ``A @ coef + intercept``."""

    coef: FloatArray
    """(d,)"""
    intercept: float | None
    """None where the problem has none."""

    @classmethod
    def of(cls, problem: SubsetProblem, coef: FloatArray) -> Model | None:
        """The model with these coefficients of the problem's columns; None where there are no coefficients."""
        if not coef.size:
            return None
        preparation = None if problem.objective is None else problem.objective.preparation
        if problem.objective is None or preparation is None:
            return cls(coef, None)
        undone, intercept = problem.objective.as_given(coef)
        return cls(undone, intercept if preparation.centred else None)

    def predict(self, A: Any) -> FloatArray:
        """Predictions for rows (n, d), an array or a data frame with the columns in the same order.

        For logistic loss these are scores: positive ones speak for the label +1.
        """
        given, _ = frame_matrix(A, None)
        rows = np.asarray(given, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.coef.size:
            raise InputError(
                f"the rows to predict have the shape {rows.shape}, but the model has {self.coef.size} columns; give a "
                f"table with all of them, in the same order."
            )
        predicted: FloatArray = rows @ self.coef + (self.intercept or 0.0)
        return predicted


def demands_text(problem: dict[str, Any]) -> str:
    """What the problem demands beside its size, for people; empty where that is nothing.

    ``problem`` is the problem as plain data (``describe()``).
    """
    names = problem.get("feature_names")
    words = [
        f"{what} {listed(problem[which], names, '{name} ({number})')}"
        for which, what in (("must_have", "in every model:"), ("must_not", "in no model:"))
        if problem.get(which)
    ]
    if problem.get("hierarchy"):
        words.append(_hierarchy_text(problem["hierarchy"], names))
    flags = (("intercept", "intercept, not penalised"), ("scale", "columns scaled"), ("weights", "rows weighted"))
    return "; ".join([*words, *(what for which, what in flags if problem.get(which))])


def _hierarchy_text(hierarchy: dict[str, Any], names: Sequence[str] | None) -> str:
    """A hierarchy (``Constraint.entry``) in words; one that is long by its first units."""
    joined = " and " if hierarchy["kind"] == "strong" else " or "
    parents = hierarchy["parents"]
    said = [
        f"{label(j, names)} only with {joined.join(label(i, names) for i in above)}" for j, above in parents[:SHOWN]
    ]
    more = f", and so on for {len(parents) - SHOWN} more" if len(parents) > SHOWN else ""
    return f"{hierarchy['kind']} hierarchy: {', '.join(said)}{more}"


def label(column: int, names: Sequence[str] | None, named: str = "{name} ({number})", plain: str = "{number}") -> str:
    """A column as people meet it: its name, if it has one, and its number; ``named`` and ``plain`` say how."""
    return named.format(name=names[column], number=column) if names else plain.format(number=column)


def listed(columns: Iterable[int], names: Sequence[str] | None, named: str = "{name}", between: str = ", ") -> str:
    """Columns in a line of text: their names, or their numbers where they have none; ``none`` where there are none."""
    return between.join(label(j, names, named) for j in columns) or "none"
