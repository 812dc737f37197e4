"""Sets of like columns that a graph connects: listed, their matrices factorised, and how much others are like them.

Sets are listed as Wernicke does (Efficient detection of network motifs, 2006): each grows from its first column, and is
extended by later columns that touch only the one added last or were left for later before.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from exactsel._jit import njit
from exactsel.types import BoolArray, FloatArray, IntArray

Small = NDArray[np.int32]

MOST_SPREAD = 1e3
"""A set is of no use where the inverse of its matrix is larger: its columns are too much alike."""

ALLOWANCE = 1e-9
"""For what a factorisation of up to 20 columns rounds while the inverse is no larger, as a part of its result."""

CHUNK = 512
"""Columns that are processed together, so that their cosines with a set stay near."""


@njit
def connected_sets(
    starts: IntArray, neighbours: Small, most: int, limit: int, counts: IntArray, first: IntArray, sets: Small,
    stop: BoolArray,
) -> bool:  # fmt: skip
    """Count the connected sets of 2 to ``most`` columns; list them, too, where ``sets`` has room.

    Parameters
    ----------
    starts : int array (columns + 1,)
        Where each column's neighbours begin.
    neighbours : int32 array (any,)
    most, limit : int
        Columns of a set, and sets, at most.
    counts : int array (most + 1,)
        Receives how many there are of each size; zeros before.
    first : int array (most + 1,)
        Where the sets of each size begin in ``sets``.
    sets : int32 array (any,)
        Receives them, in the order they are met; nothing where it is empty.
    stop : bool array (1,)

    Returns
    -------
    bool
        Whether all were counted: neither more than ``limit`` nor stopped.
    """
    columns, widest, total = len(starts) - 1, 1, 0
    for v in range(columns):
        widest = max(widest, starts[v + 1] - starts[v])
    members, touched = np.zeros(most + 1, dtype=np.int64), np.zeros(columns, dtype=np.int64)
    waiting, waits = np.zeros((most + 1, most * widest + 1), dtype=np.int64), np.zeros(most + 1, dtype=np.int64)
    for v in range(columns):
        if stop[0]:
            return False
        members[0], waits[1] = v, 0
        touched[v] += 1
        for e in range(starts[v], starts[v + 1]):
            touched[neighbours[e]] += 1
            if neighbours[e] > v:
                waiting[1, waits[1]] = neighbours[e]
                waits[1] += 1
        size = 1
        while size >= 1:
            if waits[size] == 0:
                size -= 1
                w = members[size]
                touched[w] -= 1
                for e in range(starts[w], starts[w + 1]):
                    touched[neighbours[e]] -= 1
                continue
            waits[size] -= 1
            w = waiting[size, waits[size]]
            members[size] = w
            grown = size + 1
            if sets.size > 0:
                at = first[grown] + counts[grown] * grown
                for a in range(grown):
                    sets[at + a] = members[a]
            counts[grown] += 1
            total += 1
            if total > limit:
                return False
            if grown < most:
                left = waits[size]
                for a in range(left):
                    waiting[grown, a] = waiting[size, a]
                for e in range(starts[w], starts[w + 1]):
                    if neighbours[e] > v and touched[neighbours[e]] == 0:
                        waiting[grown, left] = neighbours[e]
                        left += 1
                touched[w] += 1
                for e in range(starts[w], starts[w + 1]):
                    touched[neighbours[e]] += 1
                waits[grown] = left
                size = grown
    return True


@njit
def factorise_sets(
    sets: Small, pairs: IntArray, cosines: FloatArray, columns: int, roots: FloatArray, spread: FloatArray
) -> None:
    """Invert the Cholesky factor of each set's matrix.

    Parameters
    ----------
    sets : int32 array (count, m)
    pairs : int array (any,)
        i * columns + j with i < j, ascending, of all pairs in a set.
    cosines : float array (any,)
        Those of these pairs.
    columns : int
    roots : float array (count, m (m + 1) / 2)
        Receives the inverse factors, row by row.
    spread : float array (count,)
        Receives the largest row sum of the inverse matrices, which no eigenvalue exceeds; infinite where that is more
        than :data:`MOST_SPREAD`.
    """
    m = sets.shape[1]
    C, R = np.zeros((m, m)), np.zeros((m, m))
    for row in range(sets.shape[0]):
        definite = True
        for a in range(m):
            for b in range(a):
                i, j = min(sets[row, a], sets[row, b]), max(sets[row, a], sets[row, b])
                rest = cosines[np.searchsorted(pairs, np.int64(i) * columns + j)]
                for c in range(b):
                    rest -= C[a, c] * C[b, c]
                C[a, b] = rest / C[b, b]
            rest = 1.0
            for c in range(a):
                rest -= C[a, c] * C[a, c]
            if not rest > 0.0:
                definite = False
                break
            C[a, a] = math.sqrt(rest)
        spread[row] = np.inf
        if not definite:
            roots[row] = 0.0
            continue
        at, largest = 0, 0.0
        for a in range(m):
            for b in range(a + 1):
                rest = 1.0 if a == b else 0.0
                for c in range(b, a):
                    rest -= C[a, c] * R[c, b]
                R[a, b] = rest / C[a, a]
                roots[row, at] = R[a, b]
                at += 1
        for a in range(m):
            total = 0.0
            for b in range(m):
                entry = 0.0
                for c in range(max(a, b), m):
                    entry += R[c, a] * R[c, b]
                total += abs(entry)
            largest = max(largest, total)
        if largest <= MOST_SPREAD:
            spread[row] = largest * (1.0 + ALLOWANCE)


@njit
def set_gains(sets: Small, roots: FloatArray, spread: FloatArray, u: FloatArray, gains: FloatArray) -> None:
    """Write u'C^-1 u of each set's matrix C; infinite where its spread is."""
    m = sets.shape[1]
    for row in range(sets.shape[0]):
        total, at = 0.0, 0
        for a in range(m):
            entry = 0.0
            for b in range(a + 1):
                entry += roots[row, at] * u[sets[row, b]]
                at += 1
            total += entry * entry
        gains[row] = total * (1.0 + ALLOWANCE) if spread[row] < np.inf else np.inf


@njit
def largest_gain(gains: FloatArray, likeness: FloatArray, factor: float) -> tuple[float, int]:
    """The largest gain / (1 - sqrt(factor * likeness)), infinite where the root is no less than 1, and whose it is."""
    best, which = -1.0, -1
    for row in range(gains.size):
        part = math.sqrt(factor * likeness[row])
        value = gains[row] / (1.0 - part) if part < 1.0 else np.inf
        if value > best:
            best, which = value, row
    return best, which


@njit
def sum_likeness(
    table: NDArray[np.float32], rows: IntArray, chosen: IntArray, sets: Small, roots: FloatArray, starts: IntArray,
    neighbours: Small, likeness: FloatArray,
) -> None:  # fmt: skip
    """Sum up the largest r'C^-1 r over columns that touch no column of a set, r being their cosines with the set.

    Parameters
    ----------
    table : float32 array (any, columns)
        Cosines of some columns with all.
    rows : int array (columns,)
        The row of the table each column has.
    chosen : int array (any,)
        The sets to evaluate, whose columns all have one.
    sets : int32 array (count, m)
    roots : float array (count, m (m + 1) / 2)
    starts, neighbours : int arrays
        As :func:`connected_sets` has them.
    likeness : float array (any, most)
        Receives, for each chosen set, the sums of the 1, 2, ... most largest.
    """
    m, columns, most = sets.shape[1], table.shape[1], likeness.shape[1]
    sums, entry = np.zeros(CHUNK, dtype=np.float32), np.zeros(CHUNK, dtype=np.float32)
    hidden, top = np.zeros(columns, dtype=np.bool_), np.zeros(most, dtype=np.float32)
    for at in range(chosen.size):
        row = chosen[at]
        for a in range(m):
            i = sets[row, a]
            hidden[i] = True
            for e in range(starts[i], starts[i + 1]):
                hidden[neighbours[e]] = True
        top[:] = 0.0
        for begin in range(0, columns, CHUNK):
            width, packed = min(CHUNK, columns - begin), 0
            for j in range(width):
                sums[j] = 0.0
            for a in range(m):
                for j in range(width):
                    entry[j] = 0.0
                for b in range(a + 1):
                    weight, line = np.float32(roots[row, packed]), table[rows[sets[row, b]], begin : begin + width]
                    packed += 1
                    for j in range(width):
                        entry[j] += weight * line[j]
                for j in range(width):
                    sums[j] += entry[j] * entry[j]
            for j in range(width):
                if sums[j] > top[0] and not hidden[begin + j]:
                    t = 1
                    while t < most and top[t] < sums[j]:
                        top[t - 1] = top[t]
                        t += 1
                    top[t - 1] = sums[j]
        total = 0.0
        for t in range(most):
            total += top[most - 1 - t]
            likeness[at, t] = total
        for a in range(m):
            i = sets[row, a]
            hidden[i] = False
            for e in range(starts[i], starts[i + 1]):
                hidden[neighbours[e]] = False
