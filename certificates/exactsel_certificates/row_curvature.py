"""Single rows of losses that serve minorants: value, slope, and a curvature that holds on an interval.

With u = 2^-53, z, y and delta doubles, r = z - y is right to one rounding, and so, piecewise, are Huber's value and
slope but for a few; comparing with delta may go wrong where it makes no difference, for both are continuous. For
logistic loss exponentials and logarithms are taken to be right to 16 units. Values and slopes are right to
:data:`ROUNDED` of their own size.

A curvature w holds on [low, high] from z, in it, if l(t) >= l(z) + l'(z)(t - z) + (w / 2)(t - z)^2 for all t there. The
largest one t allows is phi(t) = (2 / v^2) int_0^v s m(s) ds, v = t - z, with m(s) the mean of l'' between z and z + s.
As l'' of such a loss grows up to a point and falls from there on, so do m, to each side of z, and phi: a mean grows as
long as what comes in is above it, and once it is not nothing is any more. So phi is nowhere below the smaller of its
limit at z, which is l''(z), and its value at the end.
"""

from __future__ import annotations

import numpy as np

from exactsel_certificates.losses.base import FloatArray, Loss, U
from exactsel_certificates.sums import row_slices

ROUNDED = 64 * U
"""Part of themselves that values and slopes of rows may be off by."""


def values_and_slopes(loss: Loss, z: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """l and l' of each row, all (n,)."""
    rows = row_slices(len(z))
    values = np.concatenate([loss.values(z[some], y[some]) for some in rows])
    return np.asarray(values, dtype=np.float64), np.concatenate([loss.slopes(z[some], y[some]) for some in rows])


def curvatures(loss: Loss, z: FloatArray, y: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Curvatures (n,) of the rows on [low, high] from z, rounded downwards; never negative."""
    found = np.empty(len(z))
    for rows in row_slices(len(z)):
        w = loss.curvature_on(z[rows], y[rows], low[rows], high[rows])
        found[rows] = np.where(w > 0.0, w, 0.0)  # nan is 0, too
    return found
