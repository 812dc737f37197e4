"""Fits on sets of columns by Newton's method, with bounds by a single step, and costs of removing a column.

At predictions z a Newton step d for the columns T of a set solves (A_T' W A_T + lam I) d = -(A_T' b + lam x), with b =
grad L(z) and W the curvatures there. The vector b' = b + W A_T d is the gradient the step promises, and A_T' b' = -lam
(x + d) *exactly*: so formula (2) of :mod:`exactsel.kernels.dual` loses nothing by the columns of the set, however small
lam is, and its value is off by the fourth order only of what is left to the minimum. That is so where the minimum lies
at infinity, too, as with classes that are separated: there every step takes as much off the predictions, but b' comes
close to the limit twice as fast. For any b', (2) holds, and its rounding is allowed for: it is taken as the gradient at
some z', by the conjugate of the loss.

The same step serves the set without one of its columns, with the curvatures of the whole set: W need not be those at
the place where b is. No matrix is factorised again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from exactsel._jit import njit
from exactsel.kernels.columns import Columns
from exactsel.kernels.dual import dual_at_point, node_bound
from exactsel.kernels.levels import plain_rows, row_bend
from exactsel.kernels.linalg import add_scaled, cholesky, cholesky_solve, correlate, dot, predict
from exactsel.kernels.loss import point_conjugate_derivative, point_project
from exactsel.kernels.rows import weighted_gram
from exactsel.types import FloatArray, IntArray

NEWTON_STEPS = 60

CONVERGED = 1e-9
"""Part of the objective that a Newton step must promise for another to be made."""

CLOSE = 0.1
"""Part of the objective that a step may promise for its bound to be worth a look."""


class Fitting(NamedTuple):
    """A problem, as it is fitted here: an intercept is one more column, and all columns are scaled."""

    loss: Any
    """Of a row, without weights or intercept."""
    row_loss: Any
    """Of all rows, with them."""
    B: FloatArray
    """(m, n) the scaled columns, those of the data first."""
    ridge: FloatArray
    """(m,)"""
    weights: FloatArray
    """(n,)"""
    y: FloatArray
    """(n,)"""
    AT: Columns
    """The columns of the data as they are, ..."""
    norms: FloatArray
    """... (d,) their lengths, rounded upwards, ..."""
    lam: float
    """... and their ridge."""


class Place(NamedTuple):
    """Where a fit stands, and room to work in; all (n,)."""

    z: FloatArray
    values: FloatArray
    slopes: FloatArray
    bends: FloatArray
    spare: FloatArray


@njit
def new_place(n: int) -> Place:
    """Room for n rows."""
    return Place(np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n))


@njit
def _evaluate(data: Fitting, used: IntArray, x: FloatArray, at: Place) -> float:
    """The objective; slopes (weights included) of the rows at z = B x."""
    predict(data.B, used, x, at.z)
    plain_rows(data.loss, at.z, data.y, at.values, at.slopes)
    value = 0.0
    for a in range(used.size):
        value += 0.5 * data.ridge[used[a]] * x[a] * x[a]
    return float(value + dot(data.weights, at.values))


@njit
def _gradient(data: Fitting, used: IntArray, x: FloatArray, at: Place, gradient: FloatArray) -> None:
    """Also makes slopes those with weights, and bends those of the rows."""
    for i in range(data.y.size):
        at.bends[i] = data.weights[i] * row_bend(data.loss, at.z[i], data.y[i], at.slopes[i])
        at.slopes[i] *= data.weights[i]
    correlate(data.B, used, at.slopes, gradient)
    for a in range(used.size):
        gradient[a] += data.ridge[used[a]] * x[a]


@njit
def bound_by_step(
    data: Fitting, used: IntArray, chosen: IntArray, slopes: FloatArray, bends: FloatArray, step: FloatArray,
    z: FloatArray, b: FloatArray,
) -> float:  # fmt: skip
    """A lower bound of the objective on the columns ``chosen`` of the data: formula (2) at slopes + bends * B step.

    z and b are overwritten.
    """
    predict(data.B, used, step, z)
    for i in range(z.size):
        weight = data.weights[i]
        promised = point_project(data.loss, (slopes[i] + bends[i] * z[i]) / weight, data.y[i])
        z[i] = point_conjugate_derivative(data.loss, promised, data.y[i])
    m = chosen.size
    q, v = np.empty(m), np.empty(m)
    base = dual_at_point(data.row_loss, data.AT, data.y, data.norms, chosen, z, b, q, v)
    return float(node_bound(base, q, m, 0, data.lam, np.empty(1)))


@njit
def fit_until(
    data: Fitting, used: IntArray, chosen: IntArray, enough: float, x: FloatArray, H: FloatArray, at: Place
) -> tuple[float, float, int]:
    """Minimise the objective on the columns ``used`` from x on, which is overwritten, until a bound is ``enough``.

    ``chosen`` are those of the data among them. Returns the objective, its bound and the steps; -1 of them where a
    Newton system was singular. H receives the Cholesky factor of the last one, ``at`` what was there.
    """
    m, last, value = used.size, np.inf, np.inf
    gradient, step = np.empty(m), np.zeros(m)
    for count in range(1, NEWTON_STEPS + 1):
        value = _evaluate(data, used, x, at)
        if not value <= last + CONVERGED * abs(last):
            for a in range(m):
                step[a] *= 0.5
                x[a] -= step[a]
            continue
        last = value
        _gradient(data, used, x, at, gradient)
        weighted_gram(data.loss, data.B, used, at.bends, 0.0, H)
        for a in range(m):
            H[a, a] += data.ridge[used[a]]
        if not cholesky(H):
            return value, -np.inf, -1
        for a in range(m):
            step[a] = -gradient[a]
        cholesky_solve(H, step)
        promised = -dot(gradient, step)
        done = not promised > CONVERGED * abs(value)
        if done or (promised < CLOSE * value and value - 0.5 * promised >= enough):
            bound = bound_by_step(data, used, chosen, at.slopes, at.bends, step, at.z, at.spare)
            if done or bound >= enough:
                return value, bound, count
        for a in range(m):
            x[a] += step[a]
    return value, -np.inf, NEWTON_STEPS


@njit
def bound_without(
    data: Fitting, used: IntArray, a: int, rest: IntArray, x: FloatArray, K: FloatArray, bends: FloatArray, at: Place
) -> float:
    """A lower bound of the objective without the column ``used[a]``, from the fit x with it.

    K is the inverse of the Hessian there and ``bends`` its curvatures; ``rest`` are the other columns of the data. Two
    steps: to the least value without the column of the quadratic function that K belongs to, and one from there.
    """
    m = used.size
    moved, gradient, step = np.empty(m), np.empty(m), np.empty(m)
    for i in range(m):
        moved[i] = x[i] - x[a] * K[i, a] / K[a, a]
    moved[a] = 0.0
    _evaluate(data, used, moved, at)
    for i in range(at.slopes.size):
        at.slopes[i] *= data.weights[i]
    correlate(data.B, used, at.slopes, gradient)
    for i in range(m):
        gradient[i] += data.ridge[used[i]] * moved[i]
        step[i] = 0.0
    gradient[a] = 0.0
    for i in range(m):
        add_scaled(step, -gradient[i], K[i])
    add_scaled(step, -step[a] / K[a, a], K[a])
    step[a] = 0.0
    return float(bound_by_step(data, used, rest, at.slopes, bends, step, at.z, at.spare))
