"""Changes of heuristics' formulas under coefficient limits; none where coefficients are free.

A point is projected on the models of at most k columns within their limits by keeping the k columns whose distance
from zero falls most, u_j² - (u_j - c_j)² with c_j the limited u_j, and limiting those.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from exactsel.types import BoolArray, FloatArray

if TYPE_CHECKING:
    from exactsel.problem.regression import Problem


def within(problem: Problem, point: FloatArray) -> FloatArray:
    """The nearest point (d,) within the limits."""
    limits = problem.coefficient_bounds
    return point if limits is None else np.clip(point, limits.lower, limits.upper)


def sizes(problem: Problem, point: FloatArray) -> FloatArray:
    """By how much each entry counts when k are to be kept, (d,)."""
    if problem.coefficient_bounds is None:
        return np.abs(point)
    projection = within(problem, point)
    worth: FloatArray = projection * (2.0 * point - projection)
    return worth


def open_downhill(problem: Problem, gradient: FloatArray) -> BoolArray:
    """Which coefficients (d,) may leave zero in the direction in which the objective falls."""
    limits = problem.coefficient_bounds
    if limits is None:
        return np.ones(gradient.size, dtype=np.bool_)
    downhill: BoolArray = np.where(gradient > 0.0, limits.lower < 0.0, limits.upper > 0.0)
    return downhill
