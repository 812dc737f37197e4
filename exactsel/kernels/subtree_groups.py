"""The steps of a walk (kernels/subtree.py) where groups of columns are chosen: kernels/subtree_columns.py, with blocks.

Fixing group g to 0 costs exactly x_g' K_gg^-1 x_g / 2, and is a downdate of K and x, one column of g after the other;
its weight in formula (3) is the sum of D_j x_j^2 over the columns of g. With at most three places left a node is
counted (kernels/group_counting.py). Columns of S come first; those of C stand in any order, so that only columns that
are fixed need be moved.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from exactsel._jit import choose_by_type, njit
from exactsel.kernels.counting import SubtreeData
from exactsel.kernels.group_counting import GroupWorkspace, group_workspace
from exactsel.kernels.node import FREE, IN
from exactsel.kernels.subtree_columns import (
    child_bound,
    column_data,
    column_workspaces,
    cost_without,
    count_region,
    countable,
    excess,
    first_level,
    leave_out,
    open_bound,
    proven,
    put_in,
    weight,
    write_without,
)
from exactsel.kernels.subtree_fit import (
    NONE,
    Stack,
    coefficients_without_last,
    inverse_of,
    inverse_without_last,
    new_stack,
    swap_columns,
)
from exactsel.kernels.subtree_group_count import GroupData, Grouping, columns_of, count_groups_of, count_of_groups
from exactsel.kernels.subtree_group_fit import (
    FitWorkspace,
    coefficients_without_group,
    fit_workspace,
    group_cost,
    group_excess,
    group_formula,
    locate,
)
from exactsel.kernels.subtree_record import SubtreeLimits, Walk
from exactsel.types import FloatArray, IntArray, StateArray


class GroupWorkspaces(NamedTuple):
    """Memory of one worker."""

    counts: GroupWorkspace
    fits: FitWorkspace
    undecided: IntArray
    """Those of ``counts``."""


@njit
def group_workspaces(d: int, groups: int, largest: int) -> GroupWorkspaces:
    """Memory of one worker for d columns in so many groups."""
    counts = group_workspace(d, groups, largest)
    return GroupWorkspaces(counts, fit_workspace(d, groups, largest), counts.counts.undecided)


@choose_by_type("groups")
def data_of(columns: SubtreeData, groups: Any) -> Any:
    """What a walk knows of the problem: of the columns alone where there are no groups."""
    return columns


@data_of.register(Grouping)
def _data_of_groups(columns: SubtreeData, groups: Any) -> Any:
    return GroupData(columns, groups)


@choose_by_type("groups")
def rooms_of(columns: SubtreeData, groups: Any) -> Any:
    """Memory of one worker."""
    return column_workspaces(columns.b.size)


@rooms_of.register(Grouping)
def _rooms_of_groups(columns: SubtreeData, groups: Any) -> Any:
    return group_workspaces(columns.b.size, groups.first.size - 1, groups.largest)


@column_data.register(GroupData)
def _column_data(data: Any) -> SubtreeData:
    columns: SubtreeData = data.columns
    return columns


@countable.register(GroupData)
def _countable(data: Any, slots: int, candidates: int) -> bool:
    return bool(count_groups_of(slots, candidates))


@count_region.register(GroupData)
def _count_region(
    data: Any, units: IntArray, included: int, count: int, slots: int, limits: SubtreeLimits, walk: Walk, row: int,
    workspaces: Any,
) -> int:  # fmt: skip
    return int(count_of_groups(data, units, included, count, slots, limits, walk, row, workspaces.counts))


@first_level.register(GroupData)
def _first_level(data: Any, state: StateArray, scratch: FloatArray) -> Stack:
    levels, count, included = 1, 0, 0
    units = np.empty(state.size, dtype=np.int64)
    for wanted in (IN, FREE):
        for g in range(state.size):
            if state[g] == wanted:
                units[count] = g
                count += 1
                levels += wanted == FREE
        included = count if wanted == IN else included
    m = columns_of(data, units, count, np.empty(data.columns.b.size, dtype=np.int64), 0)
    fit = new_stack(m, levels, scratch)
    rows = fit.size.size
    stack = Stack(
        fit.inverses, fit.x, fit.columns, fit.fixed, fit.size, fit.value, fit.begin,
        np.empty((rows, max(1, count)), dtype=np.int64), np.zeros(rows, dtype=np.int64), np.zeros(rows, dtype=np.int64),
    )  # fmt: skip
    stack.units[0, :count] = units[:count]
    stack.included[0], stack.present[0] = included, count
    stack.fixed[0] = columns_of(data, units, included, stack.columns[0], 0)
    stack.size[0] = columns_of(data, units[included:], count - included, stack.columns[0], stack.fixed[0])
    return stack


@njit
def _bound(
    data: GroupData,
    stack: Stack,
    depth: int,
    x: FloatArray,
    slots: int,
    also: int,
    skip: int,
    workspaces: GroupWorkspaces,
) -> float:
    return float(
        group_formula(
            data, stack.columns[depth], x, stack.size[depth], stack.units[depth], stack.included[depth],
            stack.present[depth], slots, also, skip, workspaces.fits,
        )
    )  # fmt: skip


@proven.register(GroupData)
def _proven(
    data: Any, stack: Stack, depth: int, x: FloatArray, slots: int, also: int, skip: int, hoped: float, curved: bool,
    workspaces: Any, walk: Walk, row: int,
) -> float:  # fmt: skip
    walk.work[row] += stack.size[depth] * stack.size[depth]
    return float(_bound(data, stack, depth, x, slots, also, skip, workspaces))


@open_bound.register(GroupData)
def _open_bound(
    data: Any, stack: Stack, depth: int, slots: int, hoped: float, workspaces: Any, walk: Walk, row: int
) -> float:  # fmt: skip
    return float(_bound(data, stack, depth, stack.x[depth], slots, NONE, NONE, workspaces))


@excess.register(GroupData)
def _excess(data: Any, stack: Stack, depth: int, largest: FloatArray, workspaces: Any) -> float:
    locate(stack, depth, workspaces.fits)
    units, included, count = stack.units[depth], stack.included[depth], stack.present[depth]
    return float(group_excess(data, units, included, count, stack.x[depth], NONE, workspaces.fits, largest))


@weight.register(GroupData)
def _weight(data: Any, x: FloatArray, units: IntArray, position: int, fits: Any) -> float:
    at, group, total = fits.at, units[position], 0.0
    for q in range(data.groups.first[group], data.groups.first[group + 1]):
        j = data.groups.members[q]
        total += data.columns.curvature[j] * x[at[j]] * x[at[j]]
    return total


@cost_without.register(GroupData)
def _cost_without(data: Any, K: FloatArray, x: FloatArray, units: IntArray, position: int, fits: Any) -> float:
    return float(group_cost(data, K, x, units[position], fits))


@write_without.register(GroupData)
def _write_without(data: Any, K: FloatArray, stack: Stack, depth: int, position: int, workspaces: Any) -> None:
    coefficients_without_group(
        data, K, stack.x[depth], stack.size[depth], stack.units[depth, position], workspaces.fits, workspaces.fits.trial
    )  # fmt: skip


@put_in.register(GroupData)
def _put_in(data: Any, stack: Stack, depth: int, position: int, workspaces: Any) -> None:
    units = stack.units[depth]
    K, x, columns, m = inverse_of(stack, depth), stack.x[depth], stack.columns[depth], stack.size[depth]
    group = units[position]
    for i in range(data.groups.first[group], data.groups.first[group + 1]):
        locate(stack, depth, workspaces.fits)
        swap_columns(K, x, columns, m, workspaces.fits.at[data.groups.members[i]], stack.fixed[depth])
        stack.fixed[depth] += 1
    included = stack.included[depth]
    units[position], units[included] = units[included], group
    stack.included[depth] += 1
    locate(stack, depth, workspaces.fits)


@leave_out.register(GroupData)
def _leave_out(data: Any, stack: Stack, depth: int, position: int, into: int, workspaces: Any) -> None:
    units, count = stack.units[depth], stack.present[depth]
    K, x, columns, m = inverse_of(stack, depth), stack.x[depth], stack.columns[depth], stack.size[depth]
    group = units[position]
    size = data.groups.first[group + 1] - data.groups.first[group]
    for i in range(size):
        locate(stack, depth, workspaces.fits)
        swap_columns(K, x, columns, m, workspaces.fits.at[data.groups.members[data.groups.first[group] + i]], m - 1 - i)
    units[position], units[count - 1] = units[count - 1], group
    K_into, x_into = inverse_of(stack, into), stack.x[into]
    coefficients_without_last(K, x, m, x_into)
    inverse_without_last(K, m, K_into)
    for i in range(1, size):
        coefficients_without_last(K_into, x_into, m - i, x_into)
        inverse_without_last(K_into, m - i, K_into)
    stack.columns[into, : m - size] = columns[: m - size]
    stack.units[into, : count - 1] = units[: count - 1]
    stack.fixed[into], stack.size[into] = stack.fixed[depth], m - size
    stack.included[into], stack.present[into] = stack.included[depth], count - 1
    locate(stack, depth, workspaces.fits)


@child_bound.register(GroupData)
def _child_bound(
    data: Any, stack: Stack, depth: int, position: int, largest: FloatArray, cutoff: float, curved: bool,
    workspaces: Any,
    walk: Walk, row: int,
) -> tuple[float, int, float]:  # fmt: skip
    K, x, units, fits = inverse_of(stack, depth), stack.x[depth], stack.units[depth], workspaces.fits
    included, count, m, bound = stack.included[depth], stack.present[depth], stack.size[depth], -np.inf
    cost = group_cost(data, K, x, units[position], fits)
    coefficients_without_group(data, K, x, m, units[position], fits, fits.trial)
    if count - 1 - included > largest.size:
        more = group_excess(data, units, included, count, fits.trial, position, fits, largest)
        if stack.value[depth] + cost + more >= cutoff:
            bound = _bound(data, stack, depth, fits.trial, largest.size, NONE, position, workspaces)
            walk.work[row] += m * m
    return cost, position, bound
