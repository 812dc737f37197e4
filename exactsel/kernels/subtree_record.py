"""Records of subtree enumeration: decisions, models, regions closed and left open (for kernels/subtree.py)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exactsel._jit import njit
from exactsel.kernels.moves import BRANCHED, CLOSED
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.types import FloatArray, IntArray, StateArray

LEFT_OPEN, COUNTED = 4, 5
"""Written down beside :mod:`exactsel.kernels.moves`: the region is left open; the region is closed, by counting. The
two children of a region that is split follow, first the one without the column. A column is fixed to 1 because the fit
closes the other child, and to 0 because formula (3) does."""

EXPLORED, OUT_OF_BUDGET, STOPPED, NOT_TRUSTED = 0, 1, 2, 3
"""How the walk of one subtree ended."""

SUSPECTED_OPEN = 64
"""Regions a walk may leave open because of sets of columns that counts can neither clear nor evaluate."""


class SubtreeLimits(NamedTuple):
    """When a walk closes a region, and when it ends."""

    upper: float
    """Objective of the best model known to the caller."""
    tolerance: float
    """A region is closed where its bound reaches this much less than the best objective known."""
    budget: int
    """Nodes the walk may visit."""
    work: float
    """Multiplications it may do."""
    adopts: bool
    """Whether models met are held against regions; False where not every model on a set of columns is admissible."""


class Walk(NamedTuple):
    """What the walk of each of B subtrees brought, one row a subtree."""

    status: StateArray
    nodes: IntArray
    work: FloatArray
    """Multiplications done, roughly."""
    min_pruned_bound: FloatArray
    """The smallest bound of any region closed."""
    value: FloatArray
    """The best objective met; inf if none below the caller's upper. A proposal only where models are not adopted."""
    support: IntArray
    """(B, k) the columns it was met on, padded with -1."""
    open_count: IntArray
    open_states: StateArray
    """(B, d + 1 + SUSPECTED_OPEN, d) what is left open ..."""
    open_bounds: FloatArray
    """(B, d + 1 + SUSPECTED_OPEN) ... and its bounds."""
    moves: IntArray
    """(B, capacity) the decisions, in preorder."""
    move_count: IntArray


def empty_walk(subtrees: int, d: int, k: int, budget: int) -> Walk:
    """Room for the answers about ``subtrees`` nodes."""
    return Walk(
        status=np.full(subtrees, STOPPED, dtype=np.int8),
        nodes=np.zeros(subtrees, dtype=np.int64),
        work=np.zeros(subtrees),
        min_pruned_bound=np.full(subtrees, np.inf),
        value=np.full(subtrees, np.inf),
        support=np.full((subtrees, k), -1, dtype=np.int64),
        open_count=np.zeros(subtrees, dtype=np.int64),
        open_states=np.zeros((subtrees, d + 1 + SUSPECTED_OPEN, d), dtype=np.int8),
        open_bounds=np.zeros((subtrees, d + 1 + SUSPECTED_OPEN)),
        moves=np.empty((subtrees, 4 * budget + 4 * d + 16), dtype=np.int64),
        move_count=np.zeros(subtrees, dtype=np.int64),
    )


@njit
def room_below(limits: SubtreeLimits, best: float) -> float:
    """The tolerance where the best objective known is ``best``: most often relative, it shrinks as models are met."""
    return limits.tolerance * (max(best, 0.0) / limits.upper if best < limits.upper < np.inf else 1.0)


@njit
def incumbent_value(limits: SubtreeLimits, walk: Walk, row: int) -> float:
    """The objective of the best model that regions are held against."""
    return min(limits.upper, walk.value[row]) if limits.adopts else limits.upper


@njit
def note(walk: Walk, row: int, column: int, kind: int) -> None:
    """Write down a decision."""
    walk.moves[row, walk.move_count[row]] = 8 * column + kind
    walk.move_count[row] += 1


@njit
def keep_if_better(
    limits: SubtreeLimits, walk: Walk, row: int, value: float, columns: IntArray, count: int, extra: int
) -> bool:
    """Remember the model on the first ``count`` columns and, if there is one, the column at position ``extra``.

    That is, where it is the best met so far. Whether regions are held against it from now on.
    """
    if not value < min(limits.upper, walk.value[row]):
        return False
    walk.value[row] = value
    walk.support[row, :] = -1
    for i in range(count):
        walk.support[row, i] = columns[i]
    if extra >= 0:
        walk.support[row, count] = columns[extra]
    return limits.adopts


@njit
def close(walk: Walk, row: int, bound: float, kind: int) -> None:
    """Close the current region."""
    walk.min_pruned_bound[row] = min(walk.min_pruned_bound[row], bound)
    note(walk, row, 0, kind)


@njit
def leave_open(walk: Walk, row: int, columns: IntArray, fixed: int, m: int, bound: float) -> None:
    """Hand back a region: of m columns the first ``fixed`` are in."""
    at = walk.open_count[row]
    state = walk.open_states[row, at]
    state[:] = OUT
    for i in range(m):
        state[columns[i]] = IN if i < fixed else FREE
    walk.open_bounds[row, at] = bound
    walk.open_count[row] += 1
    note(walk, row, 0, LEFT_OPEN)


@njit
def _next_split(marks: StateArray, undecided: IntArray, found: int, slots: int) -> int:
    """A column that separates suspects from the rest of a part of a region; -1: no suspects, -2: all is suspect.

    ``marks`` (d,) says what the part has decided, ``slots`` how many columns the whole region may still take.
    """
    pick, left = -1, slots
    for j in range(marks.size):
        left -= marks[j] == IN
    for s in range(found):
        missing, first = 0, -1
        for i in range(undecided.shape[1]):
            j = undecided[s, i]
            if j >= 0 and marks[j] == OUT:
                missing = slots + 1
                break
            if j >= 0 and marks[j] == FREE:
                missing += 1
                first = j if first < 0 else first
        if missing == 0:
            return -2
        if missing <= left and pick < 0:
            pick = first
    return pick


@njit
def set_apart(
    walk: Walk, row: int, columns: IntArray, fixed: int, m: int, slots: int, undecided: IntArray, found: int, room: int
) -> bool:
    """Divide a region that was counted until suspects are apart; those parts are left open, the others closed.

    Where that takes more than ``room`` open regions nothing is done, and False returned.
    """
    moves, opened = walk.move_count[row], walk.open_count[row]
    depth = 1 + undecided.size
    frames = np.full((depth, walk.open_states.shape[2]), FREE, dtype=np.int8)
    top = 0
    while top >= 0:
        marks = frames[top]
        column = _next_split(marks, undecided, found, slots)
        if walk.open_count[row] - opened >= room or walk.move_count[row] + 2 * m + 8 > walk.moves.shape[1]:
            walk.move_count[row], walk.open_count[row] = moves, opened
            return False
        if column == -1:
            note(walk, row, 0, COUNTED)
            top -= 1
        elif column == -2:
            at = walk.open_count[row]
            leave_open(walk, row, columns, fixed, m, -np.inf)
            for j in range(marks.size):
                if marks[j] != FREE:
                    walk.open_states[row, at, j] = marks[j]
            top -= 1
        else:
            note(walk, row, column, BRANCHED)
            frames[top + 1] = marks
            frames[top + 1, column] = OUT
            marks[column] = IN
            top += 1
    return True


__all__ = [  # CLOSED comes with what closes
    "CLOSED",
    "COUNTED",
    "EXPLORED",
    "LEFT_OPEN",
    "NOT_TRUSTED",
    "OUT_OF_BUDGET",
    "STOPPED",
    "SUSPECTED_OPEN",
    "SubtreeLimits",
    "Walk",
    "close",
    "empty_walk",
    "incumbent_value",
    "keep_if_better",
    "leave_open",
    "note",
    "room_below",
    "set_apart",
]  # fmt: skip
