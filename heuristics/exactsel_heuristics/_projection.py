"""Column subset selection: what adding or taking out one column changes, for all columns at once.

Let P project on the span of the chosen columns S, E = (I - P)A be what is left of the columns of A, and B a target
matrix, which is A itself or a summary of it. Adding column j lowers ||(I - P)B||_F² by exactly ||B'E_j||² / ||E_j||²
(Farahat, Ghodsi and Kamel 2011, theorem 2 with B = A). Every addition and removal changes P by q q' for one unit
vector q, hence everything kept here by a matrix of rank one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np

from exactsel.types import FloatArray
from exactsel_heuristics.base import never

if TYPE_CHECKING:
    from exactsel.problem.column_subset import ColumnSubsetProblem

DEPENDENT = 1e-12
"""A column counts as dependent when no more than this share of its squared length is left outside the span."""

IMPROVEMENT = 1e-12
"""Times ||A||_F²: a decrease of the objective that is no more than this counts as rounding."""


class Projection:
    """The span of some chosen columns, and what it leaves of all columns and of a target.

    Memory is O(d (m + t)), and so is the time of each operation.

    Parameters
    ----------
    AT : array (d, m)
        The columns of A, as rows; the data may be rotated (``Reconstruction.reduced``).
    target : array (t, m)
        The columns of B, as rows, rotated the same way.
    columns : iterable of int
        Columns to choose at once; those that depend on earlier ones are skipped.
    should_stop : callable
        Called before each of them; once it returns true the rest is skipped.

    Attributes
    ----------
    columns : list of int
        The chosen columns, in the order in which they came.
    """

    def __init__(
        self,
        AT: FloatArray,
        target: FloatArray,
        columns: Iterable[int] = (),
        should_stop: Callable[[], bool] = never,
    ) -> None:
        self._AT, self._target = AT, target
        self._own = squared_lengths(AT)
        self._rest: FloatArray = AT.copy()
        self._unexplained: FloatArray = target.copy()
        self._cross: FloatArray = AT @ target.T
        self._inverse: FloatArray = np.empty((0, AT.shape[1]))
        self.columns: list[int] = []
        for j in columns:
            if should_stop():
                break
            self.add(j)

    @property
    def value(self) -> float:
        """||(I - P)B||_F², what the chosen columns leave unexplained of the target."""
        return float(np.einsum("ij,ij->", self._unexplained, self._unexplained))

    def gains(self) -> FloatArray:
        """By how much adding each column lowers :attr:`value`, (d,); 0 for dependent and chosen columns."""
        squares = squared_lengths(self._rest)
        gains = np.zeros(squares.size)
        np.divide(squared_lengths(self._cross), squares, out=gains, where=squares > DEPENDENT * self._own)
        gains[self.columns] = 0.0
        return gains

    def add(self, j: int) -> bool:
        """Choose column j; False, and nothing happens, when it depends on the columns chosen before it."""
        rest = self._rest[j]
        if j in self.columns or not rest @ rest > DEPENDENT * self._own[j]:
            return False
        # A short remainder carries rounding from within the span: clean it once more.
        rest = rest - (self._inverse @ rest) @ self._AT[self.columns]
        length = float(np.sqrt(rest @ rest))
        q = rest / length
        self._inverse = np.vstack([self._inverse - np.outer(self._inverse @ self._AT[j], q / length), q / length])
        self._change(q, -1.0)
        self.columns.append(j)
        return True

    def remove(self, position: int) -> int:
        """Take out the column at this position of :attr:`columns`, and return it (Feng, Qian and Tang, lemmas 3, 6)."""
        row = self._inverse[position]
        q = row / np.sqrt(row @ row)
        self._inverse = np.delete(self._inverse - np.outer(self._inverse @ q, q), position, axis=0)
        self._change(q, 1.0)
        return self.columns.pop(position)

    def _change(self, q: FloatArray, sign: float) -> None:
        """Move the direction q out of everything that is left (-1), or back into it (+1)."""
        along, target_along = sign * (self._AT @ q), self._target @ q
        self._rest += np.outer(along, q)
        self._cross += np.outer(along, target_along)
        self._unexplained += np.outer(sign * target_along, q)


def whole_matrix(
    problem: ColumnSubsetProblem, columns: Iterable[int] = (), should_stop: Callable[[], bool] = never
) -> Projection:
    """The projection whose target is A itself, so that its value is the objective."""
    AT = problem.objective.reduced
    if AT.shape[1] == problem.d:
        return Projection(AT, AT, columns, should_stop)
    # Gains and value see the target only through B B' = A A', for which a square root with n columns will do.
    return Projection(AT, np.asarray(np.linalg.qr(AT, mode="r")), columns, should_stop)


def squared_lengths(rows: FloatArray) -> FloatArray:
    """The squared length of each row."""
    lengths: FloatArray = np.einsum("ij,ij->i", rows, rows)
    return lengths


def smallest_decrease(problem: ColumnSubsetProblem) -> float:
    """The least decrease of the objective that counts as an improvement."""
    return IMPROVEMENT * problem.null_objective
