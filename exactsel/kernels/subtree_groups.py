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
from exactsel.kernels.group_counting import GroupWorkspace, group_room
from exactsel.kernels.node import FREE, IN
from exactsel.kernels.subtree_columns import (
    child_bound,
    column_data,
    column_rooms,
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
    fit_room,
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
def group_rooms(d: int, groups: int, largest: int) -> GroupWorkspaces:
    """Memory of one worker for d columns in so many groups."""
    counts = group_room(d, groups, largest)
    return GroupWorkspaces(counts, fit_room(d, groups, largest), counts.counts.undecided)


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
    return column_rooms(columns.b.size)


@rooms_of.register(Grouping)
def _rooms_of_groups(columns: SubtreeData, groups: Any) -> Any:
    return group_rooms(columns.b.size, groups.first.size - 1, groups.largest)


@column_data.register(GroupData)
def _column_data(data: Any) -> SubtreeData:
    columns: SubtreeData = data.columns
    return columns


@countable.register(GroupData)
def _countable(data: Any, places: int, candidates: int) -> bool:
    return bool(count_groups_of(places, candidates))


@count_region.register(GroupData)
def _count_region(
    data: Any, units: IntArray, inside: int, count: int, places: int, limits: SubtreeLimits, walk: Walk, row: int,
    rooms: Any,
) -> int:  # fmt: skip
    return int(count_of_groups(data, units, inside, count, places, limits, walk, row, rooms.counts))


@first_level.register(GroupData)
def _first_level(data: Any, state: StateArray, scratch: FloatArray) -> Stack:
    levels, count, inside = 1, 0, 0
    units = np.empty(state.size, dtype=np.int64)
    for wanted in (IN, FREE):
        for g in range(state.size):
            if state[g] == wanted:
                units[count] = g
                count += 1
                levels += wanted == FREE
        inside = count if wanted == IN else inside
    m = columns_of(data, units, count, np.empty(data.columns.b.size, dtype=np.int64), 0)
    fit = new_stack(m, levels, scratch)
    rows = fit.size.size
    stack = Stack(
        fit.inverses, fit.x, fit.columns, fit.fixed, fit.size, fit.value, fit.begin,
        np.empty((rows, max(1, count)), dtype=np.int64), np.zeros(rows, dtype=np.int64), np.zeros(rows, dtype=np.int64),
    )  # fmt: skip
    stack.units[0, :count] = units[:count]
    stack.inside[0], stack.present[0] = inside, count
    stack.fixed[0] = columns_of(data, units, inside, stack.columns[0], 0)
    stack.size[0] = columns_of(data, units[inside:], count - inside, stack.columns[0], stack.fixed[0])
    return stack


@njit
def _bound(
    data: GroupData, stack: Stack, level: int, x: FloatArray, places: int, also: int, skip: int, rooms: GroupWorkspaces
) -> float:
    return float(
        group_formula(
            data, stack.columns[level], x, stack.size[level], stack.units[level], stack.inside[level],
            stack.present[level], places, also, skip, rooms.fits,
        )
    )  # fmt: skip


@proven.register(GroupData)
def _proven(
    data: Any, stack: Stack, level: int, x: FloatArray, places: int, also: int, skip: int, hoped: float, curved: bool,
    rooms: Any, walk: Walk, row: int,
) -> float:  # fmt: skip
    walk.work[row] += stack.size[level] * stack.size[level]
    return float(_bound(data, stack, level, x, places, also, skip, rooms))


@open_bound.register(GroupData)
def _open_bound(
    data: Any, stack: Stack, level: int, places: int, hoped: float, rooms: Any, walk: Walk, row: int
) -> float:  # fmt: skip
    return float(_bound(data, stack, level, stack.x[level], places, NONE, NONE, rooms))


@excess.register(GroupData)
def _excess(data: Any, stack: Stack, level: int, largest: FloatArray, rooms: Any) -> float:
    locate(stack, level, rooms.fits)
    units, inside, count = stack.units[level], stack.inside[level], stack.present[level]
    return float(group_excess(data, units, inside, count, stack.x[level], NONE, rooms.fits, largest))


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
def _write_without(data: Any, K: FloatArray, stack: Stack, level: int, position: int, rooms: Any) -> None:
    coefficients_without_group(
        data, K, stack.x[level], stack.size[level], stack.units[level, position], rooms.fits, rooms.fits.trial
    )  # fmt: skip


@put_in.register(GroupData)
def _put_in(data: Any, stack: Stack, level: int, position: int, rooms: Any) -> None:
    units = stack.units[level]
    K, x, columns, m = inverse_of(stack, level), stack.x[level], stack.columns[level], stack.size[level]
    group = units[position]
    for i in range(data.groups.first[group], data.groups.first[group + 1]):
        locate(stack, level, rooms.fits)
        swap_columns(K, x, columns, m, rooms.fits.at[data.groups.members[i]], stack.fixed[level])
        stack.fixed[level] += 1
    inside = stack.inside[level]
    units[position], units[inside] = units[inside], group
    stack.inside[level] += 1
    locate(stack, level, rooms.fits)


@leave_out.register(GroupData)
def _leave_out(data: Any, stack: Stack, level: int, position: int, into: int, rooms: Any) -> None:
    units, count = stack.units[level], stack.present[level]
    K, x, columns, m = inverse_of(stack, level), stack.x[level], stack.columns[level], stack.size[level]
    group = units[position]
    size = data.groups.first[group + 1] - data.groups.first[group]
    for i in range(size):
        locate(stack, level, rooms.fits)
        swap_columns(K, x, columns, m, rooms.fits.at[data.groups.members[data.groups.first[group] + i]], m - 1 - i)
    units[position], units[count - 1] = units[count - 1], group
    K_into, x_into = inverse_of(stack, into), stack.x[into]
    coefficients_without_last(K, x, m, x_into)
    inverse_without_last(K, m, K_into)
    for i in range(1, size):
        coefficients_without_last(K_into, x_into, m - i, x_into)
        inverse_without_last(K_into, m - i, K_into)
    stack.columns[into, : m - size] = columns[: m - size]
    stack.units[into, : count - 1] = units[: count - 1]
    stack.fixed[into], stack.size[into] = stack.fixed[level], m - size
    stack.inside[into], stack.present[into] = stack.inside[level], count - 1
    locate(stack, level, rooms.fits)


@child_bound.register(GroupData)
def _child_bound(
    data: Any, stack: Stack, level: int, position: int, largest: FloatArray, cutoff: float, curved: bool, rooms: Any,
    walk: Walk, row: int,
) -> tuple[float, int, float]:  # fmt: skip
    K, x, units, fits = inverse_of(stack, level), stack.x[level], stack.units[level], rooms.fits
    inside, count, m, bound = stack.inside[level], stack.present[level], stack.size[level], -np.inf
    cost = group_cost(data, K, x, units[position], fits)
    coefficients_without_group(data, K, x, m, units[position], fits, fits.trial)
    if count - 1 - inside > largest.size:
        more = group_excess(data, units, inside, count, fits.trial, position, fits, largest)
        if stack.value[level] + cost + more >= cutoff:
            bound = _bound(data, stack, level, fits.trial, largest.size, NONE, position, rooms)
            walk.work[row] += m * m
    return cost, position, bound
