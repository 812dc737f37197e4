"""A whole subtree at once where columns are linearly dependent (quadratic loss, lam = 0).

As kernels/subtree.py, but the inverse K = (A_B'A_B)^-1 is kept for a basis B of the columns of S and C only. Every
other column n is a combination of the basis, a_n = sum_i T_in a_i / D, in columns scaled so that T and D are whole
numbers. Then:

* leaving out a column of B that some n contains (T_jn is not 0) costs nothing: n takes its place, by a rank-two
  change of K and an exact one of T and D;
* leaving out a column that none contains costs exactly x_j^2 / (2 K_jj), a rank-one downdate as before.

Whole numbers decide without rounding which columns depend on which. Where they grow too large, or K does, the walk
ends early and hands back what is open.

A value is trusted only after it has been computed from the Gram matrix at the fit, with what the Gram matrix may be
off by, unit (||x||_1 + ||y||)^2 for unit columns, and what the fit may be, trace(K) ||gradient||^2, taken off.
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
    OUT_OF_BUDGET,
    PUT_IN,
    STOPPED,
    Walk,
)
from exactsel.kernels.subtree_fit import DEPENDENT, QuadraticData
from exactsel.types import BoolArray, FloatArray, IntArray, StateArray

LARGEST = 1_000_000
"""Of T and D; beyond it the walk ends early. Products of two are far from overflow."""

NOTHING = -1
"""No column takes the place of another."""

SHAVE = 1e-5
"""Part of a drop cost given up for the rounding errors of K."""


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
    return bool(largest <= LARGEST)


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


@njit(sums=True)
def _certified(data: QuadraticData, K: FloatArray, x: FloatArray, columns: IntArray, p: int, unit: float) -> float:
    """A number no model on the first p columns is below."""
    value, slope, trace, size = data.constant, 0.0, 0.0, np.sqrt(2.0 * data.constant)
    for i in range(p):
        total = 0.0
        for j in range(p):
            total += data.H[columns[i], columns[j]] * x[j]
        b = data.b[columns[i]]
        value += x[i] * (0.5 * total - b)
        slope += (total - b) ** 2
        trace += K[i, i]
        size += abs(x[i])
    return float(value - unit * size * size - trace * slope)


@njit
def _eliminate(data: QuadraticData, columns: IntArray, fixed: int, L: FloatArray, solution: FloatArray) -> float:
    """Cholesky factor and right-hand side of the fit on the first columns; returns its value."""
    value = data.constant
    for i in range(fixed):
        for j in range(i + 1):
            total = data.H[columns[i], columns[j]]
            for q in range(j):
                total -= L[i, q] * L[j, q]
            L[i, j] = total / L[j, j] if j < i else np.sqrt(max(total, 1e-300))
        total = data.b[columns[i]]
        for q in range(i):
            total -= L[i, q] * solution[q]
        solution[i] = total / L[i, i]
        value -= 0.5 * solution[i] ** 2
    return value


@njit
def _coefficient_sum(
    fixed: int, L: FloatArray, line: FloatArray, solution: FloatArray, x: FloatArray, last: float
) -> float:
    """||x||_1 of the fit with one column more, whose coefficient is ``last``."""
    size = abs(last)
    for i in range(fixed - 1, -1, -1):
        total = solution[i] - line[i] * last
        for q in range(i + 1, fixed):
            total -= L[q, i] * x[q]
        x[i] = total / L[i, i]
        size += abs(x[i])
    return size


@njit
def _best_addition(
    data: QuadraticData, columns: IntArray, fixed: int, m: int, unit: float,
    L: FloatArray, line: FloatArray, solution: FloatArray, x: FloatArray,
) -> tuple[float, int, float]:  # fmt: skip
    """The smallest objective on S with at most one of the further columns, that column's position (-1: none helps), and
    a number none of these models is below.
    """
    line[:] = 0.0
    length = np.sqrt(2.0 * data.constant)
    value = _eliminate(data, columns, fixed, L, solution)
    size = length + _coefficient_sum(fixed, L, line, solution, x, 0.0)
    best, position, bound = value, -1, value - unit * size * size
    for i in range(fixed, m):
        column = columns[i]
        pivot, correlation = data.H[column, column], data.b[column]
        for j in range(fixed):
            total = data.H[column, columns[j]]
            for q in range(j):
                total -= L[j, q] * line[q]
            line[j] = total / L[j, j]
            pivot -= line[j] ** 2
            correlation -= line[j] * solution[j]
        if pivot > DEPENDENT * data.H[column, column]:
            with_it = value - 0.5 * correlation * correlation / pivot
            size = length + _coefficient_sum(fixed, L, line, solution, x, correlation / pivot)
            bound = min(bound, with_it - unit * size * size)
            if with_it < best:
                best, position = with_it, i
    return best, position, bound


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
def _leave_open(
    data: QuadraticData, walk: Walk, row: int, base: StateArray, stack: Levels, level: int, unit: float, slack: float
) -> None:
    """Hand back the regions on the stack, deepest first, as the preorder has them."""
    while level >= 0:
        count = walk.open_count[row]
        walk.open_states[row, count, :] = base
        for i in range(stack.size[level] + stack.others[level]):
            walk.open_states[row, count, stack.columns[level, i]] = IN if i < stack.fixed[level] else FREE
        fit = _certified(data, stack.K[level], stack.x[level], stack.columns[level], stack.size[level], unit)
        walk.open_bounds[row, count] = fit - slack
        walk.open_count[row] += 1
        _note(walk, row, 0, LEFT_OPEN)
        level -= 1


@njit
def _choose(stack: Levels, level: int, k: int, bound: float, cutoff: float, most: float, walk: Walk, row: int) -> int:
    """Put in the columns that cost too much to leave out; return the position of the costliest other.

    ``bound`` is that of the region, and no bound above ``most`` is noted.
    """
    K, T, x, columns = stack.K[level], stack.T[level], stack.x[level], stack.columns[level]
    highest, costliest = -1.0, stack.fixed[level]
    i = stack.fixed[level]
    while i < stack.size[level] and stack.fixed[level] < k:
        cost = (1.0 - SHAVE) * 0.5 * x[i] * x[i] / K[i, i]
        needed = bound + cost >= cutoff
        if needed:
            for a in range(stack.others[level]):
                needed = needed and T[i, a] == 0
        if needed:
            _note(walk, row, columns[i], PUT_IN)
            walk.dropped[row] = min(walk.dropped[row], bound + cost, most)
            _swap(stack, level, i, stack.fixed[level])
            stack.fixed[level] += 1
        elif cost > highest:
            costliest, highest = i, cost
        i += 1
    return int(costliest)


@njit
def walk_dependent(
    data: QuadraticData, scale: FloatArray, k: int, start: Start, upper: float, tolerance: float, unit: float,
    slack: float, trusted: float, budget: int, stop: BoolArray, walk: Walk, row: int,
) -> None:  # fmt: skip
    """Walk the subtree of one region up to ``budget`` nodes; see kernels/subtree.py for what is handed back.

    ``k`` counts the columns of the walk only, not those IN in ``start.base``. ``scale`` (d,) are the norms of the
    columns in which T is whole; ``data`` are of unit columns. ``unit`` is the rounding of a Gram entry, ``slack`` is
    taken off every value besides, and the trace of K may grow to ``trusted``.
    """
    levels = start.basis.size + start.others.size + 1
    stack = _first_level(start, levels)
    L, line, solution, x = np.zeros((k + 1, k + 1)), np.zeros(k + 1), np.zeros(k + 1), np.zeros(k + 1)
    turned = np.empty(start.basis.size)
    level = 0
    walk.status[row] = EXPLORED
    while level >= 0:
        known = min(upper, walk.value[row])
        cutoff = known - tolerance
        p, q, columns, fixed = stack.size[level], stack.others[level], stack.columns[level], stack.fixed[level]
        places = k - fixed
        walk.nodes[row] += 1
        if walk.nodes[row] % 1024 == 0 and stop[0]:
            walk.status[row] = STOPPED
            return
        bound = _certified(data, stack.K[level], stack.x[level], columns, p, unit) - slack
        if bound >= cutoff:
            _close(walk, row, min(bound, known - slack))
            level -= 1
            continue
        if p - fixed <= places or places <= 1:
            best, count, extra = stack.value[level], p, -1
            if p - fixed > places:
                more = p + q if places == 1 else fixed
                best, extra, bound = _best_addition(data, columns, fixed, more, unit, L, line, solution, x)
                bound, count = bound - slack, fixed
            if best < known:
                _keep_model(walk, row, best, columns, count, extra)
            if bound < min(known, best) - tolerance:
                walk.status[row] = OUT_OF_BUDGET
                break
            _close(walk, row, min(bound, known - slack))
            level -= 1
            continue
        if walk.nodes[row] >= budget or walk.move_count[row] + 2 * p + levels + 8 > walk.moves.shape[1]:
            walk.status[row] = OUT_OF_BUDGET
            break
        chosen = _choose(stack, level, k, bound, cutoff, known - slack, walk, row)
        if stack.fixed[level] > fixed:
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
    _leave_open(data, walk, row, start.base, stack, level, unit, slack)
