"""Bounds on the gain of any r weak columns over a fit, with similar columns grouped (FORMAT.md, LIKE).

C holds the cosines of the weak columns, as elimination leaves them. Columns touch where |C_ij| >= tau, and any r of
them fall into connected parts. With R_a'R_a = C_a^-1 for a part a, and L_a no less than its largest eigenvalue, block
diagonal dominance with weights w gives u'C^-1 u <= sum |R_a u_a|^2 / (1 - t_a) where all t_a < 1,

    t_a^2 = (sum over the other parts b of w_b L_b) / w_a  x  the likeness of a,

which is the sum of the r - |a| largest |R_a C_aj|^2 over columns j that touch none of the part, and never more than L_a
times the sums of so many C_ij^2 below tau^2 for i in a. That is tested first; only the columns it does not clear are
computed in full.

Rounding. Products in double precision are off by some 1e-13 of what is added up; SLACK covers the factors of matrices
whose inverses are no larger than LARGEST_INVERSE, and all sums. Cosines that are computed twice may differ by
``error``: |R_a r| changes by error times the root of |a| L_a at most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exactsel_certificates.formula import FloatArray
from exactsel_certificates.work import look, spend

Columns = NDArray[np.intp]

SLACK = 1e-9
"""Room for roundings, relative to what is computed."""

LARGEST_INVERSE = 1e3
"""Sets of columns whose matrix has a larger inverse prove nothing."""

MOST_PLACES = 12
"""Places up to which columns are taken together."""

MOST_NUMBERS = 80_000_000
"""Numbers that are kept of all connected sets, at most; a proof that needs more proves nothing."""

MOST_EDGES = 64
"""Pairs of columns that touch, at most, by the columns there are."""

GROWN, MOST_GROWN = 1 << 20, 1 << 22
"""Sets that are made at a time, and, of one smallest column, at most."""

LOOKED, MOST_LOOKED = 64, 4096
"""Sets whose likeness is worked out together; twice as many more each time they do not suffice, up to a limit."""

TABLE = 1 << 25
"""Cosines of all columns with all that are kept, at most."""

STEPS = 40
"""Steps towards weights that balance the parts."""


class Left(NamedTuple):
    """What elimination of the strong columns leaves of the weak ones."""

    columns: int
    error: float
    """By which two values of one cosine may differ."""
    rows: Callable[[Columns], FloatArray]
    """The cosines of some with all."""
    pairs: Callable[[Columns, Columns], FloatArray]
    """Those of pairs."""


class _Sets:
    """The connected sets of one size: what is kept of each stands in one column."""

    def __init__(self, members: NDArray[np.int32], C: FloatArray, squares: FloatArray) -> None:
        self.members = members
        """(m, sets)"""
        self.R, self.inverse = _inverse_factors(C)
        with np.errstate(all="ignore"):
            rough = np.sum(squares[members], axis=0)
            rough[:, 1:] *= self.inverse[:, None]
        self.likeness: FloatArray = rough
        self.looked = np.zeros(members.shape[1], dtype=bool)
        self.worst = float(np.max(self.inverse))

    def gains(self, u: FloatArray) -> FloatArray:
        """|R_a u_a|^2"""
        total, at = np.zeros(self.members.shape[1]), 0
        for a in range(len(self.members)):
            entry = sum(self.R[at + b] * u[self.members[b]] for b in range(a + 1))
            total += entry * entry
            at += a + 1
        return np.where(np.isfinite(self.inverse), total * (1.0 + SLACK), np.inf)


class LikeColumns:
    """Bound to one region's weak columns and one threshold; ``usable`` where it could be made.

    Parameters
    ----------
    left : Left
    tau : float
    most : int
        Places of any region, at most.
    parts : sequence of int arrays
        All columns, in blocks that are processed together.
    """

    def __init__(self, residuals: Left, tau: float, most: int, parts: list[Columns]) -> None:
        self._left, self._tau, self._most = residuals, tau, min(most, residuals.columns)
        self._sets: dict[int, _Sets] = {}
        small = residuals.columns**2 <= TABLE
        self._table = np.empty((residuals.columns, residuals.columns)) if small else None
        self.usable = tau > 0.0 and self._most <= MOST_PLACES and self._pass(parts)
        if self.usable:
            self.usable = self._list()

    def _pass(self, parts: list[Columns]) -> bool:
        """Which columns touch, and the sums of what is below; False where too many do."""
        edges: list[NDArray[np.int64]] = []
        sums: list[FloatArray] = []
        squares: list[FloatArray] = []
        for part in parts:
            look()
            rows = self._left.rows(part)
            if self._table is not None:
                self._table[part] = rows
            sizes = np.abs(rows)
            sizes[range(len(part)), part] = 0.0
            touch = sizes >= self._tau
            edges.append(np.argwhere(touch) + np.array([part[0], 0]))
            if sum(map(len, edges)) > MOST_EDGES * self._left.columns:
                return False
            sizes[touch] = 0.0
            most = self._most - 1
            last = sizes.shape[1] - most
            largest = -np.sort(-np.partition(sizes, last, axis=1)[:, last:], axis=1) if most else sizes[:, :0]
            for totals, values in ((sums, largest), (squares, (largest + self._left.error) ** 2)):
                totals.append(np.cumsum(np.column_stack([np.zeros(len(part)), values]), axis=1) * (1.0 + SLACK))
        self._sums, self._squares = np.concatenate(sums), np.concatenate(squares)
        both = np.concatenate(edges)
        self._neighbours = both[:, 1].astype(np.int32)
        self._starts = np.searchsorted(both[:, 0], np.arange(self._left.columns + 1))
        return True

    def _list(self) -> bool:
        """Make all connected sets and factorise their matrices; False where there are too many."""
        count, numbers = self._left.columns, 0
        sets = np.arange(count, dtype=np.int32)[None]
        for m in range(2, self._most + 1):
            grown = self._grown(sets, (MOST_NUMBERS - numbers) // (m * (m + 3) // 2 + self._most))
            if grown is None:
                return False
            if not grown.shape[1]:
                return True
            sets = grown
            numbers += sets.shape[1] * (m * (m + 3) // 2 + self._most)
            self._sets[m] = _Sets(sets, self._matrices(sets), self._squares[:, : self._most - m + 1])
        return True

    def _grown(self, sets: NDArray[np.int32], room: int) -> NDArray[np.int32] | None:
        """Every set of one column more, the smallest one staying, once; None where there is no room.

        Sets are compared by sums of random numbers, and by their members where the sums are equal.
        """
        degree = np.diff(self._starts)
        each = np.sum(degree[sets], axis=0)
        ends = np.flatnonzero(np.append(np.diff(sets[0]), 1)) + 1  # sets of one smallest column are made together
        codes = np.random.default_rng(0).integers(0, 1 << 63, size=len(degree), dtype=np.uint64)
        blocks, total, first = list[NDArray[np.int32]](), 0, 0
        sizes = np.cumsum(each)
        while first < sets.shape[1]:
            before = sizes[first - 1] if first else 0
            fitting = ends[sizes[ends - 1] <= before + GROWN]
            last = int(max(fitting[-1] if fitting.size else 0, ends[np.searchsorted(ends, first, side="right")]))
            if sizes[last - 1] - before > MOST_GROWN:
                return None
            spend(32.0 * (len(sets) + 1) * float(sizes[last - 1] - before + last - first))
            candidates = self._candidates(sets[:, first:last])
            key = np.sum(codes[candidates], axis=0)
            order = np.argsort(key, kind="stable")
            candidates, key = candidates[:, order], key[order]
            again = np.zeros(len(key), dtype=bool)
            again[1:] = key[1:] == key[:-1]
            if np.any(candidates[:, again] != candidates[:, np.flatnonzero(again) - 1]):
                return None
            candidates = candidates[:, ~again]
            total += candidates.shape[1]
            if total > room:
                return None
            blocks.append(candidates[:, np.argsort(candidates[0], kind="stable")])
            first = last
        return np.concatenate(blocks, axis=1)

    def _candidates(self, sets: NDArray[np.int32]) -> NDArray[np.int32]:
        """Sets with a later column that touches one of theirs, sorted each."""
        blocks = []
        for member in sets:
            parent, new = self._touching(member)
            fresh = (new > sets[0, parent]) & np.all(sets[:, parent] != new, axis=0)
            blocks.append(np.concatenate([sets[:, parent[fresh]], new[None, fresh]]))
        return np.sort(np.concatenate(blocks, axis=1), axis=0)

    def _touching(self, columns: NDArray[np.int32]) -> tuple[Columns, NDArray[np.int32]]:
        """Which of some columns touches which others."""
        many = self._starts[columns + 1] - self._starts[columns]
        which = np.repeat(np.arange(len(columns)), many)
        offset = np.arange(len(which)) - np.repeat(np.cumsum(many) - many, many)
        return which, self._neighbours[self._starts[columns[which]] + offset]

    def _matrices(self, sets: NDArray[np.int32]) -> FloatArray:
        """Below the diagonal the cosines of each set, row by row."""
        m, count = len(sets), self._left.columns
        pairs = [sets[b].astype(np.int64) * count + sets[a] for a in range(m) for b in range(a)]
        codes, where = np.unique(np.concatenate(pairs), return_inverse=True)
        values = self._left.pairs(codes // count, codes % count)
        spend(4.0 * sets.shape[1] * m**3)
        return np.asarray(values[where].reshape(len(pairs), -1))

    def most(self, u: FloatArray, count: int, enough: float) -> bool:
        """Whether no ``count`` columns gain more than enough; u are the products with the target, made one long."""
        spend(float(sum(sets.R.size for sets in self._sets.values()) + 16 * len(u)))
        with np.errstate(all="ignore"):
            gains = {m: sets.gains(u) for m, sets in self._sets.items() if m <= count}
            ways = [way for way in _ways(count, count) if all(m == 1 or m in gains for m in way)]
            return not any(self._gains_more(way, u, gains, count, enough) for way in ways)

    def _gains_more(
        self, way: tuple[int, ...], u: FloatArray, gains: dict[int, FloatArray], count: int, enough: float
    ) -> bool:
        """Whether parts of these sizes may."""
        factors = _factors(way, [self._sets[m].worst if m > 1 else 1.0 for m in way])
        if not all(np.isfinite(factors)):
            return True
        of_size, times = dict(zip(way, factors, strict=True)), Counter(way)
        ones = self._of_ones(u, of_size.get(1, 0.0), times[1], count) if times[1] else 0.0
        many = LOOKED
        while True:
            values = {m: _values(gains[m], of_size[m] * self._sets[m].likeness[:, count - m]) for m in times if m > 1}
            total = ones + sum(times[m] * float(np.max(each)) for m, each in values.items())
            if total * (1.0 + SLACK) <= enough:
                return False
            closer = [m for m in values if m < count and not self._sets[m].looked[np.argmax(values[m])]]
            if not closer or not ones + sum(times[m] * float(np.max(gains[m])) for m in values) <= enough:
                return True
            many = min(2 * many, MOST_LOOKED)
            for m in closer:
                each = np.where(self._sets[m].looked, -1.0, values[m])
                first = max(0, len(each) - many)
                chosen = np.sort(np.argpartition(each, first)[first:])
                for some in np.array_split(chosen, -(-len(chosen) // LOOKED)):
                    self._look(m, some)

    def _of_ones(self, u: FloatArray, factor: float, ones: int, count: int) -> float:
        """What so many columns that touch no other can take off."""
        squares = factor * self._squares[:, count - 1] if ones < count else self._sums[:, count - 1] ** 2
        return float(np.sum(-np.sort(-_values(u * u, squares))[:ones]))

    def _look(self, m: int, chosen: Columns) -> None:
        """Work out the likeness of some sets."""
        sets = self._sets[m]
        chosen = chosen[~sets.looked[chosen] & np.isfinite(sets.inverse[chosen])]
        if not chosen.size:
            return
        members = sets.members[:, chosen]
        columns, where = np.unique(members.astype(np.intp), return_inverse=True)
        spend(float(chosen.size) * self._left.columns * (m + 2.0) ** 2)
        R = np.zeros((len(chosen), m, m))
        R[(slice(None), *np.tril_indices(m))] = sets.R[:, chosen].T
        rows = self._left.rows(columns) if self._table is None else self._table[columns]
        like = np.sum((R @ rows[where.reshape(m, -1).T]) ** 2, axis=1)
        for member in members:
            like[range(len(chosen)), member] = 0.0
            like[self._touching(member)] = 0.0
        most = sets.likeness.shape[1] - 1
        largest = -np.sort(-np.partition(like, like.shape[1] - most, axis=1)[:, like.shape[1] - most :], axis=1)
        off = self._left.error * np.sqrt(m * sets.inverse[chosen])[:, None] * np.sqrt(np.arange(1, most + 1))
        likeness = (np.sqrt(np.cumsum(largest, axis=1)) + off) ** 2 * (1.0 + SLACK)
        sets.likeness[chosen, 1:] = np.minimum(sets.likeness[chosen, 1:], likeness)
        sets.looked[chosen] = True


def _values(gains: FloatArray, squares: FloatArray) -> FloatArray:
    """Gains divided by 1 less a root."""
    parts = np.sqrt(squares) * (1.0 + SLACK)
    return np.where(parts < 1.0, gains / np.where(parts < 1.0, 1.0 - parts, 1.0), np.inf)


def _ways(total: int, largest: int) -> list[tuple[int, ...]]:
    """The ways to write a number as a sum, each in descending order."""
    if not total:
        return [()]
    return [(m, *rest) for m in range(min(total, largest), 0, -1) for rest in _ways(total - m, m)]


def _factors(way: tuple[int, ...], inverse: list[float]) -> list[float]:
    """For each part the sum of w_b L_b / w_a over the others, w from some steps towards what balances them."""
    if len(way) == 1:
        return [0.0]
    weights, r = [1.0] * len(way), sum(way)
    for _ in range(STEPS):
        all_parts = sum(w * L for w, L in zip(weights, inverse, strict=True))
        weights = [
            (w * m * (r - m) * (all_parts - w * L)) ** 0.5 for w, m, L in zip(weights, way, inverse, strict=True)
        ]
        weights = [w / max(weights) for w in weights]
    terms = [w * L for w, L in zip(weights, inverse, strict=True)]
    return [sum(terms[:a] + terms[a + 1 :]) / w * (1.0 + SLACK) for a, w in enumerate(weights)]


def _inverse_factors(C: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Of matrices with a diagonal of ones the inverses of their factors, and the largest row sums of their inverses.

    These are infinite where a matrix is not definite or its inverse too large.
    """
    m = round((1.0 + (1.0 + 8.0 * len(C)) ** 0.5) / 2.0)
    below = iter(C)
    factor, R = dict[tuple[int, int], FloatArray](), dict[tuple[int, int], FloatArray]()
    definite = np.ones(C.shape[1], dtype=bool)
    with np.errstate(all="ignore"):
        for a in range(m):
            for b in range(a):
                rest = next(below) - sum(factor[a, c] * factor[b, c] for c in range(b))
                factor[a, b] = rest / factor[b, b]
            square = 1.0 - sum((factor[a, c] ** 2 for c in range(a)), np.zeros(C.shape[1]))
            definite &= square > 0.0
            factor[a, a] = np.sqrt(np.where(square > 0.0, square, 1.0))
            for b in range(a + 1):
                rest = (a == b) - sum((factor[a, c] * R[c, b] for c in range(b, a)), np.zeros(C.shape[1]))
                R[a, b] = rest / factor[a, a]
        rows = [
            np.sum([np.abs(np.sum([R[c, a] * R[c, b] for c in range(max(a, b), m)], axis=0)) for b in range(m)], axis=0)
            for a in range(m)
        ]
        largest = np.max(rows, axis=0) * (1.0 + SLACK)
    packed = np.array([R[a, b] for a in range(m) for b in range(a + 1)])
    return packed, np.where(definite & (largest <= LARGEST_INVERSE), largest, np.inf)
