"""What limits of coefficients change in a heuristic's formulas; nothing where coefficients are free.

A point is projected on the models of at most k columns within their limits by keeping the k columns whose distance
from zero falls most, u_j² - (u_j - c_j)² with c_j the limited u_j, and limiting those.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from exactsel.problem.boxed import BoxedProblem
from exactsel.types import BoolArray, FloatArray

if TYPE_CHECKING:
    from exactsel.problem.objective import Objective
    from exactsel.problem.regression import Problem

    Limited: TypeAlias = Problem | BoxedProblem
    """A problem with coefficients, free or within limits."""


def objective_of(problem: Limited) -> Objective:
    """P, without the limits."""
    return problem.base if isinstance(problem, BoxedProblem) else problem.objective


def within(problem: Limited, point: FloatArray) -> FloatArray:
    """The nearest point (d,) within the limits."""
    return np.clip(point, problem.lower, problem.upper) if isinstance(problem, BoxedProblem) else point


def sizes(problem: Limited, point: FloatArray) -> FloatArray:
    """By how much each entry counts when k are to be kept, (d,)."""
    if not isinstance(problem, BoxedProblem):
        return np.abs(point)
    kept = within(problem, point)
    worth: FloatArray = kept * (2.0 * point - kept)
    return worth


def open_downhill(problem: Limited, gradient: FloatArray) -> BoolArray:
    """Which coefficients (d,) may leave zero in the direction in which the objective falls."""
    if not isinstance(problem, BoxedProblem):
        return np.ones(gradient.size, dtype=np.bool_)
    downhill: BoolArray = np.where(gradient > 0.0, problem.lower < 0.0, problem.upper > 0.0)
    return downhill
