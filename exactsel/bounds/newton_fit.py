"""The choice of bounds from the fit on S and C for problems without closed form (kernels/newton_fit.py).

The relaxation's optimum is never below the fit's bound, but at a small ridge a gradient method does not come near it:
the condition number of the problem is that of A'A over lam. What leads at the root leads below it, so it is decided
once, by what the same number of iterations brings there: a pure function of the problem.
"""

from __future__ import annotations

import numpy as np

from exactsel._jit import parallel_section
from exactsel.kernels.apg import Perspective, relax_nodes
from exactsel.kernels.columns import RawData
from exactsel.kernels.forms import GramData
from exactsel.kernels.node import CUT, UNFINISHED, Answers, empty_answers, is_convex, node_columns
from exactsel.problem.regression import Problem
from exactsel.types import BoolArray, FloatArray

MOST_COLUMNS = 1000
"""With more columns than this one Hessian takes seconds."""

AFTER_FIT, ALL_AFTER_FIT = 0.5, 1e9
"""Part of a fit's work that may go into gradient steps after it; and where the bound is to be polished to the end."""

FEWEST_COLUMNS = 20
"""With fewer columns than this one a search ends within some nodes, whichever way these are bounded."""

WORTHWHILE = 0.02
"""Part of the fit's bound by which that of the relaxation has to exceed it at the root for Newton steps to pay."""


def may_lead(problem: Problem, data: GramData | RawData) -> bool:
    """Whether the fit is worth trying: not where columns outnumber rows and it leaves little of the loss."""
    columns = problem.units.columns
    return isinstance(data, RawData) and problem.lam > 0 and columns < problem.n and columns <= MOST_COLUMNS


def beginning_at_fits(perspective: Perspective, second_order: bool = False) -> Perspective:
    """The relaxation with its nodes begun at their fits; where it is to be polished to the end, it still is.

    With ``second_order`` they are bounded by Newton's method on the relaxation itself.
    """
    after_fit = ALL_AFTER_FIT if perspective.rules.polish == 0.0 else AFTER_FIT
    return perspective._replace(rules=perspective.rules._replace(after_fit=after_fit, second_order=second_order))


def leading_fit(problem: Problem, perspective: Perspective, stop: BoolArray) -> FloatArray | None:
    """The root's fit (d,), if as many gradient steps as it takes leave the bound below the fit's; else None."""
    if not may_lead(problem, perspective.data) or is_convex(*node_columns(problem.root_state), problem.k):
        return None
    fitted = perspective._replace(rules=perspective.rules._replace(after_fit=0.0))
    reached, fit = _at_root(problem, fitted, np.inf, stop)
    most = int(min(perspective.rules.max_iterations, reached.iterations[0]))
    alone = perspective._replace(rules=perspective.rules._replace(max_iterations=most))
    answers, _ = _at_root(problem, alone, float(reached.bound[0]), stop)
    return None if answers.status[0] in (CUT, UNFINISHED) else fit


def exceeds_fit(problem: Problem, perspective: Perspective, fit: FloatArray, stop: BoolArray) -> bool:
    """Whether the relaxation of the root is worth more than its fit (d,) by as much as pays for Newton steps on it."""
    if perspective.groups is not None or problem.units.columns < FEWEST_COLUMNS:
        return False
    fitted = perspective._replace(rules=perspective.rules._replace(after_fit=0.0, max_iterations=0))
    least = float(_at_root(problem, fitted, np.inf, stop, fit)[0].bound[0])
    wanted = least + WORTHWHILE * abs(least)
    reached = _at_root(problem, beginning_at_fits(perspective, second_order=True), wanted, stop, fit)[0]
    return bool(reached.bound[0] >= wanted)


def _at_root(
    problem: Problem, perspective: Perspective, cutoff: float, stop: BoolArray, start: FloatArray | None = None
) -> tuple[Answers, FloatArray]:  # fmt: skip
    """What the relaxation says of the root, and the model (columns,) that proves its bound."""
    answers, points = empty_answers(1, problem.d, problem.k), np.zeros((1, problem.units.columns))
    states, parent_bounds = problem.root_state[None], np.full(1, -np.inf)
    starts = np.zeros_like(points) if start is None else start[None].copy()
    with parallel_section(1):
        relax_nodes(*perspective, states, starts, cutoff, parent_bounds, stop, answers, points)
    return answers, points[0]
