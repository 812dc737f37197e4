"""The best model in a box on given columns, quick: an active-set method on the Gram matrix, and Newton on the data.

The quadratic programme min (1/2) x'Hx - b'x over lower <= x <= upper is solved as in Nocedal and Wright, *Numerical
Optimization* (2006), algorithm 16.3: some coefficients are held at a limit, the others go to the minimum of the rest
until one meets a limit, and is held there; at the minimum the one is let go that gains most. For other losses each
step of Newton's method is such a programme.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from exactsel._jit import njit, prange
from exactsel.kernels.columns import Columns
from exactsel.kernels.linalg import cholesky, cholesky_solve, correlate, dot, predict
from exactsel.kernels.node import OUT
from exactsel.kernels.rows import loss_curvature, loss_majorizer, total_value, weighted_gram
from exactsel.types import BoolArray, FloatArray, IntArray, StateArray

FLAT = 1e-12
"""Part of the terms of a slope below which it is rounding."""

ROUNDS = 20
"""Times m + 1: changes of the set of held coefficients, after which the current point is taken for the minimum."""

STEPS, CONVERGED, SHORTEST, MAJORISER_STEPS = 100, 1e-14, 1e-4, 5
"""Newton's method: steps; part of the value that a step must promise; the shortest step; steps by a majoriser of the
loss after one that had to be shortened much."""


@njit
def _free_minimum(
    H: FloatArray, b: FloatArray, held: BoolArray, x: FloatArray, factor: FloatArray, goal: FloatArray
) -> int:
    """Write the minimum over what is not held, compact; how many that are, or -1 where H is singular on them."""
    m, count = b.size, 0
    for i in range(m):
        if held[i]:
            continue
        right, column = b[i], 0
        for j in range(m):
            if held[j]:
                right -= H[i, j] * x[j]
            elif j <= i:
                factor[count, column] = H[i, j]
                column += 1
        goal[count] = right
        count += 1
    part = factor[:count, :count]
    if not cholesky(part):
        return -1
    cholesky_solve(part, goal[:count])
    return count


@njit
def _go(lower: FloatArray, upper: FloatArray, held: BoolArray, x: FloatArray, goal: FloatArray) -> bool:
    """Move what is not held towards its goal, as far as the box goes; whether that was all the way."""
    length, blocking, at, place = 1.0, -1, 0.0, 0
    for i in range(x.size):
        if held[i]:
            continue
        if goal[place] < lower[i] or goal[place] > upper[i]:
            limit = lower[i] if goal[place] < lower[i] else upper[i]
            share = (limit - x[i]) / (goal[place] - x[i])
            if share < length:
                length, blocking, at = share, i, limit
        place += 1
    place = 0
    for i in range(x.size):
        if not held[i]:
            moved = goal[place] if length == 1.0 else x[i] + length * (goal[place] - x[i])
            x[i] = min(max(moved, lower[i]), upper[i])
            place += 1
    if blocking >= 0:
        x[blocking], held[blocking] = at, True
    return blocking < 0


@njit
def _let_go(H: FloatArray, b: FloatArray, lower: FloatArray, upper: FloatArray, held: BoolArray, x: FloatArray) -> bool:
    """Let the coefficient go that gains most when it leaves its limit; False where none gains."""
    most, which = 0.0, -1
    for i in range(x.size):
        if not held[i] or lower[i] == upper[i]:
            continue
        slope, size = -b[i], abs(b[i])
        for j in range(x.size):
            slope += H[i, j] * x[j]
            size += abs(H[i, j] * x[j])
        inwards = (slope < 0.0 and x[i] < upper[i]) or (slope > 0.0 and x[i] > lower[i])
        if inwards and abs(slope) > FLAT * size and slope * slope > most * H[i, i]:
            most, which = slope * slope / H[i, i], i
    if which >= 0:
        held[which] = False
    return which >= 0


@njit
def _change_held(
    H: FloatArray, b: FloatArray, lower: FloatArray, upper: FloatArray, held: BoolArray, x: FloatArray,
    factor: FloatArray, goal: FloatArray,
) -> bool:  # fmt: skip
    """Hold and let go until x (m,), a point in the box, is the minimum; False where H is singular on what is free."""
    for _ in range(ROUNDS * (b.size + 1)):
        if _free_minimum(H, b, held, x, factor, goal) < 0:
            return False
        if _go(lower, upper, held, x, goal) and not _let_go(H, b, lower, upper, held, x):
            break
    return True


@njit
def box_minimum(H: FloatArray, b: FloatArray, lower: FloatArray, upper: FloatArray, x: FloatArray) -> bool:
    """Write argmin (1/2) x'Hx - b'x over the box to x (m,); H (m, m) positive definite, both triangles of it.

    False where H is singular in doubles. What x holds before does not matter.
    """
    m = b.size
    held, factor, goal = np.zeros(m, dtype=np.bool_), np.empty((m, m)), np.empty(m)
    for i in range(m):
        x[i] = 0.0
    if _free_minimum(H, b, held, x, factor, goal) < 0:
        return False
    for i in range(m):
        x[i] = min(max(goal[i], lower[i]), upper[i])
        held[i] = x[i] != goal[i] or lower[i] == upper[i]
    return bool(_change_held(H, b, lower, upper, held, x, factor, goal))


@njit
def move_to_minimum(H: FloatArray, b: FloatArray, lower: FloatArray, upper: FloatArray, x: FloatArray) -> bool:
    """:func:`box_minimum` from a point x (m,) that is near it, which is moved into the box first.

    False where H is singular in doubles on what is not held; then x holds what was reached.
    """
    m = b.size
    held, factor, goal = np.zeros(m, dtype=np.bool_), np.empty((m, m)), np.empty(m)
    for i in range(m):
        x[i] = min(max(x[i], lower[i]), upper[i])
        held[i] = x[i] == lower[i] or x[i] == upper[i]
    return bool(_change_held(H, b, lower, upper, held, x, factor, goal))


@njit
def move_to_fits(
    G: FloatArray, b: FloatArray, lam: float, lower: FloatArray, upper: FloatArray, states: StateArray,
    starts: FloatArray,
) -> None:  # fmt: skip
    """Move each start (B, d) to the fit in the box on the columns of its node, a row of ``states`` (B, d)."""
    for row in range(states.shape[0]):
        columns = np.flatnonzero(states[row] != OUT)
        m = columns.size
        H, right, low, high, x = np.empty((m, m)), np.empty(m), np.empty(m), np.empty(m), np.empty(m)
        for i in range(m):
            j = columns[i]
            right[i], low[i], high[i], x[i] = b[j], lower[j], upper[j], starts[row, j]
            for c in range(m):
                H[i, c] = G[j, columns[c]]
            H[i, i] += lam
        move_to_minimum(H, right, low, high, x)
        starts[row] = 0.0
        for i in range(m):
            starts[row, columns[i]] = x[i]


@njit
def gram_box_refit(
    G: FloatArray, b: FloatArray, constant: float, lam: float, lower: FloatArray, upper: FloatArray, columns: IntArray
) -> float:
    """Quadratic loss from the Gram matrix: the smallest objective in the box (d,), (d,); nan when singular."""
    m = columns.size
    H, right, low, high, x = np.empty((m, m)), np.empty(m), np.empty(m), np.empty(m), np.empty(m)
    for i in range(m):
        j = columns[i]
        right[i], low[i], high[i] = b[j], lower[j], upper[j]
        for c in range(m):
            H[i, c] = G[j, columns[c]]
        H[i, i] += lam
    if not box_minimum(H, right, low, high, x):
        return np.nan
    value = constant
    for i in range(m):
        value += x[i] * (0.5 * dot(H[i], x) - right[i])
    return value


@njit
def _newton_goal(
    loss: Any, AT: Columns, columns: IntArray, weights: FloatArray, lam: float, gradient: FloatArray,
    low: FloatArray, high: FloatArray, x: FloatArray, step: FloatArray,
) -> float:  # fmt: skip
    """Write Newton's step in the box; what it promises, or -1 where its system is singular."""
    m = columns.size
    H, right = np.empty((m, m)), np.empty(m)
    weighted_gram(loss, AT, columns, weights, lam, H)
    for i in range(m):
        for j in range(i):
            H[j, i] = H[i, j]
    for i in range(m):
        right[i] = dot(H[i], x) - gradient[i]
    if not box_minimum(H, right, low, high, step):
        return -1.0
    for i in range(m):
        step[i] -= x[i]
    promised = 0.0
    for i in range(m):
        promised -= step[i] * (gradient[i] + 0.5 * dot(H[i], step))
    return max(promised, 0.0)


@njit
def newton_box_refit(
    loss: Any, AT: Columns, y: FloatArray, lam: float, lower: FloatArray, upper: FloatArray, columns: IntArray,
    x: FloatArray,
) -> float:  # fmt: skip
    """Minimise the objective in the box (d,), (d,) on ``columns``, from a point x (m,) in it, which is overwritten.

    Returns the objective of x, which is nan where a system was singular, and quick rather than exact otherwise.
    """
    m, n = columns.size, y.size
    low, high, gradient, step, trial_x = np.empty(m), np.empty(m), np.empty(m), np.empty(m), np.empty(m)
    for i in range(m):
        low[i], high[i] = lower[columns[i]], upper[columns[i]]
    z, b, values, weights, majorise = np.empty(n), np.empty(n), np.empty(n), np.empty(n), 0
    predict(AT, columns, x, z)
    value = total_value(loss, z, y, values, b) + 0.5 * lam * dot(x, x)
    for _ in range(STEPS):
        correlate(AT, columns, b, gradient)
        for i in range(m):
            gradient[i] += lam * x[i]
        if majorise > 0:
            loss_majorizer(loss, z, y, weights)
        else:
            loss_curvature(loss, z, y, weights)
        promised = _newton_goal(loss, AT, columns, weights, lam, gradient, low, high, x, step)
        if promised < 0.0 and majorise == 0:  # rows without curvature: those of a majoriser have some
            majorise = MAJORISER_STEPS
            continue
        if promised < 0.0:
            return np.nan
        if not promised > CONVERGED * abs(value):
            break
        length, trial = 1.0, np.inf
        while length >= SHORTEST:
            for i in range(m):
                trial_x[i] = min(max(x[i] + length * step[i], low[i]), high[i])
            predict(AT, columns, trial_x, z)
            trial = total_value(loss, z, y, values, b) + 0.5 * lam * dot(trial_x, trial_x)
            if trial <= value - 1e-4 * length * promised:
                break
            length *= 0.5
        if length >= SHORTEST and trial < value:
            majorise = MAJORISER_STEPS if majorise == 0 and length < 0.1 else max(0, majorise - 1)
            x[:] = trial_x
            value = trial
            continue
        if majorise > 0:
            break
        majorise = MAJORISER_STEPS
        predict(AT, columns, x, z)
        total_value(loss, z, y, values, b)
    return float(value)


@njit(parallel=True)
def gram_box_objectives(
    G: FloatArray, b: FloatArray, constant: float, lam: float, lower: FloatArray, upper: FloatArray,
    supports: IntArray, values: FloatArray,
) -> None:  # fmt: skip
    """Objective of each support (a row, padded with -1) by :func:`gram_box_refit`."""
    for i in prange(supports.shape[0]):
        columns = supports[i][supports[i] >= 0]
        values[i] = gram_box_refit(G, b, constant, lam, lower, upper, columns)


@njit(parallel=True)
def newton_box_objectives(
    loss: Any, AT: Columns, y: FloatArray, lam: float, lower: FloatArray, upper: FloatArray, supports: IntArray,
    values: FloatArray,
) -> None:  # fmt: skip
    """Objective of each support (a row, padded with -1) by :func:`newton_box_refit`."""
    for i in prange(supports.shape[0]):
        columns = supports[i][supports[i] >= 0]
        values[i] = newton_box_refit(loss, AT, y, lam, lower, upper, columns, np.zeros(columns.size))
