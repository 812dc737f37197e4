"""The record of a search inside the kernel (kernels/native_search.py), and its open nodes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exactsel._jit import njit
from exactsel.kernels.moves import CLOSED
from exactsel.types import FloatArray, IntArray, StateArray

BOUNDED = 4
"""Written down about a node beside :mod:`exactsel.kernels.moves`: it is bounded, with the number of iterations in the
place of the column. The children of a node that is split get the next two numbers, first the one with the column."""

DONE, STOPPED = 0, 1

AT_ONCE = -2
"""In the place of a point: the region is closed by all that its last places can hold (kernels/leaf_closing.py)."""

WIDTH = 32
"""Open nodes above which the search continues with the one of largest bound."""


class SearchLimits(NamedTuple):
    """When a search closes a region or leaves it open, and when it ends."""

    upper: float
    """Objective of the best model known to the caller."""
    tolerance: float
    """A region is closed where its bound reaches this much less than the best objective known."""
    budget: int
    """Nodes the search may bound."""
    horizon: float
    """Regions whose bound lies above are left open: others come first."""
    accuracy: float
    """Gradient norm at which a refitted model counts as solved."""
    last: int
    """Regions with at most this many places left may be closed at once (kernels/leaf_closing.py)."""
    adopts: bool = True
    """Whether what closing at once finds is held against at once; False where not every model is admissible."""


class NativeRecord(NamedTuple):
    """What the searches below B nodes brought, one row each; nodes are numbered from 0, the one begun with."""

    status: StateArray
    nodes: IntArray
    """Nodes bounded."""
    numbers: IntArray
    """Nodes numbered."""
    iterations: IntArray
    min_pruned_bound: FloatArray
    """The smallest bound of any region closed."""
    value: FloatArray
    """The best objective met; inf if none below the caller's upper."""
    support: IntArray
    """(B, k) the columns it was met on, padded with -1."""
    points: FloatArray
    """(B, budget, d) the model that proves the bound of every node bounded by the relaxation."""
    point_count: IntArray
    notes: IntArray
    """(B, capacity, 3) what was done, in order: number of the node, what (:mod:`exactsel.kernels.moves`), and the
    number of the point that proves it (-1: what the search came with; or ``AT_ONCE``)."""
    note_bounds: FloatArray
    """(B, capacity) the bound that goes with it."""
    note_count: IntArray
    open_count: IntArray
    open_states: StateArray
    """(B, budget + 2, d)"""
    open_bounds: FloatArray
    open_labels: IntArray
    """(B, budget + 2, 3) number, the point that proves the bound, the point to start from (-1: the caller's)."""


def empty_subsearch(searches: int, d: int, k: int, budget: int) -> NativeRecord:
    """Room for the answers about ``searches`` nodes."""
    notes = 8 * budget + 4 * d + 16
    return NativeRecord(
        status=np.full(searches, STOPPED, dtype=np.int8),
        nodes=np.zeros(searches, dtype=np.int64),
        numbers=np.ones(searches, dtype=np.int64),
        iterations=np.zeros(searches, dtype=np.int64),
        min_pruned_bound=np.full(searches, np.inf),
        value=np.full(searches, np.inf),
        support=np.full((searches, k), -1, dtype=np.int64),
        points=np.empty((searches, budget, d)),
        point_count=np.zeros(searches, dtype=np.int64),
        notes=np.empty((searches, notes, 3), dtype=np.int64),
        note_bounds=np.empty((searches, notes)),
        note_count=np.zeros(searches, dtype=np.int64),
        open_count=np.zeros(searches, dtype=np.int64),
        open_states=np.empty((searches, budget + 2, d), dtype=np.int8),
        open_bounds=np.empty((searches, budget + 2)),
        open_labels=np.empty((searches, budget + 2, 3), dtype=np.int64),
    )


@njit
def note(found: NativeRecord, row: int, number: int, column: int, kind: int, bound: float, point: int) -> None:
    """Write down one thing done to a node."""
    at = found.note_count[row]
    found.notes[row, at, 0] = number
    found.notes[row, at, 1] = 8 * column + kind
    found.notes[row, at, 2] = point
    found.note_bounds[row, at] = bound
    found.note_count[row] = at + 1


@njit
def close(found: NativeRecord, row: int, number: int, bound: float, point: int) -> None:
    """Close a node with this bound."""
    found.min_pruned_bound[row] = min(found.min_pruned_bound[row], bound)
    note(found, row, number, 0, CLOSED, bound, point)


@njit
def push(found: NativeRecord, row: int, state: StateArray, bound: float, number: int, proof: int, start: int) -> None:
    """Leave a region open for now."""
    at = found.open_count[row]
    found.open_states[row, at] = state
    found.open_bounds[row, at] = bound
    found.open_labels[row, at, 0] = number
    found.open_labels[row, at, 1] = proof
    found.open_labels[row, at, 2] = start
    found.open_count[row] = at + 1


@njit
def _choose_next(bounds: FloatArray, first: int, count: int) -> int:
    """The position of the next open node to expand, among those from ``first`` on."""
    chosen = first
    widest = count - first > WIDTH
    for i in range(first + 1, count):
        if (bounds[i] > bounds[chosen]) if widest else (bounds[i] < bounds[chosen]):
            chosen = i
    return chosen


@njit
def _swap_open(found: NativeRecord, row: int, i: int, j: int) -> None:
    if i == j:
        return
    for c in range(found.open_states.shape[2]):
        found.open_states[row, i, c], found.open_states[row, j, c] = (
            found.open_states[row, j, c], found.open_states[row, i, c]
        )  # fmt: skip
    found.open_bounds[row, i], found.open_bounds[row, j] = found.open_bounds[row, j], found.open_bounds[row, i]
    for c in range(3):
        found.open_labels[row, i, c], found.open_labels[row, j, c] = (
            found.open_labels[row, j, c], found.open_labels[row, i, c]
        )  # fmt: skip


@njit
def put_aside(found: NativeRecord, row: int, count: int) -> int:
    """Move the region pushed last to the ``count`` this search will not touch; return how many these are now."""
    _swap_open(found, row, count, found.open_count[row] - 1)
    return count + 1


@njit
def take_next(found: NativeRecord, row: int, set_aside: int) -> int:
    """Take a node off the open ones, the first ``set_aside`` excepted; where it lies until the next is pushed."""
    last = found.open_count[row] - 1
    _swap_open(found, row, _choose_next(found.open_bounds[row], set_aside, last + 1), last)
    found.open_count[row] = last
    return int(last)
