"""Rows of a loss, one by one: values, slopes and bends at a point, and the curvature each has on an interval."""

from __future__ import annotations

from typing import Any

from exactsel._jit import in_numpy, njit
from exactsel.kernels.in_arrays import of_rows
from exactsel.kernels.loss import point_curvature, point_curvature_on, point_derivative, point_value
from exactsel.types import FloatArray


@njit
def rows_at(
    loss: Any, z: FloatArray, y: FloatArray, values: FloatArray, slopes: FloatArray, bends: FloatArray
) -> None:  # fmt: skip
    """Write l(z_i, y_i) and its first and second derivative in z_i, of a loss without weights or intercept."""
    for i in range(z.size):
        values[i] = point_value(loss, z[i], y[i])
        slopes[i] = point_derivative(loss, z[i], y[i])
        bends[i] = point_curvature(loss, z[i], y[i])


@in_numpy(rows_at)
def _rows_in_arrays(
    loss: Any, z: FloatArray, y: FloatArray, values: FloatArray, slopes: FloatArray, bends: FloatArray
) -> None:  # fmt: skip
    values[:], slopes[:] = of_rows(loss, "value", z, y), of_rows(loss, "derivative", z, y)
    bends[:] = of_rows(loss, "curvature", z, y)


@njit
def curvatures_on(
    loss: Any, low: FloatArray, high: FloatArray, z: FloatArray, y: FloatArray, out: FloatArray
) -> None:  # fmt: skip
    """Write the curvature each row has on its interval from its point z_i (see losses/base.py)."""
    for i in range(z.size):
        out[i] = point_curvature_on(loss, low[i], high[i], z[i], y[i])


@in_numpy(curvatures_on)
def _curvatures_in_arrays(
    loss: Any, low: FloatArray, high: FloatArray, z: FloatArray, y: FloatArray, out: FloatArray
) -> None:  # fmt: skip
    out[:] = of_rows(loss, "curvature_on", low, high, z, y)
