"""A whole subtree at once, depth first (quadratic loss): a few microseconds a node.

At a node (S, C) with r places keep K, the inverse of H = G + lam I on S and C together, and x = K b, the fit without a
limit on the number of columns. They are the guide:

* P(x) bounds the node (Furnival, Wilson 1974: leaps and bounds), and formula (3) at x adds
  (1/2)(sum over C of w_j - its r largest), w_j = D_j x_j^2 and D being the curvature;
* fixing column j to 0 costs exactly x_j^2 / (2 K_jj): where that reaches the cut-off, j is fixed to 1;
* fixing to 1 a j that is not among the r largest adds what the r-th has more: where that reaches the cut-off, j is
  fixed to 0;
* fixing j to 0 is a rank-one downdate of K and x.

The costliest column is branched on, the child without it first. With few places left the node is counted
(kernels/counting.py), which is exact and brings the better models there are. A budget ends the walk early; what is then
open is handed back. Every decision is written down in preorder (kernels/subtree_record.py), which is a proof of the
subtree: a checker can recompute the fit of each region on the way.

What is chosen are units: columns, or groups of them, for which blocks stand where numbers stand above. Their type
decides, while this is compiled, what a step does (kernels/subtree_columns.py, kernels/subtree_groups.py).

Rounding. Nothing is closed because the guide says so: formula (3) is evaluated anew at its x, from H and b, and what
rounding may have done is taken off; where no D is known (lam = 0, dependent columns) an elimination proves the fit.
What cannot be proven stays open until it is counted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from exactsel._jit import atomic_add, njit, prange
from exactsel.kernels.counting import SubtreeData
from exactsel.kernels.moves import BRANCHED, CLOSED, LEFT_OUT, PUT_IN
from exactsel.kernels.subtree_columns import (
    child_bound,
    column_data,
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
from exactsel.kernels.subtree_count import CLEAR, TOO_MANY
from exactsel.kernels.subtree_fit import NONE, Stack, inverse_of, refine, start_fit
from exactsel.kernels.subtree_groups import data_of, rooms_of
from exactsel.kernels.subtree_record import (
    COUNTED,
    EXPLORED,
    NOT_TRUSTED,
    OUT_OF_BUDGET,
    STOPPED,
    SUSPECTED_OPEN,
    SubtreeLimits,
    Walk,
    close,
    incumbent_value,
    leave_open,
    note,
    room_below,
    set_apart,
)
from exactsel.types import BoolArray, FloatArray, IntArray, StateArray

NOTHING_TO_BRANCH_ON = -2

MOST_ENTRIES = 8_000_000
"""Numbers in all the K of one walk; where more columns would have to be fixed to 0 on the way down, it ends early."""

WORTH_FIXING = 3
"""With fewer places than these a node is counted before anything else is tried."""

LOOK_UP = 3e7
"""Multiplications after which the stop flag is read (some 20 ms)."""


def scratch_space(d: int, workers: int) -> FloatArray:
    """Room for the K of every worker, (workers, size): made once, because fresh memory costs more than a short walk."""
    return np.empty((workers, max(2 * d * d, min((d + 1) ** 3 // 3 + d * d, MOST_ENTRIES))))


@njit
def _close_by_fit(
    data: Any, stack: Stack, level: int, places: int, cutoff: float, curved: bool, rooms: Any, walk: Walk, row: int
) -> bool:
    """Close the region of a level where its fit, or formula (3) there, proves the cut-off."""
    x, m = stack.x[level], stack.size[level]
    bound = proven(data, stack, level, x, places, NONE, NONE, cutoff, curved, rooms, walk, row)
    if not bound >= cutoff and column_data(data).floor[stack.columns[level, 0]] > 0.0:
        refine(inverse_of(stack, level), x, m, rooms.fits.residual)
        bound = proven(data, stack, level, x, places, NONE, NONE, cutoff, curved, rooms, walk, row)
    if bound >= cutoff:
        close(walk, row, bound, CLOSED)
        return True
    return False


@njit
def _fix(
    data: Any, stack: Stack, level: int, k: int, value: float, weakest: float, cutoff: float, curved: bool,
    inside_only: bool, rooms: Any, walk: Walk, row: int,
) -> int:  # fmt: skip
    """Fix what the fit allows; return the position of the costliest candidate, or -1 where something was fixed.

    ``value`` is what the guide says of the region by formula (3), ``weakest`` the last of the weights that count.
    Where costs are no numbers (which no definite K gives) :data:`NOTHING_TO_BRANCH_ON`.
    """
    units, count, K, x = stack.units[level], stack.present[level], inverse_of(stack, level), stack.x[level]
    costliest, highest, changed, failed = -1, -1.0, False, False
    i = stack.inside[level]
    while i < count and stack.inside[level] < k:
        places = k - stack.inside[level]
        cost = cost_without(data, K, x, units, i, rooms.fits)
        if stack.value[level] + cost >= cutoff and not failed:
            write_without(data, K, stack, level, i, rooms)
            bound = proven(data, stack, level, rooms.fits.trial, places, NONE, i, cutoff, curved, rooms, walk, row)
            if bound >= cutoff:
                note(walk, row, units[i], PUT_IN)
                walk.dropped[row] = min(walk.dropped[row], bound)
                put_in(data, stack, level, i, rooms)
                changed = True
                i += 1
                continue
            # An elimination that fails costs much and will fail again, mostly.
            failed = column_data(data).floor[stack.columns[level, 0]] <= 0.0
        elif (
            curved and not changed and not inside_only
            and value + 0.5 * (weakest - weight(data, x, units, i, rooms.fits)) >= cutoff
        ):  # fmt: skip
            m = stack.size[level]
            bound = proven(data, stack, level, x, places - 1, i, NONE, cutoff, curved, rooms, walk, row)
            walk.work[row] += m * m
            if bound >= cutoff:
                note(walk, row, units[i], LEFT_OUT)
                walk.dropped[row] = min(walk.dropped[row], bound)
                leave_out(data, stack, level, i, level, rooms)
                stack.value[level] += cost
                walk.nodes[row] += 1
                return -1
        if cost > highest:
            costliest, highest = i, cost
        i += 1
    return -1 if changed else costliest if costliest >= 0 else NOTHING_TO_BRANCH_ON


@njit
def _branch(
    data: Any, stack: Stack, level: int, position: int, largest: FloatArray, cutoff: float, curved: bool, rooms: Any,
    walk: Walk, row: int,
) -> int:  # fmt: skip
    """Branch on the candidate at a position; return the next level.

    The next level is the child without the unit, where that stays open. This one continues, once that is done, as the
    child with it.
    """
    note(walk, row, stack.units[level, position], BRANCHED)
    walk.nodes[row] += 1
    m, last = stack.size[level], stack.present[level] - 1
    cost, position, bound = child_bound(
        data, stack, level, position, largest, cutoff, curved, rooms, walk, row
    )  # fmt: skip
    if bound >= cutoff:
        # Most children end here, before a downdate of K.
        close(walk, row, bound, CLOSED)
        put_in(data, stack, level, position, rooms)
        return level
    value = stack.value[level] + cost
    leave_out(data, stack, level, position, level + 1, rooms)
    walk.work[row] += m * m * (m - stack.size[level + 1])
    stack.value[level + 1] = value
    put_in(data, stack, level, last, rooms)
    return level + 1


@njit
def _count_level(
    data: Any, stack: Stack, level: int, k: int, limits: SubtreeLimits, rooms: Any, walk: Walk, row: int
) -> None:
    """Close the region of a level by counting, but for what is suspect, or leave all of it open."""
    units, inside, count = stack.units[level], stack.inside[level], stack.present[level]
    places = k - inside
    found = count_region(data, units, inside, count, places, limits, walk, row, rooms)
    walk.nodes[row] += 1
    if found == CLEAR:
        note(walk, row, 0, CLOSED if places == 0 or count - inside <= places else COUNTED)
        return
    left = SUSPECTED_OPEN - walk.open_count[row]
    if found == TOO_MANY or not set_apart(walk, row, units, inside, count, places, rooms.undecided, found, left):
        leave_open(walk, row, units, inside, count, -np.inf)


@njit
def _leave_rest_open(
    data: Any, stack: Stack, level: int, k: int, limits: SubtreeLimits, started: bool, rooms: Any, walk: Walk, row: int
) -> None:
    """Hand back the regions on the stack, deepest first, as the preorder has them."""
    while level >= 0:
        inside, bound = stack.inside[level], -np.inf
        if started and k > inside:
            hoped = stack.value[level] - limits.tolerance
            bound = open_bound(data, stack, level, k - inside, hoped, rooms, walk, row)
        leave_open(walk, row, stack.units[level], inside, stack.present[level], bound if bound > -np.inf else -np.inf)
        level -= 1


@njit
def _walk_subtree(
    data: Any, k: int, state: StateArray, limits: SubtreeLimits, stop: BoolArray, walk: Walk, row: int,
    scratch: FloatArray, rooms: Any,
) -> None:  # fmt: skip
    stack = first_level(data, state, scratch)
    levels = stack.size.size
    curved = column_data(data).curvature[0] > 0.0
    largest = np.zeros(k + 1)
    level, next_look, started, tried = 0, LOOK_UP, False, False
    while level >= 0:
        best = incumbent_value(limits, walk, row)
        cutoff = best - room_below(limits, best)
        inside, count = stack.inside[level], stack.present[level]
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
        counted, costliest = countable(data, places, count - inside), 0
        if not counted or (started and places >= WORTH_FIXING and count - inside > places):
            if not started:
                walk.work[row] += float(stack.size[level]) ** 3
                if not start_fit(column_data(data), stack):
                    walk.status[row] = NOT_TRUSTED
                    return
                started = True
            value = stack.value[level] + excess(data, stack, level, largest[:places], rooms)
            if value >= cutoff and not tried:
                if _close_by_fit(data, stack, level, places, cutoff, curved, rooms, walk, row):
                    level -= 1
                    continue
                tried = True
            costliest = _fix(
                data, stack, level, k, value, largest[places - 1], cutoff, curved, counted, rooms, walk, row
            )
        if costliest == NOTHING_TO_BRANCH_ON or (not counted and level + 1 == levels):
            break
        if costliest < 0:
            continue
        tried = False
        if counted:
            _count_level(data, stack, level, k, limits, rooms, walk, row)
            level -= 1
        else:
            level = _branch(data, stack, level, costliest, largest[:places], cutoff, curved, rooms, walk, row)
    walk.status[row] = EXPLORED if level < 0 else OUT_OF_BUDGET
    _leave_rest_open(data, stack, level, k, limits, started, rooms, walk, row)


@njit(parallel=True)
def walk_subtrees(
    columns: SubtreeData, groups: Any, k: int, states: StateArray, limits: SubtreeLimits, stop: BoolArray, walk: Walk,
    scratch: FloatArray, counter: IntArray,
) -> None:  # fmt: skip
    """Walk the subtree of every node (a row of ``states``), over columns (``groups`` None) or groups of them.

    Each row of ``scratch`` (see :func:`scratch_space`) is a worker; they share the nodes by ``counter``, a zero.
    """
    for worker in prange(scratch.shape[0]):
        # Put together here: numba hands threads no tuple that holds tuples.
        data = data_of(columns, groups)
        rooms = rooms_of(columns, groups)
        while not stop[0]:
            row = atomic_add(counter, 0, 1)
            if row >= states.shape[0]:
                break
            _walk_subtree(data, k, states[row], limits, stop, walk, row, scratch[worker], rooms)
