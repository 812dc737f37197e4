"""Formulas: the terms of a model as statisticians write them, ``y ~ (age + bmi)^2 + C(site)``, through formulaic.

Each term is a unit, with as many columns as its coding has. A product or power is chosen only together with what it is
made of: the parents of a term are the largest terms of the formula that divide it, as ``age:bmi`` is divided by ``age``
and ``bmi``, and ``I(age**3)`` by ``I(age**2)``.

The left side is a column, or an expression of columns such as ``log(y)``, computed as Python does it; models then
predict its values.

Formulaic evaluates expressions of Python. Here they see the columns of the table and nothing else, and may be made of
columns, numbers, + - * / **, comparisons, and calls of formulaic's own transforms
(:data:`exactsel.problem.formula_checks.CALLS`) alone.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from exactsel.arguments import shown
from exactsel.errors import InputError
from exactsel.problem.coded_formula import CodedFormula, level_name
from exactsel.problem.formula_checks import columns_in, tree
from exactsel.problem.frames import Column, numeric_matrix
from exactsel.problem.heredity import heredity, plain_name
from exactsel.problem.right_side import RightSide, formula_frame, reason, term_columns
from exactsel.types import FloatArray


class Terms(NamedTuple):
    """A formula, evaluated for a table."""

    columns: list[Column]
    labels: tuple[str, ...]
    """The name of the term of each column."""
    heredity: tuple[str, ...]
    """Lines that say which terms others need."""
    coding: CodedFormula
    """How to do the same with other rows."""


@dataclass(frozen=True)
class Formula:
    """A formula, found to be one that can be served."""

    text: str
    target: str | None
    """What is predicted, as it was typed; None where the formula does not say."""
    computed_from: tuple[str, ...]
    """The columns of a target that is an expression; empty where it is a column."""
    right: RightSide
    right_text: str
    names: tuple[str, ...]
    """What ``.`` stands for."""
    no_intercept: bool

    @classmethod
    def of(cls, text: str, names: Sequence[str], target: str | None, no_intercept: bool) -> Formula:
        """The formula in a text.

        Parameters
        ----------
        text : str
        names : sequence of str
            The columns there are; ``.`` stands for all of them but those of the target.
        target : str, optional
            The column to predict where the formula names none.
        no_intercept : bool
            Exclude the intercept, also where the formula includes one.

        Raises
        ------
        InputError
            For what is no formula, has terms or calls that are not known, or names no column of the table.
        UnsupportedError
            Where formulaic is missing.
        """
        if not isinstance(text, str):
            raise InputError(f"formula is {shown(text)}, but a text was expected; write 'y ~ a + b'.")
        left, right_text = text.split("~", 1) if "~" in text else ("", text)
        called = left.strip().strip("`")
        column = called if called in names else None
        taken = () if not called or column else tuple(dict.fromkeys(columns_in(called, text)))
        apart = {*taken} if called and not column else {column or target}
        features = tuple(name for name in names if name not in apart)
        right = RightSide.of(right_text, features, no_intercept, text)
        twice = next((name for name in (column, *taken) if name in right.columns), None)
        if twice is not None:
            raise InputError(
                f"the formula {shown(text)} has {twice!r} on both sides; leave it out on the right, where the "
                f"features to choose from stand."
            )
        right.check(names)
        replace(right, columns=taken).check(names)
        if called and not column and not taken:
            raise InputError(
                f"the formula {shown(text)} predicts {shown(called)}, but a column or an expression of columns was "
                f"expected; name one."
            )
        return cls(text, called or None, taken, right, right_text, features, no_intercept)

    @property
    def columns(self) -> tuple[str, ...]:
        """Those of the table that the right side takes."""
        return self.right.columns

    @property
    def intercept(self) -> bool:
        """Whether the model has one."""
        return self.right.intercept

    def target_column(self, columns: Sequence[Column], where: str) -> Column:
        """The values of the left side where it is an expression; missing in rows where a column of it is.

        Raises
        ------
        InputError
            For columns that hold no numbers, and rows for which the expression has no finite value.
        """
        taken = [column for column in columns if column.name in self.computed_from]
        numeric_matrix([replace(column, missing=0) for column in taken if column.partial is None], where)
        held = [column.partial if column.values is None else column.values for column in taken]
        matrix = np.column_stack([values for values in held if values is not None])
        there = ~np.isnan(matrix).any(axis=1)
        values = np.full(len(matrix), np.nan)
        values[there] = self._left([Column(column.name, matrix[there, j]) for j, column in enumerate(taken)])
        wrong = there & ~np.isfinite(values)
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            example = ", ".join(f"{column.name} = {matrix[row, j]:g}" for j, column in enumerate(taken))
            raise InputError(
                f"in {where}, {self.target} has no finite value in {int(wrong.sum())} of {wrong.size} rows (such as "
                f"{example}); leave those rows out, or predict another expression."
            )
        lost = int(np.count_nonzero(~there))
        name = str(self.target)
        return Column(name, None, missing=lost, partial=values) if lost else Column(name, values)

    def _left(self, columns: Sequence[Column]) -> FloatArray:
        """The left side (n,) of complete rows."""
        from formulaic import Formula as Parsed

        frame, expression = formula_frame(columns), ast.unparse(tree(str(self.target)))
        try:
            with np.errstate(all="ignore"):
                matrix = Parsed(f"0 + I({expression})").get_model_matrix(frame, context={}, na_action="ignore")
            values = np.asarray(matrix, dtype=np.float64)
        except Exception as error:
            raise InputError(f"the formula {shown(self.text)} cannot be evaluated ({reason(error)}).") from None
        if values.shape != (len(frame), 1):
            raise InputError(
                f"the left side of the formula {shown(self.text)} has {values.shape[1]} columns, but one was expected; "
                f"predict one at a time."
            )
        return values[:, 0]

    def coded(self, columns: Sequence[Column]) -> Terms:
        """The columns of all terms, which terms need others, and how to compute them for other rows."""
        taken = [column for column in columns if column.name in self.columns]
        frame = formula_frame(taken)
        try:
            matrix = self.right.parsed.get_model_matrix(frame, context={}, na_action="raise")
        except Exception as error:
            raise InputError(f"the formula {shown(self.text)} cannot be evaluated ({reason(error)}).") from None
        spec, values = matrix.model_spec, np.asarray(matrix, dtype=np.float64)
        terms = [term for term in spec.terms if str(term) != "1"]
        empty = next((str(term) for term in terms if not len(spec.term_indices[term])), None)
        if empty is not None:
            raise InputError(f"the term {empty} of the formula makes no feature; leave it out.")
        places = term_columns(spec)
        design = [Column(level_name(spec, term, place), values[:, place]) for term, place in places]
        coding = CodedFormula.of(self.right_text, self.names, self.no_intercept, frame, spec)
        return Terms(design, tuple(plain_name(term) for term, _ in places), tuple(heredity(terms)), coding)
