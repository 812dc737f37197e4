"""The fit on S and C of a node, kept up to date column by column (quadratic loss): for kernels/subtree.py."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exactsel._jit import njit
from exactsel.kernels.linalg import cholesky, inverse_from_cholesky
from exactsel.kernels.node import FREE, IN
from exactsel.types import FloatArray, IntArray, StateArray

DEPENDENT = 1e-12
"""A column of which no more than this share is left after elimination adds nothing."""


class QuadraticData(NamedTuple):
    """H = G + lam I, b = A'y, ||y||^2/2, and the curvature D (zeros where there is none)."""

    H: FloatArray
    b: FloatArray
    constant: float
    curvature: FloatArray


class Stack(NamedTuple):
    """One level for each column left out on the way down: the regions still to be walked."""

    K: FloatArray
    """The inverse on S and C: the lower triangle, of which the rest is never read."""
    x: FloatArray
    columns: IntArray
    """(levels, m) S first, then C."""
    fixed: IntArray
    """|S|"""
    size: IntArray
    """|S| + |C|"""
    value: FloatArray
    """P at the fit on S and C."""


@njit
def start_fit(data: QuadraticData, state: StateArray, stack: Stack) -> float:
    """Fill the first level; return the condition trace(H) ||K||_F, inf where H is not positive definite."""
    m, fixed = 0, 0
    columns = stack.columns[0]
    for wanted in (IN, FREE):
        for j in range(state.size):
            if state[j] == wanted:
                columns[m] = j
                m += 1
        if wanted == IN:
            fixed = m
    H, trace = np.empty((m, m)), 0.0
    for i in range(m):
        for j in range(m):
            H[i, j] = data.H[columns[i], columns[j]]
        trace += H[i, i]
    if not cholesky(H):
        return np.inf
    K = inverse_from_cholesky(H)
    size = 0.0
    stack.value[0] = data.constant
    for i in range(m):
        stack.x[0, i] = 0.0
        for j in range(m):
            stack.K[0, i, j] = K[i, j]
            stack.x[0, i] += K[i, j] * data.b[columns[j]]
            size += K[i, j] ** 2
        stack.value[0] -= 0.5 * stack.x[0, i] * data.b[columns[i]]
    stack.fixed[0], stack.size[0] = fixed, m
    return float(trace * np.sqrt(size))


@njit(sums=True)
def coefficients_without_last(K: FloatArray, x: FloatArray, m: int, x_next: FloatArray) -> None:
    """The coefficients of the fit without the last of m columns; may be done in place."""
    last = m - 1
    step = x[last] / K[last, last]
    for i in range(last):
        x_next[i] = x[i] - K[last, i] * step


@njit(sums=True)
def inverse_without_last(K: FloatArray, m: int, K_next: FloatArray) -> None:
    """The inverse without the last of m columns; may be done in place."""
    last = m - 1
    inverse = 1.0 / K[last, last]
    for i in range(last):
        factor = K[last, i] * inverse
        for j in range(i + 1):
            K_next[i, j] = K[i, j] - factor * K[last, j]


@njit
def swap_columns(K: FloatArray, x: FloatArray, columns: IntArray, m: int, i: int, j: int) -> None:
    """Exchange the columns at two positions."""
    if i == j:
        return
    i, j = min(i, j), max(i, j)
    for q in range(i):
        K[i, q], K[j, q] = K[j, q], K[i, q]
    for q in range(i + 1, j):
        K[q, i], K[j, q] = K[j, q], K[q, i]
    for q in range(j + 1, m):
        K[q, i], K[q, j] = K[q, j], K[q, i]
    K[i, i], K[j, j] = K[j, j], K[i, i]
    x[i], x[j] = x[j], x[i]
    columns[i], columns[j] = columns[j], columns[i]


@njit
def curvature_excess(D: FloatArray, columns: IntArray, x: FloatArray, fixed: int, m: int, largest: FloatArray) -> float:
    """What formula (3) adds to the fit; ``largest`` receives the largest D_j x_j^2 of C, in descending order."""
    places = largest.size
    largest[:] = 0.0
    total = 0.0
    for i in range(fixed, m):
        weight = D[columns[i]] * x[i] * x[i]
        total += weight
        if weight > largest[places - 1]:
            at = places - 1
            while at > 0 and largest[at - 1] < weight:
                largest[at] = largest[at - 1]
                at -= 1
            largest[at] = weight
    for i in range(places):
        total -= largest[i]
    return 0.5 * max(total, 0.0)


@njit
def best_addition(
    data: QuadraticData, columns: IntArray, fixed: int, m: int, L: FloatArray, row: FloatArray, solution: FloatArray
) -> tuple[float, int]:
    """The smallest objective on S with at most one column of C, and that column's position (-1: none helps)."""
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
    best, position = 0.0, -1
    for i in range(fixed, m):
        column = columns[i]
        pivot, correlation = data.H[column, column], data.b[column]
        for j in range(fixed):
            total = data.H[column, columns[j]]
            for q in range(j):
                total -= L[j, q] * row[q]
            row[j] = total / L[j, j]
            pivot -= row[j] ** 2
            correlation -= row[j] * solution[j]
        if pivot > DEPENDENT * data.H[column, column]:
            gain = 0.5 * correlation * correlation / pivot
            if gain > best:
                best, position = gain, i
    return value - best, position


@njit
def drifted(data: QuadraticData, columns: IntArray, x: FloatArray, m: int, value: float, slack: float) -> bool:
    """Whether the objective at x differs from what the downdates say by more than ``slack`` allows."""
    direct = data.constant
    for i in range(m):
        total = 0.0
        for j in range(m):
            total += data.H[columns[i], columns[j]] * x[j]
        direct += x[i] * (0.5 * total - data.b[columns[i]])
    return not abs(direct - value) <= slack
