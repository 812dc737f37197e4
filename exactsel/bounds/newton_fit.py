"""Whether nodes of a problem without closed form are best bounded from the fit on S and C (kernels/newton_fit.py).

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


def may_lead(problem: Problem, data: GramData | RawData) -> bool:
    """Whether the fit is worth trying: not where columns outnumber rows and it leaves little of the loss."""
    columns = problem.units.columns
    return isinstance(data, RawData) and problem.lam > 0 and columns < problem.n and columns <= MOST_COLUMNS


def beginning_at_fits(perspective: Perspective) -> Perspective:
    """The relaxation with its nodes begun at their fits; where it is to be polished to the end, it still is."""
    thorough = perspective.rules.polish == 0.0
    return perspective._replace(rules=perspective.rules._replace(after_fit=ALL_AFTER_FIT if thorough else AFTER_FIT))


def leading_fit(problem: Problem, perspective: Perspective, stop: BoolArray) -> FloatArray | None:
    """The root's fit (d,), if as many gradient steps as it takes leave the bound below the fit's; else None."""
    if not may_lead(problem, perspective.data) or is_convex(*node_columns(problem.root_state), problem.k):
        return None
    fitted = perspective._replace(rules=perspective.rules._replace(after_fit=0.0))
    reached, fit = _at_root(problem, fitted, np.inf, stop)
    most = int(min(perspective.rules.max_iterations, reached.iterations[0]))
    alone = perspective._replace(rules=perspective.rules._replace(max_iterations=most))
    found, _ = _at_root(problem, alone, float(reached.bound[0]), stop)
    return None if found.status[0] in (CUT, UNFINISHED) else fit


def _at_root(
    problem: Problem, perspective: Perspective, cutoff: float, stop: BoolArray
) -> tuple[Answers, FloatArray]:  # fmt: skip
    """What the relaxation says of the root, and the model (columns,) that proves its bound."""
    answers, points = empty_answers(1, problem.d, problem.k), np.zeros((1, problem.units.columns))
    states, starts, known = problem.root_state[None], np.zeros_like(points), np.full(1, -np.inf)
    with parallel_section(1):
        relax_nodes(*perspective, states, starts, cutoff, known, stop, answers, points)
    return answers, points[0]
