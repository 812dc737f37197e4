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
    data: Any, stack: Stack, depth: int, slots: int, cutoff: float, curved: bool, rooms: Any, walk: Walk, row: int
) -> bool:
    """Close the region of a level where its fit, or formula (3) there, proves the cut-off."""
    x, m = stack.x[depth], stack.size[depth]
    bound = proven(data, stack, depth, x, slots, NONE, NONE, cutoff, curved, rooms, walk, row)
    if not bound >= cutoff and column_data(data).floor[stack.columns[depth, 0]] > 0.0:
        refine(inverse_of(stack, depth), x, m, rooms.fits.residual)
        bound = proven(data, stack, depth, x, slots, NONE, NONE, cutoff, curved, rooms, walk, row)
    if bound >= cutoff:
        close(walk, row, bound, CLOSED)
        return True
    return False


@njit
def _fix(
    data: Any, stack: Stack, depth: int, k: int, value: float, weakest: float, cutoff: float, curved: bool,
    inside_only: bool, rooms: Any, walk: Walk, row: int,
) -> int:  # fmt: skip
    """Fix what the fit allows; return the position of the costliest candidate, or -1 where something was fixed.

    ``value`` is what the guide says of the region by formula (3), ``weakest`` the last of the weights that count.
    Where costs are no numbers (which no definite K gives) :data:`NOTHING_TO_BRANCH_ON`.
    """
    units, count, K, x = stack.units[depth], stack.present[depth], inverse_of(stack, depth), stack.x[depth]
    costliest, highest, changed, failed = -1, -1.0, False, False
    i = stack.included[depth]
    while i < count and stack.included[depth] < k:
        slots = k - stack.included[depth]
        cost = cost_without(data, K, x, units, i, rooms.fits)
        if stack.value[depth] + cost >= cutoff and not failed:
            write_without(data, K, stack, depth, i, rooms)
            bound = proven(data, stack, depth, rooms.fits.trial, slots, NONE, i, cutoff, curved, rooms, walk, row)
            if bound >= cutoff:
                note(walk, row, units[i], PUT_IN)
                walk.min_pruned_bound[row] = min(walk.min_pruned_bound[row], bound)
                put_in(data, stack, depth, i, rooms)
                changed = True
                i += 1
                continue
            # An elimination that fails costs much and will fail again, mostly.
            failed = column_data(data).floor[stack.columns[depth, 0]] <= 0.0
        elif (
            curved and not changed and not inside_only
            and value + 0.5 * (weakest - weight(data, x, units, i, rooms.fits)) >= cutoff
        ):  # fmt: skip
            m = stack.size[depth]
            bound = proven(data, stack, depth, x, slots - 1, i, NONE, cutoff, curved, rooms, walk, row)
            walk.work[row] += m * m
            if bound >= cutoff:
                note(walk, row, units[i], LEFT_OUT)
                walk.min_pruned_bound[row] = min(walk.min_pruned_bound[row], bound)
                leave_out(data, stack, depth, i, depth, rooms)
                stack.value[depth] += cost
                walk.nodes[row] += 1
                return -1
        if cost > highest:
            costliest, highest = i, cost
        i += 1
    return -1 if changed else costliest if costliest >= 0 else NOTHING_TO_BRANCH_ON


@njit
def _branch(
    data: Any, stack: Stack, depth: int, position: int, largest: FloatArray, cutoff: float, curved: bool, rooms: Any,
    walk: Walk, row: int,
) -> int:  # fmt: skip
    """Branch on the candidate at a position; return the next level.

    The next level is the child without the unit, where that stays open. This one continues, once that is done, as the
    child with it.
    """
    note(walk, row, stack.units[depth, position], BRANCHED)
    walk.nodes[row] += 1
    m, last = stack.size[depth], stack.present[depth] - 1
    cost, position, bound = child_bound(
        data, stack, depth, position, largest, cutoff, curved, rooms, walk, row
    )  # fmt: skip
    if bound >= cutoff:
        # Most children end here, before a downdate of K.
        close(walk, row, bound, CLOSED)
        put_in(data, stack, depth, position, rooms)
        return depth
    value = stack.value[depth] + cost
    leave_out(data, stack, depth, position, depth + 1, rooms)
    walk.work[row] += m * m * (m - stack.size[depth + 1])
    stack.value[depth + 1] = value
    put_in(data, stack, depth, last, rooms)
    return depth + 1


@njit
def _count_level(
    data: Any, stack: Stack, depth: int, k: int, limits: SubtreeLimits, rooms: Any, walk: Walk, row: int
) -> None:
    """Close the region of a level by counting, but for what is suspect, or leave all of it open."""
    units, included, count = stack.units[depth], stack.included[depth], stack.present[depth]
    slots = k - included
    found = count_region(data, units, included, count, slots, limits, walk, row, rooms)
    walk.nodes[row] += 1
    if found == CLEAR:
        note(walk, row, 0, CLOSED if slots == 0 or count - included <= slots else COUNTED)
        return
    left = SUSPECTED_OPEN - walk.open_count[row]
    if found == TOO_MANY or not set_apart(walk, row, units, included, count, slots, rooms.undecided, found, left):
        leave_open(walk, row, units, included, count, -np.inf)


@njit
def _leave_rest_open(
    data: Any, stack: Stack, depth: int, k: int, limits: SubtreeLimits, started: bool, rooms: Any, walk: Walk, row: int
) -> None:
    """Hand back the regions on the stack, deepest first, as the preorder has them."""
    while depth >= 0:
        included, bound = stack.included[depth], -np.inf
        if started and k > included:
            hoped = stack.value[depth] - limits.tolerance
            bound = open_bound(data, stack, depth, k - included, hoped, rooms, walk, row)
        leave_open(walk, row, stack.units[depth], included, stack.present[depth], bound if bound > -np.inf else -np.inf)
        depth -= 1


@njit
def _walk_subtree(
    data: Any, k: int, state: StateArray, limits: SubtreeLimits, stop: BoolArray, walk: Walk, row: int,
    scratch: FloatArray, rooms: Any,
) -> None:  # fmt: skip
    stack = first_level(data, state, scratch)
    levels = stack.size.size
    curved = column_data(data).curvature[0] > 0.0
    largest = np.zeros(k + 1)
    depth, next_look, started, tried = 0, LOOK_UP, False, False
    while depth >= 0:
        best = incumbent_value(limits, walk, row)
        cutoff = best - room_below(limits, best)
        included, count = stack.included[depth], stack.present[depth]
        slots = k - included
        if walk.work[row] >= next_look:
            next_look = walk.work[row] + LOOK_UP
            if stop[0]:
                walk.status[row] = STOPPED
                return
        no_room = walk.move_count[row] + 2 * count + levels + 8 > walk.moves.shape[1]
        crowded = walk.open_count[row] >= SUSPECTED_OPEN
        if walk.nodes[row] >= limits.budget or walk.work[row] >= limits.work or no_room or crowded:
            break
        counted, costliest = countable(data, slots, count - included), 0
        if not counted or (started and slots >= WORTH_FIXING and count - included > slots):
            if not started:
                walk.work[row] += float(stack.size[depth]) ** 3
                if not start_fit(column_data(data), stack):
                    walk.status[row] = NOT_TRUSTED
                    return
                started = True
            value = stack.value[depth] + excess(data, stack, depth, largest[:slots], rooms)
            if value >= cutoff and not tried:
                if _close_by_fit(data, stack, depth, slots, cutoff, curved, rooms, walk, row):
                    depth -= 1
                    continue
                tried = True
            costliest = _fix(
                data, stack, depth, k, value, largest[slots - 1], cutoff, curved, counted, rooms, walk, row
            )
        if costliest == NOTHING_TO_BRANCH_ON or (not counted and depth + 1 == levels):
            break
        if costliest < 0:
            continue
        tried = False
        if counted:
            _count_level(data, stack, depth, k, limits, rooms, walk, row)
            depth -= 1
        else:
            depth = _branch(data, stack, depth, costliest, largest[:slots], cutoff, curved, rooms, walk, row)
    walk.status[row] = EXPLORED if depth < 0 else OUT_OF_BUDGET
    _leave_rest_open(data, stack, depth, k, limits, started, rooms, walk, row)


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
