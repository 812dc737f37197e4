"""The bound of one node at one given point, from the data: slow path and reference of the solvers."""

from __future__ import annotations

import numpy as np

from exactsel._jit import loss_session
from exactsel.kernels.dual import dual_at_point, node_bound
from exactsel.kernels.node import node_columns
from exactsel.problem import Problem
from exactsel.types import FloatArray, StateArray


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
        base = dual_at_point(problem.loss, problem.AT, problem.y, problem.norms, columns, z, b, q, v)
    return float(node_bound(base, q, fixed, places, problem.lam, np.empty(places + 1)))
