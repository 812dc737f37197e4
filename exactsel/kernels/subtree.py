"""A whole subtree at once, depth first (quadratic loss): a few microseconds a node.

At a node (S, C) with r places keep K, the inverse of H = G + lam I on S and C together, and x = K b, the fit without a
limit on the number of columns. They are the guide:

* P(x) bounds the node (Furnival, Wilson 1974: leaps and bounds), and formula (3) at x adds
  (1/2)(sum_C D_j x_j^2 - its r largest), D being the curvature;
* leaving out column j costs exactly x_j^2 / (2 K_jj): where that reaches the cut-off, j is put in;
* putting in a j that is not among the r largest adds what the r-th has more: where that reaches the cut-off, j is left
  out;
* leaving out j is a rank-one downdate of K and x.

The costliest column is branched on, the child without it first. With few places left the node is counted
(kernels/counting.py), which is exact and brings the better models there are. A budget ends the walk early; what is then
open is handed back. Every decision is written down in preorder (kernels/subtree_record.py), which is a proof of the
subtree: whoever distrusts the numbers can recompute the fit of each region on the way.

Rounding. Nothing is closed because the guide says so: formula (3) is evaluated anew at its x, from H and b, and what
rounding may have done is taken off; where no D is known (lam = 0, dependent columns) an elimination proves the fit.
What cannot be proven stays open until it is counted.
"""

from __future__ import annotations

import numpy as np

from exactsel._jit import atomic_add, njit, prange
from exactsel.kernels.bounded import BoundedRoom, bounded_fit, bounded_room
from exactsel.kernels.counting import CountRoom, WalkData, count_room
from exactsel.kernels.moves import BRANCHED, CLOSED, LEFT_OUT, PUT_IN
from exactsel.kernels.node import FREE, IN
from exactsel.kernels.subtree_count import CLEAR, TOO_MANY, count_region, countable
from exactsel.kernels.subtree_fit import (
    NONE,
    FormulaRoom,
    Stack,
    coefficients_without,
    coefficients_without_last,
    curvature_excess,
    first_columns,
    fit_reaches,
    formula,
    formula_room,
    inverse_of,
    inverse_without_last,
    new_stack,
    refine,
    start_fit,
    swap_columns,
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

MOST_ENTRIES = 8_000_000
"""Numbers in all the K of one walk; where more columns would have to be left out on the way down, it ends early."""

WORTH_FIXING = 3
"""With fewer places than these a node is counted before anything else is tried."""

BOUNDED_WORK = 10
"""Multiplications a bound for bounded models takes, as a multiple of a matrix times a vector."""

LOOK_UP = 3e7
"""Multiplications after which the stop flag is looked at (some 20 ms)."""


def scratch_space(d: int, workers: int) -> FloatArray:
    """Room for the K of every worker, (workers, size): made once, because fresh memory costs more than a short walk."""
    return np.empty((workers, max(2 * d * d, min((d + 1) ** 3 // 3 + d * d, MOST_ENTRIES))))


@njit
def _room(state: StateArray, scratch: FloatArray) -> Stack:
    """A stack of as many levels as the walk may need, or as ``scratch`` holds."""
    levels = 1
    for j in range(state.size):
        levels += state[j] == FREE
    m = levels - 1
    for j in range(state.size):
        m += state[j] == IN
    stack: Stack = new_stack(m, levels, scratch)
    return stack


@njit
def _proven(
    data: WalkData, columns: IntArray, x: FloatArray, fixed: int, m: int, places: int, skip: int, K: FloatArray,
    level: float, curved: bool, rooms: tuple[CountRoom, FormulaRoom, BoundedRoom], walk: Walk, row: int,
) -> float:  # fmt: skip
    """A bound proven for the region without the column at position ``skip``; of use where it reaches the level.

    ``K`` is the guide on all m columns.
    """
    if data.floor[columns[0]] > 0.0:
        walk.work[row] += m * m
        if curved and m - fixed > places:
            return float(formula(data, columns, x, fixed, m, places, NONE, skip, rooms[1]))
        return float(formula(data, columns, x, m, m, 0, NONE, skip, rooms[1]))
    if data.low.size > 0:
        walk.work[row] += BOUNDED_WORK * m * data.b.size
        return float(bounded_fit(data, columns, x, fixed, m, places, skip, K, level, rooms[2]))
    walk.work[row] += m * m * m / 6.0
    return level if fit_reaches(data, columns, m, skip, level, rooms[0]) else -np.inf


@njit
def _close_by_fit(
    data: WalkData, stack: Stack, level: int, places: int, cutoff: float, curved: bool,
    rooms: tuple[CountRoom, FormulaRoom, BoundedRoom], walk: Walk, row: int,
) -> bool:  # fmt: skip
    """Close the region of a level where its fit, or formula (3) there, proves the cut-off."""
    columns, x, fixed, m = stack.columns[level], stack.x[level], stack.fixed[level], stack.size[level]
    K = inverse_of(stack, level)
    bound = _proven(data, columns, x, fixed, m, places, NONE, K, cutoff, curved, rooms, walk, row)
    if not bound >= cutoff and data.floor[columns[0]] > 0.0:
        refine(K, x, m, rooms[1])
        bound = _proven(data, columns, x, fixed, m, places, NONE, K, cutoff, curved, rooms, walk, row)
    if bound >= cutoff:
        close(walk, row, bound, CLOSED)
        return True
    return False


@njit
def _fix(
    data: WalkData, stack: Stack, level: int, k: int, value: float, weakest: float, cutoff: float, curved: bool,
    inside_only: bool, rooms: tuple[CountRoom, FormulaRoom, BoundedRoom], walk: Walk, row: int,
) -> int:  # fmt: skip
    """Fix what the fit allows; return the position of the costliest candidate, or -1 where something was fixed.

    ``value`` is what the guide says of the region by formula (3), ``weakest`` the last of the weights that count.
    Where costs are no numbers (which no definite K gives) :data:`NOTHING_TO_BRANCH_ON`.
    """
    K, x, columns, m = inverse_of(stack, level), stack.x[level], stack.columns[level], stack.size[level]
    costliest, highest, changed, failed = -1, -1.0, False, False
    i = stack.fixed[level]
    while i < m and stack.fixed[level] < k:
        fixed = stack.fixed[level]
        cost = 0.5 * x[i] * x[i] / K[i, i]
        if stack.value[level] + cost >= cutoff and not failed:
            coefficients_without(K, x, m, i, rooms[1].trial)
            bound = _proven(data, columns, rooms[1].trial, fixed, m, k - fixed, i, K, cutoff, curved, rooms, walk, row)
            if bound >= cutoff:
                note(walk, row, columns[i], PUT_IN)
                walk.dropped[row] = min(walk.dropped[row], bound)
                swap_columns(K, x, columns, m, i, fixed)
                stack.fixed[level] += 1
                changed = True
                i += 1
                continue
            # An elimination that fails costs much and will fail again, mostly.
            failed = data.floor[columns[0]] <= 0.0
        elif curved and not changed and not inside_only:
            weight = data.curvature[columns[i]] * x[i] * x[i]
            if value + 0.5 * (weakest - weight) >= cutoff:
                bound = formula(data, columns, x, fixed, m, k - fixed - 1, i, NONE, rooms[1])
                walk.work[row] += 2 * m * m
                if bound >= cutoff:
                    note(walk, row, columns[i], LEFT_OUT)
                    walk.dropped[row] = min(walk.dropped[row], bound)
                    swap_columns(K, x, columns, m, i, m - 1)
                    coefficients_without_last(K, x, m, x)
                    inverse_without_last(K, m, K)
                    stack.size[level] -= 1
                    stack.value[level] += cost
                    walk.nodes[row] += 1
                    return -1
        if cost > highest:
            costliest, highest = i, cost
        i += 1
    return -1 if changed else costliest if costliest >= 0 else NOTHING_TO_BRANCH_ON


@njit
def _branch(
    data: WalkData, stack: Stack, level: int, column: int, largest: FloatArray, cutoff: float, curved: bool,
    rooms: tuple[CountRoom, FormulaRoom, BoundedRoom], walk: Walk, row: int,
) -> int:  # fmt: skip
    """Branch on the candidate at position ``column``; return the level to go on with.

    The next level is the child without the column, where that stays open. This one goes on, once that is done, as the
    child with it.
    """
    fixed, m, value, places = stack.fixed[level], stack.size[level], stack.value[level], largest.size
    K, x, columns, without = inverse_of(stack, level), stack.x[level], stack.columns[level], stack.x[level + 1]
    note(walk, row, columns[column], BRANCHED)
    cost = 0.5 * x[column] ** 2 / K[column, column]
    swap_columns(K, x, columns, m, column, m - 1)
    coefficients_without_last(K, x, m, without)
    walk.nodes[row] += 1
    closed = False
    if m - 1 - fixed > places:
        excess = curvature_excess(data.curvature, columns, without, fixed, m - 1, largest)
        if value + cost + excess >= cutoff:
            # Most children end here, before a downdate of K.
            without[m - 1] = 0.0
            all_m, skip = (m, m - 1) if data.low.size > 0 else (m - 1, NONE)
            bound = _proven(data, columns, without, fixed, all_m, places, skip, K, cutoff, curved, rooms, walk, row)
            closed = bound >= cutoff
            if closed:
                close(walk, row, bound, CLOSED)
    if not closed:
        inverse_without_last(K, m, inverse_of(stack, level + 1))
        walk.work[row] += m * m
        stack.columns[level + 1, : m - 1] = columns[: m - 1]
        stack.fixed[level + 1], stack.size[level + 1] = fixed, m - 1
        stack.value[level + 1] = value + cost
    swap_columns(K, x, columns, m, m - 1, fixed)
    stack.fixed[level] = fixed + 1
    return level if closed else level + 1


@njit
def _count_level(
    data: WalkData, stack: Stack, level: int, k: int, limits: WalkLimits,
    rooms: tuple[CountRoom, FormulaRoom, BoundedRoom], walk: Walk, row: int,
) -> None:  # fmt: skip
    """Close the region of a level by counting, but for what is suspect, or leave all of it open."""
    fixed, m, columns = stack.fixed[level], stack.size[level], stack.columns[level]
    places = k - fixed
    found = count_region(data, columns, fixed, m, places, limits, walk, row, rooms[0], rooms[2])
    walk.nodes[row] += 1
    if found == CLEAR:
        note(walk, row, 0, CLOSED if places == 0 or m - fixed <= places else COUNTED)
        return
    left = SUSPECTED_OPEN - walk.open_count[row]
    if found == TOO_MANY or not set_apart(walk, row, columns, fixed, m, places, rooms[0].suspects, found, left):
        leave_open(walk, row, columns, fixed, m, -np.inf)


@njit
def _leave_rest_open(
    data: WalkData, stack: Stack, level: int, k: int, limits: WalkLimits, started: bool,
    rooms: tuple[CountRoom, FormulaRoom, BoundedRoom], walk: Walk, row: int,
) -> None:  # fmt: skip
    """Hand back the regions on the stack, deepest first, as the preorder has them."""
    while level >= 0:
        fixed, m, columns, bound = stack.fixed[level], stack.size[level], stack.columns[level], -np.inf
        if started and k > fixed:
            hoped = stack.value[level] - limits.tolerance
            K, x = inverse_of(stack, level), stack.x[level]
            bound = _proven(data, columns, x, fixed, m, k - fixed, NONE, K, hoped, False, rooms, walk, row)
        leave_open(walk, row, columns, fixed, m, bound if bound > -np.inf else -np.inf)
        level -= 1


@njit
def _walk_subtree(
    data: WalkData, k: int, state: StateArray, limits: WalkLimits, stop: BoolArray, walk: Walk, row: int,
    scratch: FloatArray, rooms: tuple[CountRoom, FormulaRoom, BoundedRoom],
) -> None:  # fmt: skip
    stack = _room(state, scratch)
    levels = stack.size.size
    first_columns(state, stack)
    curved = data.curvature[0] > 0.0
    largest = np.zeros(k + 1)
    level, next_look, started, tried = 0, LOOK_UP, False, False
    while level >= 0:
        best = incumbent_value(limits, walk, row)
        cutoff = best - room_below(limits, best)
        fixed, m = stack.fixed[level], stack.size[level]
        places = k - fixed
        if walk.work[row] >= next_look:
            next_look = walk.work[row] + LOOK_UP
            if stop[0]:
                walk.status[row] = STOPPED
                return
        no_room = walk.move_count[row] + 2 * m + levels + 8 > walk.moves.shape[1]
        crowded = walk.open_count[row] >= SUSPECTED_OPEN
        if walk.nodes[row] >= limits.budget or walk.work[row] >= limits.work or no_room or crowded:
            break
        counted, costliest = countable(places, m - fixed), 0
        if not counted or (started and places >= WORTH_FIXING and m - fixed > places):
            if not started:
                walk.work[row] += float(m) ** 3
                if not start_fit(data, stack):
                    walk.status[row] = NOT_TRUSTED
                    return
                started = True
            excess = curvature_excess(data.curvature, stack.columns[level], stack.x[level], fixed, m, largest[:places])
            value = stack.value[level] + excess
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
    data: WalkData, k: int, states: StateArray, limits: WalkLimits, stop: BoolArray, walk: Walk, scratch: FloatArray,
    counter: IntArray,
) -> None:  # fmt: skip
    """Walk the subtree of every node (a row of ``states``).

    Each row of ``scratch`` (see :func:`scratch_space`) is a worker; they share the nodes by ``counter``, a zero.
    """
    for worker in prange(scratch.shape[0]):
        rooms = (count_room(data.b.size), formula_room(data.b.size), bounded_room(data.b.size))
        while not stop[0]:
            row = atomic_add(counter, 0, 1)
            if row >= states.shape[0]:
                break
            _walk_subtree(data, k, states[row], limits, stop, walk, row, scratch[worker], rooms)
