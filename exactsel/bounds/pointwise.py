"""The bound of one node at one given point, from the data: slow path and reference of the solvers."""

from __future__ import annotations

import numpy as np

from exactsel.bounds.witness import ModelPoint
from exactsel.kernels.node import IN, OUT
from exactsel.problem.interface import SubsetProblem
from exactsel.problem.regression import Problem
from exactsel.types import FloatArray, IntArray, StateArray


def bound_at_model(problem: Problem, state: StateArray, x: FloatArray) -> float:
    """Formula (2) for the node ``state`` (d,) at the dual vector grad L(Ax); x is (d,), any model; lam > 0.

    Rounding is accounted for: the value holds for the exact numbers of the data.
    """
    return problem.bound_at(x, state)


def solved_from_data(problem: SubsetProblem, state: StateArray) -> tuple[float, ModelPoint] | None:
    """A sharper bound of a convex region, with its proof, where the data say more than the kernels' Gram matrix."""
    solution = problem.solved_from_data(state, allowed_columns(state, problem.k))
    return None if solution is None else (solution[0], ModelPoint.from_dense(solution[1]))


def allowed_columns(state: StateArray, k: int) -> IntArray:
    """Columns a convex region's minimiser may use: S when no place is left, else S and C."""
    included = np.flatnonzero(state == IN)
    return included if included.size >= k else np.flatnonzero(state != OUT)
