"""A basis of dependent columns that changes one column at a time, and what the others are made of.

For kernels/subtree_dependent.py, which says what B, K, T and D are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exactsel._jit import njit
from exactsel.types import FloatArray, IntArray, StateArray

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
    """One level for each column fixed to 0 on the way down."""

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
def first_level(start: Start, levels: int) -> Levels:
    """Room for all levels, the first one filled."""
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
def swap_in_basis(stack: Levels, depth: int, i: int, j: int) -> None:
    """Exchange two columns of the basis."""
    if i == j:
        return
    K, T, p = stack.K[depth], stack.T[depth], stack.size[depth]
    for a in range(p):
        K[i, a], K[j, a] = K[j, a], K[i, a]
    for a in range(p):
        K[a, i], K[a, j] = K[a, j], K[a, i]
    for a in range(stack.others[depth]):
        T[i, a], T[j, a] = T[j, a], T[i, a]
    x, columns = stack.x[depth], stack.columns[depth]
    x[i], x[j] = x[j], x[i]
    columns[i], columns[j] = columns[j], columns[i]


@njit
def substitute(stack: Levels, depth: int, scale: FloatArray) -> int:
    """Which of the others had best take the place of the last of the basis: that with most of it, in unit columns."""
    T, last, p = stack.T[depth], stack.size[depth] - 1, stack.size[depth]
    most, found = 0.0, NOTHING
    for a in range(stack.others[depth]):
        share = abs(T[last, a]) / scale[stack.columns[depth, p + a]]
        if share > most:
            most, found = share, a
    return found


@njit
def _exchange_whole(stack: Levels, depth: int, a: int) -> bool:
    """T and D of the next level; False where they grow too large."""
    p, q, D = stack.size[depth], stack.others[depth], stack.denominator[depth]
    T, T_next = stack.T[depth], stack.T[depth + 1]
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
    stack.denominator[depth + 1] = common // divisor
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
def exchange(stack: Levels, depth: int, a: int, scale: FloatArray, turned: FloatArray) -> float:
    """Next level: the last column of the basis is fixed to 0, and the ``a``-th of the others takes its place.

    Returns the trace of the new K, inf where T grows too large.
    """
    p, q = stack.size[depth], stack.others[depth]
    K, T, x, columns = stack.K[depth], stack.T[depth], stack.x[depth], stack.columns[depth]
    K_next, columns_next = stack.K[depth + 1], stack.columns[depth + 1]
    last, own = p - 1, scale[columns[p + a]] * stack.denominator[depth]
    for i in range(p):
        turned[i] = T[i, a] * scale[columns[i]] / own
    share = turned[last]
    turned[last] -= 1.0
    for i in range(p):
        turned[i] /= share
    corner, trace = K[last, last], 0.0
    for i in range(p):
        stack.x[depth + 1, i] = x[i] - turned[i] * x[last]
        first, half = K[last, i], turned[i]
        for j in range(p):
            K_next[i, j] = K[i, j] - half * (K[last, j] - corner * turned[j]) - first * turned[j]
        trace += K_next[i, i]
    for c in range(q - 1):
        columns_next[p + c] = columns[p + q - 1 if c == a else p + c]
    columns_next[:last] = columns[:last]
    columns_next[last] = columns[p + a]
    stack.size[depth + 1], stack.others[depth + 1] = p, q - 1
    stack.value[depth + 1], stack.fixed[depth + 1] = stack.value[depth], stack.fixed[depth]
    return trace if _exchange_whole(stack, depth, a) else np.inf


@njit(sums=True)
def leave_out(stack: Levels, depth: int) -> None:
    """Next level: the last column of the basis, which nothing can replace, is fixed to 0."""
    p, q = stack.size[depth], stack.others[depth]
    K, K_next, x = stack.K[depth], stack.K[depth + 1], stack.x[depth]
    last = p - 1
    inverse = 1.0 / K[last, last]
    for i in range(last):
        factor = K[last, i] * inverse
        stack.x[depth + 1, i] = x[i] - factor * x[last]
        for j in range(last):
            K_next[i, j] = K[i, j] - factor * K[last, j]
        for a in range(q):
            stack.T[depth + 1, i, a] = stack.T[depth, i, a]
        stack.columns[depth + 1, i] = stack.columns[depth, i]
    for a in range(q):
        stack.columns[depth + 1, last + a] = stack.columns[depth, p + a]
    stack.size[depth + 1], stack.others[depth + 1] = last, q
    stack.value[depth + 1] = stack.value[depth] + 0.5 * x[last] ** 2 * inverse
    stack.fixed[depth + 1], stack.denominator[depth + 1] = stack.fixed[depth], stack.denominator[depth]
