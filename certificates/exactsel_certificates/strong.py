"""Whether no model on some strong columns and a few of all others costs less than a level (FORMAT.md, STRONG).

Quadratic loss. K is the matrix of the products of the columns, with the ridge, and of the target, each divided by its
length: v = b / (r_j sqrt(T)) with T = 2 (c - L), as in semidefinite.py. No model on the columns U costs less than L if
and only if K is positive semidefinite on U and the target. For a set F of strong columns, W all others, elimination of
F leaves M on W, and for every r columns of W x'Mx >= sum D_w x_w^2 by diagonal dominance, where

    D_w = M_ww (1 - sum of the r - 1 largest |M_wv| / sqrt(M_ww M_vv)).

Less of F leaves more. So with B the columns of F in a region, t what elimination of B leaves of the target's 1 and u
what it leaves of v on W, the region holds nothing below L where t > 0 and the r largest u_w^2 / D_w sum up to no more
than t.

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
from exactsel_certificates.rigorous import RigorousBounds, U, gamma
from exactsel_certificates.sums import product_roundings, products
from exactsel_certificates.walk import FREE, IN
from exactsel_certificates.work import look, of_fits, spend

STEEPEST = 1e6
"""No more is made of a level so near to c that w is larger."""

ROWS = 256
"""Columns whose products with all others are looked at together."""

Columns = NDArray[np.intp]


class StrongColumns:
    """Bound to one problem and one level."""

    def __init__(self, bounds: RigorousBounds, level: float) -> None:
        self._k, self._known = bounds.instance.k, dict[tuple[bytes, bytes], FloatArray]()
        with np.errstate(all="ignore"):
            squares, many = products(bounds.y[None], bounds.y[:, None]), product_roundings(bounds.n)
            T = (float(squares[0, 0]) * (1.0 - gamma(many)) - 2.0 * level) * (1.0 - 8 * U)
            w = math.sqrt(float(squares[0, 0]) / T) * (1.0 + gamma(many)) if T > 0 else math.inf
            self.usable = bounds.instance.loss == "quadratic" and not bounds.instance.groups and w <= STEEPEST
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

    def closes(self, state: NDArray[np.uint8], strong: Columns) -> bool:
        """Whether a region, of which a state (d,) is given, holds nothing below the level."""
        if not self.usable:
            return False
        inside, places = (state == IN) & self._used, max(0, self._k - int(np.count_nonzero(state == IN)))
        free, is_strong = (state == FREE) & self._used & (places > 0), np.isin(np.arange(len(state)), strong)
        F = np.flatnonzero((is_strong | (state == IN)) & self._used)
        B, W = np.flatnonzero(inside | (free & is_strong)), np.flatnonzero(free & ~is_strong)
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
            if not rest > 0.0 or not W.size or places == 0:
                return rest > 0.0
            D = self._dominance(F, W)[:, min(places, len(W)) - 1]
            # Also where u is 0: a column with D < 0 may still take from the others.
            gains = np.where(D > 0.0, (self._v[W] - z @ X) ** 2 / D, np.inf)
            return bool(np.sum(-np.sort(-gains)[:places]) * (1.0 + gamma(places + 16)) <= rest)

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
            spend(2.0 * (len(self._unit) + len(F) + 16.0) * len(W) ** 2)
            self._known.clear()  # regions of one tree have the same
            self._known[key] = self._row_by_row(F, W, 2.0 * self._room(len(F)))
        return self._known[key]

    def _row_by_row(self, F: Columns, W: Columns, taken: float) -> FloatArray:
        k = min(self._k, len(W))
        D = np.full((len(W), k), -1.0)
        inner = self._products(F, F)
        inner[range(len(F)), range(len(F))] += self._ridge[F] - taken
        X = _eliminated(inner, self._products(F, W))
        if X is None:
            return D
        squares = np.concatenate([np.diagonal(self._products(part, part)) for part in _parts(W)])
        left = squares + self._ridge[W] - taken - np.sum(X * X, axis=0)
        root, first = np.sqrt(np.where(left > 0.0, left, np.inf)), 0
        for part in _parts(W):
            look()
            rows = slice(first, first + len(part))
            M = np.abs(self._products(part, W) - X[:, rows].T @ X) / root[rows, None] / root
            M[range(len(M)), range(rows.start, rows.stop)] = 0.0
            most = k - 1
            M = -np.sort(-np.partition(M, len(W) - most, axis=1)[:, len(W) - most :], axis=1) if most else M[:, :0]
            sums = np.cumsum(np.column_stack([np.zeros(len(part)), M]), axis=1)
            D[rows] = left[rows, None] * (1.0 - sums * (1.0 + gamma(k + 16))) * (1.0 - 8 * U)
            first += len(part)
        D[~(left > 0.0)] = -1.0
        return D


def _parts(columns: Columns) -> list[Columns]:
    return np.array_split(columns, math.ceil(len(columns) / ROWS))


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
