"""Close a region by counting over groups: nothing on S and up to three groups of C is below a level (quadratic loss).

As kernels/counting.py has it, the region holds nothing below the level exactly where the Schur complement M of Q on C,
S eliminated, is positive semidefinite on every union of r groups. Blocks are made orthonormal first: with M_gg = L_g
L_g' and X_gh = L_g^-1 M_gh L_h^-T that is said of the matrix with blocks I and X_gh. Then

* r = 2: I - X'X is semidefinite, which abs(X)_F <= 1 shows at once;
* r = 3: g is eliminated; of h and l there are left D_h = I - X_gh'X_gh, D_l and V = X_hl - X_gh'X_gl, a pair again.
  With f the Frobenius norms, (f_hl + f_gh f_gl)^2 <= (1 - f_gh^2)(1 - f_gl^2) shows it at once, for the form is at
  least that of the matrix with 1 on the diagonal and -f elsewhere; so does, with R_h R_h' = D_h, abs(R_h^-1 V)_F^2 <=
  1 - f_gl^2.

Rounding. What is eliminated is Q - margin * diag(H), see kernels/counting.py. The computed X fulfils L_g X L_h' = M_gh
+ E, abs(E_ij) at most 2 gamma_b sqrt(b) sqrt(M_ii M_jj) for groups of b columns (backward errors of two triangular
solves; X, as a part of a semidefinite matrix with unit diagonal blocks, has no norm above one), which goes into the
margin (:func:`group_margin`). From there on the doubles X are taken as they are, and every elimination among them has
an allowance of its own (:func:`spare`): a matrix of m columns whose entries are off by e has no eigenvalue off by more
than m e.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exactsel._jit import njit
from exactsel.kernels.counting import MOST_SUSPECTS, USELESS, CountWorkspace, SubtreeData, count_workspace, margin_for
from exactsel.rounding import UNIT
from exactsel.types import BoolArray, FloatArray, IntArray

MOST_GROUPS = 3
"""Groups a count chooses at most."""


class GroupWorkspace(NamedTuple):
    """Memory for one count after the other over at most G groups of d columns, the largest of b."""

    counts: CountWorkspace
    """Its M is what is counted, and gets the factors L_g on the diagonal; its V gets the blocks X below."""
    first: IntArray
    """(G + 1,) where the groups counted begin among the columns of M."""
    norms: FloatArray
    """(G, G) the Frobenius norms of X below the diagonal, rounded upwards; inf for pairs that are suspected."""
    left: FloatArray
    """(G,) 1 - norms^2 in the row of a pivot, rounded downwards."""
    sound: BoolArray
    """(G,) whether the diagonal block is positive definite."""
    factored: BoolArray
    """(G,) whether ``factors`` holds what the pivot leaves of a group."""
    factors: FloatArray
    """(d, b) the Cholesky factors of D_h, each in the rows of its group."""
    lines: FloatArray
    """(b, d) the rows of one group, of which a pivot has been taken off."""
    product: FloatArray
    """(b, b)"""
    square: FloatArray
    """(b, b)"""
    work: FloatArray
    """(1,) multiplications done, roughly."""
    chosen: IntArray
    """(G,) a set of groups."""
    columns: IntArray
    """(d,) and its columns."""


@njit
def group_workspace(d: int, groups: int, largest: int) -> GroupWorkspace:
    """Memory for counts over at most so many groups and columns."""
    size = max(1, largest)
    return GroupWorkspace(
        count_workspace(d), np.zeros(groups + 1, dtype=np.int64), np.empty((groups, groups)), np.empty(groups),
        np.zeros(groups, dtype=np.bool_), np.zeros(groups, dtype=np.bool_), np.empty((max(1, d), size)),
        np.empty((size, max(1, d))), np.empty((size, size)), np.empty((size, size)), np.zeros(1),
        np.zeros(groups, dtype=np.int64), np.zeros(max(1, d), dtype=np.int64),
    )  # fmt: skip


@njit
def group_margin(data: SubtreeData, threshold: float, size: int, largest: int) -> float:
    """The same as :func:`exactsel.kernels.counting.margin_for` where blocks of ``largest`` are made orthonormal too."""
    margin = margin_for(data, threshold, size) + 4.2 * size * (largest + 16) * np.sqrt(largest + 0.0) * UNIT
    return margin if margin <= USELESS else np.inf


@njit
def spare(largest: int) -> float:
    """What eliminations among three orthonormal blocks of at most ``largest`` columns b may be off by.

    Of what a pivot leaves of two blocks entries are off by 3 (b + 1) units; factors and solves are those of a matrix
    that is off by (b + 1) + 2.1 b sqrt(b) units more. That is less than half of this for 2b columns.
    """
    return float(2.0 * largest * (largest + 4) * (8.0 + 4.0 * np.sqrt(largest + 0.0)) * UNIT)


@njit
def factor(block: FloatArray, size: int) -> bool:
    """Cholesky of the lower triangle, in place; whether all pivots are positive."""
    for i in range(size):
        for j in range(i + 1):
            total = block[i, j]
            for q in range(j):
                total -= block[i, q] * block[j, q]
            if j < i:
                block[i, j] = total / block[j, j]
            elif total > 0.0:
                block[i, i] = np.sqrt(total)
            else:
                return False
    return True


@njit
def contracts(product: FloatArray, rows: int, columns: int, workspace: GroupWorkspace) -> bool:
    """Whether the matrix in ``product`` is proven to have no singular value above one."""
    square, size = workspace.square, min(rows, columns)
    workspace.work[0] += 0.5 * size * size * (max(rows, columns) + size)
    for i in range(size):
        for j in range(i + 1):
            total = 0.0
            if rows <= columns:
                for q in range(columns):
                    total -= product[i, q] * product[j, q]
            else:
                for q in range(rows):
                    total -= product[q, i] * product[q, j]
            square[i, j] = total
        square[i, i] += 1.0 - spare(square.shape[0])
    return bool(factor(square, size))


@njit
def _enter(workspace: GroupWorkspace, found: int, a: int, b: int, c: int) -> int:
    """Enter a set of groups (-1: none); one more than there is room for is counted, but not entered."""
    if found < MOST_SUSPECTS:
        line = workspace.counts.undecided[found]
        line[0], line[1], line[2], line[3] = a, b, c, -1
    return found + 1


@njit(sums=True)
def orthonormalise(groups: int, workspace: GroupWorkspace, found: int) -> int:
    """Factor the diagonal blocks of M and make X of what is below; enter every block that is not positive definite."""
    M, X, first = workspace.counts.M, workspace.counts.V, workspace.first
    for g in range(groups):
        begin, end = first[g], first[g + 1]
        workspace.sound[g] = factor(M[begin:end, begin:end], end - begin)
        if not workspace.sound[g]:
            found = _enter(workspace, found, g, -1, -1)
            continue
        for i in range(begin, end):
            row, above = X[i], M[i]
            for j in range(begin):
                row[j] = above[j]
            for q in range(begin, i):
                scale, other = M[i, q], X[q]
                for j in range(begin):
                    row[j] -= scale * other[j]
            inverse = 1.0 / M[i, i]
            for j in range(begin):
                row[j] *= inverse
        workspace.work[0] += 0.5 * begin * (end - begin) * (end - begin)
        for h in range(g):
            if workspace.sound[h]:
                workspace.norms[g, h] = _make_orthonormal(M, X, first, g, h)
    return found


@njit
def _make_orthonormal(M: FloatArray, X: FloatArray, first: IntArray, g: int, h: int) -> float:
    """Turn the block L_g^-1 M_gh of X into X_gh; its Frobenius norm, rounded upwards."""
    begin, end, total = first[h], first[h + 1], 0.0
    for i in range(first[g], first[g + 1]):
        row = X[i]
        for j in range(begin, end):
            value = row[j]
            for q in range(begin, j):
                value -= row[q] * M[j, q]
            row[j] = value / M[j, j]
            total += row[j] * row[j]
    size = (end - begin) * (first[g + 1] - first[g])
    return float(np.sqrt(total) * (1.0 + (size + 8) * UNIT))


@njit
def count_pairs(groups: int, workspace: GroupWorkspace, found: int) -> int:
    """Enter every pair of groups that is not proven to be semidefinite, and give it an infinite norm."""
    X, first, norms = workspace.counts.V, workspace.first, workspace.norms
    for g in range(1, groups):
        for h in range(g):
            if not (workspace.sound[g] and workspace.sound[h]) or norms[g, h] <= 1.0:
                continue
            rows, columns = first[g + 1] - first[g], first[h + 1] - first[h]
            for i in range(rows):
                for j in range(columns):
                    workspace.product[i, j] = X[first[g] + i, first[h] + j]
            if not contracts(workspace.product, rows, columns, workspace):
                norms[g, h] = np.inf
                found = _enter(workspace, found, g, h, -1)
    return found


@njit
def _factored(g: int, h: int, workspace: GroupWorkspace) -> bool:
    """Factor what the pivot g leaves of the group h."""
    if workspace.factored[h]:
        return True
    X, first, factors = workspace.counts.V, workspace.first, workspace.factors
    begin, size, rows = first[h], first[h + 1] - first[h], first[g + 1] - first[g]
    workspace.work[0] += 0.5 * size * size * (rows + size)
    for i in range(size):
        for j in range(i + 1):
            total = 0.0
            for q in range(first[g], first[g + 1]):
                total -= X[q, begin + i] * X[q, begin + j]
            factors[begin + i, j] = total
        factors[begin + i, i] += 1.0 - spare(factors.shape[1])
    workspace.factored[h] = factor(factors[begin : begin + size], size)
    return bool(workspace.factored[h])


@njit(sums=True)
def _rows_left(g: int, h: int, workspace: GroupWorkspace) -> None:
    """What the pivot g leaves of the rows of h, times R_h^-1, for all columns before."""
    X, first, factors, Y = workspace.counts.V, workspace.first, workspace.factors, workspace.lines
    begin, size = first[h], first[h + 1] - first[h]
    workspace.work[0] += begin * size * (first[g + 1] - first[g] + 0.5 * size)
    for i in range(size):
        row, own = Y[i], X[begin + i]
        for j in range(begin):
            row[j] = own[j]
        for q in range(first[g], first[g + 1]):
            scale, other = X[q, begin + i], X[q]
            for j in range(begin):
                row[j] -= scale * other[j]
        for q in range(i):
            scale, other = factors[begin + i, q], Y[q]
            for j in range(begin):
                row[j] -= scale * other[j]
        inverse = 1.0 / factors[begin + i, i]
        for j in range(begin):
            row[j] *= inverse


@njit
def _small(rows: int, begin: int, end: int, most: float, workspace: GroupWorkspace) -> bool:
    """Whether the squares of some columns of ``lines`` add up to no more than ``most``."""
    total = 0.0
    for i in range(rows):
        for j in range(begin, end):
            total += workspace.lines[i, j] * workspace.lines[i, j]
    return total <= most


@njit
def _triple_holds(h: int, l: int, workspace: GroupWorkspace) -> bool:
    """Whether h and l are proven to be semidefinite in what a pivot leaves of them: Y R_l^-T has no norm above one."""
    first, factors, Z = workspace.first, workspace.factors, workspace.product
    begin, rows, columns, total = first[l], first[h + 1] - first[h], first[l + 1] - first[l], 0.0
    workspace.work[0] += 0.5 * rows * columns * columns
    for i in range(rows):
        for j in range(columns):
            value = workspace.lines[i, begin + j]
            for q in range(j):
                value -= Z[i, q] * factors[begin + j, q]
            Z[i, j] = value / factors[begin + j, j]
            total += Z[i, j] * Z[i, j]
    return bool(total <= 1.0 - spare(Z.shape[0]) or contracts(Z, rows, columns, workspace))


@njit
def count_triples(groups: int, workspace: GroupWorkspace, found: int) -> int:
    """Enter every triple of groups that is not proven to be semidefinite, but for those with a pair that is entered."""
    norms, left, first = workspace.norms, workspace.left, workspace.first
    allowance = 2.0 * spare(workspace.product.shape[0])
    for g in range(2, groups):
        if not workspace.sound[g] or found > MOST_SUSPECTS:
            continue
        workspace.work[0] += 0.5 * g * g
        for h in range(g):
            workspace.factored[h] = False
            left[h] = (
                (1.0 - norms[g, h] * norms[g, h] - 8.0 * UNIT) * (1.0 - 16.0 * UNIT) if workspace.sound[h] else 0.0
            )
        for h in range(1, g):
            if not workspace.sound[h] or norms[g, h] == np.inf:
                continue
            of_h, of_g, left_h, norm, ready = norms[h], norms[g], left[h], norms[g, h], False
            for l in range(h):
                if not workspace.sound[l]:
                    continue
                most = of_h[l] + norm * of_g[l]
                if left_h > 0.0 and left[l] > 0.0 and most * most <= left_h * left[l]:
                    continue
                if of_h[l] == np.inf or of_g[l] == np.inf:
                    continue
                if not ready:
                    if not _factored(g, h, workspace):
                        found = _enter(workspace, found, g, h, -1)
                        norms[g, h] = np.inf
                        break
                    _rows_left(g, h, workspace)
                    ready = True
                # With Y the rows of h: V'D_h^-1 V = Y'Y, which is to be no more than D_l.
                if _small(first[h + 1] - first[h], first[l], first[l + 1], left[l] - allowance, workspace):
                    continue
                if not _factored(g, l, workspace):
                    found = _enter(workspace, found, g, l, -1)
                    norms[g, l] = np.inf
                    left[l] = 0.0
                elif not _triple_holds(h, l, workspace):
                    found = _enter(workspace, found, g, h, l)
                if found > MOST_SUSPECTS:
                    return found
    return found


@njit
def count_groups(groups: int, slots: int, workspace: GroupWorkspace) -> int:
    """Enter the suspects among the sets of ``slots`` (<= groups) of the groups counted, by position.

    What is entered may be part of such a set, which is then suspected for any other columns in it. How many were
    entered; where more than :data:`MOST_SUSPECTS`, the count was broken off.
    """
    workspace.counts.undecided[:] = -1
    if slots == 0:
        return 0
    found = orthonormalise(groups, workspace, 0)
    if slots >= 2:
        found = count_pairs(groups, workspace, found)
    if slots >= 3 and found <= MOST_SUSPECTS:
        found = count_triples(groups, workspace, found)
    return int(found)
