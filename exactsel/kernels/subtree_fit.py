"""The fit on S and C of a node, kept up to date column by column (quadratic loss): for kernels/subtree.py.

What is kept up to date is a guide: rounding may have its way with it. Bounds are computed anew at its coefficients from
H and b (:func:`certified`), or proven by an elimination (kernels/counting.py).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exactsel._jit import njit
from exactsel.kernels.counting import CountWorkspace, SubtreeData, distinct, eliminate, margin_for
from exactsel.kernels.linalg import cholesky, inverse_from_cholesky
from exactsel.kernels.node import FREE, IN
from exactsel.rounding import UNIT
from exactsel.types import FloatArray, IntArray, StateArray

DEPENDENT = 1e-8
"""A column of which no more than this share is left after elimination has no coefficient worth computing here."""

FIRST_RIDGE, LAST_RIDGE = 1e-12, 1e-5
"""Parts of the diagonal of H that are tried as a ridge of the guide where H is singular."""

BOUNDED_RIDGE = 1e-9
"""The same where columns are known to depend on each other."""

NONE = -1


class Stack(NamedTuple):
    """One level for each column fixed to 0 on the way down: the regions still to be walked."""

    inverses: FloatArray
    """What :func:`inverse_of` cuts up."""
    x: FloatArray
    columns: IntArray
    """(levels, m) S first, then C."""
    fixed: IntArray
    """|S|"""
    size: IntArray
    """|S| + |C|"""
    value: FloatArray
    """P at the fit on S and C."""
    begin: IntArray
    """Where the inverse of a level begins."""
    units: IntArray
    """(levels, G) what is chosen, S first, then C: the columns themselves, or groups of them."""
    included: IntArray
    """Units of S ..."""
    present: IntArray
    """... and of S and C."""


@njit
def new_stack(m: int, most_levels: int, scratch: FloatArray) -> Stack:
    """A stack for m columns, the units, of as many levels as are wanted, or as ``scratch`` holds the inverses of."""
    levels, used = 0, 0
    while levels < most_levels and used + (m - levels) ** 2 <= scratch.size:
        used += (m - levels) ** 2
        levels += 1
    levels = max(2, levels)
    begin = np.zeros(levels, dtype=np.int64)
    for depth in range(1, levels):
        begin[depth] = begin[depth - 1] + max(m - depth + 1, 0) ** 2
    columns = np.empty((levels, m), dtype=np.int64)
    fixed, size = np.zeros(levels, dtype=np.int64), np.zeros(levels, dtype=np.int64)
    return Stack(
        scratch, np.empty((levels, m)), columns, fixed, size, np.empty(levels), begin, columns, fixed, size
    )  # fmt: skip


@njit
def inverse_of(stack: Stack, depth: int) -> FloatArray:
    """K, the inverse on S and C of a level: the lower triangle, of which the rest is never read.

    A level has one column less than the one above it, so one matrix after the other takes ever less.
    """
    side, before = max(stack.columns.shape[1] - depth, 0), stack.begin[depth]
    return stack.inverses[before : before + side * side].reshape((side, side))


@njit
def first_columns(state: StateArray, stack: Stack) -> None:
    """Fill in the columns of the first level, S and then C."""
    m, fixed = 0, 0
    for wanted in (IN, FREE):
        for j in range(state.size):
            if state[j] == wanted:
                stack.columns[0, m] = j
                m += 1
        if wanted == IN:
            fixed = m
    stack.fixed[0], stack.size[0] = fixed, m


@njit
def start_fit(data: SubtreeData, stack: Stack) -> bool:
    """Compute the fit of the first level; False where even a ridge does not make H positive definite."""
    columns, m = stack.columns[0], stack.size[0]
    H, ridge = np.empty((m, m)), BOUNDED_RIDGE if data.low.size > 0 else 0.0
    while True:
        for i in range(m):
            for j in range(m):
                H[i, j] = data.H[columns[i], columns[j]]
            H[i, i] = H[i, i] * (1.0 + ridge) if H[i, i] > 0.0 else 1.0
        if cholesky(H):
            break
        ridge = max(FIRST_RIDGE, 10.0 * ridge)
        if ridge > LAST_RIDGE:
            return False
    K, first = inverse_from_cholesky(H), inverse_of(stack, 0)
    stack.value[0] = data.constant
    for i in range(m):
        total = 0.0
        for j in range(m):
            first[i, j] = K[i, j]
            total += K[i, j] * data.b[columns[j]]
        stack.x[0, i] = total
        stack.value[0] -= 0.5 * total * data.b[columns[i]]
    return True


@njit(sums=True)
def coefficients_without_last(K: FloatArray, x: FloatArray, m: int, x_next: FloatArray) -> None:
    """The coefficients of the fit without the last of m columns; may be done in place."""
    last = m - 1
    step = x[last] / K[last, last]
    for i in range(last):
        x_next[i] = x[i] - K[last, i] * step


@njit
def coefficients_without(K: FloatArray, x: FloatArray, m: int, column: int, x_next: FloatArray) -> None:
    """The coefficients of the fit without the column at one position, where they are 0."""
    step = x[column] / K[column, column]
    for i in range(column):
        x_next[i] = x[i] - K[column, i] * step
    for i in range(column + 1, m):
        x_next[i] = x[i] - K[i, column] * step
    x_next[column] = 0.0


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
    slots = largest.size
    largest[:] = 0.0
    total = 0.0
    for i in range(fixed, m):
        weight = D[columns[i]] * x[i] * x[i]
        total += weight
        if weight > largest[slots - 1]:
            at = slots - 1
            while at > 0 and largest[at - 1] < weight:
                largest[at] = largest[at - 1]
                at -= 1
            largest[at] = weight
    for i in range(slots):
        total -= largest[i]
    return 0.5 * max(total, 0.0)


class FormulaWorkspace(NamedTuple):
    """Memory for formula (3) over at most d columns."""

    z: FloatArray
    """(d,) zeros between calls."""
    residual: FloatArray
    """(d,) Hx - b on the columns of the last call."""
    trial: FloatArray
    """(d,) coefficients of the caller's."""
    largest: FloatArray
    """(d + 1,)"""


@njit
def formula_workspace(d: int) -> FormulaWorkspace:
    """Memory for formula (3) over at most d columns."""
    return FormulaWorkspace(np.zeros(d), np.empty(d), np.empty(d), np.empty(d + 1))


@njit(sums=True)
def _residual(data: SubtreeData, columns: IntArray, x: FloatArray, m: int, workspace: FormulaWorkspace) -> None:
    """Hx - b on m columns."""
    d, z = data.b.size, workspace.z
    if 3 * m < d:
        for i in range(m):
            row, total = data.H[columns[i]], 0.0
            for j in range(m):
                total += row[columns[j]] * x[j]
            workspace.residual[i] = total - data.b[columns[i]]
        return
    for i in range(m):
        z[columns[i]] = x[i]
    for i in range(m):
        row, total = data.H[columns[i]], 0.0
        for j in range(d):
            total += row[j] * z[j]
        workspace.residual[i] = total - data.b[columns[i]]
    for i in range(m):
        z[columns[i]] = 0.0


@njit
def formula(
    data: SubtreeData, columns: IntArray, x: FloatArray, fixed: int, m: int, slots: int, also: int, skip: int,
    workspace: FormulaWorkspace,
) -> float:  # fmt: skip
    """Formula (3) with D = ``data.floor`` at x for a region, rounding taken off: it holds for the exact data.

    The first ``fixed`` columns and the one at position ``also`` (-1: none) are inside, and ``slots`` of the others
    count; the one at position ``skip`` (-1: none), where x is 0, is not in the region.

    With size = sum_j abs(x_j) sqrt(H_jj), entries of Hx - b are off by gamma sqrt(H_ii) (size + ||y||), and the two
    sums by gamma (size + ||y||)^2.
    """
    _residual(data, columns, x, m, workspace)
    largest = workspace.largest[:slots]
    largest[:] = 0.0
    size, length = 0.0, np.sqrt(2.0 * data.constant)
    for i in range(m):
        size += abs(x[i]) * data.lengths[columns[i]]
    unit = (data.roundings + 2 * m + 64) * UNIT
    error = unit * (size + length)
    square, counted = 0.0, 0.0
    for i in range(m):
        D = data.floor[columns[i]]
        square += x[i] * (workspace.residual[i] + data.b[columns[i]] - D * x[i])
        slope = abs(workspace.residual[i] - D * x[i]) + error * data.lengths[columns[i]]
        weight = slope * slope / D
        if i == skip:
            continue
        if i < fixed or i == also:
            counted += weight
        elif slots > 0 and weight > largest[slots - 1]:
            at = slots - 1
            while at > 0 and largest[at - 1] < weight:
                largest[at] = largest[at - 1]
                at -= 1
            largest[at] = weight
    for i in range(slots):
        counted += largest[i]
    return float(data.constant - 0.5 * square - 0.5 * counted * (1.0 + unit) - 2.0 * unit * (size + length) ** 2)


@njit
def refine(K: FloatArray, x: FloatArray, m: int, residual: FloatArray) -> None:
    """One step of iterative refinement with Hx - b."""
    for i in range(m):
        total = 0.0
        for j in range(m):
            total += (K[i, j] if j <= i else K[j, i]) * residual[j]
        x[i] -= total


@njit
def fit_reaches(
    data: SubtreeData, columns: IntArray, m: int, skip: int, depth: float, workspace: CountWorkspace
) -> bool:
    """Whether an elimination proves the fit on m columns, without the one at position ``skip``, to reach a level."""
    _, size = distinct(data, columns, 0, m, skip, workspace)
    return bool(eliminate(data, size, size, depth, margin_for(data, depth, size), workspace))


@njit
def value_of(data: SubtreeData, columns: IntArray, m: int, workspace: CountWorkspace) -> float:
    """The smallest objective on m columns; inf where they are too nearly dependent to say."""
    _, size = distinct(data, columns, 0, m, NONE, workspace)
    rows, order = workspace.rows, workspace.order
    value = data.constant
    for i in range(size):
        for j in range(i + 1):
            total = data.H[order[i], order[j]]
            for q in range(j):
                total -= rows[i, q] * rows[j, q]
            if j < i:
                rows[i, j] = total / rows[j, j]
            elif total > DEPENDENT * data.H[order[i], order[i]]:
                rows[i, i] = np.sqrt(total)
            else:
                return np.inf
        total = data.b[order[i]]
        for q in range(i):
            total -= rows[i, q] * workspace.u[q]
        workspace.u[i] = total / rows[i, i]
        value -= 0.5 * workspace.u[i] ** 2
    return value
