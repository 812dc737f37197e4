"""Greedy RLS on a table that stays in its file: no cache of its size, one pass over the file for each step.

The rows M a_i of the cache are made again, block by block, from the columns and the path; the formulas are those of
:mod:`exactsel_heuristics._greedy_rls_selection`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from exactsel.problem.mapped_columns import MappedColumns
from exactsel.types import FloatArray
from exactsel_heuristics._greedy_rls_kernels import SMALLEST_SLACK, UNDECIDED
from exactsel_heuristics._greedy_rls_sparse import OnDemandSelection


class MappedLeaveOneOutSelection(OnDemandSelection):
    """Greedy RLS in progress; attributes as for :class:`SparseLeaveOneOutSelection`."""

    def __init__(self, AT: MappedColumns, y: FloatArray, lam: float, labels: bool) -> None:
        super().__init__(AT, y, lam, labels)
        self._table = AT

    def _score(self, squared: FloatArray, wrong: FloatArray, should_stop: Callable[[], bool]) -> None:
        usable = self._usable
        share, slope = np.where(usable, self._pivot, 1.0), np.where(usable, self._correlation, 0.0)
        share, slope = 1.0 / share, slope / share
        total, miss, known = np.zeros(usable.size), np.zeros(usable.size), usable.copy()
        for rows, columns, block in self._table.blocks():
            if should_stop():
                return
            if self._table.means is not None:
                block -= self._table.means[columns]
            block -= self._directions[:, rows].T @ self._projections[:, columns]
            left = self.slack[rows, None] - share[columns] * block * block
            known[columns] &= np.all(left > SMALLEST_SLACK, axis=0)
            errors = (self.residual[rows, None] - slope[columns] * block) / np.maximum(left, SMALLEST_SLACK)
            total[columns] += np.einsum("ij,ij->j", errors, errors)
            if self._labels:
                target = self._y[rows, None]
                miss[columns] += np.count_nonzero(target * (target - errors) <= UNDECIDED, axis=0)
        squared[known], wrong[:] = total[known], miss

    def _note_path(self, best: int, on_path: FloatArray) -> None:
        """Nothing: every row is evaluated."""
