"""A problem on some of its columns, which become a table; all else is the same."""

from __future__ import annotations

import numpy as np

from exactsel.errors import UnsupportedError, option
from exactsel.problem.boxed import with_bounds
from exactsel.problem.regression import Problem
from exactsel.types import IntArray


def refuse_unlimited(problem: Problem) -> None:
    """:class:`UnsupportedError` where neither a ridge nor limits let a loss but the quadratic one be bounded.

    For data that are not held as a table, of which no fit on all columns says how large coefficients are.
    """
    objective, limits = problem.objective, problem.coefficient_bounds
    limited = limits is not None and limits.all_finite
    if objective.on_demand and objective.asked_lam == 0.0 and not objective.is_quadratic and not limited:
        raise UnsupportedError(
            f"{option('lam')} is 0, which with {objective.loss.name} loss data that are held as no table can be served "
            f"with only where all coefficients are limited; give {option('max_coef')}, or a positive "
            f"{option('lam')}."
        )


def on_some_columns(problem: Problem, columns: IntArray, named: bool = False) -> Problem:
    """The problem of choosing among the columns at these places (m,), ascending, those of force_in among them.

    Coefficients have the limits they had, and none where no limit is about these columns. ``named`` columns are called
    by their numbers where they have no names.
    """
    limits = problem.coefficient_bounds
    preparation, objective = problem.preparation, problem.objective
    AT, y = (objective.AT, objective.y) if preparation is None else (preparation.AT, preparation.y)
    place = {int(j): i for i, j in enumerate(columns)}
    names = problem.units.column_names
    if names is None and named:
        names = tuple(map(str, range(problem.d)))
    table = Problem.prepared(
        AT[columns].T, y, min(problem.k, columns.size), fit_intercept=preparation is not None and preparation.centred,
        loss=objective.loss, lam=objective.asked_lam, force_in=[place[j] for j in problem.force_in],
        force_out=[place[j] for j in problem.force_out if j in place],
        feature_names=None if names is None else [names[j] for j in columns],
    )  # fmt: skip
    if limits is None:
        return table
    lower, upper = limits.given_lower[columns], limits.given_upper[columns]
    limited = bool(np.any(np.isfinite(lower) | np.isfinite(upper)))
    return with_bounds(table, lower, upper) if limited else table
