"""Close a region by counting: no model on S and up to four columns of C is below a level (quadratic loss).

With H = A'A + lam I, b = A'y, c = ||y||^2/2, a level below c and T = 2 (c - level),

    P_S >= level   if and only if   Q_SS is positive semidefinite,   Q = H - b b'/T

(the Schur complement of [[T, b'], [b, H]]). So a region (S, C, r) holds nothing below the level exactly where every
principal submatrix of the Schur complement of Q on C, S eliminated, of r rows is positive semidefinite. For r <= 3
these are numbers to be compared, one for each set of r columns; for r = 4 one column more is eliminated first.

Rounding. What is eliminated is Q - margin * diag(H). Let every entry of the Q in hand be off by at most e sqrt(H_ii
H_jj), and every entry by as much as gamma_{m+2} sqrt(H_ii H_jj) after the elimination of m columns (Demmel 1989). Where
margin >= m (e + gamma_{m+2}) and all m pivots come out positive, the exact Q is positive semidefinite on these columns,
for any order and any summation. What is found not to be is only suspected.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exactsel._jit import in_numpy, njit
from exactsel.kernels.triples import TripleWorkspace, triple_workspace, triples_clear
from exactsel.rounding import UNIT
from exactsel.types import BoolArray, FloatArray, IntArray

MOST_SUSPECTS = 32
"""Sets of columns that may be suspected in one count; with more it is broken off."""

MOST_PLACES = 4
"""Columns a count chooses at most."""

USELESS = 1e-3
"""A margin as large as this proves nothing."""


class SubtreeData(NamedTuple):
    """What walks know of the problem; d columns."""

    H: FloatArray
    """A'A + lam I."""
    b: FloatArray
    """A'y."""
    constant: float
    """||y||^2/2."""
    roundings: int
    """As in :class:`exactsel.kernels.forms.GramData`."""
    lengths: FloatArray
    """The roots of the diagonal of H, slightly enlarged."""
    curvature: FloatArray
    """The D of formula (3); zeros where there is none."""
    floor: FloatArray
    """Some D > 0 with H - diag(D) positive semidefinite; zeros where none is known."""
    twin: IntArray
    """The first column that brings the same models (a copy, or minus it, and lam = 0); -1 for one of zeros."""
    low: FloatArray
    """Where only bounded models are spoken of (kernels/bounded.py) what H is short of A'A; (0, 0) elsewhere."""
    low_b: FloatArray
    low_constant: float
    """What b and ``constant`` are short of; for bounded models."""
    reach: FloatArray
    """The largest coefficient of a bounded model; 0 for columns of zeros."""


class CountWorkspace(NamedTuple):
    """Memory for one count after the other over at most d columns."""

    rows: FloatArray
    """(d, d) the eliminated rows, the factor transposed."""
    M: FloatArray
    """(d, d) the Schur complement: the lower triangle."""
    V: FloatArray
    """(d, d) the same with one column more eliminated."""
    u: FloatArray
    w: FloatArray
    scaled: FloatArray
    """(d,) b / sqrt(T)."""
    order: IntArray
    """(d,) the columns counted, those of S first."""
    seen: BoolArray
    """(d,) False between counts."""
    undecided: IntArray
    """(MOST_SUSPECTS, MOST_PLACES) columns, padded with -1."""
    chosen: IntArray
    """(d,) a set of columns."""
    distances: FloatArray
    """(d,) of columns from the span of others, in their lengths, for bounded models."""
    stands_in: BoolArray
    """(d,) columns of C that others were removed for, for bounded models."""
    long: FloatArray
    """(6, d)"""
    triples: TripleWorkspace


@njit
def count_workspace(d: int) -> CountWorkspace:
    """Memory for counts over at most d columns."""
    size = max(1, d)
    return CountWorkspace(
        np.empty((size, size)), np.empty((size, size)), np.empty((size, size)), np.empty(size), np.empty(size),
        np.empty(size), np.empty(size, dtype=np.int64), np.zeros(size, dtype=np.bool_),
        np.full((MOST_SUSPECTS, MOST_PLACES), -1, dtype=np.int64), np.empty(size, dtype=np.int64),
        np.zeros(size), np.zeros(size, dtype=np.bool_), np.zeros((6, size)), triple_workspace(size),
    )  # fmt: skip


@njit
def sets_of(slots: int, columns: int) -> float:
    """Ways to choose exactly so many of the columns, as a float."""
    total = 1.0
    for i in range(slots):
        total = total * (columns - i) / (i + 1)
    return max(total, 0.0)


@njit
def margin_for(data: SubtreeData, threshold: float, size: int) -> float:
    """The share of diag(H) to be taken off where sets of ``size`` columns are eliminated; inf where that is hopeless.

    b_i b_j / T is at most sqrt(H_ii H_jj) where pivots are positive, and with K = c / (c - level) the errors of H, b
    and T make at most gamma (1 + 2 sqrt(K) + K) of it.
    """
    if not data.constant - threshold > 0.0:
        return np.inf
    root = np.sqrt(max(1.0, data.constant / (data.constant - threshold)))
    entry = (data.roundings + 16) * UNIT * (1.0 + root) ** 2
    margin = 1.05 * size * (entry + (size + 16) * UNIT)
    return margin if margin <= USELESS else np.inf


@njit
def distinct(
    data: SubtreeData, columns: IntArray, fixed: int, m: int, skip: int, workspace: CountWorkspace
) -> tuple[int, int]:
    """Write the columns that count to ``workspace.order``: how many of the first ``fixed``, and how many in all.

    The one at position ``skip`` is skipped, and so is every twin of a column that came before.
    """
    at, included = 0, 0
    for i in range(m):
        if i == fixed:
            included = at
        twin = data.twin[columns[i]]
        if i != skip and twin >= 0 and not workspace.seen[twin]:
            workspace.seen[twin] = True
            workspace.order[at] = columns[i]
            at += 1
    if fixed == m:
        included = at
    for i in range(at):
        workspace.seen[data.twin[workspace.order[i]]] = False
    return included, at


@njit(sums=True)
def eliminate(
    data: SubtreeData, included: int, m: int, threshold: float, margin: float, workspace: CountWorkspace
) -> bool:
    """Eliminate the first ``included`` of the m columns in ``workspace.order``; whether all pivots are positive.

    ``workspace.M`` receives the Schur complement of Q - margin * diag(H) on the others.
    """
    rows, M, scaled, order = workspace.rows, workspace.M, workspace.scaled, workspace.order
    if not margin < np.inf:
        return False
    unit = 1.0 / np.sqrt(2.0 * (data.constant - threshold))
    for i in range(m):
        scaled[i] = data.b[order[i]] * unit
    for q in range(included):
        row, of_q, b_q = rows[q], data.H[order[q]], scaled[q]
        for i in range(q, m):
            row[i] = of_q[order[i]] - b_q * scaled[i]
        for p in range(q):
            above, factor = rows[p], rows[p, q]
            for i in range(q, m):
                row[i] -= factor * above[i]
        pivot = row[q] - margin * of_q[order[q]]
        if not pivot > 0.0:
            return False
        root = 1.0 / np.sqrt(pivot)
        row[q] = pivot * root
        for i in range(q + 1, m):
            row[i] *= root
    for i in range(included, m):
        row, of_i, b_i = M[i - included], data.H[order[i]], scaled[i]
        for j in range(included, i + 1):
            row[j - included] = of_i[order[j]] - b_i * scaled[j]
        for q in range(included):
            factor, above = rows[q, i], rows[q, included:]
            for j in range(i + 1 - included):
                row[j] -= factor * above[j]
        row[i - included] -= margin * of_i[order[i]]
    return True


@in_numpy(eliminate)
def _eliminate_whole(
    data: SubtreeData, included: int, m: int, threshold: float, margin: float, workspace: CountWorkspace
) -> bool:
    if not margin < np.inf:
        return False
    order, rows, scaled = workspace.order[:m], workspace.rows, workspace.scaled
    scaled[:m] = data.b[order] / np.sqrt(2.0 * (data.constant - threshold))
    for q in range(included):
        of_q = data.H[order[q], order[q:]]
        row = of_q - scaled[q] * scaled[q:m] - rows[:q, q] @ rows[:q, q:m]
        pivot = row[0] - margin * of_q[0]
        if not pivot > 0.0:
            return False
        row[0] = pivot
        rows[q, q:m] = row / np.sqrt(pivot)
    rest, left = slice(included, m), m - included
    of_rest = data.H[np.ix_(order[rest], order[rest])]
    above = rows[:included, rest]
    schur = of_rest - np.outer(scaled[rest], scaled[rest]) - above.T @ above
    schur[np.diag_indices(left)] -= margin * of_rest.diagonal()
    lower = np.tril_indices(left)
    workspace.M[:left, :left][lower] = schur[lower]
    return True


@njit
def _suspect(workspace: CountWorkspace, found: int, a: int, b: int, c: int, e: int) -> int:
    """Enter a set of positions (-1: none); one more than there is room for is counted, but not entered."""
    if found < MOST_SUSPECTS:
        line = workspace.undecided[found]
        line[0], line[1], line[2], line[3] = a, b, c, e
    return found + 1


@njit
def count_one(M: FloatArray, m: int, workspace: CountWorkspace, also: int, found: int) -> int:
    """Enter every column whose diagonal entry is not positive, and take it out of the counts that follow."""
    for i in range(m):
        if not M[i, i] > 0.0:
            found = _suspect(workspace, found, i, also, -1, -1)
            M[i, i] = np.inf
    return found


@njit
def count_two(M: FloatArray, m: int, workspace: CountWorkspace, found: int) -> int:
    """Enter every pair whose minor is negative."""
    for i in range(1, m):
        row, diagonal = M[i], M[i, i]
        if diagonal < np.inf:
            for j in range(i):
                if not row[j] * row[j] <= diagonal * M[j, j] and found <= MOST_SUSPECTS:
                    found = _suspect(workspace, found, i, j, -1, -1)
    return found


@njit(sums=True)
def _bad_rows(M: FloatArray, first: int, u: FloatArray, w: FloatArray) -> int:
    """How many comparisons fail in four rows from ``first`` on, left of it; the loop that counting consists of."""
    row_a, row_b, row_c, row_d = M[first], M[first + 1], M[first + 2], M[first + 3]
    u_a, u_b, u_c, u_d = u[first], u[first + 1], u[first + 2], u[first + 3]
    w_a, w_b, w_c, w_d = w[first], w[first + 1], w[first + 2], w[first + 3]
    bad = 0
    for j in range(first):
        a, b = row_a[j] - u_a * u[j], row_b[j] - u_b * u[j]
        c, e = row_c[j] - u_c * u[j], row_d[j] - u_d * u[j]
        bad += (a * a > w_a * w[j]) | (b * b > w_b * w[j]) | (c * c > w_c * w[j]) | (e * e > w_d * w[j])
    return bad


@njit
def _enter_row(M: FloatArray, pivot: int, l: int, workspace: CountWorkspace, also: int, found: int) -> int:
    """Enter the triples of one pivot and one row."""
    u, w = workspace.u, workspace.w
    for j in range(l):
        left = M[l, j] - u[l] * u[j]
        if left * left > w[l] * w[j] and found <= MOST_SUSPECTS:
            found = _suspect(workspace, found, pivot, l, j, also)
    return found


@njit
def count_three(M: FloatArray, m: int, workspace: CountWorkspace, also: int, found: int) -> int:
    """Enter every pair and triple that is not positive definite, each with the column ``also`` (-1: none).

    With a pivot i and u_l = M_il / sqrt(M_ii), w_l = M_ll - u_l^2: (M_lj - u_l u_j)^2 <= w_l w_j for all j < l < i.
    """
    if triples_clear(M, m, workspace.triples):
        return found
    u, w = workspace.u, workspace.w
    for i in range(1, m):
        if not M[i, i] < np.inf or found > MOST_SUSPECTS:
            continue
        unit = 1.0 / np.sqrt(M[i, i])
        for l in range(i):
            u[l] = M[i, l] * unit
            w[l] = M[l, l] - u[l] * u[l]
            if not w[l] > 0.0:
                found = _suspect(workspace, found, i, l, also, -1)
                w[l] = np.inf
        l = 1
        while l + 3 < i:
            bad = _bad_rows(M, l, u, w)
            for p in range(l + 1, l + 4):
                for q in range(l, p):
                    left = M[p, q] - u[p] * u[q]
                    bad += left * left > w[p] * w[q]
            if bad:
                for p in range(l, l + 4):
                    found = _enter_row(M, i, p, workspace, also, found)
            l += 4
        while l < i:
            found = _enter_row(M, i, l, workspace, also, found)
            l += 1
    return found


@njit(sums=True)
def _without(M: FloatArray, i: int, V: FloatArray) -> None:
    """The Schur complement on the columns before i, that one eliminated."""
    inverse = 1.0 / M[i, i]
    for l in range(i):
        factor, row, above, into = M[i, l] * inverse, M[l], M[i], V[l]
        for j in range(l + 1):
            into[j] = row[j] - factor * above[j]


@njit
def count(m: int, slots: int, workspace: CountWorkspace) -> int:
    """Enter the suspects among the sets of ``slots`` (<= m) of the m columns of ``workspace.M``, by position.

    What is entered may be part of such a set, which is then suspected for any other columns in it. How many were
    entered; where more than :data:`MOST_SUSPECTS`, the count was broken off.
    """
    M, V = workspace.M, workspace.V
    workspace.undecided[:] = -1
    found = count_one(M, m, workspace, -1, 0)
    if slots == 2:
        return int(count_two(M, m, workspace, found))
    if slots == 3:
        return int(count_three(M, m, workspace, -1, found))
    if slots == 4:
        for i in range(3, m):
            if M[i, i] < np.inf and found <= MOST_SUSPECTS:
                _without(M, i, V)
                found = count_one(V, i, workspace, i, found)
                found = count_three(V, i, workspace, i, found)
    return int(found)
