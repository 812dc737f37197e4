"""Conversion of an estimator's demands on models (groups, hierarchy, limits) to arguments of a problem."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from exactsel.problem.boxed import ALL, boxed
from exactsel.problem.constraints import under
from exactsel.problem.grouped import GroupedProblem
from exactsel.problem.interface import SubsetProblem
from exactsel.problem.regression import Problem


def constrained(problem: Problem, groups: Any, demands: Mapping[str, Any]) -> Problem:
    """The problem over groups and under a constraint, if there are any; more groups than there are count as all.

    ``demands`` are arguments of :data:`exactsel.problem.constraints.ARGUMENTS`.
    """
    if groups is not None and demands["per_group"] is None:
        grouped = GroupedProblem(problem.replace(k=0), groups)
        problem = grouped.replace(k=min(problem.k, grouped.d))
    units = under(problem.units, {"groups": groups, **demands})
    return problem if units is problem.units else problem.choosing(units, problem.k)


def within_limits(
    problem: Problem, positive: bool, max_coef: float | None, sum_to: float | None
) -> SubsetProblem:  # fmt: skip
    """The problem with the limits on its coefficients, and their sum, if there are any."""
    if not positive and max_coef is None and sum_to is None:
        return problem
    return boxed(problem, ALL if positive else (), max_coef=max_coef, sum_to=sum_to)
