"""Sums over rows and their derivatives for all rows at once: the innermost loop of every bound but the quadratic one.

Any loss is served by its scalar functions; logistic loss has a vectorised twin. A loss with weights or an intercept
(:mod:`exactsel.losses.adjusted`) may add a constant to the predictions it is given, see
:mod:`exactsel.kernels.levels`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from exactsel._jit import choose_by_type, in_numpy, njit
from exactsel.kernels.columns import Columns, all_whole, mixed_gram
from exactsel.kernels.in_arrays import of_rows
from exactsel.kernels.levels import adjusted_bends, adjusted_dual, adjusted_rows, bends_in_turn, off_scale, plain_rows
from exactsel.kernels.linalg import BLOCK, dot, sum_roundings
from exactsel.kernels.loss import point_derivative, point_value
from exactsel.losses.adjusted import is_adjusted
from exactsel.losses.poisson import Poisson
from exactsel.rounding import UNIT
from exactsel.types import FloatArray, IntArray


@choose_by_type("loss")
def row_values(loss: Any, z: FloatArray, y: FloatArray, values: FloatArray, slopes: FloatArray) -> None:
    """Write the value and the derivative in z_i of every row."""
    plain_rows(loss, z, y, values, slopes)


@row_values.register_where(is_adjusted)
def _adjusted_rows(loss: Any, z: FloatArray, y: FloatArray, values: FloatArray, slopes: FloatArray) -> None:
    adjusted_rows(loss, z, y, values, slopes)


@njit(sums=True)
def _sum(values: FloatArray) -> float:
    total = 0.0
    for i in range(values.size):
        total += values[i]
    return total


@in_numpy(_sum)
def _sum_of_array(values: FloatArray) -> float:
    return float(values.sum())


@njit
def total_value(loss: Any, z: FloatArray, y: FloatArray, values: FloatArray, slopes: FloatArray) -> float:
    """L(z); ``values`` and ``slopes`` receive those of the rows."""
    row_values(loss, z, y, values, slopes)
    return float(_sum(values))


@njit
def sum_in_turn(loss: Any, z: FloatArray, y: FloatArray) -> float:
    """The sum of all rows, one after the other."""
    total = 0.0
    for i in range(z.size):
        total += point_value(loss, z[i], y[i])
    return total


@in_numpy(sum_in_turn)
def _sum_in_arrays(loss: Any, z: FloatArray, y: FloatArray) -> float:
    return float(of_rows(loss, "value", z, y).sum())


@choose_by_type("loss")
def _value(loss: Any, z: FloatArray, y: FloatArray) -> float:
    return float(sum_in_turn(loss, z, y))


@_value.register_where(is_adjusted)
def _adjusted_value(loss: Any, z: FloatArray, y: FloatArray) -> float:
    values = np.empty(z.size)
    adjusted_rows(loss, z, y, values, np.empty(z.size))
    return float(_sum(values))


@njit
def loss_value(loss: Any, z: FloatArray, y: FloatArray) -> float:
    """L(z), the sum over rows."""
    return float(_value(loss, z, y))


@njit
def slopes_in_turn(loss: Any, z: FloatArray, y: FloatArray, out: FloatArray) -> None:
    """The derivative of every row, one after the other."""
    for i in range(z.size):
        out[i] = point_derivative(loss, z[i], y[i])


@in_numpy(slopes_in_turn)
def _slopes_in_arrays(loss: Any, z: FloatArray, y: FloatArray, out: FloatArray) -> None:
    out[:] = of_rows(loss, "derivative", z, y)


@choose_by_type("loss")
def _gradient(loss: Any, z: FloatArray, y: FloatArray, out: FloatArray) -> None:
    slopes_in_turn(loss, z, y, out)


@_gradient.register_where(is_adjusted)
def _adjusted_gradient(loss: Any, z: FloatArray, y: FloatArray, out: FloatArray) -> None:
    adjusted_rows(loss, z, y, np.empty(z.size), out)


@njit
def loss_gradient(loss: Any, z: FloatArray, y: FloatArray, out: FloatArray) -> None:
    """Write the gradient of L at z to ``out``."""
    _gradient(loss, z, y, out)


@choose_by_type("loss")
def _bend(loss: Any, z: FloatArray, y: FloatArray, majorise: bool, out: FloatArray) -> None:
    bends_in_turn(loss, z, y, majorise, out)


@_bend.register_where(is_adjusted)
def _adjusted_bend(loss: Any, z: FloatArray, y: FloatArray, majorise: bool, out: FloatArray) -> None:
    adjusted_bends(loss, z, y, majorise, out)


@njit
def loss_curvature(loss: Any, z: FloatArray, y: FloatArray, out: FloatArray) -> None:
    """Write the second derivatives of the rows at z to ``out``; see :func:`weighted_gram` for the Hessian."""
    _bend(loss, z, y, False, out)


@njit
def loss_majorizer(loss: Any, z: FloatArray, y: FloatArray, out: FloatArray) -> None:
    """Write the curvatures of a quadratic that lies above L and touches it at z to ``out``."""
    _bend(loss, z, y, True, out)


@njit(sums=True)
def _part_of_sum(values: FloatArray, z: FloatArray, y: FloatArray, b: FloatArray) -> tuple[float, float]:
    """The sum of values - b z, and of sizes by which terms are judged."""
    total = 0.0
    magnitude = 0.0
    for i in range(z.size):
        total += values[i] - b[i] * z[i]
        magnitude += abs(values[i]) + abs(b[i]) * (abs(z[i]) + abs(y[i]) + abs(b[i]))
    return total, magnitude


@in_numpy(_part_of_sum)
def _part_in_arrays(values: FloatArray, z: FloatArray, y: FloatArray, b: FloatArray) -> tuple[float, float]:
    sizes = abs(values) + abs(b) * (abs(z) + abs(y) + abs(b))
    return float(np.sum(values - b * z)), float(np.sum(sizes))


@njit
def lower_sum(values: FloatArray, z: FloatArray, y: FloatArray, b: FloatArray) -> float:
    """The sum of values - b z, less a bound on the rounding in it and in its terms."""
    total = 0.0
    magnitude = 0.0
    for first in range(0, z.size, BLOCK):
        last = first + BLOCK
        part, size = _part_of_sum(values[first:last], z[first:last], y[first:last], b[first:last])
        total += part
        magnitude += size
    return float(total - (sum_roundings(z.size) + 32) * UNIT * magnitude)


@choose_by_type("loss")
def dual_rows(loss: Any, z: FloatArray, y: FloatArray, b: FloatArray) -> tuple[float, int]:
    """Take b = grad L(z); write it, and return a lower estimate of -L*(b) and the roundings to allow for in A'b."""
    values = np.empty(z.size)
    plain_rows(loss, z, y, values, b)
    return lower_sum(values, z, y, b), sum_roundings(b.size) + 16


@dual_rows.register(Poisson)
def _dual_counts(loss: Any, z: FloatArray, y: FloatArray, b: FloatArray) -> tuple[float, int]:
    values = np.empty(z.size)
    plain_rows(loss, z, y, values, b)
    total, magnitude, many = 0.0, 0.0, sum_roundings(z.size)
    for first in range(0, z.size, BLOCK):
        part, size = 0.0, 0.0
        for i in range(first, min(first + BLOCK, z.size)):
            part += values[i] - b[i] * z[i]
            size += abs(values[i]) + abs(b[i]) * off_scale(loss, z[i], y[i], b[i])
        total += part
        magnitude += size
    return total - (many + 32) * UNIT * magnitude, many + 16


@dual_rows.register_where(is_adjusted)
def _adjusted_dual(loss: Any, z: FloatArray, y: FloatArray, b: FloatArray) -> tuple[float, int]:
    base, roundings = adjusted_dual(loss, z, y, b)
    return base, roundings


@choose_by_type("loss")
def is_levelled(loss: Any) -> bool:
    """Whether the loss has an intercept: columns are then taken from their weighted means."""
    return False


@is_levelled.register_where(is_adjusted)
def _adjusted_is_levelled(loss: Any) -> bool:
    return bool(loss.levelled)


@njit
def scale_column(loss: Any, a: FloatArray, weights: FloatArray, scaled: FloatArray) -> None:
    """scaled = W a, W as in :func:`weighted_gram` up to a multiple of the weights."""
    mean = 0.0
    if is_levelled(loss):
        total, sum_here = 0.0, 0.0
        for row in range(weights.size):
            total += weights[row]
            sum_here += weights[row] * a[row]
        mean = sum_here / total if total > 0.0 else 0.0
    for row in range(weights.size):
        scaled[row] = weights[row] * (a[row] - mean)


@in_numpy(scale_column)
def _scale_whole(loss: Any, a: FloatArray, weights: FloatArray, scaled: FloatArray) -> None:
    total = weights.sum() if is_levelled(loss) else 0.0
    mean = weights @ a / total if total > 0.0 else 0.0
    scaled[: weights.size] = weights * (a - mean)


@njit(sums=True)
def _dense_gram(loss: Any, AT: FloatArray, columns: IntArray, weights: FloatArray, lam: float, H: FloatArray) -> None:
    scaled = np.empty(weights.size)
    for i in range(columns.size):
        scale_column(loss, AT[columns[i]], weights, scaled)
        for j in range(i + 1):
            H[i, j] = dot(scaled, AT[columns[j]])
        H[i, i] += lam


@choose_by_type("AT")
def weighted_gram(loss: Any, AT: Any, columns: IntArray, weights: FloatArray, lam: float, H: FloatArray) -> None:
    """Lower triangle of the Hessian A_S' W A_S + lam I; with an intercept W = diag(w) - w w' / sum(w)."""
    _dense_gram(loss, AT, columns, weights, lam, H)


@weighted_gram.register(Columns)
def _gram_of_columns(loss: Any, AT: Any, columns: IntArray, weights: FloatArray, lam: float, H: FloatArray) -> None:
    if all_whole(AT):
        _dense_gram(loss, AT.whole, columns, weights, lam, H)
    else:
        mixed_gram(AT, columns, weights, is_levelled(loss), lam, np.zeros(1, dtype=np.bool_), H)
