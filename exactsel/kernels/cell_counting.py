"""Sets of columns of two values whose cells let logistic loss come down to a level.

Rows that hold the same in all columns of a model have the same prediction, for any coefficients, ridge and intercept.
So logistic loss is at least the sum over such cells of what the cell's own best prediction costs,

    p log((p + m) / p) + m log((p + m) / m) = f(p + m) - f(p) - f(m),   f(x) = x log x,

p and m the weights of its rows of either label. A finer division costs less, so that nothing is learnt from some of the
columns of a set: all sets are counted. For all but two columns of a set the rows are divided once; with the number of
rows of every cell and label that hold the other value in j, in l and in both, the cells of every pair j < l are known
too; of the two parts a column divides a cell into, one is counted, and the other is what is left. The columns are those
of :mod:`exactsel.enumeration.pattern_classes`: no two divide the rows alike.

Weights are whole numbers, f is a table. No term is negative: a sum that is above the level early is not finished.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exactsel._jit import njit, prange
from exactsel.types import BoolArray, FloatArray, IntArray

LOOK_UP = 20.0
"""Multiplications that looking a pair up in one cell is worth, and ..."""

ADD = 6.0
"""... adding a row to the counts of a pair of columns (measured)."""


class CellData(NamedTuple):
    """Rows of 0/1 data, equal ones put together."""

    bits: NDArray[np.uint8]
    """(m, rows) whether a column holds the other of its two values."""
    first: IntArray
    """(rows + 1,) where the columns of a row begin in ..."""
    columns: IntArray
    """... the columns with the other value, ascending in each row."""
    start: IntArray
    """(rows,) twice the number of the cell the columns that are always in give, and 1 more for the label +1."""
    weights: IntArray
    """(rows,) how many rows these are."""
    table: FloatArray
    """x log x for x = 0, 1, ... up to the sum of the weights."""


class CellWorkspace(NamedTuple):
    """Memory for counting below one parent after the other."""

    codes: IntArray
    """(rows,) twice the parent's cell, and 1 more for the label +1."""
    sizes: IntArray
    """(2 cells,) how many rows, by code; ..."""
    pairs: NDArray[np.int32]
    """(2 cells, m, m) ... and how many hold the other value in j and l >= j; only in cells with both labels."""
    part_sizes: IntArray
    """(4 cells,) the same for the two parts a further column divides every cell into."""
    parts: NDArray[np.int32]
    """(4 cells, m, m)"""
    mixed: BoolArray
    """(cells,) whether a cell, or one of its parts, has both labels."""
    used: IntArray
    """(2 cells,)"""


@njit
def cell_workspace(rows: int, m: int, cells: int) -> CellWorkspace:
    """Memory for parents that make so many cells."""
    return CellWorkspace(
        np.empty(rows, dtype=np.int64),
        np.empty(2 * cells, dtype=np.int64), np.empty((2 * cells, m, m), dtype=np.int32),
        np.empty(4 * cells, dtype=np.int64), np.empty((4 * cells, m, m), dtype=np.int32),
        np.empty(cells, dtype=np.bool_), np.empty(2 * cells, dtype=np.int64),
    )  # fmt: skip


@njit
def rows_by_column(first: IntArray, columns: IntArray, m: int) -> tuple[IntArray, IntArray]:
    """The rows with the other value of a column, column by column, and where each begins (m + 1,)."""
    begin = np.zeros(m + 1, dtype=np.int64)
    for t in range(columns.size):
        begin[columns[t] + 1] += 1
    for j in range(m):
        begin[j + 1] += begin[j]
    at, rows = begin.copy(), np.empty(columns.size, dtype=np.int64)
    for row in range(first.size - 1):
        for t in range(first[row], first[row + 1]):
            rows[at[columns[t]]] = row
            at[columns[t]] += 1
    return rows, begin


@njit
def cell_bounds(data: CellData, cells: int, sets: IntArray, stop: BoolArray, bounds: FloatArray) -> None:
    """The sum for each set of columns (a row), one after the other; unchanged after a stop.

    ``cells`` is the number of those that the columns always in make.
    """
    size = sets.shape[1]
    counts = np.zeros((2 * cells) << size, dtype=np.int64)
    for s in range(sets.shape[0]):
        if stop[0]:
            return
        counts[:] = 0
        for row in range(data.start.size):
            cell = data.start[row] >> 1
            for a in range(size):
                cell = 2 * cell + data.bits[sets[s, a], row]
            counts[2 * cell + (data.start[row] & 1)] += data.weights[row]
        total = 0.0
        for cell in range(counts.size // 2):
            p, m = counts[2 * cell], counts[2 * cell + 1]
            total += data.table[p + m] - data.table[p] - data.table[m]
        bounds[s] = total


@njit
def write_set(number: int, ways: IntArray, out: IntArray) -> None:
    """The set of that number among those of ``out.size`` columns; ``ways`` (columns + 1, size + 1) are binomials."""
    for a in range(out.size, 0, -1):
        low, high = a - 1, ways.shape[0] - 1
        while low < high:
            middle = (low + high + 1) // 2
            if ways[middle, a] <= number:
                low = middle
            else:
                high = middle - 1
        out[a - 1] = low
        number -= ways[low, a]


@njit
def _count_rows(
    data: CellData, rows: IntArray, codes: IntArray, mixed: BoolArray, after: int, stretch: int,
    pairs: NDArray[np.int32],
) -> float:  # fmt: skip
    """Add to ``pairs`` how many of the rows hold the other value in two of the columns after ``after``, j <= l.

    A row goes to ``pairs[stretch * cell + label]``, its code being 2 cell + label, where the cell is ``mixed``. The
    multiplications it is worth.
    """
    added = 0
    for i in range(rows.size):
        row = rows[i]
        cell = codes[row] >> 1
        if not mixed[cell]:
            continue
        counts, weight = pairs[stretch * cell + (stretch - 2) + (codes[row] & 1)], data.weights[row]
        end, t = data.first[row + 1] - 1, data.first[row + 1] - 1
        while t >= data.first[row] and data.columns[t] > after:
            line = counts[data.columns[t]]
            for u in range(t, end + 1):
                line[data.columns[u]] += weight
            added += end + 1 - t
            t -= 1
    return ADD * added + 2.0 * ADD * rows.size


@njit
def _all_rows(
    data: CellData, parent: IntArray, last: int, workspace: CellWorkspace, every: IntArray
) -> float:  # fmt: skip
    """Divide all rows by the columns of a parent, and count pairs of the columns after its last.

    The multiplications it is worth.
    """
    m = data.bits.shape[0]
    workspace.sizes[:] = 0
    for row in range(data.start.size):
        code = data.start[row] >> 1
        for a in range(parent.size):
            code = 2 * code + data.bits[parent[a], row]
        code = 2 * code + (data.start[row] & 1)
        workspace.codes[row] = code
        workspace.sizes[code] += data.weights[row]
    cleared = 0
    for cell in range(workspace.mixed.size):
        workspace.mixed[cell] = min(workspace.sizes[2 * cell], workspace.sizes[2 * cell + 1]) > 0
        if workspace.mixed[cell]:
            workspace.pairs[2 * cell : 2 * cell + 2, last + 1 :, last + 1 :] = 0
            cleared += 2
    work = _count_rows(data, every, workspace.codes, workspace.mixed, last, 2, workspace.pairs)
    return float(work + ADD * data.start.size * (parent.size + 2) + 0.6 * cleared * (m - last) ** 2)


@njit
def _child(data: CellData, rows: IntArray, last: int, workspace: CellWorkspace) -> float:
    """Divide the cells of a parent by the column ``last``; ``rows`` are those that hold its other value.

    Code 4 cell + label is the part of a cell without them, 4 cell + 2 + label the part with them. The multiplications
    it is worth.
    """
    m, parts, mixed, parents = data.bits.shape[0], workspace.parts, workspace.mixed, workspace.pairs
    part_sizes, cleared = workspace.part_sizes, 0
    part_sizes[:] = 0
    for i in range(rows.size):
        code = workspace.codes[rows[i]]
        part_sizes[4 * (code >> 1) + 2 + (code & 1)] += data.weights[rows[i]]
    for cell in range(mixed.size):
        part = part_sizes[4 * cell : 4 * cell + 4]
        part[0], part[1] = workspace.sizes[2 * cell] - part[2], workspace.sizes[2 * cell + 1] - part[3]
        mixed[cell] = min(part[0], part[1]) > 0 or min(part[2], part[3]) > 0
        if mixed[cell]:
            parts[4 * cell + 2 : 4 * cell + 4, last + 1 :, last + 1 :] = 0
            cleared += 2
    work = _count_rows(data, rows, workspace.codes, mixed, last, 4, parts)
    for cell in range(mixed.size):
        if min(part_sizes[4 * cell], part_sizes[4 * cell + 1]) > 0:
            for label in range(2):
                whole, included, rest = parents[2 * cell + label], parts[4 * cell + 2 + label], parts[4 * cell + label]
                for j in range(last + 1, m):
                    for l in range(j, m):
                        rest[j, l] = whole[j, l] - included[j, l]
            cleared += 2
    return float(work + 0.6 * cleared * (m - last) ** 2)


@njit
def _largest_first(sizes: IntArray, used: IntArray) -> int:
    """The cells in which there are both labels, those first in which there are most of the rarer; how many."""
    count = 0
    for cell in range(sizes.size // 2):
        least = min(sizes[2 * cell], sizes[2 * cell + 1])
        if least > 0:
            at = count
            while at > 0 and min(sizes[2 * used[at - 1]], sizes[2 * used[at - 1] + 1]) < least:
                used[at] = used[at - 1]
                at -= 1
            used[at] = cell
            count += 1
    return count


class Found(NamedTuple):
    """Room for what a chunk finds."""

    sets: IntArray
    """(room, places)"""
    sums: FloatArray
    """(room,) the sum of each."""


@njit
def _keep_lower(found: Found) -> tuple[int, float]:
    """Make room by dropping the sets of larger sums: how many are left, and the sum none of them is above."""
    threshold, kept = float(np.median(found.sums)), 0
    for i in range(found.sums.size):
        if found.sums[i] <= threshold and kept < (found.sums.size + 1) // 2:
            found.sets[kept] = found.sets[i]
            found.sums[kept] = found.sums[i]
            kept += 1
    return kept, threshold


@njit
def _count_pairs(
    data: CellData, prefix: IntArray, last: int, threshold: float, pairs: NDArray[np.int32], sizes: IntArray,
    used: IntArray, found: Found, known: int,
) -> tuple[int, float, float]:  # fmt: skip
    """Write down the sets of a prefix and two columns after ``last`` whose sum is not above the level.

    The number of sets then, the level (lower than it was once sets had to be dropped), and the multiplications that
    looking up was worth.
    """
    m, f, count, looked, q = data.bits.shape[0], data.table, _largest_first(sizes, used), 0, prefix.size
    for j in range(last + 1, m - 1):
        for l in range(j + 1, m):
            total = 0.0
            for a in range(count):
                looked += 1
                c = 2 * used[a]
                x = np.int64(pairs[c, j, l])
                xj, xl = pairs[c, j, j] - x, pairs[c, l, l] - x
                z = np.int64(pairs[c + 1, j, l])
                zj, zl = pairs[c + 1, j, j] - z, pairs[c + 1, l, l] - z
                none, also = sizes[c] - x - xj - xl, sizes[c + 1] - z - zj - zl
                total += (
                    (f[x + z] - f[x] - f[z]) + (f[xj + zj] - f[xj] - f[zj])
                    + (f[xl + zl] - f[xl] - f[zl]) + (f[none + also] - f[none] - f[also])
                )  # fmt: skip
                if total > threshold:
                    break
            if not total > threshold:
                if known == found.sums.size:
                    known, threshold = _keep_lower(found)
                for b in range(q):
                    found.sets[known, b] = prefix[b]
                found.sets[known, q], found.sets[known, q + 1], found.sums[known] = j, l, total
                known += 1
    return known, threshold, LOOK_UP * looked


@njit(parallel=True)
def count_sets(
    bits: NDArray[np.uint8], first: IntArray, columns: IntArray, start: IntArray, weights: IntArray,
    table: FloatArray, cells: int, slots: int, ways: IntArray, parents: IntArray, threshold: float, stop: BoolArray,
    found: IntArray, sums: FloatArray, counts: IntArray, levels: FloatArray, work: FloatArray,
) -> None:  # fmt: skip
    """Find the sets of so many columns that reach the level, those of some parents: all but the last three columns.

    Parameters
    ----------
    bits ... table
        The parts of :class:`CellData`: threads are handed no tuples.
    cells : int
        Those that the columns always in make.
    slots : int
        Columns of a set, at least 2; with 2 there is one parent, and it is the set's as it is.
    ways : int64 array (m - 1, parent + 1)
        Binomial coefficients.
    parents : int64 array (chunks, any)
        Numbers of the parents of each chunk (:func:`write_set`), -1 where there are no more.
    found, sums : int64 array (chunks, room, places), float array (chunks, room)
        Receive the sets, and what is computed as the sum of each.
    counts : int64 array (chunks,)
        Receives how many there are.
    levels : float array (chunks,)
        Receives the level; where there was not room for all, a lower one that those with room are within.
    work : float array (chunks,)
        Receives the multiplications it was worth. After a stop it leaves chunks unfinished.
    """
    m, size, n, every = bits.shape[0], ways.shape[1] - 1, start.size, np.arange(start.size)
    by_column, begin = rows_by_column(first, columns, m)
    for chunk in prange(parents.shape[0]):
        data = CellData(bits, first, columns, start, weights, table)
        workspace, into = cell_workspace(n, m, cells << size), Found(found[chunk], sums[chunk])
        known, within, spent, prefix = 0, threshold, 0.0, np.empty(slots - 2, dtype=np.int64)
        for i in range(parents.shape[1]):
            if stop[0] or parents[chunk, i] < 0:
                break
            write_set(parents[chunk, i], ways, prefix[:size])
            above = prefix[size - 1] if size > 0 else -1
            spent += _all_rows(data, prefix[:size], above, workspace, every)
            if slots == 2:
                known, within, looked = _count_pairs(
                    data, prefix, -1, within, workspace.pairs, workspace.sizes, workspace.used, into, known
                )
                spent += looked
                continue
            for last in range(above + 1, m - 2):
                if stop[0]:
                    break
                prefix[size] = last
                spent += _child(data, by_column[begin[last] : begin[last + 1]], last, workspace)
                known, within, looked = _count_pairs(
                    data, prefix, last, within, workspace.parts, workspace.part_sizes, workspace.used, into, known
                )
                spent += looked
        counts[chunk], levels[chunk], work[chunk] = known, within, spent
