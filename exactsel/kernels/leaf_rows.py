"""A set beside a fit evaluated row by row: b + Wt cut off where its domain ends, and formula (2) at the result.

For kernels/leaf_closing.py, where a step is too long for the sums over candidates. With an intercept the cut dual
vector
has to sum to zero again: a multiple of W1 is added before it is cut, found by Newton's method. What is left of the sum
by rounding is made up for by an exact multiple tau of W1 that is *meant*. With it probabilities move by less than the
cut leaves them, where their log-odds are at most |z_i| + 15, so that it costs at most |tau| times the sum of omega_i
(|z_i| + 15), and A'b changes by |tau| root(1'W1) times the W-length of a column.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from exactsel._jit import choose_by_type, in_numpy, njit
from exactsel.kernels.columns import Columns
from exactsel.kernels.leaf_candidate import Candidates
from exactsel.kernels.leaf_fit import FAR_OFF, HEAVY, LENGTH, TOTAL, SmallFit
from exactsel.kernels.linalg import correlate, dot
from exactsel.losses.logistic import Logistic
from exactsel.rounding import UNIT
from exactsel.types import FloatArray, IntArray

WITHIN = 1.0 - 1e-6
"""How much of the way to 0 or 1 a probability may go."""

LEVEL_STEPS = 8
"""Steps on the way to a sum of zero."""

BALANCED = 1e-12
"""Part of the slopes' total size at which their sum will do as zero."""


@njit(sums=True, inline=True)
def _step_rows(
    y: FloatArray, fit: SmallFit, first: FloatArray, second: FloatArray, d: float, e: float, b: FloatArray
) -> tuple[float, float]:
    """Write b + Wt, cut off at the ends of its domain, for t = (d first + e second) / roots; both columns are scaled.

    Returns by how much -L* rises at least, and the size of what was added up.
    """
    total, size = 0.0, 0.0
    for i in range(y.size):
        z, now = fit.z[i], fit.b[i]
        pi = -y[i] * now
        change = -y[i] * fit.roots[i] * (d * first[i] + e * second[i])
        change = min(max(change, -pi * WITHIN), (1.0 - pi) * WITHIN)
        s, t = change * fit.of_pi[i], -change * fit.of_rest[i]
        low, high = max(-s, 0.0), max(-t, 0.0)
        divergence = s * (0.5 - s * (1.0 / 6.0) + s * s * (1.0 / 12.0 + low * (0.05 + 0.2 * low)))
        divergence -= t * (0.5 - t * (1.0 / 6.0) + t * t * (1.0 / 12.0 + high * (0.05 + 0.2 * high)))
        divergence *= change
        move = -y[i] * change
        b[i] = now + move
        total -= z * move + divergence
        size += abs(z) * (abs(move) + abs(now)) + divergence
    return total, size


@in_numpy(_step_rows)
def _step_of_arrays(
    y: FloatArray, fit: SmallFit, first: FloatArray, second: FloatArray, d: float, e: float, b: FloatArray
) -> tuple[float, float]:
    return _stepped(y, fit, 1.0, -y * fit.roots * (d * first[: y.size] + e * second[: y.size]), b)


def _stepped(
    y: FloatArray, fit: SmallFit, weight: FloatArray | float, change: FloatArray, b: FloatArray
) -> tuple[float, float]:
    """What is the same in :func:`_step_rows` and :func:`_step_weighted_rows`, in arrays."""
    pi = -y * fit.b / weight
    change = np.clip(change, -pi * WITHIN, (1.0 - pi) * WITHIN)
    s, t = change * fit.of_pi, -change * fit.of_rest
    low, high = np.maximum(-s, 0.0), np.maximum(-t, 0.0)
    divergence = s * (0.5 - s * (1.0 / 6.0) + s * s * (1.0 / 12.0 + low * (0.05 + 0.2 * low)))
    divergence -= t * (0.5 - t * (1.0 / 6.0) + t * t * (1.0 / 12.0 + high * (0.05 + 0.2 * high)))
    divergence *= change * weight
    move = -y * change * weight
    b[:] = fit.b + move
    size = np.sum(abs(fit.z) * (abs(move) + abs(fit.b)) + divergence)
    return -float(np.sum(fit.z * move + divergence)), float(size)


@njit(inline=True)
def bound_of_set(
    AT: Columns, y: FloatArray, norms: FloatArray, lam: float, fit: SmallFit, base: float, found: Candidates,
    i: int, j: int, d: float, e: float, columns: IntArray, b: FloatArray,
) -> float:  # fmt: skip
    """Formula (2) for the model on ``columns``, S and candidates i and j (-1: none) at the steps d and e.

    ``base`` is a lower estimate of -L* at the fit; ``b`` (n,) is to work in.
    """
    n = y.size
    other = found.scaled[max(j, 0)]
    total, size = _step_rows(y, fit, found.scaled[i], other, d, e if j >= 0 else 0.0, b)
    q = np.empty(columns.size)
    correlate(AT, columns, b, q)
    rounding = (n + 32) * UNIT * 1.01 * np.sqrt(float(n))  # no slope of logistic loss is larger than 1
    lost = 0.0
    for c in range(columns.size):
        upper = abs(q[c]) + rounding * norms[columns[c]]
        lost += upper * upper
    wrong = (n + 64) * UNIT * size + 512.0 * n * UNIT
    return float(base + total - wrong - lost * (1.0 + 64 * UNIT) / (2.0 * lam))


@njit(sums=True, inline=True)
def _sums_of_step(
    y: FloatArray, fit: SmallFit, first: FloatArray, second: FloatArray, d: float, e: float, tau: float
) -> tuple[float, float, float]:
    """The sum of b + W(t + tau 1), cut off, the sum without signs, and that of the weights of the rows not cut."""
    total, size, free = 0.0, 0.0, 0.0
    for i in range(y.size):
        pi = -y[i] * fit.b[i] / fit.rows[i]
        change = -y[i] * (fit.roots[i] * (d * first[i] + e * second[i]) + fit.weights[i] * tau) / fit.rows[i]
        low, high = -pi * WITHIN, (1.0 - pi) * WITHIN
        free += fit.weights[i] if low < change < high else 0.0
        there = fit.rows[i] * (pi + min(max(change, low), high))
        total -= y[i] * there
        size += there
    return total, size, free


@in_numpy(_sums_of_step)
def _sums_of_arrays(
    y: FloatArray, fit: SmallFit, first: FloatArray, second: FloatArray, d: float, e: float, tau: float
) -> tuple[float, float, float]:
    pi = -y * fit.b / fit.rows
    change = -y * (fit.roots * (d * first[: y.size] + e * second[: y.size]) + fit.weights * tau) / fit.rows
    low, high = -pi * WITHIN, (1.0 - pi) * WITHIN
    there = fit.rows * (pi + np.clip(change, low, high))
    return -float(y @ there), float(there.sum()), float(fit.weights[(low < change) & (change < high)].sum())


@njit(inline=True)
def _level_of_step(y: FloatArray, fit: SmallFit, first: FloatArray, second: FloatArray, d: float, e: float) -> float:
    """The tau with which the step comes out at a sum of zero, nearly."""
    tau = 0.0
    for _ in range(LEVEL_STEPS):
        total, size, free = _sums_of_step(y, fit, first, second, d, e, tau)
        if not abs(total) > BALANCED * size or free == 0.0:
            break
        tau -= total / free
    return tau


@njit(sums=True, inline=True)
def _step_weighted_rows(
    y: FloatArray, fit: SmallFit, first: FloatArray, second: FloatArray, d: float, e: float, tau: float, b: FloatArray
) -> tuple[float, float]:
    """As :func:`_step_rows` for rows with weights, and with tau added to t."""
    total, size = 0.0, 0.0
    for i in range(y.size):
        z, now, weight = fit.z[i], fit.b[i], fit.rows[i]
        pi = -y[i] * now / weight
        change = -y[i] * (fit.roots[i] * (d * first[i] + e * second[i]) + fit.weights[i] * tau) / weight
        change = min(max(change, -pi * WITHIN), (1.0 - pi) * WITHIN)
        s, t = change * fit.of_pi[i], -change * fit.of_rest[i]
        low, high = max(-s, 0.0), max(-t, 0.0)
        divergence = s * (0.5 - s * (1.0 / 6.0) + s * s * (1.0 / 12.0 + low * (0.05 + 0.2 * low)))
        divergence -= t * (0.5 - t * (1.0 / 6.0) + t * t * (1.0 / 12.0 + high * (0.05 + 0.2 * high)))
        divergence *= change * weight
        move = -y[i] * change * weight
        b[i] = now + move
        total -= z * move + divergence
        size += abs(z) * (abs(move) + abs(now)) + divergence
    return total, size


@in_numpy(_step_weighted_rows)
def _weighted_step_of_arrays(
    y: FloatArray, fit: SmallFit, first: FloatArray, second: FloatArray, d: float, e: float, tau: float, b: FloatArray
) -> tuple[float, float]:
    steps = fit.roots * (d * first[: y.size] + e * second[: y.size]) + fit.weights * tau
    return _stepped(y, fit, fit.rows, -y * steps / fit.rows, b)


@njit(sums=True, inline=True)
def _sizes_of_rows(fit: SmallFit, b: FloatArray) -> tuple[float, float, float]:
    """The sum of b with and without signs, and what one unit of tau costs."""
    total, size, cost = 0.0, 0.0, 0.0
    for i in range(b.size):
        total += b[i]
        size += abs(b[i])
        cost += fit.weights[i] * (abs(fit.z[i]) + 16.0)
    return total, size, cost


@in_numpy(_sizes_of_rows)
def _sizes_of_arrays(fit: SmallFit, b: FloatArray) -> tuple[float, float, float]:
    return float(b.sum()), float(abs(b).sum()), float(fit.weights @ (abs(fit.z) + 16.0))


@choose_by_type("loss")
def bound_at_step(
    loss: Any, AT: Columns, y: FloatArray, norms: FloatArray, lam: float, fit: SmallFit, base: float,
    found: Candidates, i: int, j: int, d: float, e: float, columns: IntArray, b: FloatArray,
) -> float:  # fmt: skip
    """As :func:`bound_of_set`, with row weights and an intercept."""
    n, first, second = y.size, found.scaled[i], found.scaled[max(j, 0)]
    across, levelled = e if j >= 0 else 0.0, fit.x.size > fit.columns.size
    tau = _level_of_step(y, fit, first, second, d, across) if levelled else 0.0
    total, size = _step_weighted_rows(y, fit, first, second, d, across, tau, b)
    rounding = (n + 32) * UNIT * 1.01 * np.sqrt(dot(b, b))
    if levelled:
        rest, whole, cost = _sizes_of_rows(fit, b)
        left = 1.01 * (abs(rest) + (n + 8) * UNIT * whole) / (fit.level[LENGTH] * fit.level[LENGTH])
        if not left <= FAR_OFF:
            return -np.inf
        rounding += left * fit.level[LENGTH] * fit.level[HEAVY]
        total -= 1.01 * left * cost
    q = np.empty(columns.size)
    correlate(AT, columns, b, q)
    lost = 0.0
    for c in range(columns.size):
        upper = abs(q[c]) + rounding * norms[columns[c]]
        lost += upper * upper
    wrong = (n + 64) * UNIT * size + 512.0 * fit.level[TOTAL] * UNIT
    return float(base + total - wrong - lost * (1.0 + 64 * UNIT) / (2.0 * lam))


@bound_at_step.register(Logistic)
def _logistic_at_step(
    loss: Any, AT: Columns, y: FloatArray, norms: FloatArray, lam: float, fit: SmallFit, base: float,
    found: Candidates, i: int, j: int, d: float, e: float, columns: IntArray, b: FloatArray,
) -> float:  # fmt: skip
    return float(bound_of_set(AT, y, norms, lam, fit, base, found, i, j, d, e, columns, b))
