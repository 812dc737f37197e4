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
    places: IntArray
    """(b,) positions of the columns of one group."""


@njit
def fit_room(d: int, groups: int, largest: int) -> FitWorkspace:
    """Memory for fits over at most so many columns and groups."""
    return FitWorkspace(
        np.zeros(d, dtype=np.int64), np.empty(d), np.zeros(d), np.empty(d), np.empty(groups), np.empty(groups + 1),
        np.empty((largest, largest)), np.empty(largest), np.zeros(largest, dtype=np.int64),
    )  # fmt: skip


@njit
def locate(stack: Stack, level: int, room: FitWorkspace) -> None:
    """Note where the columns of a level are."""
    columns = stack.columns[level]
    for i in range(stack.size[level]):
        room.at[columns[i]] = i


@njit
def _of_group(data: GroupData, group: int, room: FitWorkspace) -> int:
    """Collect the positions of a group's columns; how many these are."""
    begin, end = data.groups.first[group], data.groups.first[group + 1]
    for i in range(begin, end):
        room.places[i - begin] = room.at[data.groups.members[i]]
    return int(end - begin)


@njit
def _entry(K: FloatArray, i: int, j: int) -> float:
    """An entry of a symmetric matrix of which there is the lower triangle."""
    return float(K[i, j] if j <= i else K[j, i])


@njit
def group_cost(data: GroupData, K: FloatArray, x: FloatArray, group: int, room: FitWorkspace) -> float:
    """The cost of fixing a group to 0, x_g' K_gg^-1 x_g / 2; nan where K_gg is not positive definite.

    ``room.step`` receives K_gg^-1 x_g. Columns must have been located.
    """
    size, block, step = _of_group(data, group, room), room.block, room.step
    for i in range(size):
        for j in range(i + 1):
            block[i, j] = _entry(K, room.places[i], room.places[j])
    if not factor(block, size):
        return np.nan
    cost = 0.0
    for i in range(size):
        total = x[room.places[i]]
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
    data: GroupData, K: FloatArray, x: FloatArray, m: int, group: int, room: FitWorkspace, into: FloatArray
) -> None:
    """The coefficients of the fit without a group, where they are 0; :func:`group_cost` comes before."""
    size = _of_group(data, group, room)
    for i in range(m):
        total = x[i]
        for q in range(size):
            total -= _entry(K, i, room.places[q]) * room.step[q]
        into[i] = total
    for q in range(size):
        into[room.places[q]] = 0.0


@njit
def top(weights: FloatArray, units: IntArray, inside: int, count: int, skip: int, largest: FloatArray) -> float:
    """The sum of the weights of C but for the position ``skip``; ``largest`` gets the largest, in descending order."""
    places, total = largest.size, 0.0
    largest[:] = 0.0
    for i in range(inside, count):
        if i == skip:
            continue
        weight = weights[units[i]]
        total += weight
        if places > 0 and weight > largest[places - 1]:
            at = places - 1
            while at > 0 and largest[at - 1] < weight:
                largest[at] = largest[at - 1]
                at -= 1
            largest[at] = weight
    return float(total)


@njit
def group_excess(
    data: GroupData, units: IntArray, inside: int, count: int, x: FloatArray, skip: int, room: FitWorkspace,
    largest: FloatArray,
) -> float:  # fmt: skip
    """What formula (3) adds to the fit x (by position); ``largest`` gets the largest group sums of D_j x_j^2 of C.

    The group at position ``skip`` (-1: none) is not in the region. Columns must have been located.
    """
    D, first, members = data.columns.curvature, data.groups.first, data.groups.members
    for i in range(inside, count):
        weight = 0.0
        for q in range(first[units[i]], first[units[i] + 1]):
            j = members[q]
            weight += D[j] * x[room.at[j]] * x[room.at[j]]
        room.weights[units[i]] = weight
    total = top(room.weights, units, inside, count, skip, largest)
    for i in range(largest.size):
        total -= largest[i]
    return float(0.5 * max(total, 0.0))


@njit(sums=True)
def _residual(data: GroupData, columns: IntArray, x: FloatArray, m: int, room: FitWorkspace) -> None:
    """Hx - b on m columns."""
    H, b, z = data.columns.H, data.columns.b, room.z
    for i in range(m):
        z[columns[i]] = x[i]
    for i in range(m):
        row, total = H[columns[i]], 0.0
        for j in range(b.size):
            total += row[j] * z[j]
        room.residual[i] = total - b[columns[i]]
    for i in range(m):
        z[columns[i]] = 0.0


@njit
def group_formula(
    data: GroupData, columns: IntArray, x: FloatArray, m: int, units: IntArray, inside: int, count: int, places: int,
    also: int, skip: int, room: FitWorkspace,
) -> float:  # fmt: skip
    """Formula (3) with D = ``floor`` at x for a region of groups, rounding taken off: it holds for the exact data.

    The first ``inside`` groups and the one at position ``also`` (-1: none) are in, and ``places`` of the others count;
    the one at position ``skip`` (-1: none), where x is 0, is not in the region. x is by position of the m columns. As
    for :func:`exactsel.kernels.subtree_fit.formula`, whose allowance for rounding this has.
    """
    _residual(data, columns, x, m, room)
    size, length, D = 0.0, np.sqrt(2.0 * data.columns.constant), data.columns.floor
    for i in range(m):
        size += abs(x[i]) * data.columns.lengths[columns[i]]
    unit = (data.columns.roundings + 2 * m + 64) * UNIT
    error = unit * (size + length)
    for i in range(count):
        room.weights[units[i]] = 0.0
    square = 0.0
    for i in range(m):
        j = columns[i]
        square += x[i] * (room.residual[i] + data.columns.b[j] - D[j] * x[i])
        slope = abs(room.residual[i] - D[j] * x[i]) + error * data.columns.lengths[j]
        room.weights[data.groups.owner[j]] += slope * slope / D[j]
    counted = 0.0
    for i in range(inside):
        counted += room.weights[units[i]]
    if also >= 0:
        counted += room.weights[units[also]]
        room.weights[units[also]] = 0.0
    largest = room.largest[: min(places, count)]
    top(room.weights, units, inside, count, skip, largest)
    for i in range(largest.size):
        counted += largest[i]
    constant = data.columns.constant
    return float(constant - 0.5 * square - 0.5 * counted * (1.0 + unit) - 2.0 * unit * (size + length) ** 2)
