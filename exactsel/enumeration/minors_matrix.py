"""The matrix that triples of columns are counted on: ordered, scaled and in single precision (see kernels/wide.py).

**Margin.** With gamma_m = m u / (1 - m u) an inner product of rows is off by at most gamma_n ||a_i|| ||a_j||, so the
entries of H by gamma_n sqrt(H_ii H_jj) and a unit. In b_i b_j / T the errors of b amount to gamma_n c / (c - level) of
sqrt(H_ii H_jj) for each factor, and so does that of T itself (columns with b_i^2 > T H_ii have a negative diagonal, and
are suspects anyhow). An elimination of k columns is that of a matrix whose entries are another gamma_(k+1) off (Demmel;
Higham, Theorem 10.3). A symmetric matrix with entries below e sqrt(H_ii H_jj) is, on k columns, at most k e diag(H). So
what is computed with mu diag(H) taken off first, mu = k (gamma_n (1 + 3c / (c - level)) + gamma_(k+8)), is on any k
columns no more than the exact Q: where it is positive semidefinite, so is Q.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from exactsel.kernels.lanes import LANES
from exactsel.kernels.wide import Columns, SingleArray, complete_tile, eliminate, tile_angles, tile_of
from exactsel.rounding import UNIT
from exactsel.types import FloatArray, IntArray

ROWS_AT_A_TIME = 256
"""Rows of the matrix in doubles that are computed at once, so that they stay in the cache."""

POWER_STEPS = 20
"""Steps of the power method for the direction along which columns are divided: any direction will do."""

LARGEST_MARGIN = 1e-7
"""Data that need more of a margin than this are not counted on."""


def margin(rows: int, k: int, null: float, threshold: float) -> float:
    """The part mu of the diagonal that covers all rounding on any k columns; ``null`` is ||y||^2 / 2."""
    if not threshold < null:
        return np.inf
    products = (rows + 4) * UNIT * (1.0 + 3.0 * null / (null - threshold))
    return 1.01 * k * (products + (k + 8) * UNIT)


def alike_in_order(X: FloatArray) -> tuple[IntArray, FloatArray]:
    """An order in which columns of (d, n), one a row, are near those that are like them, and their signs (d,).

    The columns are divided into halves along the direction in which they differ most, again and again.
    """
    lengths = np.linalg.norm(X, axis=1)
    unit = X / np.where(lengths > 0, lengths, 1.0)[:, None]
    signs, order = np.ones(len(X)), np.empty(len(X), dtype=np.int64)
    waiting = [(0, np.arange(len(X)))]
    while waiting:
        first, part = waiting.pop()
        if part.size <= LANES:
            order[first : first + part.size] = part
            continue
        rows = unit[part] * signs[part, None]
        middle = rows[0]
        for _ in range(4):
            turned = np.where(rows @ middle < 0, -1.0, 1.0)
            middle = turned @ rows
        signs[part] *= turned
        rows = rows * turned[:, None]
        rows -= rows.mean(axis=0)
        direction = rows[0]
        for _ in range(POWER_STEPS):
            image = (rows @ direction) @ rows
            direction = image / max(float(np.linalg.norm(image)), 1e-300)
        along = part[np.argsort(rows @ direction, kind="stable")]
        half = -(-part.size // (2 * LANES)) * LANES
        waiting += [(first, along[:half]), (first + half, along[half:])]
    return order, signs


def duplicates(X: FloatArray) -> IntArray:
    """(d,) for each column, one a row of ``X``, the first equal to it or to minus it; -1 for columns of zeros."""
    seen: dict[bytes, int] = {}
    first = np.empty(len(X), dtype=np.int64)
    for j, row in enumerate(X):
        entries = np.flatnonzero(row)
        turned = row if entries.size == 0 or row[entries[0]] > 0 else -row
        first[j] = seen.setdefault((turned + 0.0).tobytes(), j) if entries.size else -1
    return first


class Pivot(NamedTuple):
    """The columns before a pivot once it is eliminated."""

    columns: Columns
    failing: IntArray
    """Those whose own diagonal is not positive."""


@dataclass
class LevelMatrix:
    """What is left of Q on some columns once S is eliminated; made by :func:`level_matrix`."""

    columns: Columns
    failing: IntArray
    """Positions whose own diagonal is not positive; they take part in nothing."""
    q: SingleArray
    """Scaled to unit diagonal, in tiles; see :func:`exactsel.kernels.wide.count_blocks`."""
    low: SingleArray
    high: SingleArray
    base: FloatArray | None
    """(m, m) unscaled and in doubles, where another column will be eliminated."""

    @property
    def size(self) -> int:
        """Number of columns."""
        return len(self.columns.X)

    def eliminated(self, pivot: int) -> Pivot | None:
        """Eliminate one more column, into ``q``, ``low`` and ``high``; None where its own diagonal is not positive."""
        base, held = self.base, self.columns
        assert base is not None, "a matrix to eliminate from must be kept in doubles"
        if not base[pivot, pivot] > 0:
            return None
        u = base[pivot, :pivot] / np.sqrt(base[pivot, pivot])
        scale, failing = _scale(base.diagonal()[:pivot] - u * u)
        eliminate(base, pivot, u, scale, self.q)
        tile_angles(self.q, -(-pivot // LANES), self.low, self.high)
        rows = np.vstack([held.eliminated[:, :pivot], u[None]])
        return Pivot(held._replace(X=held.X[:pivot], b=held.b[:pivot], eliminated=rows), failing)


def level_matrix(
    fixed: FloatArray, X: FloatArray, y: FloatArray, lam: float, threshold: float, mu: float, *, keep: bool
) -> LevelMatrix | None:
    """The matrix on the columns ``X`` (m, n) with ``fixed`` (s, n) eliminated, columns one a row.

    ``keep`` it in doubles too. None where the elimination breaks down: S itself is not above the level, or too nearly.
    """
    T = float(y @ y) - 2.0 * threshold
    if not T > 0:
        return None
    b = X @ y
    eliminated = _eliminate_fixed(fixed, X, y, lam, T, mu)
    if eliminated is None:
        return None
    m, padded = len(X), max(1, -(-len(X) // LANES)) * LANES
    blocks = padded // LANES
    q = np.zeros((blocks * (blocks + 1) // 2, LANES, LANES), dtype=np.float32)
    base = np.empty((m, m)) if keep else None
    diagonal = (np.einsum("ij,ij->i", X, X) + lam) * (1.0 - mu) - b * b / T - (eliminated**2).sum(axis=0)
    scale, failing = _scale(diagonal)
    for first in range(0, m, ROWS_AT_A_TIME):
        last = min(m, first + ROWS_AT_A_TIME)
        rows = X[first:last] @ X[:last].T
        rows -= (b[first:last] / T)[:, None] * b[:last]
        if len(fixed):
            rows -= eliminated[:, first:last].T @ eliminated[:, :last]
        if base is not None:
            base[first:last, :last] = rows
        rows *= scale[first:last, None]
        rows *= scale[:last]
        into_tiles(rows, first, q)
    if base is not None:
        base[np.diag_indices(m)] = diagonal
    if not np.isfinite(q).all():
        return None
    wide = -(-blocks // LANES) * LANES
    low, high = (np.zeros((wide, wide), dtype=np.float32) for _ in range(2))
    tile_angles(q, blocks, low, high)
    return LevelMatrix(Columns(X, b, eliminated, lam, T, mu), failing, q, low, high, base)


def into_tiles(rows: FloatArray, first: int, q: SingleArray) -> None:
    """Write rows (r, first + r) of the matrix, ``first`` a multiple of LANES, into their tiles."""
    for at in range(0, len(rows), LANES):
        some = rows[at : at + LANES, : first + at + LANES]
        block = (first + at) // LANES
        strip = np.zeros((LANES, LANES * (block + 1)), dtype=np.float32)
        strip[: len(some), : some.shape[1]] = some
        tiles = strip.reshape(LANES, block + 1, LANES).transpose(1, 0, 2)
        q[tile_of(block, 0) : tile_of(block, block) + 1] = tiles
        complete_tile(q[tile_of(block, block)])


def _scale(diagonal: FloatArray) -> tuple[FloatArray, IntArray]:
    """One over the root of the diagonal, zero where it is not positive, and where that is."""
    positive = diagonal > 0
    return np.where(positive, 1.0, 0.0) / np.sqrt(np.where(positive, diagonal, 1.0)), np.flatnonzero(~positive)


def _eliminate_fixed(
    fixed: FloatArray, X: FloatArray, y: FloatArray, lam: float, T: float, mu: float
) -> FloatArray | None:
    """Rows (s, m) of the Cholesky factor of the fixed columns; None where a pivot is not positive."""
    s, everything = len(fixed), np.vstack([fixed, X])
    b, rows = everything @ y, np.zeros((len(fixed), len(everything)))
    for i in range(s):
        row = everything @ fixed[i] - b * (b[i] / T)
        row[i] = (fixed[i] @ fixed[i] + lam) * (1.0 - mu) - b[i] * b[i] / T
        row -= rows[:i, i] @ rows[:i]
        if not row[i] > 0:
            return None
        rows[i] = row / np.sqrt(row[i])
    return np.ascontiguousarray(rows[:, s:])
