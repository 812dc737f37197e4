"""Newton's method on the perspective relaxation itself, for losses without a closed form and a small ridge.

Where the gradient method would take thousands of steps, a proximal Newton method takes a few: the loss is replaced by
its second-order model at x, which needs no rows, and the model is minimised together with the penalty of the
relaxation, (lam/2)(||x_S||^2 + squared k-support norm of x_C). This is the minimum over indicators z of a weighted
ridge, (lam/2) sum of x_j^2 / z_j, so the model is minimised by turns: over x by a Cholesky factorisation, over z by
what attains the norm. Lee, Sun, Saunders, Proximal Newton-type methods (2014); Daubechies, DeVore, Fornasier, Gunturk,
Iteratively reweighted least squares (2010).

Every point's gradient is a dual vector, so the best bound met is kept, for any steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from exactsel._jit import choose_by_type, njit
from exactsel.kernels.dual import dual_at_point, node_bound
from exactsel.kernels.forms import RowsForm
from exactsel.kernels.linalg import cholesky, cholesky_solve, correlate, dot, predict
from exactsel.kernels.newton_fit import fit_hessian
from exactsel.kernels.refit import SHORTEST
from exactsel.kernels.rows import loss_curvature, loss_majorizer, total_value
from exactsel.kernels.selection import relaxed_indicators
from exactsel.types import BoolArray, FloatArray

MOST_STEPS = 30

FEWEST_TURNS, MOST_TURNS = 3, 40
"""Turns over a model, which cost a factorisation each and no pass over the rows."""

EXACT = 1e-6
"""Part of the objective that the bound may be short of the relaxation ..."""

ENOUGH = 0.1
"""... or part of what the relaxation is short of the cut-off, where it does not reach it."""

LEAST = 1e-5
"""Indicators of candidates, from below, so that a column can come back."""

TURN = 0.002
"""Turns over a model end with one that brings no more than this part of what all have brought."""

REUSED = 0.3
"""A Hessian is used again where the step before brought the gap down to this part of what it was."""


@njit
def k_support_norm(x: FloatArray, fixed: int, slots: int, z: FloatArray) -> float:
    """||x_S||^2 + squared k-support norm of x_C, and z, the indicators that attain it."""
    relaxed_indicators(x, fixed, slots, z)
    total = 0.0
    for j in range(x.size):
        if x[j] != 0.0:
            total += x[j] * x[j] / z[j]
    return total


@njit
def _times(M: FloatArray, x: FloatArray, out: FloatArray) -> None:
    """The product with a symmetric matrix of which the lower triangle is there."""
    m = x.size
    out[:] = 0.0
    for i in range(m):
        out[i] += dot(M[i, : i + 1], x[: i + 1])
        for j in range(i):
            out[j] += M[i, j] * x[i]


@njit
def minimise_model(
    M: FloatArray, linear: FloatArray, fixed: int, slots: int, lam: float, u: FloatArray, H: FloatArray
) -> bool:
    """From u on, minimise u'Mu/2 - linear'u + (lam/2)(||u_S||^2 + squared k-support norm of u_C).

    H is room for a matrix, of which the factor of the last turn is left. False where M is no matrix of a convex model.
    """
    m = u.size
    z, image = np.empty(m), np.empty(m)
    norm = k_support_norm(u, fixed, slots, z)
    _times(M, u, image)
    first = 0.5 * dot(u, image) - dot(linear, u) + 0.5 * lam * norm
    value = first
    for turn in range(MOST_TURNS):
        for i in range(m):
            H[i, : i + 1] = M[i, : i + 1]
            H[i, i] += lam / max(z[i], LEAST)
        if not cholesky(H):
            return False
        u[:] = linear
        cholesky_solve(H, u)
        norm = k_support_norm(u, fixed, slots, z)
        _times(M, u, image)
        new = 0.5 * dot(u, image) - dot(linear, u) + 0.5 * lam * norm
        if turn >= FEWEST_TURNS and not value - new > TURN * (first - new):
            break
        value = new
    return True


@njit
def _from_larger(
    loss: Any, form: RowsForm, fixed: int, slots: int, lam: float, stop: BoolArray, start: FloatArray, x: FloatArray,
    image: FloatArray, M: FloatArray, H: FloatArray,
) -> bool:  # fmt: skip
    """Where the start of all columns uses some that a node lacks, move x to the minimiser of the model made there.

    Without a column that mattered a start is so bad that Newton's method would take steps to make up for it. False
    where the start is the node's own.
    """
    used = np.flatnonzero(start)
    if used.size <= np.flatnonzero(x).size:
        return False
    AT, y, columns, n, m = form.AT, form.y, form.columns, form.y.size, x.size
    weights, values, slopes, linear, z = np.empty(n), np.empty(n), np.empty(n), np.empty(m), np.empty(m)
    predict(AT, used, start[used], image)
    total_value(loss, image, y, values, slopes)
    loss_curvature(loss, image, y, weights)
    if not fit_hessian(loss, AT, columns, weights, 0.0, stop, M):
        return True
    for i in range(n):
        slopes[i] = weights[i] * image[i] - slopes[i]
    correlate(AT, columns, slopes, linear)
    u = x.copy()
    if minimise_model(M, linear, fixed, slots, lam, u, H):
        predict(AT, columns, x, image)
        old = total_value(loss, image, y, values, slopes) + 0.5 * lam * k_support_norm(x, fixed, slots, z)
        predict(AT, columns, u, image)
        new = total_value(loss, image, y, values, slopes) + 0.5 * lam * k_support_norm(u, fixed, slots, z)
        if new < old:
            x[:] = u
    return True


@njit
def newton_relaxation(
    loss: Any, form: RowsForm, fixed: int, slots: int, lam: float, cutoff: float, stop: BoolArray, start: FloatArray,
    x: FloatArray, image: FloatArray,
) -> float:  # fmt: skip
    """Overwrite x by the point of the best bound met, the first ``fixed`` columns being S, and ``image`` by Ax.

    ``start`` is a model of all columns to begin at, x the node's part of it. Returns the work in iterations of the
    gradient method, which are two products with the columns each; less than 0 where it failed, as with columns of very
    different magnitude.
    """
    AT, y, columns, n, m = form.AT, form.y, form.columns, form.y.size, x.size
    q, v, z, ranked, linear, u = (
        np.empty(m), np.empty(m), np.empty(m), np.empty(slots + 1), np.empty(m), np.empty(m),
    )  # fmt: skip
    weights, trial_image, M, H = np.empty(n), np.empty(n), np.empty((m, m)), np.empty((m, m))
    best, relaxation, before, known, majorise, stalled, work = -np.inf, np.inf, np.inf, False, False, 0, 0.5
    if _from_larger(loss, form, fixed, slots, lam, stop, start, x, image, M, H):
        work += 1.5 + 0.25 * m
    point, at, trial = x.copy(), x.copy(), np.empty(m)
    predict(AT, columns, at, image)
    for _ in range(MOST_STEPS):
        base = dual_at_point(loss, AT, y, form.norms, columns, image, form.b, q, v)
        bound = node_bound(base, q, fixed, slots, lam, ranked)
        norm = k_support_norm(at, fixed, slots, z)
        value = total_value(loss, image, y, form.values, form.slopes) + 0.5 * lam * norm
        work += 1.0
        stalled = 0 if bound > best or value < relaxation else stalled + 1
        relaxation = min(relaxation, value)
        if bound > best:
            best, point[:] = bound, at
        gap = relaxation - best
        if stop[0] or stalled > 1 or best >= cutoff or gap <= EXACT * abs(relaxation):
            break
        if relaxation < cutoff < np.inf and gap <= ENOUGH * (cutoff - relaxation):
            break
        if not (known and gap <= REUSED * before):
            if majorise:
                loss_majorizer(loss, image, y, weights)
            else:
                loss_curvature(loss, image, y, weights)
            work += 0.25 * m
            if not fit_hessian(loss, AT, columns, weights, 0.0, stop, M):
                break
        before = gap
        _times(M, at, linear)
        for j in range(m):
            linear[j] -= v[j]
        u[:] = at
        if not minimise_model(M, linear, fixed, slots, lam, u, H):
            break
        slope = dot(v, u) - dot(v, at) + 0.5 * lam * (k_support_norm(u, fixed, slots, z) - norm)
        length = 1.0
        while True:
            for j in range(m):
                trial[j] = at[j] + length * (u[j] - at[j])
            predict(AT, columns, trial, trial_image)
            new = total_value(loss, trial_image, y, form.values, form.slopes)
            new += 0.5 * lam * k_support_norm(trial, fixed, slots, z)
            work += 0.5
            # Near the minimum the decrease drowns in rounding: the full step still brings the dual vector nearer.
            if new <= value + 1e-4 * length * slope or -slope <= 1e-13 * abs(value) or length < SHORTEST:
                break
            length *= 0.5
        known = length == 1.0 and not majorise
        if length < SHORTEST:
            if majorise:
                break
            majorise = True
            continue
        majorise = not majorise and length < 0.1
        at[:] = trial
        image[:] = trial_image
    x[:] = point
    predict(AT, columns, x, image)
    return work if best > 0.0 or stop[0] else -work


@choose_by_type("form")
def begin_at_relaxation(
    loss: Any, form: Any, fixed: int, slots: int, lam: float, cutoff: float, stop: BoolArray, start: FloatArray,
    x: FloatArray, image: FloatArray,
) -> float:  # fmt: skip
    """:func:`newton_relaxation` of a node whose units are columns and whose form has the rows; 0 elsewhere."""
    return 0.0


@begin_at_relaxation.register(RowsForm)
def _rows_begin_at_relaxation(
    loss: Any, form: Any, fixed: int, slots: int, lam: float, cutoff: float, stop: BoolArray, start: FloatArray,
    x: FloatArray, image: FloatArray,
) -> float:  # fmt: skip
    return float(newton_relaxation(loss, form, fixed, slots, lam, cutoff, stop, start, x, image))
