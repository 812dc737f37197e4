"""A set of units with a model that meets the equalities: what a search begins with in place of the empty model."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from exactsel.errors import InputError
from exactsel.kernels.node import OUT
from exactsel.problem.equality_fit import Constraints, admissible_point
from exactsel.types import FloatArray, IntArray

if TYPE_CHECKING:
    from exactsel.problem.boxed import BoxedProblem

ROUNDS = 10
"""Corners evaluated, each with costs that make small coefficients of the last one expensive."""

FEW = 1000
"""Sets of units that are all evaluated where no corner uses few enough."""

SMALL = 1e-3
"""Part of the largest coefficient below which one costs as much as none."""


def admissible_support(problem: BoxedProblem, k: int) -> tuple[int, ...]:
    """At most k units on which some model meets the equalities within the limits, with what every model must hold.

    Raises
    ------
    InputError
        Where none was found.
    """
    assert problem.equalities is not None
    for support in _supports(problem, k):
        completed = problem.units.completed(support, k)
        if completed is not None and len(completed) <= k and np.isfinite(problem.fit(completed).value):
            return completed
    raise InputError(
        f"no model of at most {k} {problem.units.noun}s was found that meets the equalities within the bounds "
        "of the coefficients; raise k, or correct the equalities or the bounds."
    )


def _supports(problem: BoxedProblem, k: int) -> Iterator[tuple[int, ...]]:
    """Sets of units to evaluate: those of force_in, those with the largest terms, and those of corners."""
    force_in = tuple(problem.force_in)
    yield force_in
    fits = problem.equalities
    assert fits is not None
    allowed = np.flatnonzero(problem.root_state != OUT)
    columns = problem.units.columns_of(allowed)
    unit_of = problem.units.unit_of[columns]
    constraints = fits.constraints(columns)
    yield _joined(_largest_terms(constraints, unit_of), force_in, k)
    costs = np.where(np.isin(unit_of, force_in), 0.0, 1.0)
    weights = costs
    for _ in range(ROUNDS):
        corner = admissible_point(constraints, weights)
        if corner is None:
            return
        yield tuple(sorted({*problem.units.units_of(columns[corner != 0.0]), *force_in}))
        sizes = np.zeros(problem.d)
        np.maximum.at(sizes, unit_of, np.abs(corner))
        least = SMALL * (float(sizes.max()) or 1.0)
        weights = costs * least / (sizes[unit_of] + least)
    others = [int(unit) for unit in allowed if unit not in force_in]
    places = min(k - len(force_in), len(others))
    if math.comb(len(others), places) <= FEW:
        for more in combinations(others, places):
            yield tuple(sorted([*force_in, *more]))


def _joined(first: IntArray, force_in: tuple[int, ...], k: int) -> tuple[int, ...]:
    """What every model must hold, and as many of the others as there is a place for."""
    others = [int(unit) for unit in first if unit not in force_in]
    return tuple(sorted([*force_in, *others[: max(0, k - len(force_in))]]))


def _largest_terms(constraints: Constraints, unit_of: IntArray) -> IntArray:
    """Units by how much of the right-hand side of the first equality they can make up: with one equality the best."""
    row, right = constraints.rows[0], float(constraints.right[0])
    with np.errstate(all="ignore"):
        ends = [np.where(row != 0.0, row * side, 0.0) for side in (constraints.lower, constraints.upper)]
    most: FloatArray = np.zeros(int(unit_of.max(initial=0)) + 1)
    np.add.at(most, unit_of, np.maximum(*ends) if right >= 0.0 else -np.minimum(*ends))
    return np.argsort(-most, kind="stable")
