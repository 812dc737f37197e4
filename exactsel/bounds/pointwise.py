"""The bound of one node at one given point, from the data: slow path and reference of the solvers."""

from __future__ import annotations

import numpy as np

from exactsel._jit import loss_session
from exactsel.bounds.witness import ModelPoint
from exactsel.kernels.dual import dual_at_point, node_bound
from exactsel.kernels.node import IN, OUT, node_columns
from exactsel.problem.grouped import GroupedProblem
from exactsel.problem.interface import SubsetProblem
from exactsel.problem.regression import Problem
from exactsel.types import FloatArray, IntArray, StateArray


def bound_at_model(problem: Problem, state: StateArray, x: FloatArray) -> float:
    """Formula (2) for the node ``state`` (d,) at the dual vector grad L(Ax); x is (d,), any model; lam > 0.

    Rounding is accounted for: the value holds for the exact numbers of the data.
    """
    columns, fixed = node_columns(state)
    places = min(problem.k - fixed, columns.size - fixed)
    if places <= 0:
        columns, places = columns[:fixed], 0
    used = np.flatnonzero(x)
    z = np.ascontiguousarray(x[used] @ problem.AT[used])
    b, q, v = np.empty(problem.n), np.empty(columns.size), np.empty(columns.size)
    with loss_session(problem.loss):
        base = dual_at_point(problem.row_loss, problem.AT, problem.y, problem.norms, columns, z, b, q, v)
    return float(node_bound(base, q, fixed, places, problem.lam, np.empty(places + 1)))


def solved_from_data(problem: SubsetProblem, state: StateArray) -> tuple[float, ModelPoint] | None:
    """A sharper bound of a convex region, with its proof, where the data say more than the kernels' Gram matrix."""
    data = problem.inner if isinstance(problem, GroupedProblem) else problem
    if not isinstance(data, Problem) or data.lam == 0:
        return None
    allowed = allowed_columns(state, problem.k)
    fit = problem.fit(allowed)
    if isinstance(problem, GroupedProblem):
        state = np.full(data.d, OUT, dtype=np.int8)
        state[problem.columns_of(allowed)] = IN
    return bound_at_model(data, state, fit.coef), ModelPoint.from_dense(fit.coef)


def allowed_columns(state: StateArray, k: int) -> IntArray:
    """Columns a convex region's minimiser may use: S when no place is left, else S and C."""
    inside = np.flatnonzero(state == IN)
    return inside if inside.size >= k else np.flatnonzero(state != OUT)
