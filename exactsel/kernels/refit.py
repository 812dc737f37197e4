"""Exact minimiser of the objective on a given support: damped (semismooth) Newton on the data.

Gradients are recomputed from the data in every step, so the iteration refines its own rounding errors; for the
quadratic loss it is Cholesky with iterative refinement.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from exactsel._jit import choose_by_type, njit, prange
from exactsel.kernels.cells import fit_on_cells, has_cells
from exactsel.kernels.columns import Columns
from exactsel.kernels.dual import dual_at_point, node_bound
from exactsel.kernels.linalg import cholesky, cholesky_solve, correlate, dot, predict
from exactsel.kernels.rows import loss_curvature, loss_majorizer, total_value, weighted_gram
from exactsel.losses.logistic import AdjustedLogistic, Logistic
from exactsel.types import BoolArray, FloatArray, IntArray

MAX_STEPS = 300

SHORTEST = 1e-4
"""Step length at which Newton's direction is given up."""

MAJORISER_STEPS = 5
"""Majoriser steps before Newton is tried again."""

SINGULAR = 1e-12
"""Part of its diagonal to add to a singular Newton system, such as that of two copies whose ridge is lost in rounding.
It shortens steps; gradients are recomputed from the data."""


@njit
def _factorised(
    loss: Any, AT: Columns, columns: IntArray, weights: FloatArray, lam: float, H: FloatArray, added: float
) -> bool:
    """Write the Cholesky factor of the Newton system; where it is singular, of one with so much more curvature."""
    weighted_gram(loss, AT, columns, weights, lam, H)
    if cholesky(H):
        return True
    if not added > 0.0:
        return False
    weighted_gram(loss, AT, columns, weights, lam, H)
    for i in range(columns.size):
        H[i, i] *= 1.0 + added
    return bool(cholesky(H))


@njit
def newton_refit(
    loss: Any, AT: Columns, y: FloatArray, lam: float, columns: IntArray,
    tolerance: float, x: FloatArray, z: FloatArray, stop_above: float = np.inf, added: float = 0.0,
) -> tuple[float, float]:  # fmt: skip
    """Minimise the objective over models on ``columns``, starting from and overwriting x; z = A x on return
    (plus the intercept where there is one).

    A Newton step that needs heavy damping (Huber's curvature vanishes at outliers) gives way to a few steps that
    minimise a quadratic majoriser of the loss, which always descend, before Newton is tried again.

    Stops once the gradient norm is at most ``tolerance``, or nothing more can be gained in floating point, or the
    minimum is certainly not below ``stop_above`` (the ridge makes it at least value - norm^2 / 2 lam).
    Returns (objective, gradient norm); the gradient norm is inf when a Newton system was singular. With ``added``
    (such as :data:`SINGULAR`) such systems get more curvature, that part of their diagonal: the gradient then comes
    down in all directions but those in which columns depend on each other.
    """
    m = columns.size
    gradient, trial_x, trial_z = np.empty(m), np.empty(m), np.empty(y.size)
    b, values, weights, H = np.empty(y.size), np.empty(y.size), np.empty(y.size), np.empty((m, m))
    predict(AT, columns, x, z)
    value = total_value(loss, z, y, values, b) + 0.5 * lam * dot(x, x)
    norm, start = np.inf, abs(value)
    stalled, majorise = 0, 0
    for _ in range(MAX_STEPS):
        correlate(AT, columns, b, gradient)
        for i in range(m):
            gradient[i] += lam * x[i]
        norm = dot(gradient, gradient) ** 0.5
        if norm <= tolerance or stalled >= 2 or (lam > 0.0 and 2.0 * lam * (value - stop_above) >= norm * norm):
            break
        if majorise > 0:
            loss_majorizer(loss, z, y, weights)
        else:
            loss_curvature(loss, z, y, weights)
        if not _factorised(loss, AT, columns, weights, lam, H, added):
            if majorise > 0:
                return value, np.inf
            majorise = MAJORISER_STEPS
            continue
        step = gradient.copy()
        cholesky_solve(H, step)
        slope = dot(gradient, step)
        length = 1.0
        while True:
            for i in range(m):
                trial_x[i] = x[i] - length * step[i]
            predict(AT, columns, trial_x, trial_z)
            trial = total_value(loss, trial_z, y, values, b) + 0.5 * lam * dot(trial_x, trial_x)
            # Near the minimum the decrease drowns in rounding: take the full step, which still refines x.
            if trial <= value - 1e-4 * length * slope or slope <= 1e-13 * (abs(value) + start):
                break
            length *= 0.5
            if length < SHORTEST:
                break
        if length < SHORTEST:
            if majorise > 0:
                return value, norm
            majorise = MAJORISER_STEPS
            total_value(loss, z, y, values, b)  # the slopes are still those of the step that was given up
            continue
        majorise = MAJORISER_STEPS if majorise == 0 and length < 0.1 else max(0, majorise - 1)
        stalled = 0 if trial < value else stalled + 1
        value = trial
        x[:] = trial_x
        z[:] = trial_z
    return value, norm


@choose_by_type("loss")
def quick_refit(
    loss: Any, AT: Columns, y: FloatArray, lam: float, columns: IntArray, tolerance: float, x: FloatArray,
    stop_above: float,
) -> tuple[float, float]:  # fmt: skip
    """:func:`newton_refit` without predictions: for logistic loss on cells where there are any."""
    value, norm = newton_refit(loss, AT, y, lam, columns, tolerance, x, np.empty(y.size), stop_above)
    return value, norm


@quick_refit.register(Logistic)
def _logistic_quick_refit(
    loss: Any, AT: Columns, y: FloatArray, lam: float, columns: IntArray, tolerance: float, x: FloatArray,
    stop_above: float,
) -> tuple[float, float]:  # fmt: skip
    if has_cells(AT, columns, y.size):
        value, norm = fit_on_cells(AT, y, np.empty(0), False, lam, columns, tolerance, x, stop_above)
    else:
        value, norm = newton_refit(loss, AT, y, lam, columns, tolerance, x, np.empty(y.size), stop_above)
    return value, norm


@quick_refit.register(AdjustedLogistic)
def _adjusted_quick_refit(
    loss: Any, AT: Columns, y: FloatArray, lam: float, columns: IntArray, tolerance: float, x: FloatArray,
    stop_above: float,
) -> tuple[float, float]:  # fmt: skip
    if has_cells(AT, columns, y.size):
        value, norm = fit_on_cells(AT, y, loss.weights, loss.levelled, lam, columns, tolerance, x, stop_above)
    else:
        value, norm = newton_refit(loss, AT, y, lam, columns, tolerance, x, np.empty(y.size), stop_above)
    return value, norm


@njit(parallel=True)
def newton_bounds(
    loss: Any, AT: Columns, y: FloatArray, norms: FloatArray, lam: float, supports: IntArray,
    tolerance: float, stop_above: float, stop: BoolArray, bounds: FloatArray, models: FloatArray,
) -> None:  # fmt: skip
    """A lower bound of the objective of each support (a row, padded with -1): formula (2) where Newton's method ends.

    It goes no further than to show that a support is ``stop_above``. -inf after a stop. Rows of ``models`` hold the
    coefficients to begin at, and receive those there.
    """
    for i in prange(supports.shape[0]):
        bounds[i] = -np.inf
        if not stop[0]:
            columns = supports[i][supports[i] >= 0]
            m = columns.size
            x, q, v = models[i, :m].copy(), np.empty(m), np.empty(m)
            quick_refit(loss, AT, y, lam, columns, tolerance, x, stop_above)
            models[i, :m] = x
            z, b = np.empty(y.size), np.empty(y.size)  # not before: rows may be many
            predict(AT, columns, x, z)
            base = dual_at_point(loss, AT, y, norms, columns, z, b, q, v)
            bounds[i] = node_bound(base, q, m, 0, lam, np.empty(1))


@njit
def gram_refit(G: FloatArray, b: FloatArray, constant: float, lam: float, columns: IntArray, x: FloatArray) -> float:
    """Quadratic loss from the Gram matrix: write the minimiser to x and return its objective; nan when singular."""
    m = columns.size
    H = np.empty((m, m))
    for i in range(m):
        for j in range(i + 1):
            H[i, j] = G[columns[i], columns[j]]
        H[i, i] += lam
        x[i] = b[columns[i]]
    if not cholesky(H):
        return np.nan
    cholesky_solve(H, x)
    fitted = 0.0
    for i in range(m):
        fitted += x[i] * b[columns[i]]
    return constant - 0.5 * fitted


@njit(parallel=True)
def newton_objectives(
    loss: Any, AT: Columns, y: FloatArray, lam: float, supports: IntArray,
    tolerance: float, values: FloatArray,
) -> None:  # fmt: skip
    """Objective of each support (a row, padded with -1) by :func:`newton_refit`; nan where it failed."""
    for i in prange(supports.shape[0]):
        columns = supports[i][supports[i] >= 0]
        x = np.zeros(columns.size)
        value, norm = quick_refit(loss, AT, y, lam, columns, tolerance, x, np.inf)
        values[i] = value if norm < np.inf else np.nan


@njit(parallel=True)
def gram_objectives(
    G: FloatArray, b: FloatArray, constant: float, lam: float, supports: IntArray, values: FloatArray
) -> None:
    """Objective of each support (a row, padded with -1) by :func:`gram_refit`."""
    for i in prange(supports.shape[0]):
        columns = supports[i][supports[i] >= 0]
        values[i] = gram_refit(G, b, constant, lam, columns, np.empty(columns.size))


@njit(parallel=True)
def gram_objectives_from_rows(
    AT: FloatArray, y: FloatArray, constant: float, lam: float, supports: IntArray, values: FloatArray
) -> None:
    """As :func:`gram_objectives`, each from the products of its own columns, where those of all are not made."""
    for i in prange(supports.shape[0]):
        columns = supports[i][supports[i] >= 0]
        m = columns.size
        G, b = np.empty((m, m)), np.empty(m)
        for a in range(m):
            b[a] = dot(AT[columns[a]], y)
            for c in range(a + 1):
                G[a, c] = dot(AT[columns[a]], AT[columns[c]])
        values[i] = gram_refit(G, b, constant, lam, np.arange(m), np.empty(m))
