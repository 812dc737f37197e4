"""Reading a node's state and writing a bound's answer: shared by every bound kernel."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exactsel._jit import njit
from exactsel.kernels.dual import child_bounds, node_bound
from exactsel.kernels.selection import relaxed_indicators, top_sum
from exactsel.types import FloatArray, IntArray, StateArray

OUT, FREE, IN = 0, 1, 2
"""State of a column in a node: excluded, candidate (C), fixed in (S)."""

RELAXED, CUT, SOLVED, UNFINISHED, ILL_CONDITIONED = 0, 1, 2, 3, 4
"""How a bound call ended: a relaxation's bound; the bound reached the cut-off (force-quit); the node holds one convex
problem and this is its minimum; stopped; left to the slow path because the data are nearly dependent."""


class Answers(NamedTuple):
    """Output arrays of a batch of B nodes over d columns, one row a node."""

    status: StateArray
    bound: FloatArray
    iterations: IntArray
    point: FloatArray
    """(B, d) the x whose dual vector proves ``bound``."""
    x: FloatArray
    """(B, d) the relaxed (or, when SOLVED, exact) model."""
    indicator: FloatArray
    """(B, d) relaxed indicators of x."""
    bound_in: FloatArray
    """(B, d) bound of the child that fixes the column to 1."""
    bound_out: FloatArray
    """(B, d) bound of the child that fixes the column to 0."""
    support: IntArray
    """(B, k) a model suggested by x: S and the largest of C, padded with -1."""


def empty_answers(nodes: int, d: int, k: int) -> Answers:
    """Answers for ``nodes`` nodes: no bound yet, every column at zero."""
    return Answers(
        status=np.full(nodes, UNFINISHED, dtype=np.int8),
        bound=np.full(nodes, -np.inf),
        iterations=np.zeros(nodes, dtype=np.int64),
        point=np.zeros((nodes, d)),
        x=np.zeros((nodes, d)),
        indicator=np.zeros((nodes, d)),
        bound_in=np.full((nodes, d), -np.inf),
        bound_out=np.full((nodes, d), -np.inf),
        support=np.full((nodes, k), -1, dtype=np.int64),
    )


@njit
def node_columns(state: StateArray) -> tuple[IntArray, int]:
    """The node's columns, S first and then C, each in ascending order, and |S|."""
    columns = np.empty(state.size, dtype=np.int64)
    fixed = 0
    for j in range(state.size):
        if state[j] == IN:
            columns[fixed] = j
            fixed += 1
    count = fixed
    for j in range(state.size):
        if state[j] == FREE:
            columns[count] = j
            count += 1
    return columns[:count], fixed


@njit
def is_convex(columns: IntArray, fixed: int, k: int) -> bool:
    """Whether the node is one convex problem: no place left, or a place for every candidate."""
    return bool(fixed >= k or columns.size <= k)


@njit
def solved_columns(columns: IntArray, fixed: int, k: int) -> IntArray:
    """The columns a convex node's minimiser may use."""
    return columns[:fixed] if fixed >= k else columns


@njit
def _write_rounded(answers: Answers, i: int, columns: IntArray, fixed: int, slots: int, x: FloatArray) -> None:
    """Round x to a support: S and the ``slots`` largest non-zero coefficients of C (first come among equals)."""
    ranked = np.empty(slots + 1)
    size = np.abs(x)
    top_sum(size, fixed, slots, ranked)
    threshold = max(ranked[slots - 1], 1e-300)
    filled = 0
    for j in range(fixed):
        answers.support[i, filled] = columns[j]
        filled += 1
    for exact in range(2):
        for j in range(fixed, columns.size):
            wanted = size[j] == threshold if exact == 1 else size[j] > threshold
            if wanted and filled < fixed + slots:
                answers.support[i, filled] = columns[j]
                filled += 1


@njit
def suggest_by_cost(answers: Answers, i: int, columns: IntArray, fixed: int, slots: int, costs: FloatArray) -> None:
    """Suggest the candidates that are costliest to fix to 0, and to branch on the first of them.

    ``costs`` go with ``columns``; where all are zero, nothing is known and nothing is changed.
    """
    largest = 0.0
    for j in range(fixed, columns.size):
        largest = max(largest, costs[j])
    if largest > 0.0:
        for j in range(fixed, columns.size):
            answers.indicator[i, columns[j]] = 0.5 * (costs[j] / largest)
        answers.support[i, :] = -1
        _write_rounded(answers, i, columns, fixed, slots, costs)


@njit
def write_solved(answers: Answers, i: int, columns: IntArray, x: FloatArray, bound: float) -> None:
    """Store a convex node's answer."""
    for j in range(columns.size):
        answers.x[i, columns[j]] = x[j]
        answers.point[i, columns[j]] = x[j]
        answers.indicator[i, columns[j]] = 1.0
        answers.support[i, j] = columns[j]
    answers.bound[i] = bound
    answers.status[i] = SOLVED


@njit
def write_relaxed(
    answers: Answers, i: int, columns: IntArray, fixed: int, k: int, lam: float,
    base: float, q: FloatArray, point: FloatArray, x: FloatArray, cutoff: float,
) -> None:  # fmt: skip
    """Store a relaxation's answer: the bound of (base, q), what children inherit from it, point and model."""
    m = columns.size
    ranked = np.empty(k - fixed + 1)
    bound = node_bound(base, q, fixed, k - fixed, lam, ranked)
    bound_in, bound_out, z = np.empty(m), np.empty(m), np.empty(m)
    child_bounds(bound, q, fixed, k - fixed, lam, ranked, bound_in, bound_out)
    relaxed_indicators(x, fixed, k - fixed, z)
    for j in range(m):
        answers.bound_in[i, columns[j]] = bound_in[j]
        answers.bound_out[i, columns[j]] = bound_out[j]
        answers.indicator[i, columns[j]] = z[j]
        answers.x[i, columns[j]] = x[j]
        answers.point[i, columns[j]] = point[j]
    _write_rounded(answers, i, columns, fixed, k - fixed, x)
    answers.bound[i] = bound
    answers.status[i] = CUT if bound >= cutoff else RELAXED


@njit
def branching_column(state: StateArray, answers: Answers, worker: int) -> int:
    """The candidate whose relaxed indicator is closest to 1/2; among equals the largest coefficient."""
    chosen, nearest, largest = -1, np.inf, -1.0
    for j in range(state.size):
        if state[j] == FREE:
            distance, size = abs(answers.indicator[worker, j] - 0.5), abs(answers.x[worker, j])
            if distance < nearest or (distance == nearest and size > largest):
                chosen, nearest, largest = j, distance, size
    return chosen
