"""Problems with limits on coefficients as objectives of Pareto optimisation: every offspring is fitted in its box."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from exactsel._jit import njit
from exactsel.kernels.box import gram_box_refit, newton_box_refit
from exactsel.kernels.columns import Columns
from exactsel.types import FloatArray, IntArray
from exactsel_heuristics._gram_rows import GramRows, entry, keep_row
from exactsel_heuristics._pareto_layout import ADDS, COLUMNS, COUNTS, DROPS, FIRST, SIZE, Members, Scratch
from exactsel_heuristics._pareto_quadratic import gram_rows

if TYPE_CHECKING:
    from exactsel.losses.adjusted import RowLoss
    from exactsel.problem.regression import Problem


class BoxedQuadraticObjective(NamedTuple):
    """Minimal P of quadratic loss in the box (d,), (d,) on a support, from the Gram matrix G."""

    G: FloatArray
    b: FloatArray
    constant: float
    lam: float
    lower: FloatArray
    upper: FloatArray

    @staticmethod
    def flipped_value(
        objective: BoxedQuadraticObjective, source: Members, slot: int, scratch: Scratch, p: int, cutoff: float
    ) -> float:
        """See :mod:`exactsel_heuristics._pareto_objective`."""
        return float(_gram_value(objective, _offspring(source, slot, scratch, p)))

    @staticmethod
    def settled_value(
        objective: BoxedQuadraticObjective, members: Members, slot: int, scratch: Scratch, p: int
    ) -> float:
        """See :mod:`exactsel_heuristics._pareto_objective`."""
        return float(_gram_value(objective, members.supports[slot, FIRST : FIRST + members.supports[slot, SIZE]]))

    @staticmethod
    def adopt(objective: BoxedQuadraticObjective, members: Members, slot: int) -> None:
        """Nothing to prepare."""


class BoxedRowsObjective(NamedTuple):
    """The same from entries of the Gram matrix, which is made row by row, or not at all."""

    gram: GramRows
    b: FloatArray
    constant: float
    lam: float
    lower: FloatArray
    upper: FloatArray

    @staticmethod
    def flipped_value(
        objective: BoxedRowsObjective, source: Members, slot: int, scratch: Scratch, p: int, cutoff: float
    ) -> float:
        """See :mod:`exactsel_heuristics._pareto_objective`."""
        return float(_rows_value(objective, _offspring(source, slot, scratch, p)))

    @staticmethod
    def settled_value(objective: BoxedRowsObjective, members: Members, slot: int, scratch: Scratch, p: int) -> float:
        """See :mod:`exactsel_heuristics._pareto_objective`."""
        return float(_rows_value(objective, members.supports[slot, FIRST : FIRST + members.supports[slot, SIZE]]))

    @staticmethod
    def adopt(objective: BoxedRowsObjective, members: Members, slot: int) -> None:
        """Keep the rows of the new member's columns."""
        _keep_rows(objective, members, slot)


class BoxedLossObjective(NamedTuple):
    """Minimal P in the box (d,), (d,) on a support, from the data."""

    loss: RowLoss
    AT: Columns
    y: FloatArray
    lam: float
    lower: FloatArray
    upper: FloatArray

    @staticmethod
    def flipped_value(
        objective: BoxedLossObjective, source: Members, slot: int, scratch: Scratch, p: int, cutoff: float
    ) -> float:
        """See :mod:`exactsel_heuristics._pareto_objective`."""
        return float(_loss_value(objective, _offspring(source, slot, scratch, p)))

    @staticmethod
    def settled_value(objective: BoxedLossObjective, members: Members, slot: int, scratch: Scratch, p: int) -> float:
        """See :mod:`exactsel_heuristics._pareto_objective`."""
        return float(_loss_value(objective, members.supports[slot, FIRST : FIRST + members.supports[slot, SIZE]]))

    @staticmethod
    def adopt(objective: BoxedLossObjective, members: Members, slot: int) -> None:
        """Nothing to prepare."""


def boxed_quadratic_objective(problem: Problem) -> BoxedQuadraticObjective:
    """The objective of a problem with quadratic loss whose Gram matrix is made."""
    gram = problem.objective.gram
    return BoxedQuadraticObjective(gram.G, gram.b, gram.constant, problem.lam, *_sides(problem))


def boxed_rows_objective(problem: Problem) -> BoxedRowsObjective:
    """The objective of a problem with quadratic loss whose Gram matrix is not made."""
    return BoxedRowsObjective(*gram_rows(problem.objective), problem.lam, *_sides(problem))


def boxed_loss_objective(problem: Problem) -> BoxedLossObjective:
    """The objective of a problem with any loss."""
    objective = problem.objective
    return BoxedLossObjective(objective.row_loss, objective.raw.AT, objective.y, objective.lam, *_sides(problem))


def _sides(problem: Problem) -> tuple[FloatArray, FloatArray]:
    bounds = problem.coefficient_bounds
    assert bounds is not None
    return np.array(bounds.lower), np.array(bounds.upper)


@njit
def _offspring(source: Members, slot: int, scratch: Scratch, p: int) -> IntArray:
    """The columns of an offspring: those of its parent but the dropped ones, and the added ones."""
    flips, parent = scratch.flips[p], source.supports[slot]
    columns, m = flips[COLUMNS], 0
    for place in range(parent[SIZE]):
        dropped = False
        for number in range(flips[COUNTS, DROPS]):
            dropped = dropped or flips[DROPS, number] == place
        if not dropped:
            columns[m] = parent[FIRST + place]
            m += 1
    for number in range(flips[COUNTS, ADDS]):
        columns[m] = flips[ADDS, number]
        m += 1
    used: IntArray = columns[:m]
    return used


@njit
def _gram_value(objective: BoxedQuadraticObjective, columns: IntArray) -> float:
    value = gram_box_refit(
        objective.G, objective.b, objective.constant, objective.lam, objective.lower, objective.upper, columns
    )
    return value if np.isfinite(value) else np.inf


@njit
def _rows_value(objective: BoxedRowsObjective, columns: IntArray) -> float:
    m = columns.size
    G, b, lower, upper = np.empty((m, m)), np.empty(m), np.empty(m), np.empty(m)
    for i in range(m):
        j = columns[i]
        b[i], lower[i], upper[i] = objective.b[j], objective.lower[j], objective.upper[j]
        G[i, i] = objective.gram.diagonal[j]
        for c in range(i):
            G[i, c] = G[c, i] = entry(objective.gram, columns[c], j)
    value = gram_box_refit(G, b, objective.constant, objective.lam, lower, upper, np.arange(m))
    return value if np.isfinite(value) else np.inf


@njit
def _keep_rows(objective: BoxedRowsObjective, members: Members, slot: int) -> None:
    for a in range(members.supports[slot, SIZE]):
        keep_row(objective.gram, members.supports[slot, FIRST + a])


@njit
def _loss_value(objective: BoxedLossObjective, columns: IntArray) -> float:
    lower, upper, x = objective.lower, objective.upper, np.zeros(columns.size)
    value = newton_box_refit(objective.loss, objective.AT, objective.y, objective.lam, lower, upper, columns, x)
    return value if np.isfinite(value) else np.inf
