"""Columns with a target, weights and an offset beside them: gaps take rows away from all of these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from exactsel.data.column_lists import Choice
from exactsel.data.instance import Instance
from exactsel.data.tables import Coding, instance_from, with_offset_read
from exactsel.errors import InputError
from exactsel.problem.doubles import to_doubles
from exactsel.problem.frames import Column, frame_columns, frame_matrix, is_frame
from exactsel.problem.row_labels import check_rows
from exactsel.types import FloatArray

TARGET, OFFSET = "(target)", "(offset)"
"""Columns of their own, called as no column of data is."""

CALLED = {TARGET: "y", OFFSET: "offset"}
"""What messages call them."""


def instance_of_data(
    data: object, y: ArrayLike | None, *, coding: Coding, missing: str | None = None, drop: Sequence[Choice] = (),
    sample_weight: ArrayLike | None = None, offset: ArrayLike | str | None = None,
    feature_names: Sequence[str] | None = None,
) -> tuple[Instance, FloatArray | None]:  # fmt: skip
    """The data with their columns encoded and their gaps filled, and the offset of the rows that are left.

    Parameters
    ----------
    data : data frame, array or sparse matrix (n, d)
        In an array nan is a missing value.
    y : array (n,), optional
        The target; rows without it are dropped where ``missing`` names any method. None where a formula names it.
    coding, missing, drop, sample_weight : optional
        As for :func:`exactsel.data.tables.instance_from`.
    offset : array (n,) or str, optional
        Numbers, or the column of the data (or the file) that holds them.
    feature_names : sequence of str (d,), optional
        Of columns that bring no names of their own.

    Raises
    ------
    InputError
        As for :func:`exactsel.data.tables.instance_from`, and where there are as many targets or offsets as no rows.
    """
    named = offset if isinstance(offset, str) else None if offset is None else OFFSET
    check_rows(data, y=y, sample_weight=sample_weight, offset=None if isinstance(offset, str) else offset)
    columns = _columns(data, feature_names)
    rows = _rows(data)
    beside = [] if y is None else [_column(TARGET, y, rows)]
    if named == OFFSET:
        beside.append(_column(OFFSET, offset, rows))
    instance = instance_from(
        [*columns, *beside], target=None if y is None else TARGET, drop=drop, missing=missing,
        sample_weight=sample_weight, where="the data",
        coding=coding if named is None else replace(coding, beside=named),
    )  # fmt: skip
    return with_offset_read(instance, named)


def _columns(data: object, names: Sequence[str] | None) -> list[Column]:
    if is_frame(data):
        return frame_columns(data)
    matrix = np.asarray(frame_matrix(data, None)[0])
    if matrix.ndim != 2:
        raise InputError(f"the data have {matrix.ndim} dimension(s), but a table of rows and columns was expected.")
    called = [f"column {j}" for j in range(matrix.shape[1])] if names is None else list(names)
    if len(called) != matrix.shape[1]:
        raise InputError(
            f"{len(called)} feature names were given for {matrix.shape[1]} columns; give one name per column."
        )
    return [_column(name, matrix[:, j], len(matrix)) for j, name in enumerate(called)]


def _rows(data: Any) -> int:
    return int(data.shape[0]) if hasattr(data, "shape") else len(data)


def _column(name: str, values: object, rows: int) -> Column:
    """A column of numbers, some of them missing, or of texts."""
    entries = np.asarray(values)
    called = CALLED.get(name, name)
    if entries.shape != (rows,):
        several = name == TARGET and entries.ndim == 2 and len(entries) == rows
        advice = "; solve_targets takes several targets" if several else ""
        raise InputError(
            f"{called} has the shape {entries.shape}, but {rows} numbers were expected, one for each row{advice}."
        )
    if entries.dtype.kind in "OUS" and all(isinstance(entry, str) for entry in entries.tolist()):
        return Column(name, None, "text", texts=tuple(entries.tolist()))
    numbers = to_doubles(entries, called)
    if name in CALLED and np.isinf(numbers).any():
        why = ", as the logarithm of an exposure of 0" if name == OFFSET else ""
        raise InputError(f"{called} holds {int(np.isinf(numbers).sum())} infinite values{why}; leave those rows out.")
    gaps = np.isnan(numbers)
    if not gaps.any():
        return Column(name, numbers)
    return Column(name, None, missing=int(gaps.sum()), partial=numbers)
