"""Tests for positive semidefiniteness of all pairs and triples of columns, in single precision with cheap shortcuts.

Scaled to unit diagonal the matrix M of a count (kernels/counting.py) holds cosines c. A triple (l, i, j) is positive
semidefinite if and only if

    c_ij^2 + c_lj^2 - 2 c_il c_ij c_lj  <=  1 - c_il^2,      that is  (c_ij - c_il c_lj)^2 <= (1 - c_il^2)(1 - c_lj^2).

With b_i and b_l the largest |c_ij| and |c_lj| over all j < l, the first holds for all of them where b_i^2 + b_l^2 + 2
|c_il| b_i b_l <= 1 - c_il^2: one comparison a pair, and on data as they come three pairs out of four need no more
(measured: all that is left takes a third of the time of looking at every triple). For the other pairs the second is
tested, four rows at once.

Rounding. A cosine is off by 1.2e-7, so the sides of the first inequality by 2e-6 at most, of which :data:`SLACK` is a
multiple. Let A and B be the factors of the second as computed, which are smaller than the exact ones by 0.97 SLACK at
least, and x the computed difference, off by 4e-7 at most: from x^2 <= AB (1 + 2e-7) follows |exact x| <= sqrt(AB) +
6e-7 <= sqrt((A + 0.97 SLACK)(B + 0.97 SLACK)). What fails is tested once more in doubles, where the same holds of
:data:`FINE_SLACK` and 1e-8 of everything else, for the sake of columns that are nearly alike. What fails there as well
is not shown to be anything.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from exactsel._jit import in_numpy, njit
from exactsel.types import FloatArray, IntArray

LANES = 16
"""Numbers in single precision of one vector: rows are filled up to a multiple, so that no loop has a rest."""

SINGLE = np.float32
SLACK = SINGLE(1e-5)
FINE_SLACK = 1e-13
NONE, ONE, TWO = SINGLE(0.0), SINGLE(1.0), SINGLE(2.0)

OWN = SINGLE(0.999)
"""A column's cosine with itself as it is entered, where a row is tested beyond its own columns: less than 1, so that
(1, 1, i), which is singular, passes."""


class TripleWorkspace(NamedTuple):
    """Memory for one matrix after the other over at most d columns, in single precision."""

    cosines: Any
    """(d, d + LANES)"""
    scale: FloatArray
    """(d,) one over the root of the diagonal, in doubles; 0 for columns that are skipped."""
    reach: Any
    """(d,) b_i."""
    marked: Any
    """(d,) 1 where a pair needs a closer look, else 0."""
    left: Any
    """(d + LANES,) 1 - c_lj^2, less SLACK."""
    rows: IntArray
    """(d + 1,) the i that need a closer look."""


@njit
def triple_workspace(d: int) -> TripleWorkspace:
    """Memory for matrices over at most d columns."""
    return TripleWorkspace(
        np.zeros((d, d + LANES), dtype=SINGLE), np.empty(d), np.zeros(d, dtype=SINGLE), np.zeros(d, dtype=SINGLE),
        np.zeros(d + LANES, dtype=SINGLE), np.zeros(d + 1, dtype=np.int64),
    )  # fmt: skip


@njit
def triples_clear(M: FloatArray, m: int, workspace: TripleWorkspace) -> bool:
    """Whether all pairs and triples of the first m columns are shown to be positive semidefinite.

    M is the lower triangle; columns with an infinite diagonal entry are skipped.
    """
    _cosines(M, m, workspace)
    workspace.reach[:m] = NONE
    for l in range(m - 1):
        count = _closer_look(l, m, workspace)
        if count > 0 and not _rows_clear(M, l, count, workspace):
            return False
    return True


@njit
def _cosines(M: FloatArray, m: int, workspace: TripleWorkspace) -> None:
    """Fill in both triangles, and zeros up to the end of the last vector."""
    cosines, scale = workspace.cosines, workspace.scale
    for i in range(m):
        scale[i] = 1.0 / np.sqrt(M[i, i]) if M[i, i] < np.inf else 0.0
    for i in range(m):
        for j in range(i):
            cosines[i, j] = SINGLE(M[i, j] * (scale[i] * scale[j]))
        cosines[i, i] = OWN
        for j in range(m, m + LANES):
            cosines[i, j] = NONE
    for first in range(0, m, LANES):  # in blocks that stay in the nearest cache
        last = min(m, first + LANES)
        for j in range(last):
            for i in range(max(first, j + 1), last):
                cosines[j, i] = cosines[i, j]


@in_numpy(_cosines)
def _whole_cosines(M: FloatArray, m: int, workspace: TripleWorkspace) -> None:
    cosines, scale, diagonal = workspace.cosines, workspace.scale, M.diagonal()[:m]
    scale[:m] = np.where(diagonal < np.inf, 1.0 / np.sqrt(diagonal), 0.0)
    lower = np.tril(M[:m, :m] * (scale[:m, None] * scale[:m]), -1).astype(SINGLE)
    cosines[:m, :m] = lower + lower.T
    np.fill_diagonal(cosines[:m, :m], OWN)
    cosines[:m, m : m + LANES] = NONE


@njit(sums=True)
def _closer_look(l: int, m: int, workspace: TripleWorkspace) -> int:
    """Enter the i > l in ``workspace.rows`` whose triples with l and any j < l one comparison does not clear."""
    between, reach, marked = workspace.cosines[l, l + 1 : m], workspace.reach[l + 1 : m], workspace.marked
    own, total = workspace.reach[l], NONE
    for i in range(between.size):
        c, b = abs(between[i]), reach[i]
        mark = NONE if b * b + own * own + TWO * c * b * own <= ONE - SLACK - c * c else ONE
        marked[i] = mark
        reach[i] = c if c > b else b
        total += mark
    if total == NONE:
        return 0
    count = 0
    for i in range(between.size):
        workspace.rows[count] = l + 1 + i
        count += 1 if marked[i] > NONE else 0
    return count


@in_numpy(_closer_look)
def _whole_look(l: int, m: int, workspace: TripleWorkspace) -> int:
    between, reach, own = abs(workspace.cosines[l, l + 1 : m]), workspace.reach[l + 1 : m], workspace.reach[l]
    clear = reach * reach + own * own + TWO * between * reach * own <= ONE - SLACK - between * between
    reach[:] = np.where(between > reach, between, reach)
    entered = l + 1 + np.flatnonzero(~clear)
    workspace.rows[: entered.size] = entered
    return int(entered.size)


@njit
def _rows_clear(M: FloatArray, l: int, count: int, workspace: TripleWorkspace) -> bool:
    """Whether all triples of l, one of the rows entered and any j < l pass, and the pairs with l."""
    rows = workspace.rows
    wanted = (l + LANES - 1) // LANES * LANES
    distinct = _left(l, wanted, workspace)
    for at in range(0, count, 4):
        if distinct and _four_clear(l, wanted, at, count, workspace):
            continue
        for which in range(at, min(at + 4, count)):
            if not _row_clear(M, l, rows[which], workspace.scale):
                return False
    return True


@njit(sums=True)
def _left(l: int, wanted: int, workspace: TripleWorkspace) -> bool:
    """What l leaves of the other columns; whether it is something of each."""
    C, left, top, good = workspace.cosines, workspace.left, ONE - SLACK, NONE
    for j in range(wanted):
        left[j] = top - C[l, j] * C[l, j]
        good += ONE if left[j] > NONE else NONE
    return bool(good >= SINGLE(wanted))


@njit(sums=True)
def _four_clear(l: int, wanted: int, at: int, count: int, workspace: TripleWorkspace) -> bool:
    """Whether four of the rows entered pass, the last of them in place of those there are not."""
    C, rows, left, top = workspace.cosines, workspace.rows, workspace.left, ONE - SLACK
    p, q, s, t = rows[at], rows[min(at + 1, count - 1)], rows[min(at + 2, count - 1)], rows[min(at + 3, count - 1)]
    of_p, of_q, of_s, of_t = C[l, p], C[l, q], C[l, s], C[l, t]
    left_p, left_q = top - of_p * of_p, top - of_q * of_q
    left_s, left_t = top - of_s * of_s, top - of_t * of_t
    if not (left_p > NONE and left_q > NONE and left_s > NONE and left_t > NONE):
        return False
    good = NONE
    for j in range(wanted):
        a, b = C[p, j] - of_p * C[l, j], C[q, j] - of_q * C[l, j]
        c, e = C[s, j] - of_s * C[l, j], C[t, j] - of_t * C[l, j]
        passes = (a * a <= left_p * left[j]) & (b * b <= left_q * left[j])
        passes = passes & (c * c <= left_s * left[j]) & (e * e <= left_t * left[j])
        good += ONE if passes else NONE
    return bool(good >= SINGLE(wanted))


@in_numpy(_four_clear)
def _whole_four_clear(l: int, wanted: int, at: int, count: int, workspace: TripleWorkspace) -> bool:
    C, top = workspace.cosines, ONE - SLACK
    rows = workspace.rows[at : min(at + 4, count)]
    of_l = C[l, rows]
    left_rows = top - of_l * of_l
    off = C[rows, :wanted] - of_l[:, None] * C[l, :wanted]
    return bool((left_rows > NONE).all() and (off * off <= left_rows[:, None] * workspace.left[:wanted]).all())


@njit(sums=True)
def _row_clear(M: FloatArray, l: int, i: int, scale: FloatArray) -> bool:
    """The same of the row i > l, in doubles."""
    top, of_l, of_i, good = 1.0 - FINE_SLACK, scale[l], scale[i], 0.0
    between = M[i, l] * (of_l * of_i)
    left_i = top - between * between
    for j in range(l):
        c_l, c_i = M[l, j] * (of_l * scale[j]), M[i, j] * (of_i * scale[j])
        a, left_j = c_i - between * c_l, top - c_l * c_l
        good += 1.0 if (a * a <= left_i * left_j) & (left_j > 0.0) else 0.0
    return bool(left_i > 0.0 and good >= l)
