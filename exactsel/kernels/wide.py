"""Count all triples of thousands of columns: which 3 x 3 principal submatrices may fail to be positive semidefinite.

For a level below the empty model's objective c let T = 2 (c - level) and Q = A'A + lam I - A'y y'A / T. By the Schur
complement no model on the columns S is below the level if and only if Q_SS is positive semidefinite; and after an
elimination (Cholesky) of S the same holds of what is left of Q. So a region with three places is closed where every
3 x 3 submatrix of M, what is left, is. Pivots i are taken one by one, against all l and j with j < l < i.

**Blocks.** Scaled to unit diagonal the entries of M are cosines, and a matrix of three of them is positive semidefinite
if and only if their angles obey the triangle inequalities and add up to no more than 2 pi (write 1 + 2abc - a^2 - b^2 -
c^2 >= 0 as (c - ab)^2 <= (1 - a^2)(1 - b^2)). Angles need not be known exactly: columns are ordered so that neighbours
are alike, and where the smallest and largest angle of a pivot with eight columns, of it with eight others, and of these
with each other obey the inequalities, 64 triples are closed at once. As a rule that is nine blocks of ten; the others
are tested triple by triple (kernels/lanes.py).

**Rounding.** M is computed in doubles with mu diag(H) taken off, mu being above all errors on the way
(enumeration/minors_matrix.py), and from there on it is taken for exact. It is stored in single precision, eps = 2^-24
and a few
2^-53 off, less than ENTRY. Angles come from entries moved outwards by ENTRY, are widened by ANGLE, 2e-6, and stored and
added in single precision: three numbers up to 2 pi, with fewer than ten roundings of at most 4e-7 / 2, together below
the 6e-6 they are widened by. For a triple, c - ab is off by ENTRY (1 + |a| + |b|) + ENTRY^2 and two roundings, below
4.5e-7; 1 - a^2 by 2 ENTRY and two roundings, below 3.3e-7, for which TOP gives up 4.7e-7. Comparing squares costs the
root another 1.5e-7, and adding ALLOWANCE is itself rounded by 1.2e-7: together less than ALLOWANCE. What fails is only
a suspect: it is eliminated again in doubles, on entries computed anew from the columns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exactsel._jit import atomic_add, njit, prange
from exactsel.kernels.lanes import LANES, opens, tile_exceeds
from exactsel.kernels.linalg import dot
from exactsel.types import BoolArray, FloatArray, IntArray

SingleArray = NDArray[np.float32]

ENTRY = 1e-7
"""How much an entry in single precision is off at most."""

ANGLE = 2e-6
"""By how much every angle is widened."""

TURN = np.float32(2.0 * np.pi)

TOP = np.float32(1.0 - 2.0**-21)
"""What 1 - a^2 is computed from, so that it is too small if anything."""

ALLOWANCE = np.float32(1e-6)
"""By how much the size of c - ab is taken to be larger than computed."""

OWN = np.float32(0.999)
"""A column's cosine with itself as it is entered: less than 1, so that (l, l, i), which is singular, passes."""

ALIKE = np.float32(1.0 - 2.0**-21)
"""Entries of this size or more are those of a pair that may fail by itself."""

TOGETHER = 8
"""Blocks of pivots that are counted together, so that a tile that comes from far away serves all of their rows."""

NEAR = 128
"""Blocks that are processed in one go, so that the rows' own tiles stay in the cache."""

NOT_COUNTED, OVERFLOW = -2, -1
"""In the place of a block's number of suspects: it was not counted, or there are more than can be noted."""


class Columns(NamedTuple):
    """What is left of Q after some columns have been eliminated, on m others, to be computed entry by entry."""

    X: FloatArray
    """(m, n) the columns, one a row."""
    b: FloatArray
    """(m,) their products with the target."""
    eliminated: FloatArray
    """(s, m) rows of the Cholesky factor of those eliminated."""
    lam: float
    T: float
    """Twice the empty model's objective less the level."""
    mu: float
    """The part of the diagonal of H that is taken off for rounding."""


@njit
def _entry(columns: Columns, i: int, j: int) -> float:
    value: float = dot(columns.X[i], columns.X[j])
    if i == j:
        value = (value + columns.lam) * (1.0 - columns.mu)
    value -= columns.b[i] * columns.b[j] / columns.T
    for s in range(columns.eliminated.shape[0]):
        value -= columns.eliminated[s, i] * columns.eliminated[s, j]
    return value


@njit
def holds(columns: Columns, i: int, l: int, j: int) -> bool:
    """Whether elimination in doubles shows the submatrix of three columns, or of two where j < 0, to be definite."""
    first, below = _entry(columns, i, i), _entry(columns, l, i)
    if not first > 0.0:
        return False
    second = _entry(columns, l, l) - below * (below / first)
    if not second > 0.0:
        return False
    if j < 0:
        return True
    other = _entry(columns, j, i)
    mixed = _entry(columns, j, l) - below * (other / first)
    return bool(_entry(columns, j, j) - other * (other / first) - mixed * (mixed / second) > 0.0)


@njit
def _angles(smallest: float, largest: float) -> tuple[float, float]:
    """The angles of entries between these two, widened; a range that closes nothing where a pair may fail by itself."""
    if smallest > largest:
        return 10.0, -10.0  # no entries at all: everything about them is true
    if smallest < -ALIKE or largest > ALIKE:
        return -10.0, 10.0
    return np.arccos(min(1.0, largest + ENTRY)) - ANGLE, np.arccos(max(-1.0, smallest - ENTRY)) + ANGLE


@njit(inline=True)
def tile_of(block: int, other: int) -> int:
    """Where the tile of two blocks, other <= block, is."""
    return block * (block + 1) // 2 + other


@njit
def complete_tile(tile: SingleArray) -> None:
    """Enter what is above the diagonal of a tile on the diagonal, and OWN there."""
    for y in range(LANES):
        tile[y, y] = OWN
        for x in range(y):
            tile[x, y] = tile[y, x]


@njit(parallel=True)
def tile_angles(q: SingleArray, blocks: int, low: SingleArray, high: SingleArray) -> None:
    """Write the smallest and the largest angle of every block of rows with every one before it, itself included."""
    for block in prange(blocks):
        for other in range(block + 1):
            smallest, largest = np.float32(2.0), np.float32(-2.0)
            tile = q[tile_of(block, other)]
            for y in range(LANES):
                for x in range(LANES if other < block else y):
                    smallest, largest = min(smallest, tile[y, x]), max(largest, tile[y, x])
            low[block, other], high[block, other] = _angles(smallest, largest)


@njit
def _row_angles(q: SingleArray, i: int, low: SingleArray, high: SingleArray) -> None:
    """Write the smallest and the largest angle of row ``i`` with every block before it."""
    own = i // LANES
    for block in range(own + 1):
        smallest, largest = np.float32(2.0), np.float32(-2.0)
        row = q[tile_of(own, block), i % LANES]
        for x in range(LANES if block < own else i % LANES):
            smallest, largest = min(smallest, row[x]), max(largest, row[x])
        low[block], high[block] = _angles(smallest, largest)


@njit
def _open_tiles(
    low: SingleArray, high: SingleArray, low_rows: SingleArray, high_rows: SingleArray, row: int, l: int, first: int,
    last: int, opened: IntArray,
) -> int:  # fmt: skip
    """Write down the blocks from ``first`` to before ``last`` of which triples with a row and block ``l`` are open."""
    count = 0
    for at in range(first, last, LANES):
        flags = opens(low_rows, high_rows, row, low, high, l, at, TURN)
        if last < at + LANES:
            flags &= (1 << (last - at)) - 1
        if flags != 0:
            for lane in range(LANES):  # without a jump
                opened[count] = at + lane
                count += (flags >> lane) & 1
    return count


@njit(inline=True)
def _cosine(q: SingleArray, i: int, j: int) -> float:
    """The entry of row ``i`` and column ``j`` < i."""
    entry: float = q[tile_of(i // LANES, j // LANES), i % LANES, j % LANES]
    return entry


@njit
def triple_exceeds(q: SingleArray, i: int, l: int, j: int) -> bool:
    """Whether three columns, j < l < i, are suspects in single precision."""
    a, u = _cosine(q, i, l), _cosine(q, i, j)
    off = abs(_cosine(q, l, j) - a * u) + ALLOWANCE
    zero = np.float32(0.0)
    return bool(off * off > max(TOP - a * a, zero) * max(TOP - u * u, zero))


@njit
def tile_suspect(q: SingleArray, i: int, l: int, j: int) -> bool:
    """Whether one of the triples of ``i`` with a column of block ``l`` and one of block ``j`` <= l may be a suspect.

    It is so, and exact, where j < l < the block of ``i``. A tile on the diagonal holds triples twice, and some with a
    column that is in twice, which passes as its cosine with itself is OWN.
    """
    own = i // LANES
    return bool(tile_exceeds(q, i % LANES, tile_of(own, l), tile_of(own, j), tile_of(l, j), TOP, ALLOWANCE))


@njit
def _note(undecided: IntArray, found: int, i: int, l: int, j: int) -> int:
    if found == undecided.shape[0]:
        return OVERFLOW
    undecided[found, 0], undecided[found, 1], undecided[found, 2] = i, l, j
    return found + 1


@njit
def _look_into_tile(
    q: SingleArray, columns: Columns, size: int, i: int, row: int, column: int, undecided: IntArray, found: int
) -> int:
    """Note the triples of the pivot with two blocks that doubles do not clear either; how many are noted then."""
    for l in range(LANES * row, min(i, LANES * row + LANES)):
        for j in range(LANES * column, min(l, LANES * column + LANES)):
            if l < size and triple_exceeds(q, i, l, j) and not holds(columns, i, l, j):
                found = _note(undecided, found, i, l, j)
                if found == OVERFLOW:
                    return OVERFLOW
    return found


@njit
def _count_pairs(
    q: SingleArray, columns: Columns, size: int, own: int, undecided: IntArray, found: int
) -> int:  # fmt: skip
    """Note the suspects among the pairs whose last column is in the block ``own``."""
    for i in range(LANES * own, min(size, LANES * own + LANES)):
        for l in range(i):
            if abs(_cosine(q, i, l)) >= ALIKE and not holds(columns, i, l, -1):
                found = _note(undecided, found, i, l, -1)
                if found == OVERFLOW:
                    return OVERFLOW
    return found


@njit
def _count_triples(
    q: SingleArray, low: SingleArray, high: SingleArray, columns: Columns, size: int, first: int, blocks: IntArray,
    low_rows: SingleArray, high_rows: SingleArray, opened: IntArray, undecided: IntArray, found: IntArray,
) -> None:  # fmt: skip
    """Note the suspects among the triples whose last column is in one of the ``blocks``, counted from ``first`` on.

    All their rows go over one block ``l`` before the next, so that its tiles are in the cache.
    """
    rows = 0
    for block in blocks:
        for i in range(LANES * (first + block), min(size, LANES * (first + block + 1))):
            _row_angles(q, i, low_rows[rows], high_rows[rows])
            rows += 1
    top = first + blocks[-1] + 1
    for begin in range(0, top, NEAR):
        for l in range(begin, top):
            end, row = min(begin + NEAR, l + 1), 0
            for block in blocks:
                for i in range(LANES * (first + block), min(size, LANES * (first + block + 1))):
                    if l <= first + block and found[block] != OVERFLOW:
                        for at in range(_open_tiles(low, high, low_rows, high_rows, row, l, begin, end, opened)):
                            if found[block] != OVERFLOW and tile_suspect(q, i, l, opened[at]):
                                found[block] = _look_into_tile(
                                    q, columns, size, i, l, opened[at], undecided[block], found[block]
                                )
                    row += 1


@njit(parallel=True)
def count_blocks(
    q: SingleArray, low: SingleArray, high: SingleArray, columns: Columns, size: int, slots: int, first: int,
    undecided: IntArray, found: IntArray, stop: BoolArray, workers: int, counter: IntArray,
) -> None:  # fmt: skip
    """Count all pairs and, with three places, triples whose last column is in one of the blocks from ``first`` on.

    Parameters
    ----------
    q : float32 array (B (B + 1) / 2, LANES, LANES)
        What is left of Q, scaled to unit diagonal, tile by tile (:func:`tile_of`) on and below the diagonal;
        those on it are complete (:func:`complete_tile`). A column that is zero takes part in nothing.
    low, high : float32 arrays (B', B'), B' a multiple of LANES
        See :func:`tile_angles`.
    columns : Columns
    size : int
        The columns there are; what is behind them up to the end of their block must be zero.
    slots : int
        2 or 3.
    suspects : int64 array (blocks, room, 3)
        For each block counted the columns, descending, of what could not be shown to be definite; -1 for no third one.
    found : int64 array (blocks,)
        How many, or OVERFLOW; it comes as NOT_COUNTED, and stays so where the count was stopped.
    counter : int64 array (1,)
        A zero. ``workers`` share the blocks by it.
    """
    for _ in prange(workers):
        low_rows = np.zeros((LANES * TOGETHER, low.shape[0]), dtype=np.float32)
        high_rows = np.zeros((LANES * TOGETHER, low.shape[0]), dtype=np.float32)
        opened = np.empty(low.shape[0] + LANES, dtype=np.int64)
        while not stop[0]:
            last = found.size - TOGETHER * atomic_add(counter, 0, 1)
            if last <= 0:
                break
            some = np.arange(max(0, last - TOGETHER), last)
            noted = np.zeros(found.size, dtype=np.int64)
            for block in some:
                noted[block] = _count_pairs(q, columns, size, first + block, undecided[block], 0)
            if slots == 3:
                _count_triples(q, low, high, columns, size, first, some, low_rows, high_rows, opened, undecided, noted)
            for block in some:
                found[block] = noted[block]


@njit(parallel=True)
def eliminate(base: FloatArray, pivot: int, u: FloatArray, scale: FloatArray, q: SingleArray) -> None:
    """Eliminate one column from those before it, scaled and in single precision.

    ``base`` (m, m) is the matrix in doubles below its diagonal; ``u`` (pivot,) the row of the Cholesky factor and
    ``scale`` (pivot,) one over the root of the diagonal that is left, zero for columns that are to take part in
    nothing. What is behind the columns up to the end of their block is set to zero.
    """
    blocks = (pivot + LANES - 1) // LANES
    for block in prange(blocks):
        for y in range(LANES):
            i = LANES * block + y
            if i >= pivot:
                for other in range(block + 1):
                    q[tile_of(block, other), y] = 0.0
                continue
            a, s = u[i], scale[i]
            for j in range(i):
                q[tile_of(block, j // LANES), y, j % LANES] = (base[i, j] - a * u[j]) * (s * scale[j])
        complete_tile(q[tile_of(block, block)])
