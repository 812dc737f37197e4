"""Quadratic loss as an objective of Pareto optimisation: a flip costs O(m^2) from the Gram matrix.

With H = A'A + lam I, b = A'y and S the support, K = H_SS^{-1} and x = K b_S:

* adding j: w = K H_Sj, pivot s = H_jj - H_jS w, and the objective falls by (b_j - H_jS x)^2 / (2 s);
* removing i: the objective rises by x_i^2 / (2 K_ii).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from exactsel._jit import njit
from exactsel.kernels.linalg import dot
from exactsel.problem.design import SparseColumns
from exactsel.problem.mapped_columns import MappedColumns
from exactsel.types import FloatArray, IntArray
from exactsel_heuristics._gram_rows import (
    GRAM_COLUMNS,
    GramRows,
    entry,
    keep_row,
    rows_of_file,
    rows_of_sparse,
    rows_on_demand,
    whole_matrix,
)
from exactsel_heuristics._inverse_updates import DEPENDENT, border_inverse, copy_fit, drop_from_inverse, invert, product
from exactsel_heuristics._pareto_layout import ADDS, COLUMNS, COUNTS, DROPS, FIRST, SIZE, Members, Scratch

if TYPE_CHECKING:
    from exactsel.problem.objective import Objective
    from exactsel.problem.regression import Problem


class QuadraticObjective(NamedTuple):
    """Minimal P on a support; ``b`` (d,), ``constant`` = ||y||^2 / 2."""

    gram: GramRows
    b: FloatArray
    constant: float
    lam: float

    @staticmethod
    def flipped_value(
        objective: QuadraticObjective, source: Members, slot: int, scratch: Scratch, p: int, cutoff: float
    ) -> float:
        """See :mod:`exactsel_heuristics._pareto_objective`."""
        return float(_flipped_value(objective, source, slot, scratch, p))

    @staticmethod
    def settled_value(objective: QuadraticObjective, members: Members, slot: int, scratch: Scratch, p: int) -> float:
        """See :mod:`exactsel_heuristics._pareto_objective`."""
        return float(_settled_value(objective, members, slot))

    @staticmethod
    def adopt(objective: QuadraticObjective, members: Members, slot: int) -> None:
        """See :mod:`exactsel_heuristics._pareto_objective`."""
        _adopt(objective, members, slot)


def quadratic_objective(problem: Problem) -> QuadraticObjective:
    """The objective of a problem with quadratic loss."""
    return QuadraticObjective(*gram_rows(problem.objective), problem.lam)


def gram_rows(objective: Objective) -> tuple[GramRows, FloatArray, float]:
    """A'A, whole or row by row, A'y and ||y||^2 / 2 of quadratic loss."""
    AT = objective.AT
    if objective.d <= GRAM_COLUMNS and not objective.on_demand:
        data = objective.gram
        return whole_matrix(data.G, AT), data.b, data.constant
    if isinstance(AT, SparseColumns):
        gram = rows_of_sparse(AT)
    else:
        gram = rows_of_file(AT) if isinstance(AT, MappedColumns) else rows_on_demand(AT, AT)
    return gram, AT @ objective.y, 0.5 * float(objective.y @ objective.y)


@njit(inline=True)
def _addition(
    objective: QuadraticObjective,
    columns: IntArray,
    m: int,
    K: FloatArray,
    x: FloatArray,
    j: int,
    h: FloatArray,
    w: FloatArray,
) -> tuple[float, float]:
    """(pivot, coefficient) of column j when it joins columns[:m]; the pivot is 0 when it depends on them; w = K h."""
    for a in range(m):
        h[a] = entry(objective.gram, columns[a], j)
    product(K, m, h, w)
    diagonal = objective.gram.diagonal[j] + objective.lam
    pivot = diagonal - dot(h[:m], w[:m])
    if not pivot > DEPENDENT * diagonal:
        return 0.0, 0.0
    return pivot, (objective.b[j] - dot(h[:m], x[:m])) / pivot


@njit(inline=True)
def _flipped_value(objective: QuadraticObjective, source: Members, slot: int, scratch: Scratch, p: int) -> float:
    m, value = int(source.supports[slot, SIZE]), float(source.values[slot])
    columns, K = source.supports[slot, FIRST:], source.factors[slot]
    if m == 0:
        value = objective.constant
    flips = scratch.flips[p]
    drops, adds = flips[COUNTS, DROPS], flips[COUNTS, ADDS]
    h, w = scratch.vectors[p, 0], scratch.vectors[p, 1]
    if drops + adds > 1:
        copy_fit(m, columns, K, flips[COLUMNS], scratch.factors[p])
        columns, K = flips[COLUMNS], scratch.factors[p]
    x = K[K.shape[1]]
    # From the last place on, so that filling a gap with the last column moves none that is still to be removed.
    for number in range(drops - 1, -1, -1):
        i = flips[DROPS, number]
        value += 0.5 * x[i] * x[i] / K[i, i]
        if number + adds > 0:
            factor = x[i] / K[i, i]
            for a in range(m):
                x[a] -= factor * K[a, i]
            drop_from_inverse(K, m, i)
            m -= 1
            x[i], columns[i] = x[m], columns[m]
    for number in range(adds):
        j = flips[ADDS, number]
        pivot, coef = _addition(objective, columns, m, K, x, j, h, w)
        if pivot == 0.0:
            return np.inf
        value -= 0.5 * coef * coef * pivot
        if number + 1 < adds:
            for a in range(m):
                x[a] -= coef * w[a]
            border_inverse(K, m, w, pivot)
            x[m], columns[m] = coef, j
            m += 1
    return value


@njit
def _settled_value(objective: QuadraticObjective, members: Members, slot: int) -> float:
    m = members.supports[slot, SIZE]
    columns, K = members.supports[slot, FIRST:], members.factors[slot]
    x = K[K.shape[1]]
    H, b = np.zeros((m, m)), np.empty(m)
    for a in range(m):
        b[a] = objective.b[columns[a]]
        for c in range(a):
            H[a, c] = entry(objective.gram, columns[a], columns[c])
        H[a, a] = objective.gram.diagonal[columns[a]] + objective.lam
    if not invert(H, m, K):
        return np.inf
    product(K, m, b, x)
    return float(objective.constant - 0.5 * dot(b, x[:m]))


@njit
def _adopt(objective: QuadraticObjective, members: Members, slot: int) -> None:
    for a in range(members.supports[slot, SIZE]):
        keep_row(objective.gram, members.supports[slot, FIRST + a])
