"""The test that no model on some columns costs less than a level L, by eliminations in doubles with allowed rounding.

Quadratic loss: with H = A'A + lam I, b = A'y, c = ||y||^2 / 2 and T = 2 (c - L) > 0, no model on the columns S costs
less than L if and only if Q = H - b b' / T is positive semidefinite on S (the Schur complement of [[T, b'], [b, H]]).

Columns are divided by r_j, doubles that are about the roots of H_jj, which changes nothing. Then every H_jj is at most
1 but for a few roundings; with p the roundings of products of n terms (sums.py), the computed H is off by gamma(p + 8)
an entry, and v = b / sqrt(T), with a T that is rounded downwards, by gamma(p + 6) w, w^2 = ||y||^2 / T. Where all of a
set's diagonal is positive, its |v_j| are at most 1. So the entries of Q are off by ``self.error`` there, and an
elimination of m columns, in any order, that meets positive pivots only is that of a matrix which differs by
gamma(2 m + 8) an entry (Higham, Accuracy and stability of numerical algorithms, theorem 10.3: the products of its
factors are at most the diagonal). A symmetric matrix of m columns whose entries are at most e has no eigenvalue below
-m e: where Q - mu I passes with mu >= m (error + gamma(2 m + 8)), the exact Q is positive semidefinite. Underflow is
far below mu.

With lam = 0 a column of zeros changes no model's value, nor does a second copy of a column: both are removed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exactsel_certificates.counting import all_hold, compiled, how_many, unproven, without_twin
from exactsel_certificates.formula import FloatArray
from exactsel_certificates.rigorous import RigorousBounds, States, U, each_runs, gamma
from exactsel_certificates.selections import direction
from exactsel_certificates.sums import careful_products
from exactsel_certificates.walk import FREE, IN, OUT
from exactsel_certificates.work import look, of_counting, of_fits, refuse, spend

TABLE_UP_TO = 8192
"""Columns up to which all of Q is kept; beyond that only where it takes no more memory than the data."""

MOST_ENTRIES = 1 << 18
"""Numbers in the stacked matrices processed together, so that they stay in the cache."""

STEEPEST = 1e6
"""No more is made of a level so near to c that w is larger."""

NEARLY_ALIKE = 0.999
"""Columns of length one whose product with all others is smaller than this are no copies, nor zero."""

AT_ONCE = 1e10
"""Sets that are counted without listening to interrupts or looking at the clock (about a second), where they can be
divided."""

Columns = NDArray[np.intp]


class Split(NamedTuple):
    """A split of a file."""

    columns: Columns
    """(m,) ascending"""
    scale: FloatArray
    """(m,) positive"""
    entries: FloatArray
    """N (m, m)"""


Masks = NDArray[np.bool_]


class _Regions(NamedTuple):
    """Regions in the order of Q: columns of S and C (B, d), and how many of C a model may have (B,)."""

    S: Masks
    C: Masks
    slots: NDArray[np.int64]


class _Eliminated(NamedTuple):
    """What Q - mu I leaves on C where S is eliminated: M - F'R with M (B, m, m), F and R (B, s, m); its diagonal (B, m)
    stands besides, and whether all pivots were positive (B,).
    """

    sound: Masks
    M: FloatArray
    F: FloatArray
    R: FloatArray
    diagonal: FloatArray


class Semidefinite:
    """Bound to one problem and one level."""

    def __init__(self, bounds: RigorousBounds, level: float, most: float, first: NDArray[np.int64]) -> None:
        """At most ``most`` sets are counted; ``first`` are the columns that leave regions first, which saves copies."""
        self.most, self.counted_sets = most, 0
        n, d, lam = bounds.n, bounds.d, bounds.instance.lam
        with np.errstate(all="ignore"):
            squares, many = careful_products(bounds.y[None], bounds.y[:, None])
            square = float(squares[0, 0])
            T = (square * (1.0 - gamma(many)) - 2.0 * level) * (1.0 - 8 * U)
            w = math.sqrt(square / T) * (1.0 + gamma(many)) if T > 0 else math.inf
            self.usable = bounds.loss.quadratic and w <= STEEPEST and (d <= max(TABLE_UP_TO, n))
            if not self.usable:
                return
            spend(1.0 * n * d * d)
            r = np.sqrt(bounds.norms**2 + lam)
            self.size = np.where(r > 0, r, 1.0)
            self.order = np.concatenate([first, np.setdiff1d(np.arange(d), first)])
            unit = bounds.A[:, self.order] / self.size[self.order]
            v = careful_products(bounds.y[None], unit)[0][0] / math.sqrt(T)
            # The last row is that of columns no model has, which make sets of one size out of many: they go with none.
            self.Q = np.zeros((d + 1, d + 1))
            _, many = careful_products(unit.T, unit, self.Q[:d, :d])
            self.error = 1.01 * (gamma(many + 8) * (1.0 + 3.0 * w) + 8 * U)
            squares = np.diagonal(self.Q)[:d].copy()
            alone = np.ones(d, dtype=np.bool_)
            for rows in range(0, d, 512):
                block = self.Q[rows : min(rows + 512, d), :d]
                alone[rows : rows + 512] = np.sum(np.abs(block) > NEARLY_ALIKE, axis=1) == 1  # itself
                block -= np.multiply.outer(v[rows : rows + 512], v)
            ridge = lam / self.size[self.order] / self.size[self.order]
            self.diagonal = np.append(squares + ridge - v * v, 1.0)
            self.Q[range(d), range(d)] = self.diagonal[:d]
        self.alike = np.arange(d)
        """(d,) positions of equal number are of columns with the same direction; -1 for columns of zeros."""
        if lam == 0:
            numbers = {b"": -1}
            for i in np.flatnonzero(~alone).tolist():
                self.alike[i] = numbers.setdefault(direction(bounds.A[:, self.order[i]]), i)

    @cached_property
    def distinct(self) -> bool:
        """Whether every set of columns that is counted stands for itself alone."""
        return bool(len(np.unique(self.alike)) == len(self.alike) and np.all(self.alike >= 0))

    def alone(self, columns: list[int]) -> bool:
        """Whether a set that is counted stands for no other set."""
        return self.distinct or not (np.any(self.alike < 0) or self.has_copies(columns))

    def has_copies(self, columns: list[int]) -> bool:
        """Whether another column has the direction of one of these, and so is counted as that one."""
        directions = self.alike[np.isin(self.order, columns)]
        return bool(np.count_nonzero(np.isin(self.alike, directions[directions >= 0])) > len(columns))

    def room(self, m: int, more: float = 0.0) -> float:
        """mu for sets of m columns whose entries are off by ``more`` besides."""
        return 1.01 * m * (self.error + more + gamma(2 * m + 8)) + 4 * U

    def _distinct(self, sets: Masks, without: Masks | None = None) -> Masks:
        """One column of each direction in every set (B, d), and none of a direction of those it is to do without."""
        if self.distinct:
            return sets
        result = np.zeros_like(sets)
        for row, columns in enumerate(map(np.flatnonzero, sets)):
            first = columns[np.unique(self.alike[columns], return_index=True)[1]]
            directions = [-1, *(() if without is None else self.alike[without[row]])]
            result[row, first[~np.isin(self.alike[first], directions)]] = True
        return result

    def _regions(self, states: States, k: int) -> _Regions:
        states = states[:, self.order]
        S, slots = self._distinct(states == IN), np.maximum(k - np.sum(states == IN, axis=1), 0)
        C = self._distinct((states == FREE) & (slots > 0)[:, None], S)
        return _Regions(S, C, np.minimum(slots, np.sum(C, axis=1)))

    def on_all(self, used: Masks) -> Masks:
        """For sets of columns (B, d): whether no model on all of the set's columns costs less than the level."""
        result = np.zeros(len(used), dtype=np.bool_)
        if not self.usable:
            return result
        used = self._distinct(used[:, self.order])
        sizes = np.sum(used, axis=1)
        for m in np.unique(sizes).tolist():
            rows = np.flatnonzero(sizes == m)
            spend(of_fits(len(rows), m))
            for part in np.array_split(rows, math.ceil(len(rows) * (m * m + 1) / MOST_ENTRIES)):
                look()
                columns = np.nonzero(used[part])[1].reshape(len(part), m)
                M = self.Q[columns[:, :, None], columns[:, None, :]]
                M[:, range(m), range(m)] -= self.room(m)
                result[part] = each_runs(M)
        return result

    def split(self, state: NDArray[np.uint8], k: int, split: Split) -> bool:
        """Whether a region holds nothing below the level, by Q - E (FORMAT.md, SPLIT)."""
        if not self.usable:
            return False
        S, C, (slots,) = self._regions(state[None], k)
        used = np.concatenate([np.flatnonzero(S[0]), np.flatnonzero(C[0])])
        spend(of_fits(1, len(used)) + 64.0 * len(split.columns) ** 2)
        at = np.full(len(self.order), -1)
        at[self.order[used]] = np.arange(len(used))
        # Columns of S the split holds are candidates to it, that have their places.
        slots += np.count_nonzero(np.isin(self.order[S[0]], split.columns))
        columns = split.columns[at[split.columns] >= 0]
        N = split.entries[np.ix_(at[split.columns] >= 0, at[split.columns] >= 0)]
        with np.errstate(all="ignore"):
            # Any positive scale will do, so it may be rounded.
            p = split.scale[at[split.columns] >= 0] / self.size[columns]
            t = np.sum(-np.sort(-np.abs(N), axis=1)[:, : max(0, slots - 1)], axis=1) * (1.0 + gamma(len(N)))
            M = self.Q[np.ix_(used, used)]
            M[np.ix_(at[columns], at[columns])] -= np.multiply.outer(p, p) * N + np.diag(p * p * t)
            M[range(len(used)), range(len(used))] -= self.room(len(used), gamma(len(N) + 16))
        return bool(each_runs(M[None])[0])

    def counted(self, states: States, k: int) -> Masks:
        """For regions (B, d): whether none of their models costs less than the level, by counting all of them."""
        result = np.zeros(len(states), dtype=np.bool_)
        if not self.usable:
            return result
        sizes, slots = np.sum(states == FREE, axis=1), np.maximum(k - np.sum(states == IN, axis=1), 0)
        sets = [how_many(m, r) for m, r in zip(sizes.tolist(), slots.tolist(), strict=True)]
        spend(sum(map(of_counting, np.sum(states == IN, axis=1).tolist(), sizes.tolist(), slots.tolist())))
        count = compiled(sum(sets), len(sets))
        if count is None:
            with without_twin():
                return self._counted_in_tables(states, k)
        rooms = np.array([self.room(size) for size in range(k + 1)])
        most, together = self.most - self.counted_sets, np.cumsum(sets, dtype=np.float64)
        self.counted_sets += sum(number for number, so_far in zip(sets, together, strict=True) if so_far <= most)
        if np.any(together > most):
            refuse()
        large = (np.array(sets, dtype=np.float64) > AT_ONCE) & (slots > 3)

        def passed(states: States) -> Masks:
            answers = np.zeros(len(states), dtype=np.bool_)
            count(self.Q, self.diagonal, rooms, self.alike, states[:, self.order], k, answers)
            return answers

        rows = np.flatnonzero((together <= most) & ~large)
        for part in np.split(rows, np.flatnonzero(np.diff(together[rows] // AT_ONCE)) + 1):
            look()
            result[part] = passed(states[part])
        for row in np.flatnonzero((together <= most) & large).tolist():
            result[row] = all(passed(part[None])[0] for part in self._by_pivots(states[row]))
        return result

    def _by_pivots(self, state: NDArray[np.uint8]) -> Iterator[NDArray[np.uint8]]:
        """A region in parts: each candidate in turn is fixed to 1, and to 0 from then on."""
        part = state.copy()
        for column in self.order[state[self.order] == FREE].tolist():
            look()
            part[column] = IN
            yield part
            part[column] = OUT
        yield part

    def _counted_in_tables(self, states: States, k: int) -> Masks:
        """The same without a compiler."""
        result = np.zeros(len(states), dtype=np.bool_)
        regions = self._regions(states, k)
        sizes = np.sum(regions.C, axis=1)
        order = np.lexsort((-sizes, regions.slots))
        while len(order):
            m, r = int(sizes[order[0]]), int(regions.slots[order[0]])
            part = order[: max(1, MOST_ENTRIES // (m + 1) ** 2)]
            part = part[regions.slots[part] == r]
            order = order[len(part) :]
            work = len(part) * how_many(m, r)
            if self.counted_sets + work > self.most:
                refuse()
                continue
            self.counted_sets += work
            result[part] = all_hold(*self._eliminated(regions, part, r), r)
        return result

    def may_count(self, state: NDArray[np.uint8], k: int) -> bool:
        """Whether the sets of a region may be counted one by one; if so, they are taken off what may be counted."""
        free, slots = int(np.sum(state == FREE)), max(k - int(np.sum(state == IN)), 0)
        # Where there is a place for every column they are taken one by one all the same.
        sets = how_many(free + 1, min(free, slots))
        if self.counted_sets + sets > self.most:
            refuse()
            return False
        spend(of_counting(int(np.sum(state == IN)), free, slots))
        self.counted_sets += sets
        return True

    def undecided(self, state: NDArray[np.uint8], k: int) -> Iterator[list[int]]:
        """The sets of columns of a region that counting does not show to hold nothing below the level."""
        regions = self._regions(state[None], k)
        S, C, r = self.order[regions.S[0]], self.order[regions.C[0]], int(regions.slots[0])
        (sound,), (M,), (F,), (R,), (diagonal,) = self._eliminated(regions, np.zeros(1, dtype=np.intp), r)
        if not sound:
            yield sorted(S.tolist())
        with np.errstate(all="ignore"):
            rest = M - F.T @ R
        for chosen in unproven(rest, diagonal if sound else np.zeros(len(C)), r):
            yield sorted([*S.tolist(), *C[list(chosen)].tolist()])

    def _eliminated(self, regions: _Regions, rows: Columns, slots: int) -> _Eliminated:
        S, C = self._filled(regions.S[rows]), self._filled(regions.C[rows])
        s, m = S.shape[1], C.shape[1]
        room = self.room(s + slots)
        inner, R = self.Q[S[:, :, None], S[:, None, :]], self.Q[S[:, :, None], C[:, None, :]]
        inner[:, range(s), range(s)] = self.diagonal[S] - room
        F = np.empty_like(R)
        with np.errstate(all="ignore"):
            for i in range(s):
                # Only what stands above the diagonal is used, so that this is an elimination of a symmetric matrix.
                factor = inner[:, i, i + 1 :] / inner[:, i, i, None]
                inner[:, i + 1 :, i + 1 :] -= factor[:, :, None] * inner[:, i, None, i + 1 :]
                R[:, i + 1 :] -= factor[:, :, None] * R[:, i, None, :]
                F[:, i] = R[:, i] / inner[:, i, i, None]
            diagonal = self.diagonal[C] - room - np.sum(F * R, axis=1)
        if len(C) == 1 and m > 0 and C[0, -1] - C[0, 0] == m - 1:
            M = self.Q[None, C[0, 0] : C[0, 0] + m, C[0, 0] : C[0, 0] + m]
        else:
            M = self.Q[C[:, :, None], C[:, None, :]] if slots > 1 else np.broadcast_to(np.zeros(1), (len(C), m, m))
        return _Eliminated(np.all(np.diagonal(inner, axis1=1, axis2=2) > 0, axis=1), M, F, R, diagonal)

    def _filled(self, sets: Masks) -> Columns:
        """The columns of each set in a table, padded with the column no model has."""
        sizes = np.sum(sets, axis=1)
        table = np.full((len(sets), int(np.max(sizes))), len(self.order), dtype=np.intp)
        table[np.arange(table.shape[1]) < sizes[:, None]] = np.nonzero(sets)[1]
        return table
