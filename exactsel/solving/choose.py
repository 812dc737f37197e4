"""Which bound and which branching rule suit a problem."""

from __future__ import annotations

from typing import Any

from exactsel import registry
from exactsel.algebra.curvature import affordable, has_curvature
from exactsel.errors import UnsupportedError
from exactsel.problem.interface import SubsetProblem
from exactsel.solving.settings import Settings


def methods_for(problem: SubsetProblem, settings: Settings) -> tuple[Any, Any]:
    """The bound solver and the branching rule the settings ask for, or the defaults for this problem."""
    solver = _bound_for(problem, settings.bound, settings.time_limit)
    return solver, make("branchings", _default_branching(settings.branching, solver.name))


def make(kind: str, choice: Any) -> Any:
    """A plug-in by name, or the object itself."""
    return registry.load(kind, choice)() if isinstance(choice, str) else choice


def _bound_for(problem: SubsetProblem, choice: Any, seconds: float | None) -> Any:
    """The bound solver: the one asked for, if it serves this family of problems, or the default."""
    solver = make("bounds", _default_bound(problem, seconds) if choice == "auto" else choice)
    family = getattr(solver, "family", "regression")
    if family != problem.family:
        words = {
            "css": "column subset selection (--problem css)",
            "regression": "problems with a target whose columns are chosen one by one",
            "grouped": "problems with --groups",
        }
        raise UnsupportedError(
            f"the bound '{solver.name}' is for {words[family]}, but this is one of {words[problem.family]}; "
            f"use --bound auto."
        )
    objective = problem.objective
    plain = objective is None or problem.units.grouped or objective.row_loss is objective.loss
    if not plain and not getattr(solver, "adjusted_rows", False):
        raise UnsupportedError(
            f"the bound '{solver.name}' knows neither row weights nor an intercept of this loss; use --bound apg."
        )
    return solver


def _default_bound(problem: SubsetProblem, seconds: float | None) -> str:
    """The perspective relaxation; with lam = 0 and dependent columns, which leave it no curvature, the fit."""
    objective = problem.objective
    if objective is None or problem.units.grouped:
        return "eigenvalue" if objective is None else "grouped"
    if objective.lam > 0:
        return "apg"
    n, d = objective.n, objective.d
    curved = d < n and affordable(d, seconds) and has_curvature(objective.hessian, n)
    return "apg" if curved else "fit"


def _default_branching(choice: Any, bound: str) -> Any:
    """Drop costs order the columns where the bound knows them, relaxed indicators elsewhere."""
    if choice != "auto":
        return choice
    return {"fit": "costliest", "eigenvalue": "largest"}.get(bound, "half")
