"""The test that no model on some strong columns and a few of all others costs less than a level (FORMAT.md, STRONG).

Quadratic loss. K is the matrix of the products of the columns, with the ridge, and of the target, each divided by its
length: v = b / (r_j sqrt(T)) with T = 2 (c - L), as in semidefinite.py. No model on the columns U costs less than L if
and only if K is positive semidefinite on U and the target. For a set F of strong columns, W all others, elimination of
F leaves M on W, and for every r columns of W x'Mx >= sum D_w x_w^2 by diagonal dominance, where

    D_w = M_ww (1 - sum of the r - 1 largest |M_wv| / sqrt(M_ww M_vv)).

Less of F leaves more. So with B the columns of F in a region, t what elimination of B leaves of the target's 1 and u
what it leaves of v on W, the region holds nothing below L where t > 0 and the r largest u_w^2 / D_w sum up to no more
than t. With LIKE (like_columns.py), D is not needed: sets of columns with large cosines are taken together.

Rounding. Computed entries of K are off by at most e = gamma(p + 8) (1 + w) and some units, w^2 = ||y||^2 / T (T is
rounded downwards); those of the columns by half of that, since w is at least 1 for levels of 0 and more. An elimination
that meets positive pivots only is that of a matrix off by gamma(2 m + 8) an entry (Higham, theorem 10.3), and a
symmetric matrix of m columns whose entries are at most f has no eigenvalue below -m f. With m no less than the columns
of F, r and the target, and mu >= m (e + 2 gamma(2 m + 8)): u and t are those of a matrix K_1, which is K - mu I up to
the elimination's own roundings, M is that of K_2, which is K - 2 mu I up to those, and on the sets in question
K >= K_1 >= K_2 for the columns, and K >= K_1 with the target.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from exactsel_certificates.formula import FloatArray
from exactsel_certificates.like_columns import Left, LikeColumns
from exactsel_certificates.rigorous import RigorousBounds, U, gamma
from exactsel_certificates.sums import blocked_sums, product_roundings, products
from exactsel_certificates.walk import FREE, IN
from exactsel_certificates.work import look, of_fits, spend

STEEPEST = 1e6
"""No more is made of a level so near to c that w is larger."""

ROWS = 256
"""Columns whose products with all others are evaluated together."""

LEAST_LEFT = 1e-3
"""Where elimination leaves less of a weak column's square like columns are not taken together."""

Columns = NDArray[np.intp]


class StrongColumns:
    """Bound to one problem and one level."""

    def __init__(self, bounds: RigorousBounds, level: float) -> None:
        self._k, self._known = bounds.instance.k, dict[tuple[bytes, bytes], FloatArray]()
        self._most = max(1, self._k - len(bounds.instance.force_in))
        self._like: dict[tuple[bytes, bytes, float], tuple[FloatArray, LikeColumns]] = {}
        with np.errstate(all="ignore"):
            squares, many = products(bounds.y[None], bounds.y[:, None]), product_roundings(bounds.n)
            T = (float(squares[0, 0]) * (1.0 - gamma(many)) - 2.0 * level) * (1.0 - 8 * U)
            w = math.sqrt(float(squares[0, 0]) / T) * (1.0 + gamma(many)) if T > 0 else math.inf
            self.usable = bounds.loss.quadratic and not bounds.instance.groups and w <= STEEPEST
            if not self.usable:
                return
            lam = bounds.instance.lam
            length = np.sqrt(bounds.norms**2 + lam)
            self._used = length > 0
            """With lam = 0 a column of zeros changes no model's value."""
            length = np.where(self._used, length, 1.0)
            self._unit = bounds.A / length
            self._ridge = lam / length / length
            self._v = products(bounds.y[None], self._unit)[0] / math.sqrt(T)
            self._error = 1.01 * (gamma(many + 8) * (1.0 + w) + 8 * U)

    def closes(self, state: NDArray[np.uint8], strong: Columns, tau: float = math.inf) -> bool:
        """Whether a region, of which a state (d,) is given, holds nothing below the level.

        Weak columns with cosines of at least ``tau`` are taken together.
        """
        if not self.usable:
            return False
        included, slots = (state == IN) & self._used, max(0, self._k - int(np.count_nonzero(state == IN)))
        free, is_strong = (state == FREE) & self._used & (slots > 0), np.isin(np.arange(len(state)), strong)
        F = np.flatnonzero((is_strong | (state == IN)) & self._used)
        B, W = np.flatnonzero(included | (free & is_strong)), np.flatnonzero(free & ~is_strong)
        mu = self._room(len(F))
        n = len(self._unit)
        spend(of_fits(1, len(B) + 1) + 8.0 * len(B) * (len(B) + 2) * len(state) + 2.0 * n * len(W) * (len(B) + 1))
        with np.errstate(all="ignore"):
            inner = self._products(B, B)
            inner[range(len(B)), range(len(B))] += self._ridge[B] - mu
            sides = np.column_stack([self._v[B], self._products(B, W)])
            solved = _eliminated(inner, sides)
            if solved is None:
                return False
            z, X = solved[:, 0], solved[:, 1:]
            rest = (1.0 - mu - float(z @ z)) * (1.0 - 8 * U)
            if not rest > 0.0 or not W.size or slots == 0:
                return rest > 0.0
            u = self._v[W] - z @ X
            if tau < math.inf:
                root, like = self._alike(F, W, tau)
                return like.usable and like.most(u / root, min(slots, len(W)), rest)
            D = self._dominance(F, W)[:, min(slots, len(W)) - 1]
            # Also where u is 0: a column with D < 0 may still take from the others.
            gains = np.where(D > 0.0, u**2 / D, np.inf)
            return bool(np.sum(-np.sort(-gains)[:slots]) * (1.0 + gamma(slots + 16)) <= rest)

    def _room(self, strong: int) -> float:
        """mu for that many strong columns."""
        m = strong + self._k + 2
        return 1.01 * m * (self._error + 2.0 * gamma(2 * m + 8)) + 4 * U

    def _products(self, rows: Columns, columns: Columns) -> FloatArray:
        """K on some columns, without the ridge."""
        return products(self._unit[:, rows].T, self._unit[:, columns])

    def _dominance(self, F: Columns, W: Columns) -> FloatArray:
        """D on W for 1, 2, ... places; not positive where elimination leaves nothing to be sure of."""
        key = F.tobytes(), W.tobytes()
        if key not in self._known:
            spend(32.0 * len(W) ** 2)
            self._known.clear()  # regions of one tree have the same
            self._known[key] = self._row_by_row(F, W, 2.0 * self._room(len(F)))
        return self._known[key]

    def _alike(self, F: Columns, W: Columns, tau: float) -> tuple[FloatArray, LikeColumns]:
        """The roots of what is left of the squares of W, and what is known of sets of like columns."""
        key = F.tobytes(), W.tobytes(), tau
        if key not in self._like:
            spend(32.0 * len(W) ** 2)
            self._like.clear()  # regions of one tree have the same
            X, squares = self._left(F, W, 2.0 * self._room(len(F)))
            usable = bool(X is not None and np.all(squares > LEAST_LEFT))
            root = np.sqrt(squares) if usable else np.ones(len(W))
            columns = Left(
                len(W), 2.0 * (self._error + 2.0 * gamma(2 * len(F) + 8)) / LEAST_LEFT + 8 * U,
                lambda part: self._cosines(W, X, root, part), lambda i, j: self._pairs(W, X, root, i, j),
            )  # fmt: skip
            self._like[key] = root, LikeColumns(columns, tau if usable else 0.0, self._most, _parts_of(len(W)))
        return self._like[key]

    def _left(self, F: Columns, W: Columns, taken: float) -> tuple[FloatArray | None, FloatArray]:
        """What elimination of F takes off products of W is X'X, and what it leaves of their squares."""
        inner = self._products(F, F)
        inner[range(len(F)), range(len(F))] += self._ridge[F] - taken
        X = _eliminated(inner, self._products(F, W))
        if X is None:
            return None, np.zeros(len(W))
        squares = [np.diagonal(self._products(W[part], W[part])) for part in _parts_of(len(W))]
        return X, np.concatenate(squares) + self._ridge[W] - taken - np.sum(X * X, axis=0)

    def _cosines(self, W: Columns, X: FloatArray | None, root: FloatArray, part: Columns) -> FloatArray:
        """Those of some columns of W with all, once F is eliminated; anything for a column with itself."""
        assert X is not None
        spend(2.0 * (len(self._unit) + len(X)) * len(part) * len(W))
        return np.asarray((self._products(W[part], W) - X[:, part].T @ X) / root[part, None] / root)

    def _pairs(self, W: Columns, X: FloatArray | None, root: FloatArray, i: Columns, j: Columns) -> FloatArray:
        """Those of pairs."""
        assert X is not None
        spend(4.0 * len(self._unit) * len(i))
        return np.concatenate(
            [
                blocked_sums((self._unit[:, W[i[some]]] * self._unit[:, W[j[some]]]).T)
                - np.sum(X[:, i[some]] * X[:, j[some]], axis=0)
                for some in _parts_of(len(i))
            ]
        ) / (root[i] * root[j])  # fmt: skip

    def _row_by_row(self, F: Columns, W: Columns, taken: float) -> FloatArray:
        k = min(self._k, len(W))
        D = np.full((len(W), k), -1.0)
        X, squares = self._left(F, W, taken)
        if X is None:
            return D
        root, most = np.sqrt(np.where(squares > 0.0, squares, np.inf)), k - 1
        for part in _parts_of(len(W)):
            look()
            M = np.abs(self._cosines(W, X, root, part))
            M[range(len(M)), part] = 0.0
            M = -np.sort(-np.partition(M, len(W) - most, axis=1)[:, len(W) - most :], axis=1) if most else M[:, :0]
            sums = np.cumsum(np.column_stack([np.zeros(len(part)), M]), axis=1)
            D[part] = squares[part, None] * (1.0 - sums * (1.0 + gamma(k + 16))) * (1.0 - 8 * U)
        D[~(squares > 0.0)] = -1.0
        return D


def _parts_of(count: int) -> list[Columns]:
    """All numbers below one, some at a time."""
    return np.array_split(np.arange(count), math.ceil(count / ROWS))


def _eliminated(inner: FloatArray, sides: FloatArray) -> FloatArray | None:
    """R^-T times the sides, where R'R is the first matrix; None where that is not definite."""
    try:
        factor = np.linalg.cholesky(inner)
    except np.linalg.LinAlgError:
        return None
    solved = np.array(sides)
    for i in range(len(factor)):
        solved[i] = (solved[i] - factor[i, :i] @ solved[:i]) / factor[i, i]
    return solved if np.all(np.isfinite(solved)) else None
