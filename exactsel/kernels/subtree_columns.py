"""The steps of a walk (kernels/subtree.py) where columns are chosen one by one; kernels/subtree_groups.py has groups.

A step is chosen by the type of ``data`` while the walk is compiled. Positions are those of units in ``stack.units``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from exactsel._jit import choose_by_type, njit
from exactsel.kernels.bounded import BoundedWorkspace, bounded_fit, bounded_workspace
from exactsel.kernels.counting import CountWorkspace, SubtreeData, count_workspace
from exactsel.kernels.node import FREE, IN
from exactsel.kernels.subtree_count import count_columns, count_of_columns
from exactsel.kernels.subtree_fit import (
    NONE,
    FormulaWorkspace,
    Stack,
    coefficients_without,
    coefficients_without_last,
    curvature_excess,
    first_columns,
    fit_reaches,
    formula,
    formula_workspace,
    inverse_of,
    inverse_without_last,
    new_stack,
    swap_columns,
)
from exactsel.kernels.subtree_record import SubtreeLimits, Walk
from exactsel.types import FloatArray, IntArray, StateArray

BOUNDED_WORK = 10
"""Multiplications a bound for bounded models takes, as a multiple of a matrix times a vector."""


class ColumnWorkspaces(NamedTuple):
    """Memory of one worker."""

    counts: CountWorkspace
    fits: FormulaWorkspace
    bounded: BoundedWorkspace
    undecided: IntArray
    """Those of ``counts``."""


@njit
def column_workspaces(d: int) -> ColumnWorkspaces:
    """Memory of one worker for d columns."""
    counts = count_workspace(d)
    return ColumnWorkspaces(counts, formula_workspace(d), bounded_workspace(d), counts.undecided)


@choose_by_type("data")
def column_data(data: Any) -> SubtreeData:
    """What is known of the columns."""
    columns: SubtreeData = data
    return columns


@choose_by_type("data")
def countable(data: Any, slots: int, candidates: int) -> bool:
    """Whether to count so many places rather than branch."""
    return bool(count_columns(slots, candidates))


@choose_by_type("data")
def count_region(
    data: Any, units: IntArray, included: int, count: int, slots: int, limits: SubtreeLimits, walk: Walk, row: int,
    workspaces: Any,
) -> int:  # fmt: skip
    """Count a region; see :func:`exactsel.kernels.subtree_count.count_of_columns`."""
    return int(
        count_of_columns(data, units, included, count, slots, limits, walk, row, workspaces.counts, workspaces.bounded)
    )


@choose_by_type("data")
def first_level(data: Any, state: StateArray, scratch: FloatArray) -> Stack:
    """A stack of as many levels as the walk from ``state`` may need, or as ``scratch`` holds; its first level."""
    levels, m = 1, 0
    for j in range(state.size):
        levels += state[j] == FREE
        m += (state[j] == FREE) + (state[j] == IN)
    stack: Stack = new_stack(m, levels, scratch)
    first_columns(state, stack)
    return stack


@njit
def _proven(
    data: SubtreeData, columns: IntArray, x: FloatArray, fixed: int, m: int, slots: int, also: int, skip: int,
    K: FloatArray, depth: float, curved: bool, workspaces: ColumnWorkspaces, walk: Walk, row: int,
) -> float:  # fmt: skip
    if data.floor[columns[0]] > 0.0:
        walk.work[row] += m * m
        if curved and m - fixed > slots:
            return float(formula(data, columns, x, fixed, m, slots, also, skip, workspaces.fits))
        return float(formula(data, columns, x, m, m, 0, NONE, skip, workspaces.fits))
    if data.low.size > 0:
        walk.work[row] += BOUNDED_WORK * m * data.b.size
        return float(bounded_fit(data, columns, x, fixed, m, slots, skip, K, depth, workspaces.bounded))
    walk.work[row] += m * m * m / 6.0
    return depth if fit_reaches(data, columns, m, skip, depth, workspaces.counts) else -np.inf


@choose_by_type("data")
def proven(
    data: Any, stack: Stack, depth: int, x: FloatArray, slots: int, also: int, skip: int, hoped: float, curved: bool,
    workspaces: Any, walk: Walk, row: int,
) -> float:  # fmt: skip
    """A bound proven for the region of a level, by its fit x or formula (3) there; of use where it reaches ``hoped``.

    The unit at position ``also`` (-1: none) is inside, too, and that at position ``skip`` (-1: none) is not in the
    region; ``slots`` of the other candidates count.
    """
    fixed, m, K = stack.fixed[depth], stack.size[depth], inverse_of(stack, depth)
    columns = stack.columns[depth]
    return float(_proven(data, columns, x, fixed, m, slots, also, skip, K, hoped, curved, workspaces, walk, row))


@choose_by_type("data")
def open_bound(
    data: Any, stack: Stack, depth: int, slots: int, hoped: float, workspaces: Any, walk: Walk, row: int
) -> float:  # fmt: skip
    """A bound for a region that is handed back."""
    return float(proven(data, stack, depth, stack.x[depth], slots, NONE, NONE, hoped, False, workspaces, walk, row))


@choose_by_type("data")
def excess(data: Any, stack: Stack, depth: int, largest: FloatArray, workspaces: Any) -> float:
    """What formula (3) adds to the fit; ``largest`` receives the largest weights of C, in descending order."""
    columns, x, fixed, m = stack.columns[depth], stack.x[depth], stack.fixed[depth], stack.size[depth]
    return float(curvature_excess(data.curvature, columns, x, fixed, m, largest))


@choose_by_type("data")
def weight(data: Any, x: FloatArray, units: IntArray, position: int, fits: Any) -> float:
    """D x^2 of a candidate."""
    return float(data.curvature[units[position]] * x[position] * x[position])


@choose_by_type("data")
def cost_without(data: Any, K: FloatArray, x: FloatArray, units: IntArray, position: int, fits: Any) -> float:
    """The cost of fixing a candidate to 0."""
    return float(0.5 * x[position] * x[position] / K[position, position])


@choose_by_type("data")
def write_without(data: Any, K: FloatArray, stack: Stack, depth: int, position: int, workspaces: Any) -> None:
    """Write the fit without a candidate, whose cost was computed last, to ``workspaces.fits.trial``; there it is 0."""
    coefficients_without(K, stack.x[depth], stack.size[depth], position, workspaces.fits.trial)


@choose_by_type("data")
def put_in(data: Any, stack: Stack, depth: int, position: int, workspaces: Any) -> None:
    """Move the candidate at a position to S."""
    fixed = stack.fixed[depth]
    swap_columns(
        inverse_of(stack, depth), stack.x[depth], stack.columns[depth], stack.size[depth], position, fixed
    )  # fmt: skip
    stack.fixed[depth] = fixed + 1


@choose_by_type("data")
def leave_out(data: Any, stack: Stack, depth: int, position: int, into: int, workspaces: Any) -> None:
    """Downdate the fit of a level for the region without the unit at a position of C, as the level ``into``.

    That is the same level or, once :func:`child_bound` was called, the next one. What is left of the level itself is
    the region as it was, that unit last.
    """
    K, x, columns, m = inverse_of(stack, depth), stack.x[depth], stack.columns[depth], stack.size[depth]
    swap_columns(K, x, columns, m, position, m - 1)
    if into == depth:
        coefficients_without_last(K, x, m, x)
        inverse_without_last(K, m, K)  # not by another name for K: the compiler must see that it is in place
    else:  # child_bound has written the coefficients
        stack.columns[into, : m - 1] = columns[: m - 1]
        stack.fixed[into] = stack.fixed[depth]
        inverse_without_last(K, m, inverse_of(stack, into))
    stack.size[into] = m - 1


@choose_by_type("data")
def child_bound(
    data: Any, stack: Stack, depth: int, position: int, largest: FloatArray, cutoff: float, curved: bool,
    workspaces: Any,
    walk: Walk, row: int,
) -> tuple[float, int, float]:  # fmt: skip
    """The cost of fixing a candidate to 0, its position from now on, and a bound for the child without it.

    The bound is -inf where the guide does not promise the cut-off.
    """
    fixed, m, slots = stack.fixed[depth], stack.size[depth], largest.size
    K, x, columns, without = inverse_of(stack, depth), stack.x[depth], stack.columns[depth], stack.x[depth + 1]
    cost = 0.5 * x[position] ** 2 / K[position, position]
    swap_columns(K, x, columns, m, position, m - 1)
    coefficients_without_last(K, x, m, without)
    bound = -np.inf
    if m - 1 - fixed > slots:
        more = curvature_excess(data.curvature, columns, without, fixed, m - 1, largest)
        if stack.value[depth] + cost + more >= cutoff:
            without[m - 1] = 0.0
            all_m, skip = (m, m - 1) if data.low.size > 0 else (m - 1, NONE)
            bound = _proven(
                data, columns, without, fixed, all_m, slots, NONE, skip, K, cutoff, curved, workspaces, walk, row
            )
    return cost, m - 1, bound
