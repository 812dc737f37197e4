"""A set of units with a model that meets the equalities: what a search begins with in place of the empty model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from exactsel.errors import InputError
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.problem.equality_fit import Constraints, EqualityFits, admissible_point
from exactsel.types import FloatArray, IntArray, StateArray

if TYPE_CHECKING:
    from exactsel.problem.interface import SubsetProblem

ROUNDS = 10
"""Corners evaluated, each with costs that make small coefficients of the last one expensive."""

REGIONS = 400
"""Regions branched on where no corner is a model."""

SMALL = 1e-3
"""Part of the largest coefficient below which one costs as much as none."""

SLACK = 1e-9
"""Part of the sizes of terms by which they may fall short of a right-hand side before a region is pruned."""


def admissible_support(problem: SubsetProblem, k: int) -> tuple[int, ...]:
    """At most k units on which some model meets the equalities within the limits, with what every model must hold.

    Raises
    ------
    InputError
        Where none was found.
    """
    fits = None if problem.coefficient_bounds is None else problem.coefficient_bounds.equalities
    assert fits is not None
    root = problem.units.region(k)
    if root is not None:
        for support in _supports(problem, fits, root, k):
            completed = problem.units.completed(support, k)
            if completed is None or len(completed) > k or np.any(root[list(completed)] == OUT):
                continue
            if np.isfinite(problem.fit(completed).value):
                return completed
    units = f"{problem.units.noun}{'s' * (k != 1)}"
    raise InputError(
        f"no model of at most {k} {units} was found that meets the equalities within the bounds of the coefficients; "
        "raise k, or correct the equalities or the bounds."
    )


def _supports(problem: SubsetProblem, fits: EqualityFits, root: StateArray, k: int) -> Iterator[tuple[int, ...]]:
    """Sets of units to evaluate: those of force_in, those with the largest terms, and those of corners."""
    units, force_in = problem.units, tuple(problem.force_in)
    yield force_in
    columns = units.columns_of(np.flatnonzero(root != OUT))
    if not columns.size:
        return
    unit_of = units.unit_of[columns]
    constraints = fits.constraints(columns)
    largest = _largest_terms(constraints, unit_of).tolist()
    if units.constraint is not None:
        yield units.constraint.restricted(largest, k, root)
    else:
        others = [unit for unit in largest if unit not in force_in]
        yield tuple(sorted([*force_in, *others[: max(0, k - len(force_in))]]))
    costs = np.where(np.isin(unit_of, force_in), 0.0, 1.0)
    weights = costs
    for _ in range(ROUNDS):
        corner = admissible_point(constraints, weights)
        if corner is None:
            return
        yield tuple(sorted({*units.units_of(columns[corner != 0.0]), *force_in}))
        sizes = np.zeros(problem.d)
        np.maximum.at(sizes, unit_of, np.abs(corner))
        least = SMALL * (float(sizes.max()) or 1.0)
        weights = costs * least / (sizes[unit_of] + least)
    yield from _branched(problem, fits, root, k)


def _branched(problem: SubsetProblem, fits: EqualityFits, root: StateArray, k: int) -> Iterator[tuple[int, ...]]:
    """Sets of units of corners of smaller and smaller regions: where all are pruned, no model is admissible."""
    units, open_regions = problem.units, [root]
    for _ in range(REGIONS):
        if not open_regions:
            return
        state = open_regions.pop()
        columns = units.columns_of(np.flatnonzero(state != OUT))
        constraints = fits.constraints(columns)
        if not columns.size or not _reachable(constraints, units.unit_of[columns], state, k):
            continue
        corner = admissible_point(constraints, np.where(state[units.unit_of[columns]] == IN, 0.0, 1.0))
        if corner is None:
            continue
        sizes = np.zeros(problem.d)
        np.maximum.at(sizes, units.unit_of[columns], np.abs(corner))
        yield tuple(np.flatnonzero((sizes > 0.0) | (state == IN)).tolist())
        sizes[state != FREE] = 0.0
        if not sizes.any():
            continue
        for decision in (OUT, IN):
            child = state.copy()
            child[int(np.argmax(sizes))] = decision
            if np.count_nonzero(child == IN) == k:
                child[child == FREE] = OUT
            implied = units.implied(child, k)
            if implied is not None and np.count_nonzero(implied == IN) <= k:
                open_regions.append(implied)


def _reachable(constraints: Constraints, unit_of: IntArray, state: StateArray, k: int) -> bool:
    """Whether the terms of the units that have a place can make up each right-hand side by itself."""
    places = k - int(np.count_nonzero(state == IN))
    for row, right in zip(constraints.rows, constraints.right.tolist(), strict=True):
        for sign in (1.0, -1.0):
            most = _most(sign * row, constraints, unit_of, state.size)
            free = np.sort(most[state == FREE])[::-1][: max(0, places)]
            reach = float(most[state == IN].sum() + free.sum())
            if reach < sign * right - SLACK * (abs(reach) + abs(right)):
                return False
    return True


def _most(row: FloatArray, constraints: Constraints, unit_of: IntArray, count: int) -> FloatArray:
    """The largest sum of the terms of each unit (count,) in one row."""
    with np.errstate(all="ignore"):
        ends = [np.where(row != 0.0, row * side, 0.0) for side in (constraints.lower, constraints.upper)]
    most = np.zeros(count)
    np.add.at(most, unit_of, np.maximum(*ends))
    return most


def _largest_terms(constraints: Constraints, unit_of: IntArray) -> IntArray:
    """Units by how much of the right-hand side of the first equality they can make up: with one equality the best."""
    sign = 1.0 if float(constraints.right[0]) >= 0.0 else -1.0
    most = _most(sign * constraints.rows[0], constraints, unit_of, int(unit_of.max()) + 1)
    units = np.unique(unit_of)
    return np.asarray(units[np.argsort(-most[units], kind="stable")])
