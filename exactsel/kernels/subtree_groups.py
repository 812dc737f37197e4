"""A whole subtree over groups of columns at once, depth first (quadratic loss).

As kernels/subtree.py, which see, with groups for columns. At a node (S, C) with r places K, the inverse of H on the
columns of S and C, and x = K b are the guide:

* P(x) bounds the node, and formula (3) at x adds (1/2)(sum over C of w_g - its r largest), with w_g the sum of
  D_j x_j^2 over the columns of g;
* leaving out group g costs exactly x_g' K_gg^-1 x_g / 2: where that reaches the cut-off, g is put in;
* putting in a g that is not among the r largest adds what the r-th has more: where that reaches the cut-off, g is left
  out;
* leaving out g is a downdate of K and x, one column of g after the other.

The costliest group is branched on, the child without it first. With at most three places left the node is counted
(kernels/group_counting.py). Nothing is closed because the guide says so: formula (3) is evaluated anew at its x, from H
and b, and what rounding may have done is taken off. What cannot be proven stays open.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exactsel._jit import atomic_add, njit, prange
from exactsel.kernels.counting import WalkData
from exactsel.kernels.group_counting import GroupRoom, group_room
from exactsel.kernels.grouped import Groups
from exactsel.kernels.moves import BRANCHED, CLOSED, LEFT_OUT, PUT_IN
from exactsel.kernels.subtree_count import CLEAR, TOO_MANY
from exactsel.kernels.subtree_fit import NONE, inverse_of, start_fit
from exactsel.kernels.subtree_group_count import GroupData, count_region, countable
from exactsel.kernels.subtree_group_fit import (
    FitRoom,
    GroupStack,
    coefficients_without,
    cost_without,
    curvature_excess,
    fit_room,
    group_formula,
    group_stack,
    leave_out,
    locate,
    put_in,
    refine,
)
from exactsel.kernels.subtree_record import (
    COUNTED,
    EXPLORED,
    NOT_TRUSTED,
    OUT_OF_BUDGET,
    STOPPED,
    SUSPECTED_OPEN,
    Walk,
    WalkLimits,
    close,
    incumbent_value,
    leave_open,
    note,
    room_below,
    set_apart,
)
from exactsel.types import BoolArray, FloatArray, IntArray, StateArray

NOTHING_TO_BRANCH_ON = -2

WORTH_FIXING = 3
"""With fewer places than these a node is counted before anything else is tried."""

LOOK_UP = 3e7
"""Multiplications after which the stop flag is looked at (some 20 ms)."""


class Rooms(NamedTuple):
    """Memory of one worker."""

    counts: GroupRoom
    fits: FitRoom


@njit
def _close_by_fit(
    data: GroupData, stack: GroupStack, level: int, places: int, cutoff: float, rooms: Rooms, walk: Walk, row: int
) -> bool:
    """Close the region of a level where formula (3) at its fit proves the cut-off."""
    fits, units, inside, count = stack.fits, stack.units[level], stack.inside[level], stack.groups[level]
    columns, x, m = fits.columns[level], fits.x[level], fits.size[level]
    bound = -np.inf
    for attempt in range(2):
        if attempt > 0:
            refine(inverse_of(fits, level), x, m, rooms.fits)
        bound = group_formula(data, columns, x, m, units, inside, count, places, NONE, NONE, rooms.fits)
        walk.work[row] += m * m
        if bound >= cutoff:
            close(walk, row, bound, CLOSED)
            return True
    return False


@njit
def _fix(
    data: GroupData, stack: GroupStack, level: int, k: int, value: float, weakest: float, cutoff: float,
    inside_only: bool, rooms: Rooms, walk: Walk, row: int,
) -> int:  # fmt: skip
    """Fix what the fit allows; return the position of the costliest candidate, or -1 where something was fixed.

    ``value`` is what the guide says of the region by formula (3), ``weakest`` the last of the weights that count.
    Where costs are no numbers (which no definite K gives) :data:`NOTHING_TO_BRANCH_ON`.
    """
    fits, units = stack.fits, stack.units[level]
    K, x, columns, m = inverse_of(fits, level), fits.x[level], fits.columns[level], fits.size[level]
    costliest, highest, changed, room = -1, -1.0, False, rooms.fits
    count = stack.groups[level]
    i = stack.inside[level]
    while i < count and stack.inside[level] < k:
        inside = stack.inside[level]
        cost = cost_without(data, K, x, units[i], room)
        if fits.value[level] + cost >= cutoff:
            coefficients_without(data, K, x, m, units[i], room, room.trial)
            bound = group_formula(data, columns, room.trial, m, units, inside, count, k - inside, NONE, i, room)
            walk.work[row] += m * m
            if bound >= cutoff:
                note(walk, row, units[i], PUT_IN)
                walk.dropped[row] = min(walk.dropped[row], bound)
                put_in(data, stack, level, i, room)
                changed = True
                i += 1
                continue
        elif not changed and not inside_only:
            weight = 0.0
            for q in range(data.groups.first[units[i]], data.groups.first[units[i] + 1]):
                j = data.groups.members[q]
                weight += data.columns.curvature[j] * x[room.at[j]] * x[room.at[j]]
            if value + 0.5 * (weakest - weight) >= cutoff:
                bound = group_formula(data, columns, x, m, units, inside, count, k - inside - 1, i, NONE, room)
                walk.work[row] += 2 * m * m
                if bound >= cutoff:
                    note(walk, row, units[i], LEFT_OUT)
                    walk.dropped[row] = min(walk.dropped[row], bound)
                    leave_out(data, stack, level, i, room, level)
                    fits.value[level] += cost
                    walk.nodes[row] += 1
                    return -1
        if cost > highest:
            costliest, highest = i, cost
        i += 1
    return -1 if changed else costliest if costliest >= 0 else NOTHING_TO_BRANCH_ON


@njit
def _branch(
    data: GroupData, stack: GroupStack, level: int, position: int, largest: FloatArray, cutoff: float, rooms: Rooms,
    walk: Walk, row: int,
) -> int:  # fmt: skip
    """Branch on the candidate at a position; return the level to go on with.

    The next level is the child without the group, where that stays open. This one goes on, once that is done, as the
    child with it.
    """
    fits, units, places, room = stack.fits, stack.units[level], largest.size, rooms.fits
    K, x, columns, m = inverse_of(fits, level), fits.x[level], fits.columns[level], fits.size[level]
    inside, count, group = stack.inside[level], stack.groups[level], stack.units[level, position]
    note(walk, row, group, BRANCHED)
    cost = cost_without(data, K, x, group, room)
    coefficients_without(data, K, x, m, group, room, room.trial)
    walk.nodes[row] += 1
    value, closed = fits.value[level] + cost, False
    if count - 1 - inside > places:
        excess = curvature_excess(data, units, inside, count, room.trial, position, room, largest)
        if value + excess >= cutoff:
            # Most children end here, before a downdate of K.
            bound = group_formula(data, columns, room.trial, m, units, inside, count, places, NONE, position, room)
            walk.work[row] += m * m
            closed = bound >= cutoff
            if closed:
                close(walk, row, bound, CLOSED)
    if closed:
        put_in(data, stack, level, position, room)
        return level
    leave_out(data, stack, level, position, room, level + 1)
    walk.work[row] += m * m * (data.groups.first[group + 1] - data.groups.first[group])
    fits.value[level + 1] = value
    put_in(data, stack, level, count - 1, room)
    return level + 1


@njit
def _count_level(
    data: GroupData, stack: GroupStack, level: int, k: int, limits: WalkLimits, rooms: Rooms, walk: Walk, row: int
) -> None:
    """Close the region of a level by counting, but for what is suspect, or leave all of it open."""
    units, inside, count = stack.units[level], stack.inside[level], stack.groups[level]
    places = k - inside
    found = count_region(data, units, inside, count, places, limits, walk, row, rooms.counts)
    walk.nodes[row] += 1
    if found == CLEAR:
        note(walk, row, 0, CLOSED if places == 0 or count - inside <= places else COUNTED)
        return
    left, suspects = SUSPECTED_OPEN - walk.open_count[row], rooms.counts.counts.suspects
    if found == TOO_MANY or not set_apart(walk, row, units, inside, count, places, suspects, found, left):
        leave_open(walk, row, units, inside, count, -np.inf)


@njit
def _leave_rest_open(
    data: GroupData, stack: GroupStack, level: int, k: int, started: bool, rooms: Rooms, walk: Walk, row: int
) -> None:
    """Hand back the regions on the stack, deepest first, as the preorder has them."""
    fits = stack.fits
    while level >= 0:
        units, inside, count, bound = stack.units[level], stack.inside[level], stack.groups[level], -np.inf
        if started and k > inside:
            columns, x, m = fits.columns[level], fits.x[level], fits.size[level]
            bound = group_formula(data, columns, x, m, units, inside, count, k - inside, NONE, NONE, rooms.fits)
        leave_open(walk, row, units, inside, count, bound if bound > -np.inf else -np.inf)
        level -= 1


@njit
def _walk_subtree(
    data: GroupData, k: int, state: StateArray, limits: WalkLimits, stop: BoolArray, walk: Walk, row: int,
    scratch: FloatArray, rooms: Rooms,
) -> None:  # fmt: skip
    stack = group_stack(data, state, scratch)
    fits, levels = stack.fits, stack.fits.size.size
    largest = np.zeros(k + 1)
    level, next_look, started, tried = 0, LOOK_UP, False, False
    while level >= 0:
        best = incumbent_value(limits, walk, row)
        cutoff = best - room_below(limits, best)
        inside, count = stack.inside[level], stack.groups[level]
        places = k - inside
        if walk.work[row] >= next_look:
            next_look = walk.work[row] + LOOK_UP
            if stop[0]:
                walk.status[row] = STOPPED
                return
        no_room = walk.move_count[row] + 2 * count + levels + 8 > walk.moves.shape[1]
        crowded = walk.open_count[row] >= SUSPECTED_OPEN
        if walk.nodes[row] >= limits.budget or walk.work[row] >= limits.work or no_room or crowded:
            break
        counted, costliest = countable(places, count - inside), 0
        if not counted or (started and places >= WORTH_FIXING and count - inside > places):
            if not started:
                walk.work[row] += float(fits.size[0]) ** 3
                if not start_fit(data.columns, fits):
                    walk.status[row] = NOT_TRUSTED
                    return
                started = True
            locate(stack, level, rooms.fits)
            units, x = stack.units[level], fits.x[level]
            excess = curvature_excess(data, units, inside, count, x, NONE, rooms.fits, largest[:places])
            value = fits.value[level] + excess
            if value >= cutoff and not tried:
                if _close_by_fit(data, stack, level, places, cutoff, rooms, walk, row):
                    level -= 1
                    continue
                tried = True
            costliest = _fix(data, stack, level, k, value, largest[places - 1], cutoff, counted, rooms, walk, row)
        if costliest == NOTHING_TO_BRANCH_ON or (not counted and level + 1 == levels):
            break
        if costliest < 0:
            continue
        tried = False
        if counted:
            _count_level(data, stack, level, k, limits, rooms, walk, row)
            level -= 1
        else:
            level = _branch(data, stack, level, costliest, largest[:places], cutoff, rooms, walk, row)
    walk.status[row] = EXPLORED if level < 0 else OUT_OF_BUDGET
    _leave_rest_open(data, stack, level, k, started, rooms, walk, row)


@njit(parallel=True)
def walk_group_subtrees(
    columns: WalkData, groups: Groups, owner: IntArray, largest: int, k: int, states: StateArray, limits: WalkLimits,
    stop: BoolArray, walk: Walk, scratch: FloatArray, counter: IntArray,
) -> None:  # fmt: skip
    """Walk the subtree of every node (a row of ``states``, groups).

    The first four are the parts of :class:`GroupData`, for a parallel loop takes no tuples of tuples. Each row of
    ``scratch`` is a worker; they share the nodes by ``counter``, a zero.
    """
    d, many = columns.b.size, states.shape[1]
    for worker in prange(scratch.shape[0]):
        data = GroupData(columns, groups, owner, largest)
        rooms = Rooms(group_room(d, many, largest), fit_room(d, many, largest))
        while not stop[0]:
            row = atomic_add(counter, 0, 1)
            if row >= states.shape[0]:
                break
            _walk_subtree(data, k, states[row], limits, stop, walk, row, scratch[worker], rooms)
