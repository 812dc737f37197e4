"""Values and derivatives of a loss for all rows at once: the innermost loop of every bound but the quadratic one.

Any loss is served by its scalar functions; logistic loss has a vectorised twin.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from exactsel._jit import njit, overload
from exactsel.kernels.elementary import exp_of_minus_size, log1p_of_part
from exactsel.kernels.loss import point_derivative, point_value
from exactsel.losses.logistic import Logistic
from exactsel.types import FloatArray


def _each_row(loss: Any, z: FloatArray, y: FloatArray, values: FloatArray, slopes: FloatArray) -> None:
    for i in range(z.size):
        values[i] = point_value(loss, z[i], y[i])
        slopes[i] = point_derivative(loss, z[i], y[i])


@njit
def logistic_rows(z: FloatArray, y: FloatArray, values: FloatArray, slopes: FloatArray) -> None:
    """log(1 + exp(-y z)) and its derivative in z."""
    for i in range(z.size):
        values[i] = -y[i] * z[i]
    exp_of_minus_size(values, slopes)
    for i in range(z.size):
        t, e = values[i], slopes[i]
        values[i] = max(t, 0.0) + log1p_of_part(e)
        slopes[i] = -y[i] * ((1.0 if t >= 0.0 else e) / (1.0 + e))


def _logistic(loss: Any, z: FloatArray, y: FloatArray, values: FloatArray, slopes: FloatArray) -> None:
    logistic_rows(z, y, values, slopes)


def row_values(loss: Any, z: FloatArray, y: FloatArray, values: FloatArray, slopes: FloatArray) -> None:
    """Write l(z_i, y_i) and its derivative in z_i of every row."""
    (_logistic if isinstance(loss, Logistic) else _each_row)(loss, z, y, values, slopes)


def _choose(
    loss: Any, z: FloatArray, y: FloatArray, values: FloatArray, slopes: FloatArray
) -> Callable[..., None]:  # the compiler asks with types in the place of values
    return _logistic if loss.instance_class is Logistic else _each_row


overload(row_values)(_choose)


@njit(sums=True)
def _sum(values: FloatArray) -> float:
    total = 0.0
    for i in range(values.size):
        total += values[i]
    return total


@njit
def total_value(loss: Any, z: FloatArray, y: FloatArray, values: FloatArray, slopes: FloatArray) -> float:
    """L(z); ``values`` and ``slopes`` receive those of the rows."""
    row_values(loss, z, y, values, slopes)
    return float(_sum(values))
