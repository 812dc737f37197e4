"""Compiled exchange descent: remove each column of a support in turn and add the best one, until nothing changes.

Let G be a positive semidefinite matrix (d, d), S the m columns chosen and K = (G_SS)^{-1}. What is kept, and changed in
O(m d) when a column joins or leaves, is the table T = K G_S (m, d), which writes every column in terms of the chosen
ones, the pivots s_j = G_jj - G_jS T_j (what is left of column j), and scores that say what j would gain:

* quadratic loss (G = A'A + lam I, b = A'y): the correlation c_j = b_j - b_S'T_j; j gains c_j² / (2 s_j);
* column subset selection (G = A'A, M = G G, E = what S leaves of A): N_j = ||A'E_j||²; j gains N_j / s_j.

The formulas are those of Miller, *Subset Selection in Regression* (2002), and of Farahat, Ghodsi and Kamel (2011).
Everything is computed anew at the beginning of every round over the support, so that rounding does not pile up.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np

from exactsel._jit import choose_by_type, njit
from exactsel.kernels.columns import Columns, centred_products
from exactsel.kernels.file_columns import FileColumns, file_products
from exactsel.kernels.linalg import add_scaled, dot
from exactsel.types import BoolArray, FloatArray, IntArray

DEPENDENT = 1e-10
"""A column counts as dependent when no more than this share of its squared length is left."""

MOST_ROWS, KEPT_ENTRIES = 512, 1 << 24
"""Rows of G, and their entries, that are kept at most where G is not formed."""

MOST_ROUNDS = 100
"""Over a support; a few are the rule."""


class Table(NamedTuple):
    """The chosen columns and what is known of all others; of T, K and ``columns`` the first m places are in use.

    ``columns`` (k,), ``T`` (k, d), ``K`` (k, k), ``pivots`` and ``scores`` (d,), which are 0 for chosen columns,
    ``free`` (d,): what may join, ``row`` and ``other`` (d,): room to work in; ``rows`` (any, d): rows of G that were
    worked out, row q where q modulo their number is, and ``rows_of`` (any,): which these are, -1 for none.
    """

    columns: IntArray
    T: FloatArray
    K: FloatArray
    pivots: FloatArray
    scores: FloatArray
    free: BoolArray
    row: FloatArray
    other: FloatArray
    rows: FloatArray
    rows_of: IntArray


class LeastSquares(NamedTuple):
    """Quadratic loss: ``G`` (d, d), or (0, 0) where it is too large, then from ``AT`` (d, n), or where the data are
    sparse from the columns of ``sparse``, where they stay in their file from ``file``; ``diagonal`` of G.
    """

    G: FloatArray
    AT: FloatArray
    diagonal: FloatArray
    lam: float
    b: FloatArray
    sparse: Columns
    file: FileColumns


class Reconstruction(NamedTuple):
    """Column subset selection: ``G`` and ``M`` = G G (d, d), and the ``diagonal`` of G."""

    G: FloatArray
    M: FloatArray
    diagonal: FloatArray


Exchanged: TypeAlias = LeastSquares | Reconstruction


@choose_by_type("objective")
def write_row(objective: Exchanged, table: Table, q: int) -> None:
    """Write row q of G into ``row``."""
    table.row[:] = objective.G[q]


@write_row.register(LeastSquares)
def _row_of_data(objective: LeastSquares, table: Table, q: int) -> None:
    out = table.row
    if objective.G.shape[0] > 0:
        out[:] = objective.G[q]
        return
    place = q % table.rows_of.size
    if table.rows_of[place] != q:
        # Columns join again and again, and a row is a pass over the data.
        row = table.rows[place]
        if objective.sparse.where.shape[0] > 0:
            centred_products(objective.sparse, q, row)
        elif objective.file.table.shape[0] > 0:
            file_products(objective.file, q, row)
        else:
            for j in range(out.size):
                row[j] = dot(objective.AT[q], objective.AT[j])
        row[q] += objective.lam
        table.rows_of[place] = q
    out[:] = table.rows[place]


@choose_by_type("objective")
def write_first_scores(objective: Reconstruction, scores: FloatArray) -> None:
    """The scores when nothing is chosen."""
    for j in range(scores.size):
        scores[j] = objective.M[j, j]


@write_first_scores.register(LeastSquares)
def _correlations(objective: LeastSquares, scores: FloatArray) -> None:
    scores[:] = objective.b


@choose_by_type("objective")
def gain_of(objective: Exchanged, score: float, pivot: float) -> float:
    """By how much a column of positive pivot lowers the objective when it joins."""
    return score / pivot


@gain_of.register(LeastSquares)
def _least_squares_gain(objective: LeastSquares, score: float, pivot: float) -> float:
    return 0.5 * score * score / pivot


@njit
def add_cross(scores: FloatArray, t: FloatArray, cross: FloatArray, twice: float, squared: float) -> None:
    """scores += t (twice * cross + squared * t), entry by entry."""
    for j in range(scores.size):
        scores[j] += t[j] * (twice * cross[j] + squared * t[j])


@njit
def add_squares(out: FloatArray, scale: float, t: FloatArray) -> None:
    """out += scale * t², entry by entry."""
    for j in range(out.size):
        out[j] += scale * t[j] * t[j]


@choose_by_type("objective")
def score_with(objective: Reconstruction, table: Table, m: int, q: int) -> None:
    """Change the scores for column q, which joins; ``row`` holds t_j, how much of its remainder column j has."""
    # E_j loses t_j E_q; with v_j = (A'E_q)'(A'E_j) = u_j - u_S'T_j, u = M_q - M_S T_q.
    v = table.other
    v[:] = objective.M[q]
    for a in range(m):
        add_scaled(v, -table.T[a, q], objective.M[table.columns[a]])
    for a in range(m):
        add_scaled(v, -v[table.columns[a]], table.T[a])
    add_cross(table.scores, table.row, v, -2.0, v[q])


@score_with.register(LeastSquares)
def _correlate_with(objective: LeastSquares, table: Table, m: int, q: int) -> None:
    add_scaled(table.scores, -table.scores[q], table.row)


@choose_by_type("objective")
def score_without(objective: Reconstruction, table: Table, m: int, place: int) -> None:
    """Change the scores for the column at ``place``, which leaves."""
    # What is left of it without the others is r = A_S K_i / K_ii, of which every E_j gets T_ij.
    v, columns, inverse, squared = table.other, table.columns, 1.0 / table.K[place, place], 0.0
    v[:] = 0.0
    for a in range(m):
        add_scaled(v, table.K[place, a] * inverse, objective.M[columns[a]])
    for a in range(m):
        squared += table.K[place, a] * inverse * v[columns[a]]
    for a in range(m):
        add_scaled(v, -v[columns[a]], table.T[a])
    add_cross(table.scores, table.T[place], v, 2.0, squared)


@score_without.register(LeastSquares)
def _correlate_without(objective: LeastSquares, table: Table, m: int, place: int) -> None:
    coef = 0.0
    for a in range(m):
        coef += table.K[place, a] * objective.b[table.columns[a]]
    add_scaled(table.scores, coef / table.K[place, place], table.T[place])


@choose_by_type("objective")
def explained_by(objective: Reconstruction, table: Table, m: int) -> float:
    """By how much the m chosen columns lower the objective."""
    total = 0.0
    for a in range(m):
        for c in range(m):
            total += table.K[a, c] * objective.M[table.columns[a], table.columns[c]]
    return total


@explained_by.register(LeastSquares)
def _explained_by_least_squares(objective: LeastSquares, table: Table, m: int) -> float:
    total = 0.0
    for a in range(m):
        for c in range(m):
            total += table.K[a, c] * objective.b[table.columns[a]] * objective.b[table.columns[c]]
    return 0.5 * total


@njit
def join(objective: Exchanged, table: Table, m: int, q: int) -> None:
    """Let column q, of which enough is left, join the m chosen ones."""
    T, K, t, columns = table.T, table.K, table.row, table.columns
    # Row q of G less what the chosen columns have of it; T holds the identity at these.
    write_row(objective, table, q)
    for a in range(m):
        add_scaled(t, -t[columns[a]], T[a])
    inverse = 1.0 / t[q]
    for j in range(t.size):
        t[j] *= inverse
    for a in range(m):
        t[columns[a]] = 0.0
    t[q] = 1.0
    score_with(objective, table, m, q)
    add_squares(table.pivots, -1.0 / inverse, t)
    for a in range(m):
        for c in range(m):
            K[a, c] += T[a, q] * T[c, q] * inverse
        K[a, m] = K[m, a] = -T[a, q] * inverse
    K[m, m] = inverse
    for a in range(m):
        add_scaled(T[a], -T[a, q], t)
        T[a, q] = 0.0
    T[m] = t
    columns[m], table.free[q] = q, False
    # Exact arithmetic leaves zeros here; rounding must not bring a chosen column back.
    for a in range(m + 1):
        table.pivots[columns[a]] = table.scores[columns[a]] = 0.0


@njit
def leave(objective: Exchanged, table: Table, m: int, place: int) -> None:
    """Take out the column at ``place`` of the m chosen ones; the last one moves there."""
    T, K, columns, last = table.T, table.K, table.columns, m - 1
    score_without(objective, table, m, place)
    inverse = 1.0 / K[place, place]
    add_squares(table.pivots, inverse, T[place])
    for a in range(m):
        if a != place:
            weight = K[a, place] * inverse
            add_scaled(T[a], -weight, T[place])
            for c in range(m):
                if c != place:
                    K[a, c] -= weight * K[place, c]
    table.free[columns[place]] = True
    if place != last:
        columns[place] = columns[last]
        T[place] = T[last]
        for a in range(last):
            K[place, a] = K[last, a]
        K[place, place] = K[last, last]
        for a in range(last):
            K[a, place] = K[place, a]


@njit
def gain(objective: Exchanged, table: Table, j: int) -> float:
    """By how much column j lowers the objective when it joins; -inf where it may not, or depends on those chosen."""
    if not table.free[j] or not table.pivots[j] > DEPENDENT * objective.diagonal[j]:
        return -np.inf
    return float(gain_of(objective, table.scores[j], table.pivots[j]))


@njit
def best_to_join(objective: Exchanged, table: Table) -> int:
    """The column that lowers the objective most, the first of several; -1 where none may join."""
    best, most = -1, -np.inf
    for j in range(table.free.size):
        gained = gain(objective, table, j)
        if gained > most:
            best, most = j, gained
    return best


@njit
def begin(objective: Exchanged, table: Table, wanted: IntArray, forced: BoolArray, allowed: BoolArray) -> int:
    """Choose the ``forced`` columns and then the ``wanted`` ones, but for those not allowed and dependent ones.

    Returns
    -------
    int
        How many are chosen.
    """
    table.pivots[:] = objective.diagonal
    write_first_scores(objective, table.scores)
    for j in range(forced.size):
        table.free[j] = allowed[j] or forced[j]
    m = 0
    for q in range(forced.size):
        if forced[q] and m < table.columns.size and gain(objective, table, q) > -np.inf:
            join(objective, table, m, q)
            m += 1
    for q in wanted:
        if m < table.columns.size and q >= 0 and gain(objective, table, q) > -np.inf:
            join(objective, table, m, q)
            m += 1
    return m


@njit
def fill(objective: Exchanged, table: Table, m: int, least: float) -> int:
    """Add the best columns while places are free and one lowers the objective; how many are chosen then."""
    while m < table.columns.size:
        best = best_to_join(objective, table)
        if best < 0 or not gain(objective, table, best) > least:
            break
        join(objective, table, m, best)
        m += 1
    return m


@njit
def exchange_each(objective: Exchanged, table: Table, m: int, leaving: IntArray, least: float) -> tuple[int, bool]:
    """Replace each of the ``leaving`` columns by the best one; how many are chosen then, and whether any changed."""
    changed = False
    for q in leaving:
        place = 0
        while table.columns[place] != q:
            place += 1
        leave(objective, table, m, place)
        m -= 1
        best = best_to_join(objective, table)
        if best >= 0:
            joining = best if gain(objective, table, best) > gain(objective, table, q) + least else q
            changed = changed or joining != q
            join(objective, table, m, joining)
            m += 1
    return m, changed


@njit
def descend(
    objective: Exchanged, table: Table, wanted: IntArray, forced: BoolArray, allowed: BoolArray, least: float
) -> tuple[int, int]:
    """Exchange columns, round after round, from ``wanted`` (k,) until a round brings no improvement.

    The columns ``forced`` are always chosen; ``wanted`` is padded with -1 and overwritten by the columns found;
    ``least`` is the gain that counts as one.

    Returns
    -------
    m, rounds : int
        Columns chosen, which are in ``table``, and rounds over them.
    """
    rounds, changed, m = 0, True, 0
    leaving = np.empty(wanted.size, np.int64)
    while changed and rounds < MOST_ROUNDS:
        m = fill(objective, table, begin(objective, table, wanted, forced, allowed), least)
        count = 0
        for a in range(m):
            if not forced[table.columns[a]]:
                leaving[count] = table.columns[a]
                count += 1
        m, changed = exchange_each(objective, table, m, leaving[:count], least)
        wanted[:] = -1
        wanted[:m] = table.columns[:m]
        rounds += 1
    return m, rounds


@njit
def descend_some(
    objective: Exchanged, supports: IntArray, forced: BoolArray, allowed: BoolArray, least: float,
    explained: FloatArray, rounds: IntArray, first: int, step: int,
) -> None:  # fmt: skip
    """Descend from the rows ``first``, ``first + step``, ... of ``supports`` (r, k), which receive what is found.

    Rows are padded with -1; ``explained`` and ``rounds`` (r,) receive by how much the columns found lower the
    objective, and how many rounds over the support that took.
    """
    k, d = supports.shape[1], allowed.size
    rows = min(MOST_ROWS, max(1, KEPT_ENTRIES // max(1, d))) if objective.G.shape[0] == 0 else 0
    table = Table(
        np.empty(k, np.int64), np.empty((k, d)), np.empty((k, k)), np.empty(d), np.empty(d),
        np.empty(d, np.bool_), np.empty(d), np.empty(d), np.empty((rows, d)), np.full(rows, -1, np.int64),
    )  # fmt: skip
    for r in range(first, supports.shape[0], step):
        m, rounds[r] = descend(objective, table, supports[r], forced, allowed, least)
        explained[r] = explained_by(objective, table, m)
