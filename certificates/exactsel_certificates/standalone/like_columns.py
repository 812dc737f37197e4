"""Weak columns that are like each other, taken together, for the second checker (FORMAT.md, LIKE).

What eliminations leave is exact, and so are inverses; roots, sums and quotients are floats whose few roundings are
allowed for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction as F
from itertools import accumulate
from typing import NamedTuple

from .algebra import Matrix, as_float, solve
from .work import tally

ROOM = 2.0**-40
"""For the roundings of sums, roots and quotients of some floats, relative to their results."""

SPREAD = 1000.0
"""Parts whose matrix has a larger inverse prove nothing."""

PLACES = 12
"""Places up to which columns are taken together."""

STEPS = 40
"""Towards weights that balance the parts."""


class Part(NamedTuple):
    """A connected set of like columns."""

    columns: tuple[int, ...]
    inverse: Matrix
    """Of what elimination leaves of its products."""
    likeness: list[float]
    """Of 0, 1, 2, ... columns of other parts with it, at most."""


class LikeColumns:
    """Bound to what elimination leaves of some columns, and to a threshold.

    Parameters
    ----------
    M : matrix of fractions
        What is left of the products of the weak columns.
    tau : fraction
    most : int
        Places, at most.
    """

    def __init__(self, M: Matrix, tau: F, most: int) -> None:
        self.M, self.count, self.most = M, len(M), min(most, len(M))
        self.usable = tau > 0 and self.most <= PLACES and all(M[i][i] > 0 for i in range(len(M)))
        self.parts: dict[int, list[Part]] = {m: [] for m in range(2, self.most + 1)}
        self.spread: dict[int, float] = {1: 1.0}
        if not self.usable:
            return
        tally(3.0 * len(M) ** 2, max(v.denominator.bit_length() + v.numerator.bit_length() for row in M for v in row))
        shares = [[v * v / (M[i][i] * M[j][j]) for j, v in enumerate(row)] for i, row in enumerate(M)]
        self.touch = [[j for j, v in enumerate(row) if i != j and v >= tau * tau] for i, row in enumerate(shares)]
        below = [
            sorted((as_float(v) for j, v in enumerate(row) if i != j and v < tau * tau), reverse=True)
            for i, row in enumerate(shares)
        ]
        self.squares = [list(accumulate(row, initial=0.0)) for row in below]
        self.sizes = [list(accumulate(map(math.sqrt, row), initial=0.0)) for row in below]
        for columns in self.connected():
            self.add(columns)

    def connected(self) -> Iterator[tuple[int, ...]]:
        """Every connected set of two columns and more, once."""
        sets: set[tuple[int, ...]] = {(i,) for i in range(self.count)}
        for _ in range(2, self.most + 1):
            tally(sum(len(self.touch[i]) + 1 for columns in sets for i in columns))
            sets = {
                tuple(sorted((*columns, j))) for columns in sets for i in columns for j in self.touch[i]
                if j not in columns
            }  # fmt: skip
            yield from sorted(sets)

    def add(self, columns: tuple[int, ...]) -> None:
        """Keep a set, its inverse, and how much others are like it."""
        M, m = self.M, len(columns)
        eye = [[F(i == j) for j in range(m)] for i in range(m)]
        inverse, pivots = solve([[M[i][j] for j in columns] for i in columns], eye)
        if len(pivots) < m:
            self.spread[m] = math.inf
            return
        scaled = [
            [math.sqrt(as_float(v * v * M[i][i] * M[j][j])) for j, v in zip(columns, row, strict=True)]
            for i, row in zip(columns, inverse, strict=True)
        ]
        largest = max(map(sum, scaled))
        self.spread[m] = max(self.spread.get(m, 1.0), largest * (1.0 + ROOM) if largest <= SPREAD else math.inf)
        touched = {*columns, *(j for i in columns for j in self.touch[i])}
        others = [j for j in range(self.count) if j not in touched] if m < self.most else []
        tally(len(others) * (m + 1) ** 2, max(v.denominator.bit_length() for row in inverse for v in row))
        like = [as_float(form(inverse, [M[i][j] for i in columns]) / M[j][j]) for j in others]
        sums = list(accumulate(sorted(like, reverse=True), initial=0.0))
        self.parts[m].append(Part(columns, inverse, sums))

    def most_gain(self, u: Sequence[F], slack: F, count: int) -> float:
        """The most that so many columns can take off, as a part of what is left of the target's square."""
        gains = {
            m: [as_float(form(part.inverse, [u[i] for i in part.columns]) / slack) * (1.0 + ROOM) for part in parts]
            for m, parts in self.parts.items()
        }
        ones = [as_float(value * value / (slack * self.M[i][i])) * (1.0 + ROOM) for i, value in enumerate(u)]
        tally(sum(len(parts) * m * m for m, parts in self.parts.items()) + len(u))
        ways = [
            way for way in partitions(count, count) if all(m == 1 or self.parts[m] or m in self.spread for m in way)
        ]
        return max((self.of_way(way, gains, ones, count) for way in ways), default=0.0)

    def of_way(self, way: tuple[int, ...], gains: dict[int, list[float]], ones: list[float], count: int) -> float:
        """The same where the parts have these sizes."""
        spread = [self.spread[m] for m in way]
        if math.inf in spread:
            return math.inf
        total = 0.0
        for m, factor in dict(zip(way, factors(way, spread), strict=True)).items():
            tally(len(self.parts.get(m, ones)))
            if m > 1:
                pairs = zip(gains[m], self.parts[m], strict=True)
                values = [quotient(gain, factor * at(part.likeness, count - m)) for gain, part in pairs]
            elif way.count(1) == count:
                values = [quotient(gain, at(row, count - 1) ** 2) for gain, row in zip(ones, self.sizes, strict=True)]
            else:
                rows = zip(ones, self.squares, strict=True)
                values = [quotient(gain, factor * at(row, count - 1)) for gain, row in rows]
            total += sum(sorted(values)[-1:] * way.count(m) if m > 1 else sorted(values, reverse=True)[: way.count(1)])
        return total * (1.0 + ROOM)


def at(sums: Sequence[float], q: int) -> float:
    """The sum of q terms, or of all there are."""
    return sums[min(q, len(sums) - 1)]


def form(matrix: Matrix, v: Sequence[F]) -> F:
    """v'Mv"""
    return sum((a * b * c for a, row in zip(v, matrix, strict=True) for b, c in zip(row, v, strict=True)), F(0))


def quotient(gain: float, square: float) -> float:
    """A gain divided by 1 less a root."""
    root = math.sqrt(square * (1.0 + ROOM)) * (1.0 + ROOM)
    return gain / (1.0 - root) * (1.0 + ROOM) if root < 1.0 else math.inf


def partitions(total: int, largest: int) -> list[tuple[int, ...]]:
    """The ways to write a number as a sum, each in descending order."""
    if total == 0:
        return [()]
    return [(m, *rest) for m in range(min(total, largest), 0, -1) for rest in partitions(total - m, m)]


def factors(way: tuple[int, ...], spread: list[float]) -> list[float]:
    """For each part the sum of w L of the others by its own w; any positive w would do, these balance the parts."""
    if len(way) == 1:
        return [0.0]
    w, r = [1.0 for _ in way], sum(way)
    for _ in range(STEPS):
        total = sum(a * b for a, b in zip(w, spread, strict=True))
        w = [math.sqrt(a * m * (r - m) * (total - a * b)) for a, m, b in zip(w, way, spread, strict=True)]
        w = [a / max(w) for a in w]
    wL = [a * b for a, b in zip(w, spread, strict=True)]
    return [sum(wL[:i] + wL[i + 1 :]) / a * (1.0 + ROOM) for i, a in enumerate(w)]
