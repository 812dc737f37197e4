"""Column subset selection as an objective of Pareto optimisation: a flip costs O(m^2) from two Gram matrices.

With G = A'A, M = G G, S the support and K = G_SS^{-1}, f(S) = ||A - S S⁺ A||_F^2 = tr G - tr(K M_SS), and

* adding j: w = K G_Sj, s = G_jj - G_jS w, and f falls by (M_jj - 2 w'M_Sj + w'M_SS w) / s;
* removing i: with k_i the column of K, f rises by k_i'M_SS k_i / K_ii.

The lemmas of the paper (``tests/fixtures/pocss_lemmas.py``) say the same in terms of the data, at O(n d) a flip.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from exactsel._jit import njit
from exactsel.kernels.linalg import dot
from exactsel.types import FloatArray, IntArray
from exactsel_heuristics._gram_rows import GRAM_COLUMNS, GramRows, entry, keep_row, rows_on_demand, whole_matrix
from exactsel_heuristics._inverse_updates import DEPENDENT, border_inverse, copy_fit, drop_from_inverse, invert, product
from exactsel_heuristics._pareto_layout import ADDS, COLUMNS, COUNTS, DROPS, FIRST, SIZE, Members, Scratch

if TYPE_CHECKING:
    from exactsel.problem.column_subset import ColumnSubsetProblem


class ColumnSubsetObjective(NamedTuple):
    """The part of the matrix that the columns leave unexplained; ``total`` = tr G."""

    gram: GramRows
    squared: GramRows
    total: float

    @staticmethod
    def flipped_value(
        objective: ColumnSubsetObjective, source: Members, slot: int, scratch: Scratch, p: int, cutoff: float
    ) -> float:
        """See :mod:`exactsel_heuristics._pareto_objective`."""
        return float(_flipped_value(objective, source, slot, scratch, p))

    @staticmethod
    def settled_value(objective: ColumnSubsetObjective, members: Members, slot: int, scratch: Scratch, p: int) -> float:
        """See :mod:`exactsel_heuristics._pareto_objective`."""
        return float(_settled_value(objective, members, slot))

    @staticmethod
    def adopt(objective: ColumnSubsetObjective, members: Members, slot: int) -> None:
        """See :mod:`exactsel_heuristics._pareto_objective`."""
        _adopt(objective, members, slot)


def column_subset_objective(problem: ColumnSubsetProblem) -> ColumnSubsetObjective:
    """The objective of a column subset problem."""
    if problem.d <= GRAM_COLUMNS:
        gram, data = problem.objective.gram, problem.AT
        return ColumnSubsetObjective(
            whole_matrix(gram, data), whole_matrix(gram @ gram, data), float(np.trace(gram))
        )  # fmt: skip
    data = problem.objective.reduced.view()
    # M = A'(A A')A, so its entries are products of the columns of (A A')A with those of A.
    weighted = data @ (data.T @ data)
    data.flags.writeable = weighted.flags.writeable = False
    return ColumnSubsetObjective(rows_on_demand(data, data), rows_on_demand(weighted, data), problem.null_objective)


@njit
def _form(objective: ColumnSubsetObjective, columns: IntArray, m: int, v: FloatArray) -> float:
    """v'M_SS v."""
    total = 0.0
    for a in range(m):
        inner = 0.0
        for c in range(a):
            inner += entry(objective.squared, columns[a], columns[c]) * v[c]
        total += v[a] * (2.0 * inner + objective.squared.diagonal[columns[a]] * v[a])
    return total


@njit(inline=True)
def _addition(
    objective: ColumnSubsetObjective, columns: IntArray, m: int, K: FloatArray, j: int, h: FloatArray, w: FloatArray
) -> tuple[float, float]:
    """(pivot, gain) of column j when it joins columns[:m]; the pivot is 0 when it depends on them; w = K h."""
    for a in range(m):
        h[a] = entry(objective.gram, columns[a], j)
    product(K, m, h, w)
    diagonal = objective.gram.diagonal[j]
    pivot = diagonal - dot(h[:m], w[:m])
    if not pivot > DEPENDENT * diagonal:
        return 0.0, 0.0
    explained = objective.squared.diagonal[j] + _form(objective, columns, m, w)
    for a in range(m):
        explained -= 2.0 * w[a] * entry(objective.squared, columns[a], j)
    return pivot, explained / pivot


@njit(inline=True)
def _flipped_value(objective: ColumnSubsetObjective, source: Members, slot: int, scratch: Scratch, p: int) -> float:
    m, value = int(source.supports[slot, SIZE]), float(source.values[slot])
    columns, K = source.supports[slot, FIRST:], source.factors[slot]
    if m == 0:
        value = objective.total
    flips = scratch.flips[p]
    drops, adds = flips[COUNTS, DROPS], flips[COUNTS, ADDS]
    h, w = scratch.vectors[p, 0], scratch.vectors[p, 1]
    if drops + adds > 1:
        copy_fit(m, columns, K, flips[COLUMNS], scratch.factors[p])
        columns, K = flips[COLUMNS], scratch.factors[p]
    # From the last place on, so that filling a gap with the last column moves none that is still to be removed.
    for number in range(drops - 1, -1, -1):
        i = flips[DROPS, number]
        value += _form(objective, columns, m, K[i]) / K[i, i]
        if number + adds > 0:
            drop_from_inverse(K, m, i)
            m -= 1
            columns[i] = columns[m]
    for number in range(adds):
        j = flips[ADDS, number]
        pivot, gain = _addition(objective, columns, m, K, j, h, w)
        if pivot == 0.0:
            return np.inf
        value -= gain
        if number + 1 < adds:
            border_inverse(K, m, w, pivot)
            columns[m] = j
            m += 1
    return value


@njit
def _settled_value(objective: ColumnSubsetObjective, members: Members, slot: int) -> float:
    m = members.supports[slot, SIZE]
    columns, K = members.supports[slot, FIRST:], members.factors[slot]
    H = np.zeros((m, m))
    for a in range(m):
        for c in range(a):
            H[a, c] = entry(objective.gram, columns[a], columns[c])
        H[a, a] = objective.gram.diagonal[columns[a]]
    if not invert(H, m, K):
        return np.inf
    explained = 0.0
    for a in range(m):
        for c in range(m):
            explained += K[a, c] * entry(objective.squared, columns[a], columns[c])
    # Rounding must not report less than nothing.
    return max(float(objective.total - explained), 0.0)


@njit
def _adopt(objective: ColumnSubsetObjective, members: Members, slot: int) -> None:
    for a in range(members.supports[slot, SIZE]):
        keep_row(objective.gram, members.supports[slot, FIRST + a])
        keep_row(objective.squared, members.supports[slot, FIRST + a])
