"""Compiled inner loop of greedy RLS: one pass over the cache matrix per step.

With H the hat matrix of the ridge fit on the columns S chosen so far and M = I - H, the cache holds C = M A, one
column of A to a row of the array. Adding column i, whose pivot is s_i = lam + a_i'M a_i, changes M to
M - c_i c_i'/s_i, so residual, leverages and every other column of C change by a multiple of c_i.
"""

from __future__ import annotations

import numpy as np

from exactsel._jit import njit, prange
from exactsel.kernels.linalg import dot
from exactsel.types import BoolArray, FloatArray

DEPENDENT = 1e-12
"""A column counts as dependent when its pivot is no more than this share of lam plus its squared norm."""

SMALLEST_SLACK = 1e-10
"""Below this, 1 - leverage has lost too many digits to divide by: the row's leave-one-out error is unknown."""

UNDECIDED = 1e-10
"""A prediction this close to zero takes neither class, so that rounding cannot decide its sign."""


@njit(sums=True)
def _update_and_score(
    row: FloatArray, projection: float, c: FloatArray, share: float, slope: float,
    residual: FloatArray, slack: FloatArray,
) -> float:  # fmt: skip
    """Take projection * c off one row of the cache; return the sum of squared leave-one-out errors with that column.

    ``share`` is 1/pivot and ``slope`` correlation/pivot. The sum is inf where a row's error is unknown.
    """
    total, unknown = 0.0, 0
    for i in range(row.size):
        value = row[i] - projection * c[i]
        row[i] = value
        left = slack[i] - share * value * value
        known = left > SMALLEST_SLACK
        error = (residual[i] - slope * value) / (left if known else 1.0)
        total += error * error
        unknown += not known
    return total if unknown == 0 else np.inf


@njit(sums=True)
def _wrong_signs(
    c: FloatArray, share: float, slope: float, residual: FloatArray, slack: FloatArray, y: FloatArray
) -> float:
    """Number of rows whose leave-one-out prediction y - error has the wrong sign, for labels y = -1, +1."""
    wrong = 0
    for i in range(c.size):
        left = slack[i] - share * c[i] * c[i]
        error = (residual[i] - slope * c[i]) / (left if left > SMALLEST_SLACK else 1.0)
        wrong += y[i] * (y[i] - error) <= UNDECIDED
    return float(wrong)


@njit(parallel=True)
def score_additions(
    AT: FloatArray, y: FloatArray, lam: float, labels: bool, added: int, a: FloatArray, c: FloatArray,
    usable: BoolArray, residual: FloatArray, slack: FloatArray, C: FloatArray, pivot: FloatArray,
    correlation: FloatArray, least_pivot: FloatArray, projection: FloatArray, squared: FloatArray, wrong: FloatArray,
) -> None:  # fmt: skip
    """Bring the cache up to date with the column ``added`` last, and score adding each further one.

    Both happen column by column, while the column is in the processor's cache: the data A are read for one column
    only, the cache matrix is read and written once. Columns are independent of each other, so the numbers do not
    depend on the number of threads.

    Parameters
    ----------
    AT : array (d, n)
        The data, transposed.
    y : array (n,)
    lam : float
    labels : bool
        Whether y holds labels and wrong signs are counted.
    added : int
        The column added last; -1 at the start, when C, pivot, correlation and least_pivot are filled in.
    a : array (n,)
        Column ``added`` of A, or c where lam = 0: the projection M then makes no difference to the product with a row
        of C, but that of two residuals (modified instead of classical Gram-Schmidt) has the smaller rounding error.
    c : array (n,)
        A copy of row ``added`` of C; zeros at the start.
    usable : array (d,) of bool
        False for the columns chosen; set to False for those found dependent.
    residual, slack : array (n,)
        M y and the diagonal of M, with ``added`` in.
    C : array (d, n)
        The cache matrix, without ``added`` on entry and with it on return.
    pivot, correlation, least_pivot : array (d,)
        s_i, a_i'M y, both updated, and the pivot at which column i counts as dependent.
    projection : array (d,)
        Output: the multiple of c taken off each row of C.
    squared, wrong : array (d,)
        Output: sum of squared leave-one-out errors, inf where it is unknown, and the number of wrong signs.
    """
    for i in prange(AT.shape[0]):
        row = C[i]
        projection[i] = 0.0
        squared[i], wrong[i] = np.inf, np.inf
        if added < 0:
            row[:] = AT[i]
            pivot[i] = lam + dot(row, row)
            correlation[i] = dot(row, y)
            least_pivot[i] = DEPENDENT * pivot[i]
        elif usable[i]:
            projection[i] = dot(a, row) / pivot[added]
            pivot[i] -= projection[i] * projection[i] * pivot[added]
            correlation[i] -= projection[i] * correlation[added]
        usable[i] = usable[i] and pivot[i] > least_pivot[i]
        if usable[i]:
            share, slope = 1.0 / pivot[i], correlation[i] / pivot[i]
            squared[i] = _update_and_score(row, projection[i], c, share, slope, residual, slack)
            if labels:
                wrong[i] = _wrong_signs(row, share, slope, residual, slack, y)
