"""A whole subtree at once where columns are linearly dependent (quadratic loss, lam = 0).

As kernels/subtree.py, but the inverse K = (A_B'A_B)^-1 is kept for a basis B of the columns of S and C only. Every
other column n is a combination of the basis, a_n = sum_i T_in a_i / D, in columns scaled so that T and D are whole
numbers. Then:

* leaving out a column of B that some n contains (T_jn is not 0) costs nothing: n takes its place, by a rank-two
  change of K and an exact one of T and D;
* leaving out a column that none contains costs exactly x_j^2 / (2 K_jj), a rank-one downdate as before.

Whole numbers decide without rounding which columns depend on which. Where they grow too large, or K does, the walk
ends early and hands back what is open.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exactsel._jit import njit
from exactsel.kernels.node import FREE, IN
from exactsel.kernels.subtree import (
    BRANCH,
    CLOSED,
    EXPLORED,
    LEFT_OPEN,
    NOT_TRUSTED,
    OUT_OF_BUDGET,
    PUT_IN,
    STOPPED,
    Walk,
)
from exactsel.kernels.subtree_fit import (
    QuadraticData,
    best_addition,
    drifted,
)
from exactsel.types import BoolArray, FloatArray, IntArray, StateArray

LARGEST = 1_000_000
"""Of T and D; beyond it the walk ends early. Products of two are far from overflow."""

NOTHING = -1
"""No column takes the place of another."""


class Start(NamedTuple):
    """The region a walk begins with, split into a basis and the columns it expresses."""

    base: StateArray
    """(d,) the region's state, with every column of the walk OUT: columns of S that depend on others of S stay IN."""
    basis: IntArray
    """(p,) S first, then C."""
    fixed: int
    others: IntArray
    """(q,) columns of C outside the basis."""
    T: IntArray
    """(p, q)"""
    denominator: int
    K: FloatArray
    """(p, p)"""
    x: FloatArray
    value: float


class Levels(NamedTuple):
    """One level for each column left out on the way down."""

    K: FloatArray
    x: FloatArray
    columns: IntArray
    """(levels, p + q) S and then C in the basis, then what is not in the basis."""
    T: IntArray
    denominator: IntArray
    fixed: IntArray
    size: IntArray
    """Columns in the basis."""
    others: IntArray
    """Columns of C outside it."""
    value: FloatArray


@njit
def _first_level(start: Start, levels: int) -> Levels:
    p, q = start.T.shape
    stack = Levels(
        np.empty((levels, p, p)), np.empty((levels, p)), np.empty((levels, p + q), dtype=np.int64),
        np.zeros((levels, p, q), dtype=np.int64), np.ones(levels, dtype=np.int64), np.zeros(levels, dtype=np.int64),
        np.zeros(levels, dtype=np.int64), np.zeros(levels, dtype=np.int64), np.empty(levels),
    )  # fmt: skip
    stack.K[0], stack.x[0], stack.T[0] = start.K, start.x, start.T
    stack.columns[0, :p], stack.denominator[0] = start.basis, start.denominator
    stack.columns[0, p:] = start.others
    stack.fixed[0], stack.size[0], stack.others[0], stack.value[0] = start.fixed, p, q, start.value
    return stack


@njit
def _swap(stack: Levels, level: int, i: int, j: int) -> None:
    """Exchange two columns of the basis."""
    if i == j:
        return
    K, T, p = stack.K[level], stack.T[level], stack.size[level]
    for a in range(p):
        K[i, a], K[j, a] = K[j, a], K[i, a]
    for a in range(p):
        K[a, i], K[a, j] = K[a, j], K[a, i]
    for a in range(stack.others[level]):
        T[i, a], T[j, a] = T[j, a], T[i, a]
    x, columns = stack.x[level], stack.columns[level]
    x[i], x[j] = x[j], x[i]
    columns[i], columns[j] = columns[j], columns[i]


@njit
def _substitute(stack: Levels, level: int, scale: FloatArray) -> int:
    """Which of the others had best take the place of the last of the basis: that with most of it, in unit columns."""
    T, last, p = stack.T[level], stack.size[level] - 1, stack.size[level]
    most, found = 0.0, NOTHING
    for a in range(stack.others[level]):
        share = abs(T[last, a]) / scale[stack.columns[level, p + a]]
        if share > most:
            most, found = share, a
    return found


@njit
def _exchange_whole(stack: Levels, level: int, a: int) -> bool:
    """T and D of the next level; False where they grow too large."""
    p, q, D = stack.size[level], stack.others[level], stack.denominator[level]
    T, T_next = stack.T[level], stack.T[level + 1]
    last = p - 1
    pivot = T[last, a]
    common = D * pivot
    divisor = abs(common)
    for c in range(q - 1):
        source = q - 1 if c == a else c
        for i in range(last):
            T_next[i, c] = T[i, source] * pivot - T[i, a] * T[last, source]
        T_next[last, c] = T[last, source] * D
        if divisor > 1:
            for i in range(p):
                divisor = _common_divisor(divisor, abs(T_next[i, c]))
    stack.denominator[level + 1] = common // divisor
    largest = abs(common) // divisor
    for c in range(q - 1):
        for i in range(p):
            T_next[i, c] //= divisor
            largest = max(largest, abs(T_next[i, c]))
    return largest <= LARGEST


@njit
def _common_divisor(a: int, b: int) -> int:
    while b != 0:
        a, b = b, a % b
    return a


@njit
def _exchange(stack: Levels, level: int, a: int, scale: FloatArray, turned: FloatArray) -> float:
    """Next level: the last column of the basis is left out, and the ``a``-th of the others takes its place.

    Returns the trace of the new K, inf where T grows too large.
    """
    p, q = stack.size[level], stack.others[level]
    K, T, x, columns = stack.K[level], stack.T[level], stack.x[level], stack.columns[level]
    K_next, columns_next = stack.K[level + 1], stack.columns[level + 1]
    last, own = p - 1, scale[columns[p + a]] * stack.denominator[level]
    for i in range(p):
        turned[i] = T[i, a] * scale[columns[i]] / own
    share = turned[last]
    turned[last] -= 1.0
    for i in range(p):
        turned[i] /= share
    corner, trace = K[last, last], 0.0
    for i in range(p):
        stack.x[level + 1, i] = x[i] - turned[i] * x[last]
        first, half = K[last, i], turned[i]
        for j in range(p):
            K_next[i, j] = K[i, j] - half * (K[last, j] - corner * turned[j]) - first * turned[j]
        trace += K_next[i, i]
    for c in range(q - 1):
        columns_next[p + c] = columns[p + q - 1 if c == a else p + c]
    columns_next[:last] = columns[:last]
    columns_next[last] = columns[p + a]
    stack.size[level + 1], stack.others[level + 1] = p, q - 1
    stack.value[level + 1], stack.fixed[level + 1] = stack.value[level], stack.fixed[level]
    return trace if _exchange_whole(stack, level, a) else np.inf


@njit(sums=True)
def _leave_out(stack: Levels, level: int) -> None:
    """Next level: the last column of the basis, which nothing can replace, is left out."""
    p, q = stack.size[level], stack.others[level]
    K, K_next, x = stack.K[level], stack.K[level + 1], stack.x[level]
    last = p - 1
    inverse = 1.0 / K[last, last]
    for i in range(last):
        factor = K[last, i] * inverse
        stack.x[level + 1, i] = x[i] - factor * x[last]
        for j in range(last):
            K_next[i, j] = K[i, j] - factor * K[last, j]
        for a in range(q):
            stack.T[level + 1, i, a] = stack.T[level, i, a]
        stack.columns[level + 1, i] = stack.columns[level, i]
    for a in range(q):
        stack.columns[level + 1, last + a] = stack.columns[level, p + a]
    stack.size[level + 1], stack.others[level + 1] = last, q
    stack.value[level + 1] = stack.value[level] + 0.5 * x[last] ** 2 * inverse
    stack.fixed[level + 1], stack.denominator[level + 1] = stack.fixed[level], stack.denominator[level]


@njit
def _note(walk: Walk, row: int, column: int, kind: int) -> None:
    walk.moves[row, walk.move_count[row]] = 8 * column + kind
    walk.move_count[row] += 1


@njit
def _close(walk: Walk, row: int, bound: float) -> None:
    walk.dropped[row] = min(walk.dropped[row], bound)
    _note(walk, row, 0, CLOSED)


@njit
def _keep_model(walk: Walk, row: int, value: float, columns: IntArray, count: int, extra: int) -> None:
    walk.value[row] = value
    walk.support[row, :] = -1
    for i in range(count):
        walk.support[row, i] = columns[i]
    if extra >= 0:
        walk.support[row, count] = columns[extra]


@njit
def _leave_open(walk: Walk, row: int, base: StateArray, stack: Levels, level: int, slack: float) -> None:
    """Hand back the regions on the stack, deepest first, as the preorder has them."""
    while level >= 0:
        count = walk.open_count[row]
        walk.open_states[row, count, :] = base
        for i in range(stack.size[level] + stack.others[level]):
            walk.open_states[row, count, stack.columns[level, i]] = IN if i < stack.fixed[level] else FREE
        walk.open_bounds[row, count] = stack.value[level] - slack
        walk.open_count[row] += 1
        _note(walk, row, 0, LEFT_OPEN)
        level -= 1


@njit
def _choose(
    stack: Levels, level: int, k: int, cutoff: float, known: float, slack: float, walk: Walk, row: int
) -> int:
    """Put in the columns that cost too much to leave out; return the position of the costliest other."""
    K, T, x, columns = stack.K[level], stack.T[level], stack.x[level], stack.columns[level]
    value, highest, costliest = stack.value[level] - slack, -1.0, stack.fixed[level]
    i = stack.fixed[level]
    while i < stack.size[level] and stack.fixed[level] < k:
        cost = 0.5 * x[i] * x[i] / K[i, i]
        needed = value + cost >= cutoff
        if needed:
            for a in range(stack.others[level]):
                needed = needed and T[i, a] == 0
        if needed:
            _note(walk, row, columns[i], PUT_IN)
            walk.dropped[row] = min(walk.dropped[row], value + cost, known - slack)
            _swap(stack, level, i, stack.fixed[level])
            stack.fixed[level] += 1
        elif cost > highest:
            costliest, highest = i, cost
        i += 1
    return costliest


@njit
def walk_dependent(
    data: QuadraticData, scale: FloatArray, k: int, start: Start, upper: float, tolerance: float, slack: float,
    trusted: float, budget: int, stop: BoolArray, walk: Walk, row: int,
) -> None:  # fmt: skip
    """Walk the subtree of one region up to ``budget`` nodes; see kernels/subtree.py for what is handed back.

    ``k`` counts the columns of the walk only, not those IN in ``start.base``. ``scale`` (d,) are the norms of the
    columns in which T is whole; ``data`` are of unit columns. ``slack`` is given up in all, and the trace of K may
    grow to ``trusted``.
    """
    levels = start.basis.size + start.others.size + 1
    stack = _first_level(start, levels)
    L, line, solution = np.zeros((k + 1, k + 1)), np.zeros(k + 1), np.zeros(k + 1)
    turned = np.empty(start.basis.size)
    level, audited = 0, 0
    walk.status[row] = EXPLORED
    while level >= 0:
        known = min(upper, walk.value[row])
        cutoff = known - tolerance
        p, q, value = stack.size[level], stack.others[level], stack.value[level]
        columns, fixed = stack.columns[level], stack.fixed[level]
        places = k - fixed
        walk.nodes[row] += 1
        if walk.nodes[row] >= audited + 1024:
            audited = walk.nodes[row]
            if stop[0]:
                walk.status[row] = STOPPED
                return
            if drifted(data, columns, stack.x[level], p, value, slack):
                walk.status[row] = NOT_TRUSTED
                return
        if value - slack >= cutoff:
            _close(walk, row, min(value, known) - slack)
            level -= 1
            continue
        if p - fixed <= places:
            if value < known:
                _keep_model(walk, row, value, columns, p, -1)
            _close(walk, row, min(value, known) - slack)
            level -= 1
            continue
        if places <= 1:
            best, extra = best_addition(data, columns, fixed, p + q if places == 1 else fixed, L, line, solution)
            if best < known:
                _keep_model(walk, row, best, columns, fixed, extra)
            _close(walk, row, min(best, known) - slack)
            level -= 1
            continue
        if walk.nodes[row] >= budget or walk.move_count[row] + 2 * p + levels + 8 > walk.moves.shape[1]:
            walk.status[row] = OUT_OF_BUDGET
            break
        before = fixed
        chosen = _choose(stack, level, k, cutoff, known, slack, walk, row)
        if stack.fixed[level] > before:
            continue
        _swap(stack, level, chosen, p - 1)
        substitute = _substitute(stack, level, scale)
        if substitute == NOTHING:
            _leave_out(stack, level)
        elif not _exchange(stack, level, substitute, scale, turned) <= trusted:
            walk.status[row] = OUT_OF_BUDGET
            break
        _note(walk, row, columns[p - 1], BRANCH)
        # This level goes on, once the child without the column is done, as the child with it.
        _swap(stack, level, p - 1, fixed)
        stack.fixed[level] = fixed + 1
        level += 1
    _leave_open(walk, row, start.base, stack, level, slack)
