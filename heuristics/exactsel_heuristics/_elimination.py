"""Quadratic loss: what adding or exchanging one column changes, for all columns at once.

Write H = A'A + lam I, b = A'y, and let S be the columns already eliminated, x the minimiser on S. Gaussian
elimination of S leaves for every other column j its pivot s_j = H_jj - H_jS H_SS^{-1} H_Sj and its correlation with
the residual c_j = b_j - H_jS x; adding j lowers the objective by exactly c_j^2 / (2 s_j) (forward regression; see
Miller, *Subset Selection in Regression*, 2002).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from exactsel.problem.design import squared_lengths
from exactsel.types import FloatArray

if TYPE_CHECKING:
    from exactsel.problem.regression import Problem

DEPENDENT = 1e-12
"""A column counts as dependent when no more than this share of its squared norm is left after elimination."""

GRAM_COLUMNS = 4000
"""With more columns than this the d x d Gram matrix is not formed; its rows are computed as they are needed."""


class Elimination:
    """A partial Cholesky factorisation of H that grows by one column at a time.

    Each column costs O(d m) with the Gram matrix available, where m is the number of columns so far.

    Parameters
    ----------
    problem : Problem
        With quadratic loss.
    columns : iterable of int
        Columns to eliminate at once; those that depend on earlier ones are skipped.

    Attributes
    ----------
    columns : list of int
        The columns eliminated, in order.
    """

    def __init__(self, problem: Problem, columns: Iterable[int] = ()) -> None:
        self._whole = problem.d <= GRAM_COLUMNS and not problem.objective.on_demand
        # Not the problem, which may keep this.
        self._lam, self._AT, self._G = problem.lam, problem.AT, problem.gram.G if self._whole else None
        squares = squared_lengths(problem.AT) if self._G is None else np.diagonal(self._G)
        self._diagonal: FloatArray = squares + problem.lam
        self._pivot: FloatArray = self._diagonal.copy()
        self._correlation: FloatArray = problem.gram.b.copy() if self._whole else problem.AT @ problem.y
        self._rows: FloatArray = np.empty((min(8, problem.d), problem.d))
        self._projections: list[float] = []
        self.columns: list[int] = []
        for j in columns:
            self.add(j)

    def add(self, j: int) -> bool:
        """Eliminate column j; False, and nothing happens, when it depends on the columns before it."""
        if not self._pivot[j] > DEPENDENT * self._diagonal[j]:
            return False
        m, root = len(self.columns), float(np.sqrt(self._pivot[j]))
        row = (self._row_of_h(j) - self._rows[:m, j] @ self._rows[:m]) / root
        projection = float(self._correlation[j]) / root
        self._pivot -= row**2
        self._correlation -= projection * row
        self.columns.append(j)
        # Exact arithmetic leaves zeros here; rounding must not bring an eliminated column back.
        self._pivot[self.columns] = 0.0
        self._correlation[self.columns] = 0.0
        self._projections.append(projection)
        if m == len(self._rows):
            self._rows = np.vstack([self._rows, np.empty_like(self._rows)])
        self._rows[m] = row
        return True

    def addition_gains(self) -> FloatArray:
        """By how much adding each column lowers the objective, (d,); 0 for dependent and eliminated columns."""
        usable = self._pivot > DEPENDENT * self._diagonal
        gains = np.zeros(self._diagonal.size)
        np.divide(self._correlation**2, 2.0 * self._pivot, out=gains, where=usable)
        return gains

    def exchange_gains(self) -> FloatArray:
        """By how much exchanging a column lowers the objective, in O(d m^2).

        With K = H_SS^{-1} and w = K H_S, taking column l out of S changes the pivot of j to s_j + w_lj^2 / K_ll and
        its correlation to c_j + w_lj x_l / K_ll, and costs x_l^2 / (2 K_ll).

        Returns
        -------
        array (m, d)
            Entry (i, j): column j in for ``columns[i]``; negative where the objective rises, -inf where j is in S
            or depends on what stays.
        """
        m = len(self.columns)
        rows = self._rows[:m]
        inverse_root = np.linalg.inv(rows[:, self.columns])
        weights = inverse_root @ rows
        released = 1.0 / np.einsum("ij,ij->i", inverse_root, inverse_root)[:, None]
        coef = (inverse_root @ np.array(self._projections))[:, None]
        pivot = self._pivot + weights**2 * released
        correlation = self._correlation + weights * (coef * released)
        usable = pivot > DEPENDENT * self._diagonal
        usable[:, self.columns] = False
        gains: FloatArray = np.full(pivot.shape, -np.inf)
        np.divide(correlation**2, 2.0 * pivot, out=gains, where=usable)
        gains -= 0.5 * coef**2 * released
        return gains

    def _row_of_h(self, j: int) -> FloatArray:
        row: FloatArray = self._AT @ self._AT[j] if self._G is None else self._G[j].copy()
        row[j] += self._lam
        return row
