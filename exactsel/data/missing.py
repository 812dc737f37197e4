"""What is done about missing values, when somebody says what."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from exactsel.errors import InputError, escaped
from exactsel.problem.frames import SHOWN, Column
from exactsel.types import BoolArray, FloatArray
from exactsel_certificates.prepared import weighted_median

WAYS = ("drop-rows", "drop-columns", "mean", "median", "mean-indicator")
"""Leave out the rows or the columns concerned; put the mean or the median of a column in their place, with
``mean-indicator`` beside a column that says where. What is no number gets a value of its own, ``missing``."""

KEPT = {"mean": "keep", "median": "keep", "mean-indicator": "keep-indicator"}
"""The same for whoever fills gaps fold by fold: numbers that are missing are nan."""


def middle_of(values: FloatArray, way: str, weights: FloatArray | None = None) -> FloatArray:
    """What stands for the gaps (nan) of each column (n, d): its mean or median, 0 where nothing is known; a row counts
    as often as its weight (n,) says.
    """
    return np.array([_middle_of_column(column, way, weights) for column in values.T])


def _middle_of_column(column: FloatArray, way: str, weights: FloatArray | None) -> float:
    known = ~np.isnan(column) if weights is None else ~np.isnan(column) & (weights > 0)
    if not known.any():
        return 0.0
    counted = None if weights is None else weights[known]
    middle = weighted_median(column[known], counted) if way == "median" else np.average(column[known], weights=counted)
    return float(middle)


def without_gaps(
    columns: Sequence[Column], target: int | None, dropped: set[int], way: str, where: str
) -> tuple[list[Column], BoolArray | None, set[int]]:
    """The columns as ``way`` (of :data:`WAYS`) has them, which rows are left, and further columns to leave out.

    Parameters
    ----------
    columns : sequence of Column
    target : int, optional
        The column to predict: rows without it are left out, whatever the way.
    dropped : set of int
        Columns that are left out already.
    way : str
    where : str
        What messages call the data.

    Returns
    -------
    columns : list of Column
        In the same places; what stands beside a column comes behind all others.
    rows : array of bool (n,), optional
        None where all are left.
    left_out : set of int
    """
    if way not in (*WAYS, *KEPT.values()):
        raise InputError(f"--missing is '{way}', but it must be one of {', '.join(WAYS)}.")
    used = [j for j in range(len(columns)) if j not in dropped and columns[j].missing]
    gaps = {j: gap for j in used if (gap := _gaps(columns[j])) is not None}
    by_rows = [j for j in gaps if j == target or way == "drop-rows"]
    rows = None
    if by_rows:
        rows = ~np.any([gaps[j] for j in by_rows], axis=0)
        if not rows.any():
            raise InputError(f"in {where}, every row lacks a value; leave out the columns with most gaps, with --drop.")
        _tell(f"{int((~rows).sum())} of {rows.size} rows are left out, as they have no value", columns, by_rows, where)
    others = [j for j in gaps if j not in by_rows]
    if way == "drop-columns":
        if others:
            _tell("left out, as values are missing", columns, others, where)
        return [_in_rows(column, rows) for column in columns], rows, set(others)
    made, beside = [], []
    for j, column in enumerate(columns):
        left = _in_rows(column, rows)
        if j in others and (gap := _gaps(left)) is not None:
            left, more = _filled(left, gap, way)
            beside += more
        made.append(left)
    if others and way in WAYS:
        _tell(f"missing values are filled in (by the {way.partition('-')[0]}, or as 'missing')", columns, others, where)
    return [*made, *beside], rows, set()


def _gaps(column: Column) -> BoolArray | None:
    """Where (n,) values are missing; None where that is not known or nowhere."""
    if column.partial is not None:
        gaps: BoolArray = np.isnan(column.partial)
        return gaps if gaps.any() else None
    return column.absent if column.absent is not None and column.absent.any() else None


def _in_rows(column: Column, rows: BoolArray | None) -> Column:
    """The column in the rows that are left."""
    if rows is None:
        return column
    if column.values is not None:
        return replace(column, values=column.values[rows])
    if column.partial is not None:
        partial = column.partial[rows]
        missing = int(np.isnan(partial).sum())
        if not missing:
            return Column(column.name, partial)
        return replace(column, partial=partial, missing=missing)
    if column.kind not in ("text", "dates"):
        return column
    absent = np.zeros(rows.size, dtype=np.bool_) if column.absent is None else column.absent
    kept = rows[~absent]
    left = absent[rows]
    texts = tuple(text for text, keep in zip(column.texts, kept, strict=True) if keep)
    return replace(column, texts=texts, missing=int(left.sum()), absent=left if left.any() else None)


def _filled(column: Column, gaps: BoolArray, way: str) -> tuple[Column, list[Column]]:
    """The column with its gaps filled, and what comes beside it."""
    if column.partial is None:
        texts = iter(column.texts)
        whole = tuple("missing" if gap else next(texts) for gap in gaps)
        return replace(column, texts=whole, missing=0, absent=None, kind="text"), []
    beside = [Column(f"{column.name} missing", gaps.astype(np.float64))] if way.endswith("indicator") else []
    if way not in WAYS:
        return Column(column.name, column.partial), beside
    return Column(column.name, np.where(gaps, middle_of(column.partial[:, None], way)[0], column.partial)), beside


def _tell(what: str, columns: Sequence[Column], places: Sequence[int], where: str) -> None:
    named = [f"{columns[j].name} ({columns[j].missing})" for j in places]
    shown = ", ".join(named[:SHOWN]) + (f" and {len(named) - SHOWN} more" if len(named) > SHOWN else "")
    warnings.warn(escaped(f"in {where}, {what}: {shown}."), stacklevel=6)
