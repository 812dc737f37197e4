"""What an estimator demands of models: groups, a hierarchy, limits on coefficients, as a problem takes it."""

from __future__ import annotations

from typing import Any

from exactsel.problem.boxed import ALL, boxed
from exactsel.problem.grouped import GroupedProblem
from exactsel.problem.hierarchy import under_hierarchy
from exactsel.problem.interface import SubsetProblem
from exactsel.problem.regression import Problem


def constrained(problem: Problem, groups: Any, per_group: int | None, hierarchy: Any, kind: str) -> Problem:
    """The problem over groups and under a hierarchy, if there are any; more groups than there are count as all."""
    if per_group is not None:
        problem = problem.limited(groups, per_group)
    elif groups is not None:
        grouped = GroupedProblem(problem.replace(k=0), groups)
        problem = grouped.replace(k=min(problem.k, grouped.d))
    units = under_hierarchy(problem.units, hierarchy, kind)
    return problem if units is problem.units else Problem.of(problem.objective, units, problem.k)


def within_limits(
    problem: Problem, positive: bool, max_coef: float | None, sum_to: float | None
) -> SubsetProblem:  # fmt: skip
    """The problem with the limits on its coefficients, and their sum, if there are any."""
    if not positive and max_coef is None and sum_to is None:
        return problem
    return boxed(problem, ALL if positive else (), max_coef=max_coef, sum_to=sum_to)
