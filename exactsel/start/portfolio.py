"""The heuristics a search begins with."""

from __future__ import annotations

from exactsel.problem.interface import SubsetProblem

DEFAULT_HEURISTICS = ("forward", "omp", "htp", "dual-iht", "swap", "greedy-css", "iterative-css")
"""Those that cannot serve a problem's family are passed over."""

FOR_MANY_ROWS = ("newton-swap",)
"""Those a search begins with instead where each of the others would take longer than listing the good models."""

MANY_ENTRIES, ROWS_PER_COLUMN = 5e6, 50
"""Rows are many where the data have so many entries, and so many rows for each column."""


def heuristics_for(problem: SubsetProblem) -> tuple[str, ...]:
    """What a search begins with where nobody asked for anything else."""
    objective = problem.objective
    if objective is None or problem.family != "regression" or objective.is_quadratic or objective.lam == 0.0:
        return DEFAULT_HEURISTICS
    many = objective.n * objective.d >= MANY_ENTRIES and objective.n >= ROWS_PER_COLUMN * objective.d
    return FOR_MANY_ROWS if many else DEFAULT_HEURISTICS
