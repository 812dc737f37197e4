"""Single rows of Huber and logistic loss at doubles: value, slope, and a curvature that holds on an interval.

With u = 2^-53, z, y and delta doubles, r = z - y is right to one rounding, and so, piecewise, are Huber's value and
slope but for a few; comparing with delta may go wrong where it makes no difference, for both are continuous. For
logistic loss exponentials and logarithms are taken to be right to 16 units. Values and slopes are right to
:data:`ROUNDED` of their own size.

A curvature w holds on [low, high] from z, in it, if l(t) >= l(z) + l'(z)(t - z) + (w / 2)(t - z)^2 for all t there. The
largest one t allows is phi(t) = (2 / v^2) int_0^v s m(s) ds, v = t - z, with m(s) the mean of l'' between z and z + s.
As l'' of either loss grows up to a point and falls from there on, so do m, to each side of z, and phi: a mean grows as
long as what comes in is above it, and once it is not nothing is any more. So phi is nowhere below the smaller of its
limit at z, which is l''(z), and its value at the end.
"""

from __future__ import annotations

import numpy as np

from exactsel_certificates.levels import FloatArray, row_slices

U = 2.0**-53

ROUNDED = 64 * U
"""Part of themselves that values and slopes of rows may be off by."""


def values_and_slopes(loss: str, delta: float, z: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """l and l' of each row, all (n,)."""
    parts = [_some_values(loss, delta, z[rows], y[rows]) for rows in row_slices(len(z))]
    return np.concatenate([value for value, _ in parts]), np.concatenate([slope for _, slope in parts])


def _some_values(loss: str, delta: float, z: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    if loss == "huber":
        size = np.abs(z - y)
        values = np.where(size <= delta, 0.5 * size * size, delta * (size - 0.5 * delta))
        return values, np.clip(z - y, -delta, delta)
    t = -y * z
    e = np.exp(-np.abs(t))
    return np.maximum(t, 0.0) + np.log1p(e), -y * np.where(t >= 0.0, 1.0, e) / (1.0 + e)


def curvatures(
    loss: str, delta: float, z: FloatArray, y: FloatArray, low: FloatArray, high: FloatArray
) -> FloatArray:  # fmt: skip
    """Curvatures (n,) of the rows on [low, high] from z, rounded downwards; never negative."""
    found = np.empty(len(z))
    for rows in row_slices(len(z)):
        box = low[rows], high[rows]
        w = _huber(delta, z[rows], y[rows], *box) if loss == "huber" else _logistic(z[rows], y[rows], *box)
        found[rows] = np.where(w > 0.0, w, 0.0)  # nan is 0, too
    return found


def _huber(delta: float, z: FloatArray, y: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """From the quadratic part an end t that is e outside of it allows 1 - (e / (t - z))^2; else nothing is known."""
    w = np.where(np.abs(z - y) * (1.0 + 4 * U) <= delta, 1.0, 0.0)
    for end, beyond in ((high, high - y), (low, y - low)):
        excess = beyond * (1.0 + 4 * U) - delta
        with np.errstate(all="ignore"):
            share = excess * (1.0 + 8 * U) / np.abs(end - z)
            allowed = 1.0 - share * share * (1.0 + 8 * U) - 4 * U
        w = np.minimum(w, np.where(excess > 0.0, np.where(share < 1.0, allowed, 0.0), 1.0))
    return w


def _logistic(z: FloatArray, y: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """By the difference at each end or, where that has no digits, by l''(t) >= l''(z) exp(-|t - z|)."""
    e = np.exp(-np.abs(z))
    bend = e / (1.0 + e) ** 2
    value, slope = values_and_slopes("logistic", np.inf, z, y)
    w = bend
    for end in (low, high):
        width = end - z
        there = values_and_slopes("logistic", np.inf, end, y)[0]
        size = there + value + np.abs(slope * width)
        with np.errstate(all="ignore"):
            secant = 2.0 * (there - value - slope * width - 2 * ROUNDED * size) / (width * width)
        secant = np.where(np.abs(width) > 1e-100, secant, 0.0)
        w = np.minimum(w, np.maximum(bend * np.exp(-np.abs(width)), secant))
    return np.asarray(w * (1.0 - 4 * ROUNDED))
