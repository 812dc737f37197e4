"""Dual vectors within limits for data that are held as no table: the relaxation on working sets of the columns.

Each working set is a small problem on a table, whose relaxation is solved as that of any other. Its predictions say by
one pass over the data which columns outside would take more off formula (2) than those that count; these join the set.
Where this ends only decides how good a bound is, for any dual vector gives one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from exactsel.bounds.base import BoundOptions, stack_points
from exactsel.bounds.boxed import PreparedBoxed
from exactsel.problem.regression import Problem
from exactsel.problem.some_columns import on_some_columns
from exactsel.types import BoolArray, FloatArray

FIRST, PER_PLACE = 64, 8
"""Columns a working set begins with, and as many for each place."""

GROWTH, MOST = 0.5, 2000
"""A working set grows by this part of itself, at most, and has no more columns than these."""

PASSES = 12


def predictions_within_limits(
    problem: Problem, allowed: BoolArray, taken: Callable[[FloatArray], FloatArray], z: FloatArray, lower_bound: float,
    should_stop: Callable[[], bool],
) -> Iterator[FloatArray]:  # fmt: skip
    """Predictions (n,) of relaxations on more and more columns.

    Parameters
    ----------
    problem : Problem
        Over single columns; some have coefficient bounds.
    allowed : array (d,)
        The columns a model may use.
    taken : callable
        What columns take off formula (2) (d,) at the slopes of some predictions.
    z : array (n,)
        Predictions to begin at.
    lower_bound : float
        A lower bound of all models. More columns only lower that of a working set, so where that is no better it ends.
    should_stop : callable
        Called before each pass.
    """
    limits = problem.coefficient_bounds
    assert limits is not None
    limited = allowed & (np.isfinite(limits.lower) | np.isfinite(limits.upper))
    if not problem.k or not np.any(limited):
        return
    gains = np.where(allowed, taken(z), -1.0)
    chosen = np.zeros(problem.d, dtype=np.bool_)
    chosen[[*problem.force_in, int(np.argmax(limited))]] = True
    more = FIRST + PER_PLACE * problem.k
    for _ in range(PASSES):
        if should_stop():
            return
        outside = np.flatnonzero(~chosen & (gains > _least_that_counts(gains, chosen, problem.k)))
        if not outside.size or np.count_nonzero(chosen) >= MOST:
            return
        chosen[outside[np.argsort(-gains[outside], kind="stable")[:more]]] = True
        columns = np.flatnonzero(chosen)
        table = on_some_columns(problem, columns)  # one of its columns is limited
        relaxation = PreparedBoxed(table, BoundOptions(), None).tighten(table.root_state[None], [None], np.inf, np.inf)
        z = stack_points(relaxation.warm, columns.size)[0] @ table.AT
        yield z
        if not relaxation.answers.bound[0] > lower_bound:
            return
        gains = np.where(allowed, taken(z), -1.0)
        more = max(FIRST, int(GROWTH * columns.size))


def _least_that_counts(gains: FloatArray, chosen: BoolArray, k: int) -> float:
    """The smallest of the k largest gains in the working set; 0 where it has no more columns than that."""
    included = gains[chosen]
    return float(np.partition(included, included.size - k)[included.size - k]) if included.size > k else 0.0
