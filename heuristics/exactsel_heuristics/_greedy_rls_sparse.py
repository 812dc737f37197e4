"""Greedy RLS on sparse columns, and on a table that stays in its file: no cache of the size of a table.

In a row that no column of the path has an entry in, all of the path's columns have the same value, the negative of
their mean (or zero, where nothing is taken off). So a column's row c_i = M a_i of the cache is, but for the rows that
the path or the column itself touches, one number, and so are the leverages. Leave-one-out errors of the remaining rows
are computed from the sums of their residuals and squared residuals. A candidate costs the rows that it and the path
touch, times the length of the path, in place of all rows. The formulas are those of
:mod:`exactsel_heuristics._greedy_rls_selection`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from exactsel._jit import njit
from exactsel.kernels.columns import END, FIRST, VALUES, Columns
from exactsel.problem.design import DesignColumns, SparseColumns
from exactsel.problem.mapped_columns import MappedColumns
from exactsel.problem.storing import columns_by_entries
from exactsel.types import BoolArray, FloatArray, IntArray
from exactsel_heuristics._greedy_rls_kernels import DEPENDENT, SMALLEST_SLACK, UNDECIDED
from exactsel_heuristics.base import never


class OnDemandSelection:
    """Greedy RLS in progress, on columns that are no table; attributes as for :class:`LeaveOneOutSelection`.

    ``directions`` (m, n) are the columns M a of the path, each with those before it in M, and ``projections`` (m, d)
    the multiples of them that are taken off each column.
    """

    def __init__(self, AT: DesignColumns, y: FloatArray, lam: float, labels: bool) -> None:
        d, n = AT.shape
        self._AT, self._y, self._lam, self._labels = AT, y, float(lam), labels
        self._least = DEPENDENT * (self._lam + AT.squares())
        self._pivot, self._correlation = self._lam + AT.squares(), AT @ y
        self._usable = self._pivot > self._least
        self._directions, self._projections = np.empty((0, n)), np.empty((0, d))
        self._pivots = np.empty(0)
        self.residual, self.slack = y.copy(), np.ones(n)
        self.path: list[int] = []
        self.errors: list[float] = []
        self.evaluations = 0

    def _score(self, squared: FloatArray, wrong: FloatArray, should_stop: Callable[[], bool]) -> None:
        """Score every addition: the sum of squared leave-one-out errors, inf where unknown, and of wrong signs."""
        raise NotImplementedError

    def _note_path(self, best: int, on_path: FloatArray) -> None:
        """Take down what a column that joins means for the rows."""
        raise NotImplementedError

    def extend(self, k: int, should_stop: Callable[[], bool] = never) -> None:
        """Add columns until there are k, none can be added, or ``should_stop`` says so."""
        d = len(self._AT)
        while len(self.path) < min(k, d) and not should_stop():
            squared, wrong = np.full(d, np.inf), np.full(d, np.inf)
            self._score(squared, wrong, should_stop)
            self.evaluations += d - len(self.path)
            best = self._best(squared, wrong)
            while math.isfinite(squared[best]) and not self._add(best):
                squared[best] = np.inf
                best = self._best(squared, wrong)
            if not math.isfinite(squared[best]):
                break

    def _best(self, squared: FloatArray, wrong: FloatArray) -> int:
        if not self._labels:
            return int(np.argmin(squared))
        counts = np.where(np.isfinite(squared), wrong, np.inf)
        return int(np.argmin(np.where(counts == counts.min(), squared, np.inf)))

    def _add(self, best: int) -> bool:
        """Add a column; False, and nothing happens, when a leave-one-out error is lost to rounding after all."""
        column, on_path = self._AT[best], self._projections[:, best]
        c = column - on_path @ self._directions
        pivot = float(self._pivot[best])
        slack = self.slack - c**2 / pivot
        if not slack.min() > SMALLEST_SLACK:
            return False
        # Products of all columns with M a are those with a, less what the path takes of them.
        along = self._AT @ column - (on_path * self._pivots) @ self._projections
        projection = along / pivot
        step = float(self._correlation[best]) / pivot
        self.slack, self.residual = slack, self.residual - step * c
        self._pivot -= projection**2 * pivot
        self._correlation -= projection * float(self._correlation[best])
        self._note_path(best, on_path)
        self._directions = np.vstack([self._directions, c])
        self._projections = np.vstack([self._projections, projection])
        self._pivots = np.append(self._pivots, pivot)
        self._usable[best] = False
        self._usable &= self._pivot > self._least
        self.path.append(best)
        errors = self.residual / self.slack
        wrong = float(np.sum(self._y * (self._y - errors) <= UNDECIDED))
        self.errors.append(wrong if self._labels else float(np.sum(errors**2)))
        return True


class SparseLeaveOneOutSelection(OnDemandSelection):
    """On sparse columns; ``elsewhere`` (m,) are the directions in untouched rows."""

    def __init__(self, AT: SparseColumns, y: FloatArray, lam: float, labels: bool) -> None:
        super().__init__(AT, y, lam, labels)
        self._sparse, self._columns = AT, columns_by_entries(AT)
        self._elsewhere, self._touched = np.empty(0), np.zeros(y.size, dtype=np.bool_)

    def _score(self, squared: FloatArray, wrong: FloatArray, should_stop: Callable[[], bool]) -> None:
        score_sparse(
            self._columns, self._y, self._labels, self._usable, self._pivot, self._correlation, self._projections,
            self._directions, self._elsewhere, np.flatnonzero(self._touched), self._touched, self.residual,
            self.slack, squared, wrong,
        )  # fmt: skip

    def _note_path(self, best: int, on_path: FloatArray) -> None:
        AT = self._sparse
        self._touched[AT.rows[AT.starts[best] : AT.starts[best + 1]]] = True
        mean = 0.0 if AT.means is None else float(AT.means[best])
        self._elsewhere = np.append(self._elsewhere, -mean - float(on_path @ self._elsewhere))


@njit
def score_sparse(
    columns: Columns, y: FloatArray, labels: bool, usable: BoolArray, pivot: FloatArray, correlation: FloatArray,
    projections: FloatArray, directions: FloatArray, elsewhere: FloatArray, rows: IntArray, touched: BoolArray,
    residual: FloatArray, slack: FloatArray, squared: FloatArray, wrong: FloatArray,
) -> None:  # fmt: skip
    """Score every addition: the sum of squared leave-one-out errors, inf where one is unknown, and of wrong signs.

    ``rows`` are those that the path touches, ``touched`` (n,) says which these are.
    """
    n, m = y.size, elsewhere.size
    own, others = np.zeros(n), n - rows.size
    whole, whole_squared, level = _untouched(touched, residual, slack)
    for j in range(usable.size):
        if not usable[j]:
            continue
        first, at = columns.where[j, FIRST], columns.where[j, VALUES] + 1
        base, count = columns.values[columns.where[j, VALUES]], columns.where[j, END] - first
        for t in range(count):
            own[columns.rows[first + t]] = columns.values[at + t]
        share, slope = 1.0 / pivot[j], correlation[j] / pivot[j]
        total, miss, known = 0.0, 0.0, True
        for s in range(rows.size):
            i = rows[s]
            value = base + own[i]
            for p in range(m):
                value -= projections[p, j] * directions[p, i]
            left = slack[i] - share * value * value
            known = known and left > SMALLEST_SLACK
            error = (residual[i] - slope * value) / (left if left > SMALLEST_SLACK else 1.0)
            total += error * error
            miss += y[i] * (y[i] - error) <= UNDECIDED
        apart = base
        for p in range(m):
            apart -= projections[p, j] * elsewhere[p]
        few, few_squared, number = 0.0, 0.0, 0
        for t in range(count):
            i = columns.rows[first + t]
            own[i] = 0.0
            if touched[i]:
                continue
            value = apart + columns.values[at + t]
            left = slack[i] - share * value * value
            known = known and left > SMALLEST_SLACK
            error = (residual[i] - slope * value) / (left if left > SMALLEST_SLACK else 1.0)
            total += error * error
            miss += y[i] * (y[i] - error) <= UNDECIDED
            few += residual[i]
            few_squared += residual[i] * residual[i]
            number += 1
        if others > number:
            left = level - share * apart * apart
            known = known and left > SMALLEST_SLACK
            shift = slope * apart
            rest = (whole_squared - few_squared) - 2.0 * shift * (whole - few) + (others - number) * shift * shift
            total += max(rest, 0.0) / (left * left if left > SMALLEST_SLACK else 1.0)
            if labels:
                some = columns.rows[first : first + count]
                miss += _wrong_elsewhere(y, touched, some, residual, shift, left if left > SMALLEST_SLACK else 1.0)
        squared[j], wrong[j] = total if known else np.inf, miss


@njit
def _untouched(touched: BoolArray, residual: FloatArray, slack: FloatArray) -> tuple[float, float, float]:
    """Over the rows that the path does not touch: the sums of residuals and of their squares, and the slack of each."""
    whole, squared, level = 0.0, 0.0, 1.0
    for i in range(touched.size):
        if not touched[i]:
            whole += residual[i]
            squared += residual[i] * residual[i]
            level = slack[i]
    return whole, squared, level


@njit
def _wrong_elsewhere(
    y: FloatArray, touched: BoolArray, some: IntArray, residual: FloatArray, shift: float, left: float
) -> float:
    """Wrong signs in the rows that neither the path nor the column with entries in ``some`` rows touches."""
    wrong = 0.0
    for i in range(y.size):
        if not touched[i]:
            wrong += y[i] * (y[i] - (residual[i] - shift) / left) <= UNDECIDED
    for t in range(some.size):
        if not touched[some[t]]:
            wrong -= y[some[t]] * (y[some[t]] - (residual[some[t]] - shift) / left) <= UNDECIDED
    return wrong


class MappedLeaveOneOutSelection(OnDemandSelection):
    """Greedy RLS in progress on a table that stays in its file: no cache of its size, one pass over it for each step.

    The rows M a_i of the cache are made again, block by block, from the columns and the path. Attributes as for
    :class:`SparseLeaveOneOutSelection`.
    """

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
