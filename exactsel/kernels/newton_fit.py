"""The fit on S and C together, for losses without a closed form: where a relaxation with hardly any ridge begins.

Without the limit on the size of the model a node is one convex problem, which Newton's method solves in a few steps,
however the columns are correlated, where the gradient method would take thousands. At a model x on the node's columns
with g = grad P(x), the dual vector b = grad L(Ax) has A'b = g - lam x, and Fenchel's equality gives
-L*(b) = P(x) + lam ||x||^2 / 2 - g'x. Formula (2) takes off no more than ||A'b||^2 / 2 lam, so

    the bound at x  >=  P(x) - ||g||^2 / (2 lam),

which nears the least P of any model on these columns. Fixing column j to 0 costs about x_j^2 / (2 K_jj), K the inverse
of the Hessian (for quadratic loss exactly so): these costs prove nothing, they say which columns matter.

A factor of the Hessian is used again as long as its steps bring the gradient down quickly (the chord method).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from exactsel._jit import choose_by_type, njit
from exactsel.kernels.columns import Columns, all_whole, mixed_gram
from exactsel.kernels.forms import RowsForm
from exactsel.kernels.grouped import GroupedForm, unit_sums
from exactsel.kernels.linalg import cholesky, cholesky_solve, correlate, dot, multiply_rows, predict
from exactsel.kernels.refit import MAJORISER_STEPS, MAX_STEPS, SHORTEST
from exactsel.kernels.rows import is_levelled, loss_curvature, loss_majorizer, scale_column, total_value
from exactsel.types import BoolArray, FloatArray, IntArray

EXACT = 1e-8
"""Part of the objective that the bound may be short of the fit ..."""

ENOUGH = 0.02
"""... or part of what the fit is short of the cut-off, where it does not reach it."""

REUSED = 0.3
"""A factor is used again where its last step brought the gradient's length down to this part of what it was."""


@njit
def _dense_hessian(
    loss: Any, AT: FloatArray, columns: IntArray, weights: FloatArray, lam: float, stop: BoolArray, H: FloatArray
) -> bool:
    scaled = np.empty(weights.size)
    for i in range(columns.size):
        if stop[0]:
            return False
        scale_column(loss, AT[columns[i]], weights, scaled)
        multiply_rows(AT, columns[: i + 1], scaled, H[i, : i + 1])
        H[i, i] += lam
    return True


@njit
def fit_hessian(
    loss: Any, AT: Columns, columns: IntArray, weights: FloatArray, lam: float, stop: BoolArray, H: FloatArray
) -> bool:
    """As :func:`exactsel.kernels.rows.weighted_gram`, four columns at a time; False after a stop."""
    if all_whole(AT):
        return bool(_dense_hessian(loss, AT.whole, columns, weights, lam, stop, H))
    return bool(mixed_gram(AT, columns, weights, is_levelled(loss), lam, stop, H))


@njit
def _settled(value: float, lost: float, cutoff: float) -> bool:
    """Whether the bound at a model of this objective, which is short of it by ``lost`` at most, is good enough."""
    if lost <= EXACT * abs(value) or value - lost >= cutoff:
        return True
    return bool(value < cutoff < np.inf and lost <= ENOUGH * (cutoff - value))


@njit
def newton_fit(
    loss: Any, AT: Columns, y: FloatArray, lam: float, columns: IntArray, cutoff: float, stop: BoolArray,
    x: FloatArray, z: FloatArray, costs: FloatArray,
) -> float:  # fmt: skip
    """Overwrite the start x by a model near the best one on all ``columns``, and z by Ax (plus the intercept, if any).

    ``costs`` receive about the cost of fixing each column to 0, zeros where the bound reaches the cut-off. Returns what
    it took in iterations of the gradient method, which are two products with the columns each.
    """
    m = columns.size
    gradient, step, trial_x, trial_z = np.empty(m), np.empty(m), np.empty(m), np.empty(y.size)
    b, values, weights, H = np.empty(y.size), np.empty(y.size), np.empty(y.size), np.empty((m, m))
    predict(AT, columns, x, z)
    value = total_value(loss, z, y, values, b) + 0.5 * lam * dot(x, x)
    start, before, stalled, majorise, known, work, closed = abs(value), np.inf, 0, 0, False, 0.5, False
    costs[:] = 0.0
    for _ in range(MAX_STEPS):
        correlate(AT, columns, b, gradient)
        for i in range(m):
            gradient[i] += lam * x[i]
        square = dot(gradient, gradient)
        work += 1.0
        closed = value - square / (2.0 * lam) >= cutoff
        if stop[0] or stalled >= 2 or _settled(value, square / (2.0 * lam), cutoff):
            break
        if not (known and square <= REUSED * REUSED * before):
            if majorise > 0:
                loss_majorizer(loss, z, y, weights)
            else:
                loss_curvature(loss, z, y, weights)
            work += 0.25 * m
            if not (fit_hessian(loss, AT, columns, weights, lam, stop, H) and cholesky(H)):
                if majorise > 0 or stop[0]:
                    return work
                majorise = MAJORISER_STEPS
                continue
        before = square
        step[:] = gradient
        cholesky_solve(H, step)
        slope, length = dot(gradient, step), 1.0
        while True:
            for i in range(m):
                trial_x[i] = x[i] - length * step[i]
            predict(AT, columns, trial_x, trial_z)
            trial = total_value(loss, trial_z, y, values, b) + 0.5 * lam * dot(trial_x, trial_x)
            work += 0.5
            # Near the minimum the decrease drowns in rounding: take the full step, which still refines x.
            if trial <= value - 1e-4 * length * slope or slope <= 1e-13 * (abs(value) + start):
                break
            length *= 0.5
            if length < SHORTEST:
                break
        known = majorise == 0 and length == 1.0
        if length < SHORTEST:
            if majorise > 0:
                break
            majorise = MAJORISER_STEPS
            total_value(loss, z, y, values, b)  # the slopes are still those of the step that was given up
            continue
        majorise = MAJORISER_STEPS if majorise == 0 and length < 0.1 else max(0, majorise - 1)
        stalled = 0 if trial < value else stalled + 1
        value = trial
        x[:] = trial_x
        z[:] = trial_z
    if not closed and not stop[0]:
        if not known:
            loss_curvature(loss, z, y, weights)
            work += 0.25 * m
            known = fit_hessian(loss, AT, columns, weights, lam, stop, H) and cholesky(H)
        if known:
            _write_costs(H, x, costs)
    return work


@njit
def _write_costs(factor: FloatArray, x: FloatArray, costs: FloatArray) -> None:
    """x_j^2 / (2 K_jj), K the inverse of the matrix with this Cholesky factor: K_jj = ||factor^-1 e_j||^2."""
    m = x.size
    column = np.empty(m)
    for j in range(m):
        total = 0.0
        for i in range(j, m):
            rest = 1.0 if i == j else 0.0
            column[i] = (rest - dot(factor[i, j:i], column[j:i])) / factor[i, i]
            total += column[i] * column[i]
        costs[j] = 0.5 * x[j] * x[j] / total


@choose_by_type("form")
def begin_at_fit(
    loss: Any, form: Any, lam: float, cutoff: float, stop: BoolArray, x: FloatArray, image: FloatArray,
    costs: FloatArray,
) -> float:  # fmt: skip
    """:func:`newton_fit` on a node's columns where its form has the rows; elsewhere nothing, at no cost.

    ``costs`` are of units (units,), x of columns.
    """
    return 0.0


@begin_at_fit.register(RowsForm)
def _rows_begin_at_fit(
    loss: Any, form: Any, lam: float, cutoff: float, stop: BoolArray, x: FloatArray, image: FloatArray,
    costs: FloatArray,
) -> float:  # fmt: skip
    return float(newton_fit(loss, form.AT, form.y, lam, form.columns, cutoff, stop, x, image, costs))


@begin_at_fit.register(GroupedForm)
def _grouped_begin_at_fit(
    loss: Any, form: Any, lam: float, cutoff: float, stop: BoolArray, x: FloatArray, image: FloatArray,
    costs: FloatArray,
) -> float:  # fmt: skip
    """Approximate the cost of fixing a group to 0 by the sum over its columns.

    That is exact where they are orthogonal: only where to branch depends on it.
    """
    each = np.zeros(x.size)
    work = begin_at_fit(loss, form.inner, lam, cutoff, stop, x, image, each)
    unit_sums(each, form.first, costs)
    return float(work)
