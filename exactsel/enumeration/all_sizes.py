"""All sizes at once: the sets of columns whose best models come below a level of their size, by fits of the loss.

One tree serves all sizes (:mod:`exactsel.kernels.leave_out_tree`). It needs no minorant of the loss, which is loose
where the best models are far from the fit on all columns, and none where classes are separated or nearly so; but every
region is a fit, which takes all rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.linalg import LinAlgError

from exactsel.kernels.leave_out import Fitting
from exactsel.kernels.leave_out_tree import Levels, list_all_sizes
from exactsel.kernels.listing import COMPLETE
from exactsel.problem.capabilities import QUADRATIC_LOSS
from exactsel.problem.regression import Problem
from exactsel.problem.rows import BLOCK, Rows, Unusable, known_fit
from exactsel.types import BoolArray, FloatArray, IntArray

MOST_COLUMNS = 120
"""With more columns than this the matrices of a way down take too much memory (14 MB with so many), ..."""

MOST_ROWS = 2 * BLOCK
"""... and with more rows a fit too much time."""

WORK = 2e11
"""Multiplications after which it is given up (some ten seconds)."""

MOST_SETS = 20_000


class SizesListed(NamedTuple):
    """The sets of all sizes that come below their levels."""

    sets: IntArray
    """(count, d) columns, padded with -1."""
    values: FloatArray
    """(count,) about what the best model on a set costs."""
    bounds: FloatArray
    """(count,) no model on a set is below its bound."""
    levels: FloatArray
    """(d + 1,) those to which the list is complete."""
    nodes: int
    """Regions that were fitted."""


def serves(problem: Problem) -> bool:
    """Whether sets of columns are fitted often enough in little time."""
    few = problem.d <= MOST_COLUMNS and problem.n <= MOST_ROWS
    return few and not problem.has(QUADRATIC_LOSS) and problem.lam > 0.0


def fitting_of(problem: Problem, rows: Rows) -> Fitting:
    """A problem as kernels fit it."""
    blocks = [rows.block(first) for first in range(0, problem.n, BLOCK)]
    weights = np.ones(problem.n) if rows.weights is None else rows.weights
    return Fitting(
        rows.loss, problem.row_loss, np.ascontiguousarray(np.hstack(blocks)), rows.ridge, weights, problem.y,
        problem.raw.AT, problem.raw.norms, problem.lam,
    )  # fmt: skip


def sizes_listed(
    problem: Problem, levels: FloatArray, top: int, stop: BoolArray, work: float = WORK, cap: int = MOST_SETS
) -> SizesListed | None:
    """Every set of columns whose best model is below the level of its size; None where it is given up or stopped.

    Parameters
    ----------
    problem : Problem
        Any loss but the quadratic one, with a ridge however small; its k is ignored.
    levels : array (d + 1,)
        For each size; -inf where no set of it is to be listed.
    top : int
        Once so many models are met below the levels, these come down by the same amount for all sizes, to where there
        are still as many; 0 where they are to stay.
    stop : array (1,)
        A flag.
    work : float
        Multiplications that may be done.
    cap : int
        Sets that may be listed.
    """
    rows = Rows(problem.objective)
    data = fitting_of(problem, rows)
    used = Levels(levels.copy(), np.maximum.accumulate(levels[::-1])[::-1].copy(), np.full(top, np.inf), np.zeros(1))
    sets, values, bounds = np.empty((cap, problem.d), dtype=np.int64), np.empty(cap), np.empty(cap)
    try:
        start = known_fit(problem.objective, rows)[0]
    except (Unusable, LinAlgError):
        return None
    ended, count, nodes, _ = list_all_sizes(data, problem.root_state, start, used, work, stop, sets, values, bounds)
    if ended != COMPLETE:
        return None
    about = np.where(np.isfinite(values[:count]), values[:count], np.inf)
    return SizesListed(sets[:count], about, bounds[:count], used.own, nodes)
