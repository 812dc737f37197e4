"""A problem on some of its rows: prepared again by what these are like, all else the same."""

from __future__ import annotations

import numpy as np

from exactsel.errors import UnsupportedError
from exactsel.problem.boxed import with_bounds
from exactsel.problem.objective import Objective
from exactsel.problem.preparing import Preparation, checked_weights
from exactsel.problem.regression import Problem
from exactsel.types import FloatArray, IntArray


def on_rows(problem: Problem, rows: IntArray, A: FloatArray | None = None, columns: IntArray | None = None) -> Problem:
    """The same question of the rows at these places (m,): loss, lam, k, demands and limits are those of all rows.

    Intercept, scaling and weights are worked in again. ``A`` (m, columns) stands for the rows' own table where gaps of
    it are filled in another way. Of terms of several columns only those ``columns`` are taken.

    Raises
    ------
    InputError
        Where the problem cannot be stated of these rows.
    UnsupportedError
        Where the rows have been reduced from others.
    """
    limits = problem.coefficient_bounds
    source, before = problem.objective, problem.preparation
    if source.reduction is not None:
        raise UnsupportedError("the rows of this instance have been reduced, so none can be held out; give all rows.")
    units, AT = problem.units, np.ascontiguousarray((problem.A[rows] if A is None else A).T)
    if columns is not None and columns.size < len(AT):
        units, AT = units.keeping(columns), np.ascontiguousarray(AT[columns])
    y, loss, lam = np.ascontiguousarray(problem.target[rows]), source.loss, source.asked_lam
    if before is None or not before.asked:
        objective = Objective.of(AT, y, loss=loss, lam=lam)
    else:
        weights = None if before.weights is None else checked_weights(before.weights[rows], rows.size, loss)
        exposure = None if before.exposure is None else before.exposure[rows]
        preparation = Preparation.of(
            AT.T, y, centre=before.centred, scale=before.scaled, weights=weights, loss=loss.name, exposure=exposure
        )
        objective = Objective.of(preparation.made.AT, preparation.made.y, loss=loss, lam=lam).prepared(preparation)
    stated = Problem.of(objective, units, problem.k)
    if limits is None:
        return stated
    within = slice(None) if columns is None else columns
    met = source.equalities
    if met is None:
        lower, upper = limits.given_lower[within], limits.given_upper[within]
        limited = bool(np.any(np.isfinite(lower) | np.isfinite(upper)))
        return with_bounds(stated, lower, upper) if limited else stated
    if columns is not None and columns.size < met.rows.shape[1]:
        raise UnsupportedError("an equality needs all of its terms; give features that are their own terms.")
    return with_bounds(stated, limits.given_lower, limits.given_upper, met[:2])
