"""Methods for missing values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from exactsel.arguments import shown
from exactsel.errors import InputError, option, warn_of_data
from exactsel.problem.frames import SHOWN, Column
from exactsel.types import BoolArray, FloatArray
from exactsel_certificates.prepared import weighted_median

WAYS = ("drop-rows", "drop-columns", "mean", "median", "mean-indicator")
"""Drop the rows or the columns concerned; impute the mean or the median of a column, with ``mean-indicator`` beside a
column that says where. What is no number gets a value of its own, ``missing``."""

KEPT = {"mean": "keep", "median": "keep", "mean-indicator": "keep-indicator"}
"""The same for methods that impute fold by fold: numbers that are missing are nan."""


def middle_of(values: FloatArray, way: str, weights: FloatArray | None = None) -> FloatArray:
    """What stands for the gaps (nan) of each column (n, d): its mean or median, 0 where nothing is known; a row counts
    as often as its weight (n,) says.
    """
    return np.array([_middle_of_column(column, way, weights) for column in values.T])


def _middle_of_column(column: FloatArray, way: str, weights: FloatArray | None) -> float:
    mask = ~np.isnan(column) if weights is None else ~np.isnan(column) & (weights > 0)
    if not mask.any():
        return 0.0
    counted = None if weights is None else weights[mask]
    with np.errstate(all="ignore"):  # infinite values are refused later, by name
        if way == "median":
            return float(weighted_median(column[mask], counted))
        return float(np.average(column[mask], weights=counted))


def of_rows_left(values: FloatArray, rows: BoolArray | None, what: str) -> FloatArray:
    """Numbers of the rows that are left (``rows``, None for all), given for these alone or for all there were.

    Raises
    ------
    InputError
        When there are neither so many nor so many.
    """
    if rows is None or values.size == np.count_nonzero(rows):
        return values
    if values.size != rows.size:
        raise InputError(
            f"there are {values.size} {what} for {rows.size} rows, of which {np.count_nonzero(rows)} are left; give "
            f"one number per row."
        )
    return values[rows]


def without_gaps(
    columns: Sequence[Column], target: int | None, dropped: set[int], way: str, where: str,
    weights: FloatArray | None = None,
) -> tuple[list[Column], BoolArray | None, set[int]]:  # fmt: skip
    """The columns as ``way`` (of :data:`WAYS`) has them, the rows that remain, and further columns to drop.

    Parameters
    ----------
    columns : sequence of Column
    target : int, optional
        The column to predict: rows without it are dropped, for any method.
    dropped : set of int
        Columns that are dropped already.
    way, where : str
        What is done, and what messages call the data.
    weights : array (n,), optional
        How often each row counts towards means and medians. A gap in a row of weight 0 is imputed all the same, but is
        no reason to drop a column, or to say where gaps are.

    Returns
    -------
    columns : list of Column
        In the same places; what stands beside a column comes behind all others.
    rows : array of bool (n,), optional
        None where all are left.
    left_out : set of int
    """
    if not isinstance(way, str) or way not in (*WAYS, *KEPT.values()):
        raise InputError(f"{option('missing')} is {shown(way)}, but it must be one of {', '.join(WAYS)}.")
    used = [j for j in range(len(columns)) if j not in dropped and columns[j].missing]
    gaps = {j: gap for j in used if (gap := _gaps(columns[j])) is not None}
    by_rows = [j for j in gaps if j == target or way == "drop-rows"]
    rows = None
    if by_rows:
        rows = ~np.any([gaps[j] for j in by_rows], axis=0)
        if not rows.any():
            raise InputError(f"in {where}, every row lacks a value; drop columns with most gaps ({option('drop')}).")
        _tell(f"{int((~rows).sum())} of {rows.size} rows are left out, as they have no value", columns, by_rows, where)
    others = [j for j in gaps if j not in by_rows]
    if weights is not None:
        weights = of_rows_left(weights, rows, "weights")
    if way == "drop-columns":
        left_out = [j for j in others if _counts(columns[j], rows, weights)]
        if left_out:
            _tell("left out, as values are missing", columns, left_out, where)
        by_means = {*others} - {*left_out}
        filled = [
            _filled(column, gap, "mean", weights)[0] if j in by_means and gap is not None else column
            for j, (column, gap) in enumerate(_gaps_left(columns, rows))
        ]
        return filled, rows, set(left_out)
    table, beside = [], []
    for j, (column, gap) in enumerate(_gaps_left(columns, rows)):
        if j in others and gap is not None:
            column, more = _filled(column, gap, way, weights)
            beside += more
        table.append(column)
    if others and way in WAYS:
        _tell(f"missing values are filled in (by the {way.partition('-')[0]}, or as 'missing')", columns, others, where)
    return [*table, *beside], rows, set()


def _gaps_left(columns: Sequence[Column], rows: BoolArray | None) -> Iterator[tuple[Column, BoolArray | None]]:
    """Each column in the rows that are left, and where its gaps are then."""
    for column in columns:
        subset = _in_rows(column, rows)
        yield subset, _gaps(subset)


def _counts(column: Column, rows: BoolArray | None, weights: FloatArray | None) -> bool:
    """Whether a column has a gap in a row that counts."""
    gap = _gaps(_in_rows(column, rows))
    return gap is not None and (weights is None or bool(np.any(gap & (weights > 0))))


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
            return replace(column, values=partial, partial=None, missing=0)
        return replace(column, partial=partial, missing=missing)
    if column.kind not in ("text", "dates"):
        return column
    absent = np.zeros(rows.size, dtype=np.bool_) if column.absent is None else column.absent
    gaps = absent[rows]
    if not column.texts:  # the dates of a frame, which are refused in any case
        return replace(column, missing=int(gaps.sum()))
    mask = rows[~absent]
    texts = tuple(text for text, keep in zip(column.texts, mask, strict=True) if keep)
    return replace(column, texts=texts, missing=int(gaps.sum()), absent=gaps if gaps.any() else None)


def _filled(column: Column, gaps: BoolArray, way: str, weights: FloatArray | None) -> tuple[Column, list[Column]]:
    """The column with its gaps filled, and what comes beside it."""
    if weights is not None and weights.size != gaps.size:
        raise InputError(f"there are {weights.size} weights for {gaps.size} rows; give one number per row.")
    if column.partial is None:
        texts = iter(column.texts)
        whole = tuple("missing" if gap else next(texts) for gap in gaps)
        return replace(column, texts=whole, missing=0, absent=None, kind="text"), []
    said = way.endswith("indicator") and (weights is None or bool(np.any(gaps & (weights > 0))))
    beside = [Column(f"{column.name} missing", gaps.astype(np.float64))] if said else []
    template = replace(column, partial=None, missing=0)
    if way not in WAYS:
        return replace(template, values=column.partial), beside
    middle = middle_of(column.partial[:, None], way, weights)[0]
    return replace(template, values=np.where(gaps, middle, column.partial)), beside


def _tell(what: str, columns: Sequence[Column], places: Sequence[int], where: str) -> None:
    named = [f"{columns[j].name} ({columns[j].missing})" for j in places]
    listing = ", ".join(named[:SHOWN]) + (f" and {len(named) - SHOWN} more" if len(named) > SHOWN else "")
    warn_of_data(f"in {where}, {what}: {listing}.")
