"""Smallest objectives on many sets of columns, quick rather than exact."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from exactsel._jit import available_threads, parallel_section
from exactsel.kernels.refit import gram_objectives, gram_objectives_from_rows, newton_objectives
from exactsel.problem.design import MOST_PART_BYTES, SparseColumns
from exactsel.problem.fit import on_columns
from exactsel.types import FloatArray, IntArray

if TYPE_CHECKING:
    from exactsel.problem.objective import Objective

WORTH_SHARING = 64
"""Fewer Gram refits than this (a few microseconds each) are done before other threads have woken up."""

GRAM_COLUMNS = 4000
"""With more columns than this, and than rows, refits make the products of their own columns only."""


def minima(objective: Objective, supports: IntArray, threads: int | None = None) -> FloatArray:
    """Smallest value on each set of columns (a row of numbers padded with -1).

    ``threads`` share the work, all cores by default. nan where the columns of a set are numerically dependent;
    :func:`exactsel.problem.fit.fit_support` handles those.
    """
    padded = in_rows(supports)
    # Newton's method knows columns that are stored by their entries.
    if objective.on_demand and (objective.is_quadratic or not isinstance(objective.AT, SparseColumns)):
        return on_tables(objective, padded, lambda table, _, places: minima(table, places, threads))
    values = np.full(len(padded), np.nan)
    if objective.is_quadratic and len(padded) < WORTH_SHARING:
        threads = 1
    with parallel_section(threads or available_threads()):
        if objective.is_quadratic and objective.n < objective.d > GRAM_COLUMNS:
            data = (objective.AT, objective.y, objective.at_zero)
            gram_objectives_from_rows(*data, objective.lam, padded, values)
        elif objective.is_quadratic:
            gram_objectives(*objective.gram[:3], objective.lam, padded, values)
        else:
            tolerance = objective.gradient_tolerance(1e-8)
            newton_objectives(
                objective.row_loss, objective.raw.AT, objective.y, objective.lam, padded, tolerance, values
            )
    return values


def in_rows(supports: IntArray) -> IntArray:
    """Sets of columns as kernels take them, a table also where there are none."""
    return np.ascontiguousarray(supports, dtype=np.int64).reshape(len(supports), -1 if len(supports) else 0)


def on_tables(
    objective: Objective, supports: IntArray, values_on: Callable[[Objective, IntArray, IntArray], FloatArray]
) -> FloatArray:
    """Values on sets of columns (rows padded with -1) of data that are not held as a table.

    ``values_on`` is called with the objective on a table of the columns of some of the sets, these columns, and the
    sets by their places in the table.
    """
    values = np.full(len(supports), np.nan)
    step = max(1, MOST_PART_BYTES // (16 * objective.n * max(1, supports.shape[1])))
    for first in range(0, len(supports), step):
        part = supports[first : first + step]
        columns = np.unique(part[part >= 0])
        columns = columns if columns.size else np.zeros(1, dtype=np.int64)
        places = np.where(part < 0, -1, np.searchsorted(columns, part))
        values[first : first + step] = values_on(on_columns(objective, columns), columns, places)
    return values
