"""Quantities at the fit on S and C of a node over groups: kernels/subtree_fit.py with blocks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exactsel._jit import njit
from exactsel.kernels.group_counting import factor
from exactsel.kernels.subtree_fit import Stack
from exactsel.kernels.subtree_group_count import GroupData
from exactsel.rounding import UNIT
from exactsel.types import FloatArray, IntArray


class FitWorkspace(NamedTuple):
    """Memory for what is computed at a fit over at most d columns and G groups, the largest of b."""

    at: IntArray
    """(d,) the position of every column of a level."""
    residual: FloatArray
    """(d,) Hx - b on the columns of the last call of :func:`group_formula`, by position."""
    z: FloatArray
    """(d,) zeros between calls."""
    trial: FloatArray
    """(d,) coefficients of the caller's."""
    weights: FloatArray
    """(G,) sums over the columns of groups."""
    largest: FloatArray
    """(G + 1,)"""
    block: FloatArray
    """(b, b)"""
    step: FloatArray
    """(b,)"""
    slots: IntArray
    """(b,) positions of the columns of one group."""


@njit
def fit_workspace(d: int, groups: int, largest: int) -> FitWorkspace:
    """Memory for fits over at most so many columns and groups."""
    return FitWorkspace(
        np.zeros(d, dtype=np.int64), np.empty(d), np.zeros(d), np.empty(d), np.empty(groups), np.empty(groups + 1),
        np.empty((largest, largest)), np.empty(largest), np.zeros(largest, dtype=np.int64),
    )  # fmt: skip


@njit
def locate(stack: Stack, level: int, workspace: FitWorkspace) -> None:
    """Note where the columns of a level are."""
    columns = stack.columns[level]
    for i in range(stack.size[level]):
        workspace.at[columns[i]] = i


@njit
def _of_group(data: GroupData, group: int, workspace: FitWorkspace) -> int:
    """Collect the positions of a group's columns; how many these are."""
    begin, end = data.groups.first[group], data.groups.first[group + 1]
    for i in range(begin, end):
        workspace.slots[i - begin] = workspace.at[data.groups.members[i]]
    return int(end - begin)


@njit
def _entry(K: FloatArray, i: int, j: int) -> float:
    """An entry of a symmetric matrix of which there is the lower triangle."""
    return float(K[i, j] if j <= i else K[j, i])


@njit
def group_cost(data: GroupData, K: FloatArray, x: FloatArray, group: int, workspace: FitWorkspace) -> float:
    """The cost of fixing a group to 0, x_g' K_gg^-1 x_g / 2; nan where K_gg is not positive definite.

    ``workspace.step`` receives K_gg^-1 x_g. Columns must have been located.
    """
    size, block, step = _of_group(data, group, workspace), workspace.block, workspace.step
    for i in range(size):
        for j in range(i + 1):
            block[i, j] = _entry(K, workspace.slots[i], workspace.slots[j])
    if not factor(block, size):
        return np.nan
    cost = 0.0
    for i in range(size):
        total = x[workspace.slots[i]]
        for q in range(i):
            total -= block[i, q] * step[q]
        step[i] = total / block[i, i]
        cost += step[i] * step[i]
    for i in range(size - 1, -1, -1):
        total = step[i]
        for q in range(i + 1, size):
            total -= block[q, i] * step[q]
        step[i] = total / block[i, i]
    return float(0.5 * cost)


@njit
def coefficients_without_group(
    data: GroupData, K: FloatArray, x: FloatArray, m: int, group: int, workspace: FitWorkspace, into: FloatArray
) -> None:
    """The coefficients of the fit without a group, where they are 0; :func:`group_cost` comes before."""
    size = _of_group(data, group, workspace)
    for i in range(m):
        total = x[i]
        for q in range(size):
            total -= _entry(K, i, workspace.slots[q]) * workspace.step[q]
        into[i] = total
    for q in range(size):
        into[workspace.slots[q]] = 0.0


@njit
def top(weights: FloatArray, units: IntArray, included: int, count: int, skip: int, largest: FloatArray) -> float:
    """The sum of the weights of C but for the position ``skip``; ``largest`` gets the largest, in descending order."""
    slots, total = largest.size, 0.0
    largest[:] = 0.0
    for i in range(included, count):
        if i == skip:
            continue
        weight = weights[units[i]]
        total += weight
        if slots > 0 and weight > largest[slots - 1]:
            at = slots - 1
            while at > 0 and largest[at - 1] < weight:
                largest[at] = largest[at - 1]
                at -= 1
            largest[at] = weight
    return float(total)


@njit
def group_excess(
    data: GroupData, units: IntArray, included: int, count: int, x: FloatArray, skip: int, workspace: FitWorkspace,
    largest: FloatArray,
) -> float:  # fmt: skip
    """What formula (3) adds to the fit x (by position); ``largest`` gets the largest group sums of D_j x_j^2 of C.

    The group at position ``skip`` (-1: none) is not in the region. Columns must have been located.
    """
    D, first, members = data.columns.curvature, data.groups.first, data.groups.members
    for i in range(included, count):
        weight = 0.0
        for q in range(first[units[i]], first[units[i] + 1]):
            j = members[q]
            weight += D[j] * x[workspace.at[j]] * x[workspace.at[j]]
        workspace.weights[units[i]] = weight
    total = top(workspace.weights, units, included, count, skip, largest)
    for i in range(largest.size):
        total -= largest[i]
    return float(0.5 * max(total, 0.0))


@njit(sums=True)
def _residual(data: GroupData, columns: IntArray, x: FloatArray, m: int, workspace: FitWorkspace) -> None:
    """Hx - b on m columns."""
    H, b, z = data.columns.H, data.columns.b, workspace.z
    for i in range(m):
        z[columns[i]] = x[i]
    for i in range(m):
        row, total = H[columns[i]], 0.0
        for j in range(b.size):
            total += row[j] * z[j]
        workspace.residual[i] = total - b[columns[i]]
    for i in range(m):
        z[columns[i]] = 0.0


@njit
def group_formula(
    data: GroupData, columns: IntArray, x: FloatArray, m: int, units: IntArray, included: int, count: int, slots: int,
    also: int, skip: int, workspace: FitWorkspace,
) -> float:  # fmt: skip
    """Formula (3) with D = ``floor`` at x for a region of groups, rounding taken off: it holds for the exact data.

    The first ``included`` groups and the one at position ``also`` (-1: none) are in, and ``slots`` of the others count;
    the one at position ``skip`` (-1: none), where x is 0, is not in the region. x is by position of the m columns. As
    for :func:`exactsel.kernels.subtree_fit.formula`, whose allowance for rounding this has.
    """
    _residual(data, columns, x, m, workspace)
    size, length, D = 0.0, np.sqrt(2.0 * data.columns.constant), data.columns.floor
    for i in range(m):
        size += abs(x[i]) * data.columns.lengths[columns[i]]
    unit = (data.columns.roundings + 2 * m + 64) * UNIT
    error = unit * (size + length)
    for i in range(count):
        workspace.weights[units[i]] = 0.0
    square = 0.0
    for i in range(m):
        j = columns[i]
        square += x[i] * (workspace.residual[i] + data.columns.b[j] - D[j] * x[i])
        slope = abs(workspace.residual[i] - D[j] * x[i]) + error * data.columns.lengths[j]
        workspace.weights[data.groups.owner[j]] += slope * slope / D[j]
    counted = 0.0
    for i in range(included):
        counted += workspace.weights[units[i]]
    if also >= 0:
        counted += workspace.weights[units[also]]
        workspace.weights[units[also]] = 0.0
    largest = workspace.largest[: min(slots, count)]
    top(workspace.weights, units, included, count, skip, largest)
    for i in range(largest.size):
        counted += largest[i]
    constant = data.columns.constant
    return float(constant - 0.5 * square - 0.5 * counted * (1.0 + unit) - 2.0 * unit * (size + length) ** 2)
