"""Projected supergradient ascent on the dual of a node, the simple alternative to PDAL.

With v = A'beta a supergradient of the bound (2) at beta is

    A x(beta) - grad L*(beta),    x(beta) = -v / lam on S and on the r largest |v_j| of C, 0 elsewhere,

and the iteration is beta <- projection of (beta + eta_t supergradient) onto the domain of L* (Sakaue, Marumo:
best-first search, appendix B, Algorithm 5; Liu et al.: Dual iterative hard thresholding, 2017).

The paper's text has lost its step sizes. Here eta_t = smoothness / t, the classical choice for a function that is
strongly concave with modulus 1 / smoothness, with a counter t that begins at 1 + smoothness ||A||^2 / lam: the first
step is then 1 / (1/smoothness + ||A||^2/lam), short enough for the curvature of both terms. A child continues with its
parent's beta and counter, hence with its parent's step size, as in the paper. The *memory* of a node is ``[t, beta
(n)]``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from exactsel._jit import njit, prange
from exactsel.kernels.columns import RawData, columns_of
from exactsel.kernels.dual import dual_at_vector, node_bound
from exactsel.kernels.linalg import predict
from exactsel.kernels.loss import point_conjugate_derivative, point_project
from exactsel.kernels.node import (
    UNFINISHED,
    Answers,
    is_convex,
    node_columns,
    solved_columns,
    write_relaxed,
)
from exactsel.kernels.pdal import DualOutputs, DualRules, has_converged, solve_convex
from exactsel.kernels.selection import top_sum
from exactsel.types import BoolArray, FloatArray, StateArray


@njit
def primal_point(v: FloatArray, fixed: int, slots: int, lam: float, x: FloatArray) -> None:
    """Write x(beta) of v = A'beta; S are the first ``fixed`` entries, first come among equals."""
    ranked = np.empty(slots + 1)
    size = np.abs(v)
    top_sum(size, fixed, slots, ranked)
    threshold = ranked[slots - 1]
    left = slots
    for j in range(v.size):
        kept = j < fixed or size[j] > threshold
        x[j] = -v[j] / lam if kept else 0.0
        if kept and j >= fixed:
            left -= 1
    for j in range(fixed, v.size):
        if left > 0 and size[j] == threshold:
            x[j] = -v[j] / lam
            left -= 1


@njit
def _ascend(loss: Any, y: FloatArray, Ax: FloatArray, step: float, beta: FloatArray) -> None:
    """One projected step, in place."""
    for i in range(beta.size):
        moved = beta[i] + step * (Ax[i] - point_conjugate_derivative(loss, beta[i], y[i]))
        beta[i] = point_project(loss, moved, y[i])


@njit
def _supergradient_node(
    loss: Any, data: RawData, lam: float, k: int, rules: DualRules, state: StateArray, start: FloatArray,
    cutoff: float, upper: float, stop: BoolArray, answers: Answers, outputs: DualOutputs, row: int,
) -> None:  # fmt: skip
    columns, fixed = node_columns(state)
    if is_convex(columns, fixed, k):
        columns = solved_columns(columns, fixed, k)
        solve_convex(loss, data, lam, columns, np.zeros(columns.size), answers, row)
        return
    n, m, slots = data.y.size, columns.size, k - fixed
    t, beta, Ax = start[0], start[1:].copy(), np.empty(n)
    for i in range(n):
        beta[i] = point_project(loss, beta[i], data.y[i])
    q, v, x, best_q, best_x, ranked = (
        np.empty(m),
        np.empty(m),
        np.empty(m),
        np.zeros(m),
        np.zeros(m),
        np.empty(slots + 1),
    )
    best, best_base, bound = -np.inf, -np.inf, -np.inf
    iterations = 0
    finished = True
    while True:
        base = dual_at_vector(loss, columns_of(data), data.y, data.norms, columns, beta, q, v)
        previous, bound = bound, node_bound(base, q, fixed, slots, lam, ranked)
        primal_point(v, fixed, slots, lam, x)
        if bound > best:
            best, best_base = bound, base
            best_q[:] = q
            best_x[:] = x
            outputs.beta[row] = beta
        if (
            best >= cutoff
            or iterations >= rules.max_iterations
            or has_converged(bound, previous, best, rules.accuracy, upper)
        ):
            break
        if stop[0]:
            finished = False
            break
        iterations += 1
        predict(columns_of(data), columns, x, Ax)
        _ascend(loss, data.y, Ax, rules.smoothness / t, beta)
        t += 1.0
    write_relaxed(answers, row, columns, fixed, k, lam, best_base, best_q, best_x, best_x, cutoff)
    answers.iterations[row] = iterations
    if not finished:
        answers.status[row] = UNFINISHED
    outputs.memory[row, 0] = t
    outputs.memory[row, 1:] = beta


@njit(parallel=True)
def supergradient_data(
    loss: Any, data: RawData, lam: float, k: int, rules: DualRules, states: StateArray, starts: FloatArray,
    cutoff: float, upper: float, stop: BoolArray, answers: Answers, outputs: DualOutputs,
) -> None:  # fmt: skip
    """Bound every node (a row of ``states``) of a problem with any loss, from the memories ``starts``."""
    for row in prange(states.shape[0]):
        _supergradient_node(
            loss, data, lam, k, rules, states[row], starts[row], cutoff, upper, stop, answers, outputs, row
        )  # fmt: skip
