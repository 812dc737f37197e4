"""Primal-dual algorithm with line search (PDAL) on the dual of a node, the paper's solver of its bound.

The best bound (2) of a node is the value of the saddle-point problem

    min over beta, max over x of   L*(beta) - beta'Ax - h*(x),
    h(v) = (||v_S||^2 + sum of the r largest v_j^2, j in C) / (2 lam),

up to its sign (Sakaue, Marumo: best-first search, Algorithm 3). It is solved by the accelerated variant of Malitsky
and Pock (A first-order primal-dual algorithm with linesearch, 2018) for a strongly convex first term: L* is strongly
convex with modulus 1 / smoothness. One iteration is

    beta_k = prox_{tau L*}(beta_{k-1} + tau A x_k),     rho_k = rho_{k-1} (1 + modulus tau_{k-1}),
    x_{k+1} = prox_{rho_k tau_k h*}(x_k - rho_k tau_k A'(beta_k + theta_k (beta_k - beta_{k-1}))),

where theta_k = tau_k / tau_{k-1} and the line search lowers tau_k until the step in x is short enough. By Moreau's
identity beta_k = grad L(z) at z = prox_{L/tau}(beta_{k-1}/tau + A x_k): beta_k lies in the domain of L* for any
rounding, and Fenchel's equality evaluates the bound.

What a child inherits from its parent's last iteration is one flat array, the *memory* of a node:
``[tau, theta, rho, x (d), beta (n)]``. The stopping rule and the treatment of convex nodes are shared with
:mod:`exactsel.kernels.supergradient`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from exactsel._jit import njit, prange
from exactsel.kernels.columns import RawData, columns_of
from exactsel.kernels.dual import dual_at_point, node_bound
from exactsel.kernels.linalg import correlate, predict
from exactsel.kernels.loss import point_prox
from exactsel.kernels.node import (
    UNFINISHED,
    Answers,
    is_convex,
    node_columns,
    solved_columns,
    write_relaxed,
    write_solved,
)
from exactsel.kernels.refit import newton_refit
from exactsel.kernels.topk_prox import prox_conjugate
from exactsel.rounding import UNIT
from exactsel.types import BoolArray, FloatArray, IntArray, StateArray

STEPS = 3
"""Length of the head (tau, theta, rho) of a node's memory."""

SAFETY = 0.99
"""delta of the line search: its steps satisfy sqrt(rho) tau ||A dx|| <= delta ||dx||."""

BACKTRACK = 0.7
"""mu of the line search: the factor by which it lowers tau."""

LONGEST = 1e3
"""The line search starts at most this many times beyond the step that is safe for every x."""


class DualRules(NamedTuple):
    """When the iteration on a node ends; how long its steps may be."""

    norm: float
    """||A||_2, or a little more."""
    smoothness: float
    """Of the loss."""
    max_iterations: int
    accuracy: float
    """Change of the bound in one iteration, relative to the best objective known, at which it counts as solved."""


class DualOutputs(NamedTuple):
    """What a method on the dual returns besides :class:`exactsel.kernels.node.Answers`, one row a node."""

    beta: FloatArray
    """(B, n) the dual vector that proves the bound of a node that is not convex."""
    memory: FloatArray
    """(B, length) what the node's children inherit."""


@njit
def has_converged(bound: float, previous: float, best: float, accuracy: float, upper: float) -> bool:
    """The paper's stopping rule (section 3.1): the bound hardly changes, and it is no worse than the best so far.

    ``upper``, the best objective known, is the scale; without one the bound itself is.
    """
    scale = abs(upper) if upper < np.inf else abs(bound)
    return bool(abs(bound - previous) <= accuracy * max(scale, 1e-300) and bound >= best)


@njit
def solve_convex(
    loss: Any, data: RawData, lam: float, columns: IntArray, x: FloatArray, answers: Answers, row: int
) -> None:
    """Answer for a convex node: the minimiser on ``columns`` (the paper's Algorithm 2, steps 1 to 4), from x."""
    m = columns.size
    z, b, q, v = np.empty(data.y.size), np.empty(data.y.size), np.empty(m), np.empty(m)
    newton_refit(loss, columns_of(data), data.y, lam, columns, 0.0, x, z)
    base = dual_at_point(loss, columns_of(data), data.y, data.norms, columns, z, b, q, v)
    write_solved(answers, row, columns, x, node_bound(base, q, m, 0, lam, np.empty(1)))


@njit
def _dual_step(loss: Any, y: FloatArray, beta: FloatArray, tau: float, Ax: FloatArray, z: FloatArray) -> None:
    """Write the z at which prox_{tau L*}(beta + tau A x) is the gradient of L."""
    for i in range(z.size):
        z[i] = point_prox(loss, beta[i] / tau + Ax[i], 1.0 / tau, y[i])


@njit
def _distance(a: FloatArray, b: FloatArray) -> float:
    """||a - b||."""
    total = 0.0
    for i in range(a.size):
        total += (a[i] - b[i]) ** 2
    return float(np.sqrt(total))


@njit
def _primal_step(
    data: RawData, columns: IntArray, fixed: int, slots: int, lam: float, norm: float,
    tau: float, growth: float, rho: float, v: FloatArray, last_v: FloatArray,
    x: FloatArray, Ax: FloatArray, new: FloatArray, Anew: FloatArray,
) -> tuple[float, float]:  # fmt: skip
    """The line search: write x_{k+1} to ``new`` and A x_{k+1} to ``Anew``; return (tau_k, theta_k).

    ``tau`` is tau_{k-1}, ``growth`` the largest tau_k / tau_{k-1} allowed, ``rho`` is rho_k; v and last_v are
    A'beta_k and A'beta_{k-1}. All arrays but Ax and Anew are compact.
    """
    safe = SAFETY / (np.sqrt(rho) * norm)
    trial = min(tau * growth, LONGEST * safe)
    u = np.empty(x.size)
    while True:
        theta = trial / tau
        step = rho * trial
        for i in range(x.size):
            u[i] = x[i] - step * (v[i] + theta * (v[i] - last_v[i]))
        prox_conjugate(u, fixed, slots, step, lam, new)
        for i in range(x.size):
            if abs(new[i]) <= 8.0 * UNIT * abs(u[i]):
                new[i] = 0.0  # what Moreau's identity leaves of a zero
        predict(columns_of(data), columns, new, Anew)
        # A safe step passes in exact arithmetic; between nearly equal x the test would measure rounding only.
        if trial <= safe or np.sqrt(rho) * trial * _distance(Anew, Ax) <= SAFETY * _distance(new, x):
            return trial, theta
        trial *= BACKTRACK


@njit
def _pdal_node(
    loss: Any, data: RawData, lam: float, k: int, rules: DualRules, state: StateArray, start: FloatArray,
    cutoff: float, upper: float, stop: BoolArray, answers: Answers, outputs: DualOutputs, row: int,
) -> None:  # fmt: skip
    columns, fixed = node_columns(state)
    if is_convex(columns, fixed, k):
        columns = solved_columns(columns, fixed, k)
        solve_convex(loss, data, lam, columns, start[STEPS + columns], answers, row)
        return
    n, m, slots = data.y.size, columns.size, k - fixed
    tau, theta, rho = start[0], start[1], start[2]
    x, beta = start[STEPS + columns], start[STEPS + state.size :].copy()
    Ax, z, Anew, new = np.empty(n), np.empty(n), np.empty(n), np.empty(m)
    q, v, last_v = np.empty(m), np.empty(m), np.empty(m)
    predict(columns_of(data), columns, x, Ax)
    correlate(columns_of(data), columns, beta, v)
    best, best_base, best_q, ranked = -np.inf, -np.inf, np.zeros(m), np.empty(slots + 1)
    bound = -np.inf
    iterations = 0
    finished = True
    while True:
        iterations += 1
        _dual_step(loss, data.y, beta, tau, Ax, z)
        last_v[:] = v
        base = dual_at_point(loss, columns_of(data), data.y, data.norms, columns, z, beta, q, v)
        previous, bound = bound, node_bound(base, q, fixed, slots, lam, ranked)
        if bound > best:
            best, best_base = bound, base
            best_q[:] = q
            outputs.beta[row] = beta
        if best >= cutoff:
            break
        last_rho = rho
        rho *= 1.0 + tau / rules.smoothness
        growth = np.sqrt(last_rho / rho * (1.0 + theta))
        tau, theta = _primal_step(
            data, columns, fixed, slots, lam, rules.norm, tau, growth, rho, v, last_v, x, Ax, new, Anew
        )
        x[:] = new
        Ax[:] = Anew
        if iterations >= rules.max_iterations or has_converged(bound, previous, best, rules.accuracy, upper):
            break
        if stop[0]:
            finished = False
            break
    write_relaxed(answers, row, columns, fixed, k, lam, best_base, best_q, x, x, cutoff)
    answers.iterations[row] = iterations
    if not finished:
        answers.status[row] = UNFINISHED
    memory = outputs.memory[row]
    memory[0], memory[1], memory[2] = tau, theta, rho
    memory[STEPS + columns] = x
    memory[STEPS + state.size :] = beta


@njit(parallel=True)
def pdal_data(
    loss: Any, data: RawData, lam: float, k: int, rules: DualRules, states: StateArray, starts: FloatArray,
    cutoff: float, upper: float, stop: BoolArray, answers: Answers, outputs: DualOutputs,
) -> None:  # fmt: skip
    """Bound every node (a row of ``states``) of a problem with any loss, from the memories ``starts``."""
    for row in prange(states.shape[0]):
        _pdal_node(
            loss, data, lam, k, rules, states[row], starts[row], cutoff, upper, stop, answers, outputs, row
        )  # fmt: skip
