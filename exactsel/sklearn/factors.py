"""Factors of data frames in the estimators: coded for the fit, and as they were then for every other row."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from exactsel.data.beside import instance_of_data
from exactsel.data.tables import Coding
from exactsel.errors import InputError
from exactsel.problem.coding import ColumnCoding
from exactsel.problem.frames import is_frame, table_columns
from exactsel.problem.regression import Problem
from exactsel.types import FloatArray


class Coded(NamedTuple):
    """A frame whose factors have been coded."""

    A: FloatArray
    """(n, columns)"""
    names: list[str]
    groups: list[str | None] | None
    """The factor of each column; None where each is a column on its own."""
    coding: ColumnCoding | None
    """None where there was no factor."""


def coded_factors_of(X: Any, factors: Any, groups: Any, intercept: bool) -> Coded:
    """The columns of a frame, those of ``factors`` coded; without an intercept each level has its column.

    Raises
    ------
    InputError
        For anything but a frame, for groups beside factors, and for what cannot be coded.
    """
    if not is_frame(X):
        raise InputError("factors are for data frames, whose columns have names; give one, or leave factors out.")
    if groups is not None:
        raise InputError("groups are given beside factors, which are groups themselves; give one of the two.")
    gaps = [column.name for column in table_columns(X)[0] if column.missing]
    if gaps:
        raise InputError(
            f"X has missing values in {', '.join(gaps)}, but an estimator takes none; fill them in before the fit, or "
            f"leave those rows out (X = X.dropna(), y = y[X.index])."
        )
    coding = Coding(factors, all_levels=not intercept)
    instance, _ = instance_of_data(X, np.zeros(int(X.shape[0])), coding=coding)
    labels = None if instance.groups is None else [label or None for label in instance.groups]
    return Coded(np.asarray(instance.A), list(instance.feature_names or ()), labels, instance.coding)


@contextmanager
def suggesting_factors(X: object, y: object) -> Iterator[None]:
    """Say what makes numbers of texts, in X or y, where scikit-learn only says that these are none."""
    try:
        yield
    except ValueError as error:
        text = str(error).removeprefix("could not convert string to float: ")
        if text == str(error):
            raise
        if not _holds_text(X) and _holds_text(y):
            raise InputError(
                "y holds text, but a regressor predicts numbers; for two classes take BestSubsetClassifier."
            ) from error
        raise InputError(
            f"X holds the text {text}, but an estimator takes numbers; for a data frame give factors='auto', or "
            f"encode the texts before, as with sklearn.preprocessing.OneHotEncoder."
        ) from error


def _holds_text(data: object) -> bool:
    """Whether there is anything in an array or a frame that is no number."""
    try:
        np.asarray(data, dtype=np.float64)
    except (TypeError, ValueError):
        return True
    return False


def coded_rows(X: object, coding: ColumnCoding | None, wanted: Any) -> Any:
    """Other rows as those of the fit were coded: the columns ``wanted``, and 0 in all others; an array as it is."""
    if coding is None or not is_frame(X):
        return X
    columns, rows = table_columns(X)
    values = np.zeros((rows, len(coding.sources)))
    values[:, wanted] = coding.values(columns, [int(j) for j in wanted], rows)
    return values


def knowing_coding(problem: Problem, coding: ColumnCoding | None) -> Problem:
    """The problem, which knows how its columns were coded."""
    if coding is None:
        return problem
    return Problem.held(problem.objective, replace(problem.units, coding=coding), problem.k)
