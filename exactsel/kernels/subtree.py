"""A whole subtree at once, depth first, in closed form (quadratic loss): a microsecond or so a node.

At a node (S, C) keep K, the inverse of H = G + lam I on S and C together, and x = K b, the fit without a limit on the
number of columns. Then everything needed is at hand:

* P(x) bounds the node (Furnival, Wilson 1974: leaps and bounds), and formula (3) at x adds
  (1/2)(sum_C D_j x_j^2 - its r largest), D being the curvature;
* leaving out column j costs exactly x_j^2 / (2 K_jj): where that reaches the cut-off, j is put in;
* putting in a j that is not among the r largest adds what the r-th has more: where that reaches the cut-off, j is left
  out;
* leaving out j is a rank-one downdate of K and x;
* with one place left the best single addition closes the node.

The costliest column is branched on, the child without it first. A budget ends the walk early; what is then open is
handed back. Every decision is written down in preorder (:mod:`exactsel.kernels.moves`), which is a proof of the
subtree: whoever distrusts the numbers can recompute the fit of each region on the way.

Rounding. Downdates are elimination steps on the positive definite K, which are backward stable; the values they give
are off by about the rounding of K itself. ``slack`` is what the caller gives up for it (see walks/closed_form.py), and
every 2^10 nodes the current fit is held against its own normal equations (``drifted``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exactsel._jit import atomic_add, njit, prange
from exactsel.kernels.moves import BRANCHED, CLOSED, LEFT_OUT, PUT_IN
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.kernels.subtree_fit import (
    QuadraticData,
    Stack,
    best_addition,
    coefficients_without_last,
    curvature_excess,
    drifted,
    inverse_without_last,
    start_fit,
    swap_columns,
)
from exactsel.types import BoolArray, FloatArray, IntArray, StateArray

LEFT_OPEN = 4
"""Written down beside :mod:`exactsel.kernels.moves`: the region is left open. The two children of a region that is
split follow, first the one without the column; a column is put in because the fit closes the other child, and left out
because formula (3) does."""

EXPLORED, OUT_OF_BUDGET, STOPPED, NOT_TRUSTED = 0, 1, 2, 3
"""How the walk of one subtree ended."""

NOTHING_TO_BRANCH_ON = -2

MOST_ENTRIES = 8_000_000
"""Numbers in all the K of one walk; where more columns would have to be left out on the way down, it ends early."""


def scratch_space(d: int, workers: int) -> FloatArray:
    """Room for the K of every worker, (workers, size): made once, because fresh memory costs more than a short walk."""
    return np.empty((workers, max(2 * d * d, min((d + 1) * d * d, MOST_ENTRIES))))


class WalkLimits(NamedTuple):
    """When a walk closes a region, and when it ends."""

    upper: float
    """Objective of the best model known to the caller."""
    tolerance: float
    """A region is closed where its bound reaches this much less than the best objective known."""
    budget: int
    """Nodes the walk may visit."""
    trusted: float
    """How ill-conditioned a fit may be."""


class Walk(NamedTuple):
    """What the walk of each of B subtrees brought, one row a subtree."""

    status: StateArray
    nodes: IntArray
    dropped: FloatArray
    """The smallest bound of any region closed."""
    value: FloatArray
    """The best objective met; inf if none below the caller's upper."""
    support: IntArray
    """(B, k) the columns it was met on, padded with -1."""
    open_count: IntArray
    open_states: StateArray
    """(B, d + 1, d) what is left open ..."""
    open_bounds: FloatArray
    """(B, d + 1) ... and its bounds."""
    moves: IntArray
    """(B, capacity) the decisions, in preorder."""
    move_count: IntArray


def empty_walk(subtrees: int, d: int, k: int, budget: int) -> Walk:
    """Room for the answers about ``subtrees`` nodes."""
    return Walk(
        status=np.full(subtrees, STOPPED, dtype=np.int8),
        nodes=np.zeros(subtrees, dtype=np.int64),
        dropped=np.full(subtrees, np.inf),
        value=np.full(subtrees, np.inf),
        support=np.full((subtrees, k), -1, dtype=np.int64),
        open_count=np.zeros(subtrees, dtype=np.int64),
        open_states=np.zeros((subtrees, d + 1, d), dtype=np.int8),
        open_bounds=np.zeros((subtrees, d + 1)),
        moves=np.empty((subtrees, 4 * budget + 4 * d + 16), dtype=np.int64),
        move_count=np.zeros(subtrees, dtype=np.int64),
    )


@njit
def _note(walk: Walk, row: int, column: int, kind: int) -> None:
    walk.moves[row, walk.move_count[row]] = 8 * column + kind
    walk.move_count[row] += 1


@njit
def _keep_model(walk: Walk, row: int, value: float, columns: IntArray, count: int, extra: int) -> None:
    """Remember the model on the first ``count`` columns and, if there is one, the column at position ``extra``."""
    walk.value[row] = value
    walk.support[row, :] = -1
    for i in range(count):
        walk.support[row, i] = columns[i]
    if extra >= 0:
        walk.support[row, count] = columns[extra]


@njit
def _close(walk: Walk, row: int, bound: float) -> None:
    walk.dropped[row] = min(walk.dropped[row], bound)
    _note(walk, row, 0, CLOSED)


@njit
def _leave_open(walk: Walk, row: int, stack: Stack, level: int, slack: float) -> None:
    """Hand back the regions on the stack, deepest first, as the preorder has them."""
    while level >= 0:
        count = walk.open_count[row]
        walk.open_states[row, count, :] = OUT
        for i in range(stack.size[level]):
            walk.open_states[row, count, stack.columns[level, i]] = IN if i < stack.fixed[level] else FREE
        walk.open_bounds[row, count] = stack.value[level] - slack
        walk.open_count[row] += 1
        _note(walk, row, 0, LEFT_OPEN)
        level -= 1


@njit
def _fix(
    data: QuadraticData, stack: Stack, level: int, k: int, bound: float, weakest: float, cutoff: float, slack: float,
    walk: Walk, row: int,
) -> int:  # fmt: skip
    """Fix what the fit allows; return the position of the costliest candidate, or -1 where something was fixed.

    Where costs are no numbers (which no definite K gives) :data:`NOTHING_TO_BRANCH_ON`.
    """
    K, x, columns, m = stack.K[level], stack.x[level], stack.columns[level], stack.size[level]
    value = stack.value[level] - slack
    costliest, highest, changed = -1, -1.0, False
    i = stack.fixed[level]
    while i < m and stack.fixed[level] < k:
        cost = 0.5 * x[i] * x[i] / K[i, i]
        without = value + cost
        weight = data.curvature[columns[i]] * x[i] * x[i]
        if without >= cutoff:
            _note(walk, row, columns[i], PUT_IN)
            walk.dropped[row] = min(walk.dropped[row], without)
            swap_columns(K, x, columns, m, i, stack.fixed[level])
            stack.fixed[level] += 1
            changed = True
        elif not changed and bound + 0.5 * (weakest - weight) >= cutoff:
            _note(walk, row, columns[i], LEFT_OUT)
            walk.dropped[row] = min(walk.dropped[row], bound + 0.5 * (weakest - weight))
            swap_columns(K, x, columns, m, i, m - 1)
            coefficients_without_last(K, x, m, x)
            inverse_without_last(K, m, K)
            stack.size[level] -= 1
            stack.value[level] += cost
            walk.nodes[row] += 1
            return -1
        elif cost > highest:
            costliest, highest = i, cost
        i += 1
    return -1 if changed else costliest if costliest >= 0 else NOTHING_TO_BRANCH_ON


@njit
def _room(state: StateArray, scratch: FloatArray) -> Stack:
    """A stack of as many levels as the walk may need, or as ``scratch`` holds."""
    levels = 1
    for j in range(state.size):
        levels += state[j] == FREE
    m = levels - 1
    for j in range(state.size):
        m += state[j] == IN
    levels = max(2, min(levels, scratch.size // max(1, m * m)))
    return Stack(
        scratch[: levels * m * m].reshape((levels, m, m)), np.empty((levels, m)), np.empty((levels, m), dtype=np.int64),
        np.zeros(levels, dtype=np.int64), np.zeros(levels, dtype=np.int64), np.empty(levels),
    )  # fmt: skip


@njit
def _branch(
    data: QuadraticData, stack: Stack, level: int, column: int, largest: FloatArray, cutoff: float, slack: float,
    walk: Walk, row: int,
) -> int:  # fmt: skip
    """Branch on the candidate at position ``column``; return the level to go on with.

    The next level is the child without the column, where that stays open. This one goes on, once that is done, as the
    child with it.
    """
    fixed, m, value, places = stack.fixed[level], stack.size[level], stack.value[level], largest.size
    K, x, columns, without = stack.K[level], stack.x[level], stack.columns[level], stack.x[level + 1]
    _note(walk, row, columns[column], BRANCHED)
    cost = 0.5 * x[column] ** 2 / K[column, column]
    swap_columns(K, x, columns, m, column, m - 1)
    coefficients_without_last(K, x, m, without)
    walk.nodes[row] += 1
    excess = curvature_excess(data.curvature, columns, without, fixed, m - 1, largest)
    closed = m - 1 - fixed > places and value + cost - slack + excess >= cutoff
    if closed:
        # Most children end here, before the O(m^2) part of a node.
        _close(walk, row, value + cost - slack + excess)
    else:
        inverse_without_last(K, m, stack.K[level + 1])
        stack.columns[level + 1, : m - 1] = columns[: m - 1]
        stack.fixed[level + 1], stack.size[level + 1] = fixed, m - 1
        stack.value[level + 1] = value + cost
    swap_columns(K, x, columns, m, m - 1, fixed)
    stack.fixed[level] = fixed + 1
    return level if closed else level + 1


@njit
def _walk_subtree(
    data: QuadraticData, k: int, state: StateArray, limits: WalkLimits, slack: float, stop: BoolArray, walk: Walk,
    row: int, scratch: FloatArray,
) -> None:  # fmt: skip
    stack = _room(state, scratch)
    levels, upper = stack.size.size, limits.upper
    condition = start_fit(data, state, stack)
    if not condition <= limits.trusted:
        walk.status[row] = NOT_TRUSTED
        return
    slack = slack * max(1.0, condition)
    L, line, solution = np.zeros((k + 1, k + 1)), np.zeros(k + 1), np.zeros(k + 1)
    largest = np.zeros(k + 1)
    level, audited = 0, 0
    while level >= 0:
        cutoff = min(upper, walk.value[row]) - limits.tolerance
        fixed, m, value = stack.fixed[level], stack.size[level], stack.value[level]
        columns, x = stack.columns[level], stack.x[level]
        places = k - fixed
        if walk.nodes[row] >= audited + 1024:
            audited = walk.nodes[row]
            if stop[0]:
                walk.status[row] = STOPPED
                return
            if drifted(data, columns, x, m, value, slack):
                walk.status[row] = NOT_TRUSTED
                return
        if value - slack >= cutoff:
            _close(walk, row, value - slack)
            level -= 1
            continue
        if m - fixed <= places:
            if value < min(upper, walk.value[row]):
                _keep_model(walk, row, value, columns, m, -1)
            _close(walk, row, value - slack)
            level -= 1
            continue
        if places <= 1:
            best, extra = best_addition(data, columns, fixed, m if places == 1 else fixed, L, line, solution)
            if best < min(upper, walk.value[row]):
                _keep_model(walk, row, best, columns, fixed, extra)
            _close(walk, row, best - slack)
            level -= 1
            continue
        bound = value - slack + curvature_excess(data.curvature, columns, x, fixed, m, largest[:places])
        if bound >= cutoff:
            _close(walk, row, bound)
            level -= 1
            continue
        no_room = walk.move_count[row] + 2 * m + levels + 8 > walk.moves.shape[1]
        if walk.nodes[row] >= limits.budget or level + 1 == levels or no_room:
            break
        costliest = _fix(data, stack, level, k, bound, largest[places - 1], cutoff, slack, walk, row)
        if costliest == NOTHING_TO_BRANCH_ON:
            break
        if costliest >= 0:
            level = _branch(data, stack, level, costliest, largest[:places], cutoff, slack, walk, row)
    walk.status[row] = EXPLORED if level < 0 else OUT_OF_BUDGET
    _leave_open(walk, row, stack, level, slack)


@njit(parallel=True)
def walk_subtrees(
    data: QuadraticData, k: int, states: StateArray, limits: WalkLimits, slack: float, stop: BoolArray, walk: Walk,
    scratch: FloatArray, counter: IntArray,
) -> None:  # fmt: skip
    """Walk the subtree of every node (a row of ``states``).

    ``slack`` is given up for rounding, times the condition of H on the node's columns; where that is more than is
    trusted nothing is done. Each row of ``scratch`` (see :func:`scratch_space`) is a worker; they share the nodes by
    ``counter``, a zero.
    """
    for worker in prange(scratch.shape[0]):
        while not stop[0]:
            row = atomic_add(counter, 0, 1)
            if row >= states.shape[0]:
                break
            _walk_subtree(data, k, states[row], limits, slack, stop, walk, row, scratch[worker])
