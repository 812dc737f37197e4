"""Rows that agree in every column of a model and in their label count as one: a *cell* of weight that of its rows.

Where the columns take two values each, as one-hot data do, m of them make at most 2^m cells with two labels each. A fit
of logistic loss then costs one pass over the rows, for any number of Newton steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from exactsel._jit import njit
from exactsel.kernels.columns import END, EQUAL, FIRST, PLACE, VALUES, Columns
from exactsel.kernels.linalg import cholesky, cholesky_solve, dot
from exactsel.types import FloatArray, IntArray

MOST_COLUMNS = 12
"""Columns of which cells are made at most ..."""

ROWS_A_CELL = 2
"""... and rows there must be for every cell there might be."""

MOST_STEPS = 300

SHORTEST = 1e-10
"""Step length below which a step is taken as it is."""


@njit
def has_cells(AT: Columns, columns: IntArray, rows: int) -> bool:
    """Whether all ``columns`` take two values, and there are far more rows than cells."""
    if columns.size > MOST_COLUMNS or (ROWS_A_CELL * 2 << columns.size) > rows:
        return False
    of_two_values = 0
    for i in range(columns.size):
        of_two_values += AT.where[columns[i], EQUAL]
    return bool(of_two_values == columns.size)


@njit
def row_codes(AT: Columns, columns: IntArray, rows: int) -> Any:
    """(n,) for every row the columns in which it holds the other of the two values, one bit each."""
    codes = np.zeros(rows, dtype=np.uint16)
    for i in range(columns.size):
        j, bit = columns[i], np.uint16(1 << i)
        if AT.where[j, PLACE] < 0:
            for t in range(AT.where[j, FIRST], AT.where[j, END]):
                codes[AT.rows[t]] |= bit
        else:
            whole, base = AT.whole[AT.where[j, PLACE]], AT.values[AT.where[j, VALUES]]
            for row in range(rows):
                if whole[row] != base:
                    codes[row] |= bit
    return codes


@njit
def cells_of(
    AT: Columns, y: FloatArray, columns: IntArray, row_weights: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The cells for labels y: what they hold in the ``columns`` (m, cells), their labels, their weights.

    ``row_weights`` (n,), or none where every row counts 1.
    """
    m, codes = columns.size, row_codes(AT, columns, y.size)
    totals = np.zeros(2 << m)
    for row in range(y.size):
        weight = row_weights[row] if row_weights.size > 0 else 1.0
        totals[2 * np.int64(codes[row]) + (1 if y[row] > 0.0 else 0)] += weight
    count = 0
    for cell in range(totals.size):
        if totals[cell] > 0.0:
            count += 1
    data, labels, weights = np.empty((m, count)), np.empty(count), np.empty(count)
    count = 0
    for cell in range(totals.size):
        if totals[cell] > 0.0:
            labels[count], weights[count] = 1.0 if cell % 2 == 1 else -1.0, totals[cell]
            for i in range(m):
                at = AT.where[columns[i], VALUES]
                data[i, count] = AT.values[at] + (AT.values[at + 1] if (cell >> (i + 1)) & 1 else 0.0)
            count += 1
    return data, labels, weights


@njit
def _value_at(
    data: FloatArray, labels: FloatArray, weights: FloatArray, lam: float, u: FloatArray, slopes: FloatArray,
    bends: FloatArray,
) -> float:  # fmt: skip
    """The objective at coefficients u, of which one beyond the columns is the intercept; slopes and curvatures."""
    total, m = 0.0, data.shape[0]
    for i in range(m):
        total += 0.5 * lam * u[i] * u[i]
    for cell in range(labels.size):
        z = u[m] if u.size > m else 0.0
        for i in range(m):
            z += u[i] * data[i, cell]
        t = -labels[cell] * z
        small = np.exp(-abs(t))
        part = (1.0 if t >= 0.0 else small) / (1.0 + small)
        total += weights[cell] * (max(t, 0.0) + np.log1p(small))
        slopes[cell] = -labels[cell] * weights[cell] * part
        bends[cell] = weights[cell] * small / ((1.0 + small) * (1.0 + small))
    return total


@njit
def _newton_system(
    data: FloatArray, slopes: FloatArray, bends: FloatArray, lam: float, u: FloatArray, gradient: FloatArray,
    H: FloatArray,
) -> None:  # fmt: skip
    """Gradient, and lower triangle of the Hessian."""
    m = data.shape[0]
    for i in range(u.size):
        gradient[i] = lam * u[i] if i < m else 0.0
        for j in range(i + 1):
            H[i, j] = lam if i == j and i < m else 0.0
    for cell in range(slopes.size):
        for i in range(u.size):
            here = data[i, cell] if i < m else 1.0
            gradient[i] += slopes[cell] * here
            for j in range(i + 1):
                H[i, j] += bends[cell] * here * (data[j, cell] if j < m else 1.0)


@njit
def fit_on_cells(
    AT: Columns, y: FloatArray, row_weights: FloatArray, levelled: bool, lam: float, columns: IntArray,
    tolerance: float, x: FloatArray, stop_above: float,
) -> tuple[float, float]:  # fmt: skip
    """As :func:`exactsel.kernels.refit.newton_refit` of logistic loss, by damped Newton steps on the cells.

    ``levelled`` says that there is an intercept, which is one more unknown here.
    """
    data, labels, weights = cells_of(AT, y, columns, row_weights)
    m, unknowns = columns.size, columns.size + (1 if levelled else 0)
    u, trial, gradient, step = np.zeros(unknowns), np.empty(unknowns), np.empty(unknowns), np.empty(unknowns)
    slopes, bends, H = np.empty(labels.size), np.empty(labels.size), np.empty((unknowns, unknowns))
    u[:m] = x
    value = _value_at(data, labels, weights, lam, u, slopes, bends)
    norm, stalled = np.inf, 0
    for _ in range(MOST_STEPS):
        _newton_system(data, slopes, bends, lam, u, gradient, H)
        norm = dot(gradient, gradient) ** 0.5
        if (
            norm <= tolerance
            or stalled >= 2
            or (not levelled and lam > 0.0 and 2.0 * lam * (value - stop_above) >= norm * norm)
        ):
            break
        if not cholesky(H):
            return value, np.inf
        step[:] = gradient
        cholesky_solve(H, step)
        slope, length = dot(gradient, step), 1.0
        while True:
            for i in range(unknowns):
                trial[i] = u[i] - length * step[i]
            new = _value_at(data, labels, weights, lam, trial, slopes, bends)
            # Near the minimum the decrease drowns in rounding: take the full step, which still refines x.
            if new <= value - 1e-4 * length * slope or slope <= 1e-13 * abs(value) or length < SHORTEST:
                break
            length *= 0.5
        stalled = 0 if new < value else stalled + 1
        value = new
        u[:] = trial
    x[:] = u[:m]
    return value, norm
