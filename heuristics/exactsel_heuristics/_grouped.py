"""Forward selection and swap local search where groups of columns are chosen: every candidate is refitted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from exactsel.types import FloatArray
from exactsel_heuristics._scoring import IMPROVEMENT, padded
from exactsel_heuristics.base import Context, Proposal

if TYPE_CHECKING:
    from exactsel.problem.regression import Problem

REFITS_AT_ONCE = 64
"""Refits between two questions whether to stop."""


def forward_groups(problem: Problem, context: Context) -> Proposal:
    """Starting from the empty model, add the group whose refit lowers the objective most, up to k times."""
    chosen: list[int] = []
    value = problem.objective(np.zeros(problem.units.columns))
    decrease, evaluations = IMPROVEMENT * abs(value), 0
    while len(chosen) < problem.k and not context.should_stop():
        candidates = [g for g in range(problem.d) if g not in chosen]
        values = _evaluate(problem, [[*chosen, g] for g in candidates], context.should_stop)
        evaluations += len(candidates)
        best = int(np.argmin(values))
        if not values[best] < value - decrease:
            break
        value = float(values[best])
        chosen.append(candidates[best])
    return Proposal.of(chosen, evaluations)


def swap_groups(problem: Problem, context: Context, max_passes: int) -> Proposal:
    """Exchange one group for another, or add one while there is room, as long as an exact refit confirms a gain."""
    start = forward_groups(problem, context) if context.start is None else Proposal.of(context.start, 0)
    chosen, evaluations = start.support, start.evaluations + 1
    value = problem.fit(chosen).value
    decrease = IMPROVEMENT * abs(problem.objective(np.zeros(problem.units.columns)))
    for _ in range(max_passes):
        if context.should_stop():
            break
        stays = [tuple(g for g in chosen if g != leaving) for leaving in chosen]
        if len(chosen) < problem.k:
            stays.append(chosen)
        near = [(*stay, g) for stay in stays for g in range(problem.d) if g not in chosen]
        if not near:
            break
        best = int(np.argmin(_evaluate(problem, near, context.should_stop)))
        fit = problem.fit(near[best])
        evaluations += len(near) + 1
        if not fit.value < value - decrease:
            break
        value, chosen = fit.value, tuple(sorted(near[best]))
    return Proposal.of(chosen, evaluations)


def _evaluate(problem: Problem, supports: Sequence[Sequence[int]], should_stop: Callable[[], bool]) -> FloatArray:
    """Objectives of sets of groups; inf where columns are numerically dependent, and for what was not reached."""
    values = np.full(len(supports), np.inf)
    for first in range(0, len(supports), REFITS_AT_ONCE):
        if first and should_stop():
            break
        part = supports[first : first + REFITS_AT_ONCE]
        found = problem.objectives(padded(part, max(len(support) for support in part)))
        values[first : first + len(part)] = np.where(np.isnan(found), np.inf, found)
    return values
