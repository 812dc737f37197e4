"""Problems whose coefficients have signs or bounds, or meet equalities (:mod:`exactsel.problem.coefficient_bounds`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from exactsel.arguments import entries, with_aliases
from exactsel.errors import InputError, UnsupportedError, option
from exactsel.problem.box_limits import checked_limits, columns_behind, largest_size, named_limits
from exactsel.problem.capabilities import COEFFICIENT_BOUNDS, FREE_COEFFICIENTS
from exactsel.problem.coefficient_bounds import CoefficientBounds
from exactsel.problem.equalities import named_equalities, with_equalities
from exactsel.problem.groups import matching
from exactsel.problem.interface import is_problem
from exactsel.problem.numbered import Position
from exactsel.problem.regression import Problem
from exactsel.types import FloatArray
from exactsel_certificates.equalities import Equalities, within_equalities

ALL = "all"
"""In place of names: every column."""


def with_bounds(
    problem: Problem, lower: ArrayLike, upper: ArrayLike,
    equalities: tuple[FloatArray, FloatArray] | Equalities | None = None,
) -> Problem:  # fmt: skip
    """The problem with bounds for all of its coefficients.

    Parameters
    ----------
    problem : Problem
        Data, k, any loss, lam and demands. It may have an intercept, which is free, weights, groups of columns, a
        hierarchy, and limits on groups; scaled columns, too, where no bound is other than 0 and infinity. With
        quadratic loss, lam = 0 and columns that depend on each other lower bounds are about all models where every
        coefficient is limited on both sides, and about bounded models (``valid_for`` of a result) elsewhere.
    lower, upper : array (columns,)
        -inf and inf where there is no limit; lower <= 0 <= upper.
    equalities : (C, c), optional
        Arrays (m, columns) and (m,): models meet C x = c (:mod:`exactsel.problem.equalities`).

    Raises
    ------
    InputError
        For limits that are none, or a problem of another kind; in one sentence.
    """
    _check_kind(problem)
    if equalities is not None:
        problem = Problem.of(with_equalities(problem.objective, *equalities), problem.units, problem.k)
    given_lower = checked_limits(lower, problem.units.columns, "lower")
    given_upper = checked_limits(upper, problem.units.columns, "upper")
    preparation = problem.preparation
    scaled = preparation is not None and preparation.scaled
    if equalities is not None and not scaled:
        implied = within_equalities(*equalities[:2], given_lower, given_upper)
        given_upper = checked_limits(implied, problem.units.columns, "upper")
    wrong = np.flatnonzero(~((given_lower <= 0.0) & (given_upper >= 0.0)))
    if wrong.size:
        j = int(wrong[0])
        raise InputError(
            f"the bounds of feature {j} are {given_lower[j]:g} and {given_upper[j]:g}, but 0, the coefficient of a "
            f"feature that is not chosen, must lie between them; correct them."
        )
    finite = [side[np.isfinite(side)] for side in (given_lower, given_upper)]
    if equalities is None and not any(side.size for side in finite):
        raise InputError("the bounds limit no coefficient; name features with their limits, or leave bounds out.")
    if scaled and any(map(np.any, finite)):
        raise InputError(
            f"limits on coefficients other than 0 go with features as they are, for scaling rounds them; leave "
            f"{option('standardize')} out, or scale the features yourself."
        )
    bounds = CoefficientBounds(problem.objective, given_lower, given_upper)
    return Problem.held(problem.objective.within(bounds), problem.units, problem.k)


def _check_kind(problem: Problem) -> None:
    """:class:`InputError` for a problem whose coefficients cannot be limited."""
    if not is_problem(problem) or not problem.has(FREE_COEFFICIENTS):
        bounded = " with bounds" if is_problem(problem) and problem.has(COEFFICIENT_BOUNDS) else ""
        raise InputError(
            f"a {type(problem).__name__}{bounded} was given, but a Problem with free coefficients was expected; give "
            "that one, and all of its bounds at once."
        )
    if problem.objective.reduction is not None:
        raise InputError(
            "signs and bounds of coefficients need the rows themselves, but these have been reduced; give all rows, or "
            "leave the bounds out."
        )


def with_free_coefficients(problem: Problem) -> Problem:
    """The problem itself, for what knows formulas for free coefficients; :class:`UnsupportedError` for others."""
    if problem.coefficient_bounds is not None:
        raise UnsupportedError("this method does not know signs or bounds of coefficients yet; use solve.")
    return problem


@with_aliases
def boxed(
    problem: Problem,
    positive: bool | str | Sequence[int | str] = (),
    bounds: Sequence[tuple[Any, float | None, float | None]] = (),
    max_coef: float | None = None,
    equalities: Sequence[tuple[Mapping[Any, float], float]] = (),
    sum_to: float | None = None,
) -> Problem:
    """The problem with limits on its coefficients, and equalities that they meet.

    Parameters
    ----------
    problem : Problem
    positive : bool, or sequence of int or str
        Columns whose coefficients may not be negative: numbers, names, or patterns of names such as ``"dose_*"``; True
        (or "all") for every one. ``nonnegative`` is another word for it. Where groups are chosen, numbers are still of
        columns, and the name of a group stands for all of its columns.
    bounds : sequence of (feature, lower, upper)
        Limits of single columns, None or infinite where there is none; 0 lies between them.
    max_coef : float, optional
        No coefficient of any column is larger than this, or smaller than its negative; the intercept may be. What is
        proven is then about such models (the big-M of mixed-integer formulations): a limit that is not known to hold
        changes the problem.
    equalities : sequence of (terms, right-hand side), optional
        Linear equalities on coefficients of the features as given, for quadratic loss: ``({"a": 1, "b": -2}, 0.5)``
        for a - 2 b = 0.5 (:mod:`exactsel.problem.equalities`). The intercept has no part in them.
    sum_to : float, optional
        What all coefficients add up to.

    Raises
    ------
    InputError
        As for :func:`with_bounds`, for a column that is unknown, one whose bounds are given twice, and for
        bounds that are none or limit nothing.
    """
    _check_kind(problem)
    columns = columns_behind(problem.units)
    size = largest_size(max_coef)
    lower, upper = np.full(columns.d, -size), np.full(columns.d, size)
    for j, (low, high) in named_limits(columns, bounds).items():
        lower[j], upper[j] = max(low, -size), min(high, size)
    every = positive is True or (isinstance(positive, str) and positive == ALL)
    named = () if positive is False else positive
    for entry in map(Position, range(columns.d)) if every else entries("positive", named):
        several = matching(entry, columns.names, "the nonnegative features")
        if isinstance(entry, str) and several is None and not columns.called(entry):
            several = problem.units.columns_of(problem.units.called(entry)).tolist() or None
        for j in [columns.number(entry, option("positive"))] if several is None else several:
            lower[j] = max(lower[j], 0.0)
    return with_bounds(problem, lower, upper, named_equalities(columns, equalities, sum_to))
