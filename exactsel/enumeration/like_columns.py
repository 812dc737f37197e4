"""Bounds on the gain of any r weak columns over a fit, with similar columns grouped.

With the strong columns eliminated and each made one long, weak columns have the matrix C of cosines. Say that two of
them touch where |C_ij| >= tau. Any r columns U fall into connected parts U_1, U_2, ... of that graph, and between parts
all cosines are smaller. With E_ab = C_a^-1/2 C_ab C_b^-1/2 for parts a and b, and any weights w_a > 0,

    x'Cx >= sum (1 - t_a) x_a' C_a x_a,      t_a >= sum over b of sqrt(w_b / w_a) ||E_ab||,

since 2 |y_a' E_ab y_b| <= ||E_ab|| (sqrt(w_b / w_a) |y_a|^2 + sqrt(w_a / w_b) |y_b|^2). So where all t_a < 1

    u' C_U^-1 u <= sum over the parts of u_a' C_a^-1 u_a / (1 - t_a).

With L_b >= ||C_b^-1||, ||E_ab||^2 <= L_b ||C_a^-1/2 C_ab||^2 in Frobenius' norm, and by Cauchy and Schwarz

    t_a^2 <= sum over b of w_b L_b / w_a  x  sum over the columns j of the other parts of C_ja C_a^-1 C_aj.

The latter is at most the sum of the r - |a| largest such terms over all columns that touch none of the part: its
likeness, which is no more than L_a times the sum of the squares of so many cosines of each of its columns with those it
does not touch. w_a and L_b, the largest of any part with as many columns, depend on the sizes of the parts only, and w
is such that the t_a would be alike if likeness were in proportion to |a| (r - |a|). Where each part is a single column
the plain sum of cosines below tau will do for t_a. The gain of any r columns is then at most the largest sum, over the
ways to write r as a sum, of the largest value of any part of each size.

Connected sets are listed once, each with the inverse of its Cholesky factor. Their likeness takes a pass over all
columns a set, and is worked out for those only that stand in the way.

Rounding: cosines inside of a part are in double precision, and their matrix is that of the columns with a margin taken
off (weak_columns.py); what its factorisation rounds is within ALLOWANCE where the inverse is not large. Cosines between
parts are off by no more than an error e_i in single precision. With ||C_a^-1/2 r|| <= ||C_a^-1/2 computed r|| + d,
d = sqrt(|a| L_a) (e + what m products round), the root of a sum of q terms grows by sqrt(q) d at most.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exactsel.enumeration.cosine_graphs import MOST_NUMBERS, Graph, numbers_of
from exactsel.enumeration.cosines import SINGLE_UNIT
from exactsel.enumeration.weak_columns import Below, WeakColumns
from exactsel.kernels.connected import (
    ALLOWANCE,
    connected_sets,
    factorise_sets,
    largest_gain,
    set_gains,
    sum_likeness,
)
from exactsel.types import FloatArray, IntArray

FEW, MANY = 256, 4096
"""Sets whose likeness is worked out at a time, without a table of all cosines and with it."""

MOST_LOOKS = 4e10
"""Cosines that are evaluated for likeness, in all."""

ROOT = 20.0
"""Multiplications that a root and a quotient of a set take, and fetching its likeness."""

BRIEF = 3
"""Passes over sets that stand in the way, where the region can be divided as well."""

MARGIN = 1e-6
"""Part of what is left of the target that must be left over still, so that no rounding of a checker matters."""

BALANCING = 40
"""Steps towards weights that balance the parts."""

PAIRS = 4096
"""Pairs whose products are formed at a time."""


@dataclass
class Sets:
    """All connected sets of one size."""

    members: NDArray[np.int32]
    """(count, m)"""
    roots: FloatArray
    spread: FloatArray
    """(count,) L of each."""
    likeness: FloatArray
    """(count, most - m + 1) for 0, 1, 2, ... columns of other parts, or more."""
    looked: NDArray[np.bool_]
    """(count,) whether likeness is worked out as well as it can be."""

    @property
    def worst(self) -> float:
        """L of any."""
        return float(np.max(self.spread))


@cache
def partitions(total: int, largest: int) -> tuple[tuple[int, ...], ...]:
    """The ways to write a number as a sum, each in descending order."""
    if total == 0:
        return ((),)
    return tuple(
        (first, *rest)
        for first in range(min(total, largest), 0, -1)
        for rest in partitions(total - first, first)
    )  # fmt: skip


class Worst(NamedTuple):
    """The partition that gains most."""

    gain: float
    sizes: tuple[int, ...]
    rows: dict[int, int]
    """The set of each size that gains most in it."""


class LikeColumns:
    """Bounds what weak columns take off, those that touch taken together.

    Parameters
    ----------
    weak : WeakColumns
    graph : Graph
    """

    def __init__(self, weak: WeakColumns, graph: Graph) -> None:
        self._weak, self._graph, self._looks = weak, graph, 0.0
        self.work = 0.0
        """Multiplications that gains and likeness of sets have taken."""
        self._squares, self._sums = self._of_singles()
        self._factors: dict[tuple[tuple[int, ...], int], dict[int, float]] = {}

    @property
    def listed(self) -> bool:
        """Whether all connected sets could be listed."""
        return self._found is not None

    @property
    def _sets(self) -> dict[int, Sets]:
        return self._found or {}

    def _of_singles(self) -> tuple[FloatArray, FloatArray]:
        """Of 0, 1, ... cosines of each column with those it does not touch, the squares summed, and the sizes."""
        weak, most = self._weak, self._weak.slots
        falling = weak.sizes[:, ::-1].astype(np.float64)
        degree = np.count_nonzero(falling >= self._graph.tau, axis=1)
        # Beyond a list there is nothing larger than its last entry.
        at = np.minimum(degree[:, None] + np.arange(most - 1), falling.shape[1] - 1)
        below = np.minimum(np.take_along_axis(falling, at, axis=1), self._graph.tau) + weak.columns.error[:, None]
        zeros = np.zeros((len(falling), 1))
        return tuple(
            np.concatenate([zeros, np.cumsum(part, axis=1)], axis=1) * (1.0 + ALLOWANCE) for part in (below**2, below)
        )  # type: ignore[return-value]

    @cached_property
    def _found(self) -> dict[int, Sets] | None:
        """The connected sets of each size, their matrices factorised; None where not all could be listed."""
        weak, graph, most = self._weak, self._graph, self._weak.slots
        counts, first = np.zeros(most + 1, dtype=np.int64), np.zeros(most + 2, dtype=np.int64)
        nothing, limit = np.zeros(0, dtype=np.int32), MOST_NUMBERS
        if not graph.neighbours.size:
            return {}
        complete = connected_sets(graph.starts, graph.neighbours, most, limit, counts, first, nothing, weak.stop)
        if not complete or numbers_of(counts) > MOST_NUMBERS:
            return None
        first[1:] = np.cumsum(counts * np.arange(most + 1))
        members, again = np.zeros(first[-1], dtype=np.int32), np.zeros_like(counts)
        if not connected_sets(graph.starts, graph.neighbours, most, limit, again, first, members, weak.stop):
            return None
        sets = {m: members[first[m] : first[m + 1]].reshape(-1, m) for m in range(2, most + 1) if counts[m]}
        if not sets:
            return {}
        pairs = np.unique(np.concatenate([_pairs_of(each, len(weak.weak)) for each in sets.values()]))
        parts = np.array_split(pairs, -(-len(pairs) // PAIRS))
        cosines = np.concatenate([weak.columns.of_pairs(*np.divmod(part, len(weak.weak))) for part in parts])
        return {m: self._factorised(each, pairs, cosines) for m, each in sets.items()}

    def _factorised(self, members: NDArray[np.int32], pairs: IntArray, cosines: FloatArray) -> Sets:
        """Sets of one size with their factors, and likeness as far as squares determine it."""
        count, m = members.shape
        roots, spread = np.empty((count, m * (m + 1) // 2)), np.empty(count)
        factorise_sets(members, pairs, cosines, len(self._weak.weak), roots, spread)
        likeness = np.zeros((count, self._weak.slots - m + 1))
        for a in range(m):
            likeness += self._squares[members[:, a], : likeness.shape[1]]
        likeness[:, 1:] *= spread[:, None]
        return Sets(members, roots, spread, likeness, np.zeros(count, dtype=np.bool_))

    @property
    def threshold(self) -> FloatArray:
        """(1,) tau; (0,) where no columns are taken together."""
        return np.array([self._graph.tau] if self._graph.neighbours.size else [])

    def too_much_alike(self) -> IntArray:
        """The weak columns that keep open every region with all places free."""
        return self._weak.weak[self._sums[:, self._weak.slots - 1] >= 1.0]

    def holds(self, below: Below, slots: int, *, thorough: bool = True) -> bool:
        """Whether no ``slots`` weak columns can bring a fit on B below the level.

        ``thorough`` works out all likeness that stands in the way, however long it takes.
        """
        count = min(slots, self._weak.slots)
        if not below.rest > 0.0 or count == 0:
            return below.rest > 0.0
        if not self.listed or not self._weak.known.all():
            return False
        gains, most = self._gains(below), below.rest * (1.0 - MARGIN)
        if self._least(gains, below, count) > most:
            return False
        looks = 0
        while True:
            worst = self._worst(gains, below, count)
            if worst.gain <= most:
                return True
            if not (thorough or self._weak.table is not None or looks < BRIEF) or not self._look_closer(
                worst, gains, count
            ):
                return False
            looks += 1

    def in_the_way(self, below: Below, slots: int) -> IntArray:
        """The weak columns that can bring it below the level most easily, some more than there are places."""
        weak, count = self._weak, min(slots, self._weak.slots)
        if not count:
            return np.zeros(0, dtype=np.int64)
        parts = self._sums[:, count - 1]
        u = np.where(weak.known & (parts < 1.0), below.u**2 / np.maximum(1.0 - parts, 1e-12), np.inf)
        columns = np.argsort(-u, kind="stable")[: slots + 2].tolist()
        if self._sets and weak.known.all():
            worst = self._worst(self._gains(below), below, count)
            columns = [
                *(j for m, row in worst.rows.items() for j in self._sets[m].members[row].tolist()),
                *(j for m in worst.rows for j in self._sets[m].members[np.argmax(self._sets[m].spread)].tolist()),
                *columns,
            ]  # fmt: skip
        return np.asarray(weak.weak[list(dict.fromkeys(columns))], dtype=np.int64)

    def _gains(self, below: Below) -> dict[int, FloatArray]:
        """What each connected set takes off alone."""
        gains = {}
        for m, sets in self._sets.items():
            gains[m] = np.empty(len(sets.members))
            self.work += float(len(sets.members)) * m * m
            set_gains(sets.members, sets.roots, sets.spread, below.u, gains[m])
        return gains

    def _ways(self, count: int) -> list[tuple[int, ...]]:
        """The partitions there are sets for."""
        largest = max((m for m in self._sets if m <= count), default=1)
        return [way for way in partitions(count, largest) if all(m == 1 or m in self._sets for m in way)]

    def _factor(self, way: tuple[int, ...], size: int, count: int) -> float:
        """The sum of w_b L_b / w_a over the other parts b of a partition, for its parts a of a size."""
        key = way, count
        if key not in self._factors:
            spread = tuple(self._sets[m].worst if m > 1 else 1.0 for m in way)
            self._factors[key] = dict(zip(way, factors(way, spread), strict=True))
        return self._factors[key][size]

    def _least(self, gains: dict[int, FloatArray], below: Below, count: int) -> float:
        """No closer look can make the bound smaller."""
        best = {m: float(np.max(each)) for m, each in gains.items()}
        return max(
            sum(best[m] for m in way if m > 1) + (self._of_ones(below, way, count) if 1 in way else 0.0)
            for way in self._ways(count)
        )

    def _worst(self, gains: dict[int, FloatArray], below: Below, count: int) -> Worst:
        worst, memo = Worst(-1.0, (), {}), dict[tuple[int, float], tuple[float, int]]()
        for way in self._ways(count):
            total, rows = 0.0, {}
            for m in sorted({*way} - {1}):
                factor = self._factor(way, m, count)
                if (m, factor) not in memo:
                    of_sets = self._sets[m].likeness[:, count - m]
                    self.work += ROOT * len(of_sets)
                    memo[m, factor] = (math.inf, int(np.argmax(gains[m]))) if factor == math.inf else largest_gain(
                        gains[m], np.ascontiguousarray(of_sets), factor
                    )  # fmt: skip
                value, rows[m] = memo[m, factor]
                total += value * way.count(m)
            total += self._of_ones(below, way, count) if 1 in way else 0.0
            if total > worst.gain:
                worst = Worst(total, way, rows)
        return worst

    def _of_ones(self, below: Below, way: tuple[int, ...], count: int) -> float:
        """What the parts of one column each take off at most."""
        if len(way) == count:
            parts = self._sums[:, count - 1]
        else:
            factor = self._factor(way, 1, count)
            if factor == math.inf:
                return math.inf
            parts = np.sqrt(factor * self._squares[:, count - 1])
        if np.max(parts) >= 1.0:
            return math.inf
        values, ones = below.u**2 / (1.0 - parts), way.count(1)
        return float(np.partition(values, len(values) - ones)[len(values) - ones :].sum()) * (1.0 + ALLOWANCE)

    def _look_closer(self, worst: Worst, gains: dict[int, FloatArray], count: int) -> bool:
        """Work out the likeness of sets that stand in the way; whether there was any left to work out."""
        done = False
        for m, row in worst.rows.items():
            sets = self._sets[m]
            if sets.looked[row] or m == count or not math.isfinite(sets.worst):
                continue
            factor = self._factor(worst.sizes, m, count)
            parts = np.sqrt(factor * sets.likeness[:, count - m])
            values = np.where(parts < 1.0, gains[m] / np.maximum(1.0 - parts, 1e-300), np.inf)
            values[sets.looked] = -1.0
            chosen = np.argsort(-values, kind="stable")[: FEW if self._weak.table is None else MANY]
            self._look(m, np.sort(chosen[~sets.looked[chosen]]))
            done = True
        return done and self._looks <= MOST_LOOKS and not self._weak.stop[0]

    def _look(self, m: int, chosen: IntArray) -> None:
        sets, weak, graph = self._sets[m], self._weak, self._graph
        rows, table = np.arange(len(weak.weak)), weak.table
        if table is None:
            columns = np.unique(sets.members[chosen].astype(np.int64))
            rows[columns], table = np.arange(len(columns)), weak.columns.block(columns)
        most = sets.likeness.shape[1] - 1
        sums = np.empty((len(chosen), most))
        sum_likeness(table, rows, chosen, sets.members, sets.roots, graph.starts, graph.neighbours, sums)
        error = np.max(weak.columns.error) + (m + 2) * SINGLE_UNIT * math.sqrt(m)
        off = np.sqrt(m * sets.spread[chosen]) * error
        counts = np.arange(1, most + 1)
        better = (np.sqrt(sums) * (1.0 + 4 * (most + m) * SINGLE_UNIT) + np.sqrt(counts) * off[:, None]) ** 2
        sets.likeness[chosen, 1:] = np.minimum(sets.likeness[chosen, 1:], better * (1.0 + ALLOWANCE))
        sets.looked[chosen] = True
        self._looks += len(chosen) * float(len(weak.weak)) * m * m / 2.0


def factors(sizes: Sequence[int], spread: Sequence[float]) -> FloatArray:
    """For each part of a partition the sum of w_b L_b / w_a over the others; w is positive, and about the best.

    It is the eigenvector of the matrix of |a| (r - |a|) L_b, b not a, as some damped steps find it: with it the t_a of
    parts whose likeness is in proportion to |a| (r - |a|) would be the same.
    """
    m, L = np.array(sizes, dtype=np.float64), np.array(spread)
    if not np.all(np.isfinite(L)) or len(m) == 1:
        return np.where(len(m) == 1, 0.0, np.full(len(m), np.inf))
    w = np.ones(len(m))
    for _ in range(BALANCING):
        others = np.sum(w * L) - w * L
        w = np.sqrt(w * m * (np.sum(m) - m) * others)
        w /= np.max(w)
    result: FloatArray = np.array([np.sum(np.delete(w * L, a)) for a in range(len(m))]) / w * (1.0 + ALLOWANCE)
    return result


def _pairs_of(sets: NDArray[np.int32], columns: int) -> IntArray:
    pairs = []
    for a in range(sets.shape[1]):
        for b in range(a):
            left, right = np.minimum(sets[:, a], sets[:, b]), np.maximum(sets[:, a], sets[:, b])
            pairs.append(left.astype(np.int64) * columns + right)
    return np.unique(np.concatenate(pairs))
