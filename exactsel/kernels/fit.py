"""The fit on S and C together as a bound (leaps and bounds), for quadratic loss and any lam >= 0.

Dropping the limit on the size of the model leaves one linear system. With K the inverse of H = G + lam I on S and C and
x = K b, fixing column j to 0 costs exactly x_j^2 / (2 K_jj) more, so every candidate's out-child is bounded at once
(Furnival, Wilson 1974). For lam > 0 formula (2) at x is at least as strong as the fit itself and is taken too.

The inverse is trusted only where H is far from singular. Then H >= mu I with mu = 1 / ||K||_F (up to its
verified rounding error), and an inexact x costs at most ||gradient||^2 / (2 mu): the bound holds for the exact data.
"""

from __future__ import annotations

import numpy as np

from exactsel._jit import njit, prange
from exactsel.kernels.dual import dual_from_gram
from exactsel.kernels.forms import GramData
from exactsel.kernels.linalg import cholesky, dot, inverse_from_cholesky, symmetric_times_sparse
from exactsel.kernels.node import (
    ILL_CONDITIONED,
    Answers,
    is_convex,
    node_columns,
    solved_columns,
    write_relaxed,
    write_solved,
)
from exactsel.rounding import UNIT
from exactsel.types import BoolArray, FloatArray, StateArray

TRUSTED_CONDITION = 1e-6
"""Largest ||K||_F * trace(H) * (rounding of one entry of G) at which the inverse is trusted."""

SHAVE = 1e-5
"""Part of a drop cost given up for the rounding errors of K, which :data:`TRUSTED_CONDITION` keeps below it."""


@njit
def _fit_value(
    Gx: FloatArray, b: FloatArray, constant: float, roundings: int, lam: float, norms: FloatArray,
    x: FloatArray, curvature: float,
) -> tuple[float, float]:  # fmt: skip
    """A number no model on these columns is below, and the H-norm within which the exact fit lies from x."""
    size, value, slope = 0.0, 0.0, 0.0
    for i in range(x.size):
        size += abs(x[i]) * norms[i]
    unit = (roundings + 2 * x.size + 32) * UNIT
    target = np.sqrt(2.0 * constant)
    for i in range(x.size):
        gradient = Gx[i] + lam * x[i] - b[i]
        error = unit * (norms[i] * (size + target) + abs(lam * x[i]))
        slope += (abs(gradient) + error) ** 2
        value += x[i] * (0.5 * (Gx[i] + lam * x[i]) - b[i])
    rounding = unit * (constant + size * size + target * size + lam * dot(x, x))
    return constant + value - rounding - slope / (2.0 * curvature), np.sqrt(slope / curvature)


@njit
def _fit_node(
    data: GramData, lam: float, k: int, state: StateArray, cutoff: float,
    answers: Answers, out_by_fit: BoolArray, row: int,
) -> None:  # fmt: skip
    columns, fixed = node_columns(state)
    convex = is_convex(columns, fixed, k)
    if convex:
        columns = solved_columns(columns, fixed, k)
    m = columns.size
    H, G, b, norms = np.empty((m, m)), np.empty((m, m)), np.empty(m), np.empty(m)
    trace = m * lam
    for i in range(m):
        for j in range(m):
            G[i, j] = data.G[columns[i], columns[j]]
            H[i, j] = G[i, j]
        H[i, i] += lam
        trace += G[i, i]
        b[i] = data.b[columns[i]]
        norms[i] = data.norms[columns[i]]
    for i in range(m):
        if norms[i] == 0.0 and lam == 0.0:
            # An empty column is never used; its own equation reads x_i = 0, in the units of the others.
            H[i, i] = trace if trace > 0.0 else 1.0
    answers.iterations[row] = 1
    answers.status[row] = ILL_CONDITIONED
    if not cholesky(H):
        return
    K = inverse_from_cholesky(H)
    size = np.sqrt(dot(K.ravel(), K.ravel()))
    if not size * trace * (data.roundings + 4 * m * m + 32) * UNIT <= TRUSTED_CONDITION:
        return
    x, Gx = np.empty(m), np.empty(m)
    symmetric_times_sparse(K, b, x)
    for _ in range(2):
        symmetric_times_sparse(G, x, Gx)
        for i in range(m):
            Gx[i] = b[i] - Gx[i] - lam * x[i]
        for i in range(m):
            x[i] += dot(K[i], Gx)
    symmetric_times_sparse(G, x, Gx)
    curvature = (1.0 - 2.0 * TRUSTED_CONDITION) / size if size > 0.0 else 1.0
    bound, distance = _fit_value(Gx, b, data.constant, data.roundings, lam, norms, x, curvature)
    if convex:
        write_solved(answers, row, columns, x, bound)
        return
    weight, cost = np.empty(m), np.empty(m)
    for i in range(m):
        weight[i] = x[i] / np.sqrt(K[i, i])
        cost[i] = 0.5 * (1.0 - SHAVE) * max(0.0, abs(weight[i]) - distance) ** 2
    base, scale, q = bound, 1.0, np.zeros(m)
    if lam > 0.0:
        base, scale = dual_from_gram(Gx, b, data.constant, data.roundings, norms, x, q), lam
    write_relaxed(answers, row, columns, fixed, k, scale, base, q, x, weight, cutoff)
    for i in range(fixed, m):
        if bound + cost[i] > answers.bound_out[row, columns[i]]:
            answers.bound_out[row, columns[i]] = bound + cost[i]
            out_by_fit[row, columns[i]] = True


@njit(parallel=True)
def fit_gram(
    data: GramData, lam: float, k: int, states: StateArray, cutoff: float, stop: BoolArray,
    answers: Answers, out_by_fit: BoolArray,
) -> None:  # fmt: skip
    """Bound every node (a row of ``states``) by the fit on its columns; ILL_CONDITIONED where that is not safe.

    ``answers.x`` receives x_j / sqrt(K_jj), the root of twice the drop cost, which ranks columns fairly for any scale.
    ``out_by_fit`` (B, d) marks out-children whose bound is a drop cost; without a mark it is, like all other bounds,
    formula (2) at the fit when lam > 0.
    """
    for row in prange(states.shape[0]):
        if not stop[0]:
            _fit_node(data, lam, k, states[row], cutoff, answers, out_by_fit, row)
