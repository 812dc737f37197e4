"""Counting, compiled: the answers that semidefinite.py and counting.py find in numpy, some twenty times as fast.

This file is optional: without numba, or with EXACTSEL_JIT=0, all is counted in numpy. Regions are closed one by one. S
is eliminated, as a Cholesky factor with rows R, on a stack; what the region before had eliminated too stays. Where
there are more than three places, pivots are pushed on the stack as if they were in S, so that in the end single
columns, pairs and triples are counted.

**Triples.** With M = Q - mu I - R'R in doubles, mu as in semidefinite.py, it is to be shown that M, as it stands, is
positive semidefinite on any three columns: then these and S have a factor whose error is what mu allows for. Scaled to
unit diagonal, the entries a, b, c of three columns must obey (c - ab)^2 <= (1 - a^2)(1 - b^2). They are stored in
single precision, off by e < 2^-24 (1 + 2^-24), for with larger ones than 1 nothing passes. So c - ab is off by 3 e +
e^2 and, rounded twice, by 3 * 2^-24; 1 - a^2 by 2 e + e^2 and 2 * 2^-24, which is less than TOP is short of one; its
root, the product of two of them and what is left of it by 4 * 2^-24 more. Together this is less than 11 * 2^-24, and
16 * 2^-24, ALLOWED, is demanded. Underflow is far below that. What fails, nan included, is counted in doubles as
counting.py does.
"""

from __future__ import annotations

import numpy as np
from numba import njit

TOP = np.float32(1 - 2**-21)

ALLOWED = np.float32(2**-20)

OWN = np.float32(1 - 2**-17)
"""Stands for the one on the diagonal. With it a row passes in its own column, which is no triple: 1 - a^2 - |OWN - a^2|
is 2^-17 but for roundings, unless a is so near one that the row is evaluated in doubles."""

STRIP, PIVOTS, BAND = 8, 8, 32
"""Numbers in single precision, and pivots, that are processed together, and rows meanwhile kept in the cache."""

compiled = njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})

inlined = njit(forceinline=True, error_model="numpy", fastmath={"contract"})
"""For what is too short to be called."""


@compiled
def _push(Q, diagonal, room, rows, stack, depth, j):  # type: ignore[no-untyped-def]
    """Eliminate column j after ``depth`` others; whether its pivot is positive."""
    row, of_j, pivot = rows[depth], Q[j], diagonal[j] - room
    for i in range(row.size):
        row[i] = of_j[i]
    for s in range(depth):
        above, factor = rows[s], rows[s, j]
        pivot -= factor * factor
        for i in range(row.size):
            row[i] -= factor * above[i]
    root = np.sqrt(pivot)
    for i in range(row.size):
        row[i] /= root
    stack[depth] = j
    return pivot > 0.0


@compiled
def _left(Q, rows, depth, i, j):  # type: ignore[no-untyped-def]
    """An entry of M off the diagonal."""
    value = Q[i, j]
    for s in range(depth):
        value -= rows[s, i] * rows[s, j]
    return value


@compiled
def _holds(Q, rows, depth, i, l, j, of_i, of_l, of_j):  # type: ignore[no-untyped-def]
    """Whether columns i, l and j pass in doubles, given their diagonal entries of M."""
    a, b = _left(Q, rows, depth, i, l), _left(Q, rows, depth, i, j)
    first, second, t = of_l - a * a / of_i, of_j - b * b / of_i, _left(Q, rows, depth, l, j) - a * b / of_i
    return first > 0.0 and second > 0.0 and t * t < first * second


@inlined
def _rows_hold(q, a, p, l, i):  # type: ignore[no-untyped-def]
    """Whether all triples of pivot i, rows l to l + 3 and the columns before a row pass in single precision.

    All columns up to the end of a strip are tested. Those from i on always fail, for there is nan: as many must fail,
    and no more. Columns between a row and i make triples that pass or fail with their own rows.
    """
    row_0, row_1, row_2, row_3 = q[l], q[l + 1], q[l + 2], q[l + 3]
    a_0, a_1, a_2, a_3 = a[l], a[l + 1], a[l + 2], a[l + 3]
    p_0, p_1, p_2, p_3 = p[l], p[l + 1], p[l + 2], p[l + 3]
    end, failing = (l + 4 + STRIP - 1) // STRIP * STRIP, np.int32(0)
    for j in range(end):
        passes = (
            (p_0 * p[j] - abs(row_0[j] - a_0 * a[j]) >= ALLOWED)
            & (p_1 * p[j] - abs(row_1[j] - a_1 * a[j]) >= ALLOWED)
            & (p_2 * p[j] - abs(row_2[j] - a_2 * a[j]) >= ALLOWED)
            & (p_3 * p[j] - abs(row_3[j] - a_3 * a[j]) >= ALLOWED)
        )
        failing = np.int32(failing + np.int32(not passes))
    return failing == max(0, end - i)


@compiled
def _triples_hold(Q, rows, depth, C, m, pivots, q, a, p):  # type: ignore[no-untyped-def]
    """Whether all triples of the first m of C pass; ``q`` holds M in single precision.

    Some pivots are taken together, so that rows are read from memory once for all of them.
    """
    a[:] = np.nan
    for low in range(0, m, PIVOTS):
        high = min(m, low + PIVOTS)
        for i in range(low, high):
            for j in range(i):
                a[i - low, j] = q[i, j]
                p[i - low, j] = np.sqrt(TOP - q[i, j] * q[i, j])
        for band in range(0, high, BAND):
            for i in range(low, high):
                a_i, p_i = a[i - low], p[i - low]
                for first in range(band, min(band + BAND, i), 4):
                    # The last four rows before i, where fewer are left: some are tested twice.
                    start = max(0, min(first, i - 4))
                    if start + 4 <= i and _rows_hold(q, a_i, p_i, start, i):
                        continue
                    for l in range(start, min(start + 4, i)):
                        for j in range(l):
                            sure = p_i[l] * p_i[j] - abs(q[l, j] - a_i[l] * a_i[j]) >= ALLOWED
                            if not sure and not _holds(
                                Q, rows, depth, C[i], C[l], C[j], pivots[i], pivots[l], pivots[j]
                            ):
                                return False
    return True


@compiled
def _few_hold(Q, diagonal, room, rows, depth, C, m, slots, q, space):  # type: ignore[no-untyped-def]
    """Whether all sets of ``slots`` (1, 2 or 3, and no more than m) of the first m of C pass."""
    pivots, line, unit, above = np.empty(m), np.empty(m), np.empty(m), np.empty((depth, m))
    for i in range(m):
        pivots[i] = diagonal[C[i]] - room
        for s in range(depth):
            above[s, i] = rows[s, C[i]]
            pivots[i] -= above[s, i] * above[s, i]
        if not pivots[i] > 0.0:
            return False
        unit[i] = 1.0 / np.sqrt(pivots[i])
    for i in range(m if slots > 1 else 0):
        of_i = Q[C[i]]
        for j in range(i):
            line[j] = of_i[C[j]]
        for s in range(depth):
            row, factor = above[s], above[s, i]
            for j in range(i):
                line[j] -= factor * row[j]
        if slots == 2:
            for j in range(i):
                if not line[j] * line[j] < pivots[i] * pivots[j]:
                    return False
            continue
        q[i, i] = OWN
        for j in range(i):
            q[i, j] = q[j, i] = np.float32(line[j] * unit[i] * unit[j])
    return slots < 3 or _triples_hold(Q, rows, depth, C, m, pivots, q, space[0], space[1])


@compiled
def _all_hold(Q, diagonal, room, rows, stack, depth, C, m, slots, q, space):  # type: ignore[no-untyped-def]
    """Whether all sets of ``slots`` of the first m of C pass, ``depth`` columns being eliminated."""
    if slots == m:
        for j in C[:m]:
            if not _push(Q, diagonal, room, rows, stack, depth, j):
                return False
            depth += 1
        return True
    if slots <= 3:
        return _few_hold(Q, diagonal, room, rows, depth, C, m, slots, q, space)
    # Pivots descend; each has as many columns before it as there are places left.
    pivots, level = np.full(slots - 3, m), 0
    while level >= 0:
        pivots[level] -= 1
        if pivots[level] < slots - level - 1:
            level -= 1
            continue
        if not _push(Q, diagonal, room, rows, stack, depth + level, C[pivots[level]]):
            return False
        if level == slots - 4:
            if not _few_hold(Q, diagonal, room, rows, depth + level + 1, C, pivots[level], 3, q, space):
                return False
        else:
            level += 1
            pivots[level] = pivots[level - 1]
    return True


@compiled
def count(Q, diagonal, rooms, alike, states, k, passed):  # type: ignore[no-untyped-def]
    """Write to ``passed`` (B,) which regions hold no model below the level.

    ``states`` (B, d) has columns in the order of Q, ``rooms`` (k + 1,) is mu for sets of each size. Of columns with
    the same number in ``alike`` (d,) one is taken, and none where that is -1 (see semidefinite.py).
    """
    d = states.shape[1]
    seen, chosen, columns = np.full(d, -1), np.full(d + 1, -1), np.empty((2, d), np.int64)
    rows, stack, depth, room = np.empty((k, d + 1)), np.empty(k, np.int64), 0, np.nan
    widest = 0
    for b in range(len(states)):
        widest = max(widest, np.sum(states[b] == 1))
    width = (widest + STRIP - 1) // STRIP * STRIP
    q, space = np.full((width, width), np.float32(np.nan)), np.empty((2, PIVOTS, width), np.float32)
    for b in range(len(states)):
        state = states[b]
        passed[b] = False
        slots, sizes = k - np.sum(state == 2), [0, 0]
        for kind in range(2 if slots > 0 else 1):
            for j in range(d):
                if state[j] == 2 - kind and alike[j] >= 0 and seen[alike[j]] < b:
                    seen[alike[j]] = b
                    columns[kind, sizes[kind]] = j
                    sizes[kind] += 1
                    chosen[j] = 2 * b + kind
        s, m = sizes
        slots = max(0, min(slots, m))
        if s + slots > k:
            continue
        if rooms[s + slots] != room:
            room, depth = rooms[s + slots], 0
        prefix = 0
        while prefix < depth and chosen[stack[prefix]] == 2 * b:
            chosen[stack[prefix]] = -1
            prefix += 1
        depth, sound = prefix, True
        for j in columns[0, :s]:
            if sound and chosen[j] == 2 * b:
                sound = _push(Q, diagonal, room, rows, stack, depth, j)
                depth += sound
        passed[b] = sound and _all_hold(Q, diagonal, room, rows, stack, depth, columns[1], m, slots, q, space)
