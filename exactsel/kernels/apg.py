"""Accelerated proximal gradient on the perspective relaxation of a node, for any loss and in Gram form.

The relaxation of (S, C) with r places is   min_x L(Ax) + (lam/2)(||x_S||^2 + squared k-support norm of x_C),
and by duality its minimum is the best bound (2). Every iterate's gradient is a dual vector, so each iteration gives
a valid bound for free. A node stops as soon as its bound reaches the cut-off (force-quit), or once it is clear that
it will not: when the relaxation lies below the cut-off, and the gap left inside it is not large against what is
missing, branching helps more than polishing.

With a general loss the steps are found by backtracking (Beck, Teboulle, A fast iterative shrinkage-thresholding
algorithm, 2009). Momentum with gradient restart: O'Donoghue, Candes, Adaptive restart for accelerated gradient
schemes (2015).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from exactsel._jit import njit, prange
from exactsel.kernels.dual import dual_at_point, dual_from_gram, node_bound
from exactsel.kernels.linalg import dot, predict, symmetric_times_sparse
from exactsel.kernels.node import (
    CUT,
    ILL_CONDITIONED,
    UNFINISHED,
    Answers,
    is_convex,
    node_columns,
    solved_columns,
    write_relaxed,
    write_solved,
)
from exactsel.kernels.refit import gram_refit, newton_refit
from exactsel.kernels.rows import total_value
from exactsel.kernels.selection import prox_k_support
from exactsel.types import BoolArray, FloatArray, StateArray

FIRST_STEP = 4.0
"""Steps begin this many times as long as the Lipschitz constant calls for, which is that of all columns at the largest
curvature of the loss, and are halved when they overshoot. That cannot make a bound wrong, since any point gives one
(measured: half the iterations for logistic loss)."""


class GramData(NamedTuple):
    """What the quadratic loss needs of the data: G = A'A, b = A'y, ||y||^2/2, rows, column norms."""

    G: FloatArray
    b: FloatArray
    constant: float
    rows: int
    norms: FloatArray


class RawData(NamedTuple):
    """The data themselves: A' (d, n), y and column norms."""

    AT: FloatArray
    y: FloatArray
    norms: FloatArray


class Rules(NamedTuple):
    """When a node's iteration ends."""

    lipschitz: float
    """Of the gradient of x -> L(Ax), in the Euclidean norm."""
    max_iterations: int
    accuracy: float
    """Relative gap at which the relaxation counts as solved."""
    polish: float
    """Stop once the relaxation lies below the cut-off and its gap is at most this many times what is missing ..."""
    progress: float
    """... and at most this part of what the relaxation can add to the bound the node came with."""


@njit
def _extrapolate(ahead: FloatArray, new: FloatArray, old: FloatArray, momentum: float) -> None:
    for i in range(new.size):
        ahead[i] = new[i] + momentum * (new[i] - old[i])


@njit
def _turns_back(w: FloatArray, new: FloatArray, old: FloatArray) -> bool:
    """Whether the last step points against the momentum (time to restart)."""
    total = 0.0
    for i in range(w.size):
        total += (w[i] - new[i]) * (new[i] - old[i])
    return total > 0.0


@njit
def _overshoots(rise: float, w: FloatArray, new: FloatArray, slope: FloatArray, step: float) -> bool:
    """Whether the loss rose, from w to ``new``, by more than the parabola allows that the step was made with."""
    linear, square = 0.0, 0.0
    for i in range(w.size):
        move = new[i] - w[i]
        linear += slope[i] * move
        square += move * move
    return rise > linear + 0.5 * square / step


@njit
def _settled(best: float, relaxation: float, cutoff: float, known: float, rules: Rules) -> bool:
    """Whether more iterations cannot pay: solved, or the node will not be closed and its bound is good enough.

    ``best`` <= optimum of the relaxation <= ``relaxation``; ``known`` is the bound the node came with.
    """
    if relaxation == np.inf:
        return False
    gap = relaxation - best
    if gap <= rules.accuracy * max(1e-300, abs(relaxation)):
        return True
    if not relaxation < cutoff < np.inf:
        return False
    enough = best >= known and gap <= rules.progress * (relaxation - known)
    return bool(gap <= rules.polish * (cutoff - relaxation) and (enough or relaxation <= known))


@njit
def gram_node(
    data: GramData, lam: float, k: int, rules: Rules, state: StateArray, start: FloatArray,
    cutoff: float, known: float, stop: BoolArray, answers: Answers, row: int,
) -> None:  # fmt: skip
    """Bound one node of a quadratic problem."""
    columns, fixed = node_columns(state)
    if is_convex(columns, fixed, k):
        columns = solved_columns(columns, fixed, k)
    m, places = columns.size, k - fixed
    G, b, norms = np.empty((m, m)), np.empty(m), np.empty(m)
    for i in range(m):
        for j in range(m):
            G[i, j] = data.G[columns[i], columns[j]]
        b[i] = data.b[columns[i]]
        norms[i] = data.norms[columns[i]]
    x, Gx, q = np.empty(m), np.empty(m), np.empty(m)
    if is_convex(columns, fixed, k):
        if not gram_refit(data.G, data.b, data.constant, lam, columns, x) > -np.inf:
            answers.status[row] = ILL_CONDITIONED
            return
        symmetric_times_sparse(G, x, Gx)
        base = dual_from_gram(Gx, b, data.constant, data.rows, norms, x, q)
        write_solved(answers, row, columns, x, node_bound(base, q, m, 0, lam, np.empty(1)))
        return
    for i in range(m):
        x[i] = start[columns[i]]
    symmetric_times_sparse(G, x, Gx)
    w, Gw, new, Gnew, u = x.copy(), Gx.copy(), np.empty(m), np.empty(m), np.empty(m)
    point, point_q, ranked = x.copy(), np.zeros(m), np.empty(places + 1)
    best, relaxation, point_base, level, t = -np.inf, np.inf, -np.inf, 0.0, 1.0
    step = 1.0 / rules.lipschitz
    iterations = 0
    finished = True
    while True:
        base = dual_from_gram(Gx, b, data.constant, data.rows, norms, x, q)
        bound = node_bound(base, q, fixed, places, lam, ranked)
        if bound > best:
            best, point_base = bound, base
            point[:] = x
            point_q[:] = q
        if best >= cutoff or iterations >= rules.max_iterations or _settled(best, relaxation, cutoff, known, rules):
            break
        if stop[0]:
            finished = False
            break
        iterations += 1
        for i in range(m):
            u[i] = w[i] - step * (Gw[i] - b[i])
        norm, level = prox_k_support(u, fixed, places, step * lam, level, new)
        symmetric_times_sparse(G, new, Gnew)
        relaxation = min(relaxation, data.constant + 0.5 * dot(new, Gnew) - dot(new, b) + 0.5 * lam * norm)
        if _turns_back(w, new, x):
            t = 1.0
            w[:] = new
            Gw[:] = Gnew
        else:
            following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
            _extrapolate(w, new, x, (t - 1.0) / following)
            _extrapolate(Gw, Gnew, Gx, (t - 1.0) / following)
            t = following
        x[:] = new
        Gx[:] = Gnew
    write_relaxed(answers, row, columns, fixed, k, lam, point_base, point_q, point, x, cutoff)
    answers.iterations[row] = iterations
    if not finished:
        answers.status[row] = UNFINISHED


@njit
def data_node(
    loss: Any, data: RawData, lam: float, k: int, rules: Rules, state: StateArray, start: FloatArray,
    cutoff: float, known: float, stop: BoolArray, answers: Answers, row: int,
) -> None:  # fmt: skip
    """Bound one node of a problem with any loss."""
    columns, fixed = node_columns(state)
    n = data.y.size
    zx, b = np.empty(n), np.empty(n)
    if is_convex(columns, fixed, k):
        columns = solved_columns(columns, fixed, k)
    m, places = columns.size, k - fixed
    x, q, v = np.empty(m), np.empty(m), np.empty(m)
    for i in range(m):
        x[i] = start[columns[i]]
    if is_convex(columns, fixed, k):
        newton_refit(loss, data.AT, data.y, lam, columns, 0.0, x, zx, cutoff + 1e-12 * abs(cutoff))
        base = dual_at_point(loss, data.AT, data.y, data.norms, columns, zx, b, q, v)
        bound = node_bound(base, q, m, 0, lam, np.empty(1))
        write_solved(answers, row, columns, x, bound)
        if bound >= cutoff:
            answers.status[row] = CUT  # perhaps before x was the minimiser
        return
    predict(data.AT, columns, x, zx)
    w, zw, new, znew, u = x.copy(), zx.copy(), x.copy(), np.empty(n), np.empty(m)
    values, slopes = np.empty(n), np.empty(n)
    point, point_q, ranked = x.copy(), np.zeros(m), np.empty(places + 1)
    best, relaxation, point_base, level, t = -np.inf, np.inf, -np.inf, 0.0, 1.0
    step = FIRST_STEP / rules.lipschitz
    iterations = 0
    finished = True
    while True:
        base = dual_at_point(loss, data.AT, data.y, data.norms, columns, zw, b, q, v)
        bound = node_bound(base, q, fixed, places, lam, ranked)
        if bound > best:
            best, point_base = bound, base
            point[:] = w
            point_q[:] = q
        if best >= cutoff or iterations >= rules.max_iterations or _settled(best, relaxation, cutoff, known, rules):
            break
        if stop[0]:
            finished = False
            break
        iterations += 1
        here = base + dot(b, zw)
        while True:
            for i in range(m):
                u[i] = w[i] - step * v[i]
            norm, level = prox_k_support(u, fixed, places, step * lam, level, new)
            predict(data.AT, columns, new, znew)
            there = total_value(loss, znew, data.y, values, slopes)
            if step * rules.lipschitz <= 1.0 or not _overshoots(there - here, w, new, v, step):
                break
            step = max(0.5 * step, 1.0 / rules.lipschitz)
        relaxation = min(relaxation, there + 0.5 * lam * norm)
        if _turns_back(w, new, x):
            t = 1.0
            w[:] = new
            zw[:] = znew
        else:
            following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
            _extrapolate(w, new, x, (t - 1.0) / following)
            _extrapolate(zw, znew, zx, (t - 1.0) / following)
            t = following
        x[:] = new
        zx[:] = znew
    write_relaxed(answers, row, columns, fixed, k, lam, point_base, point_q, point, x, cutoff)
    answers.iterations[row] = iterations
    if not finished:
        answers.status[row] = UNFINISHED


@njit(parallel=True)
def apg_gram(
    data: GramData, lam: float, k: int, rules: Rules, states: StateArray, starts: FloatArray,
    cutoff: float, known: FloatArray, stop: BoolArray, answers: Answers,
) -> None:  # fmt: skip
    """Bound every node (a row of ``states``) of a quadratic problem, warm-started from ``starts``.

    ``known`` (B,) are the bounds the nodes came with: a call that does not beat them would be for nothing.
    """
    for row in prange(states.shape[0]):
        gram_node(data, lam, k, rules, states[row], starts[row], cutoff, known[row], stop, answers, row)


@njit(parallel=True)
def apg_data(
    loss: Any, data: RawData, lam: float, k: int, rules: Rules, states: StateArray, starts: FloatArray,
    cutoff: float, known: FloatArray, stop: BoolArray, answers: Answers,
) -> None:  # fmt: skip
    """Bound every node of a problem with any loss, on the data themselves."""
    for row in prange(states.shape[0]):
        data_node(loss, data, lam, k, rules, states[row], starts[row], cutoff, known[row], stop, answers, row)
