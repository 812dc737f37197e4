"""Values of fits that hold for any rounding on the way, for kernels/subtree_dependent.py.

The columns have length one. What an entry of the Gram matrix may be off by, ``unit``, changes the objective at x by at
most unit (||x||_1 + ||y||)^2, and the fit is off by at most trace(K) ||gradient||^2, K being the inverse.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exactsel._jit import njit
from exactsel.types import FloatArray, IntArray

DEPENDENT = 1e-12
"""A column of which no more than this share is left after elimination adds nothing."""


class QuadraticData(NamedTuple):
    """H = A'A, b = A'y and ||y||^2/2."""

    H: FloatArray
    b: FloatArray
    constant: float


@njit
def of_the_data(value: float, away: float) -> float:
    """What a value v of columns nearby is at least for the data themselves.

    Residuals ||Ax - y|| differ by no more than ``away``, so values by no more than away sqrt(2 v).
    """
    return value - away * np.sqrt(2.0 * value) if value > 0.5 * away * away else 0.0


@njit(sums=True)
def certified(data: QuadraticData, K: FloatArray, x: FloatArray, columns: IntArray, p: int, unit: float) -> float:
    """A number no model on the first p columns is below."""
    value, slope, trace, size = data.constant, 0.0, 0.0, np.sqrt(2.0 * data.constant)
    for i in range(p):
        total = 0.0
        for j in range(p):
            total += data.H[columns[i], columns[j]] * x[j]
        b = data.b[columns[i]]
        value += x[i] * (0.5 * total - b)
        slope += (total - b) ** 2
        trace += K[i, i]
        size += abs(x[i])
    return float(value - unit * size * size - trace * slope)


@njit
def _eliminate(data: QuadraticData, columns: IntArray, fixed: int, L: FloatArray, solution: FloatArray) -> float:
    """Cholesky factor and right-hand side of the fit on the first columns; returns its value."""
    value = data.constant
    for i in range(fixed):
        for j in range(i + 1):
            total = data.H[columns[i], columns[j]]
            for q in range(j):
                total -= L[i, q] * L[j, q]
            L[i, j] = total / L[j, j] if j < i else np.sqrt(max(total, 1e-300))
        total = data.b[columns[i]]
        for q in range(i):
            total -= L[i, q] * solution[q]
        solution[i] = total / L[i, i]
        value -= 0.5 * solution[i] ** 2
    return value


@njit
def _coefficient_sum(
    fixed: int, L: FloatArray, line: FloatArray, solution: FloatArray, x: FloatArray, last: float
) -> float:
    """||x||_1 of the fit with one column more, whose coefficient is ``last``."""
    size = abs(last)
    for i in range(fixed - 1, -1, -1):
        total = solution[i] - line[i] * last
        for q in range(i + 1, fixed):
            total -= L[q, i] * x[q]
        x[i] = total / L[i, i]
        size += abs(x[i])
    return size


@njit
def best_addition(
    data: QuadraticData, columns: IntArray, fixed: int, m: int, unit: float,
    L: FloatArray, line: FloatArray, solution: FloatArray, x: FloatArray,
) -> tuple[float, int, float]:  # fmt: skip
    """The smallest objective on S with at most one of the further columns, that column's position (-1: none helps), and
    a number none of these models is below.
    """
    line[:] = 0.0
    length = np.sqrt(2.0 * data.constant)
    value = _eliminate(data, columns, fixed, L, solution)
    size = length + _coefficient_sum(fixed, L, line, solution, x, 0.0)
    best, position, bound = value, -1, value - unit * size * size
    for i in range(fixed, m):
        column = columns[i]
        pivot, correlation = data.H[column, column], data.b[column]
        for j in range(fixed):
            total = data.H[column, columns[j]]
            for q in range(j):
                total -= L[j, q] * line[q]
            line[j] = total / L[j, j]
            pivot -= line[j] ** 2
            correlation -= line[j] * solution[j]
        if pivot > DEPENDENT * data.H[column, column]:
            with_it = value - 0.5 * correlation * correlation / pivot
            size = length + _coefficient_sum(fixed, L, line, solution, x, correlation / pivot)
            bound = min(bound, with_it - unit * size * size)
            if with_it < best:
                best, position = with_it, i
    return best, position, bound
