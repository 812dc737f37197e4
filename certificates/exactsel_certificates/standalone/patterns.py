"""The bound of logistic loss by the covariate patterns of every set of columns, for the second checker.

All rows with the same entries in the columns of a model get the same prediction, so that p and m of them with either
label cost at least f(p + m) - f(p) - f(m), with f(x) = x log x. Sets of rows are the bits of whole numbers; f is a
whole number of units of 2^-80, right to one unit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction as F
from itertools import combinations, product

from .algebra import UNIT, as_float, solve
from .demands import Demands
from .polishing import improved
from .regression import Regression
from .work import tally

LEAF = ~1
"""The witness of regions closed this way."""

MOST_PLACES = 2

HEAVIEST = 2**40
"""With more weight in all f would need more digits."""

ROWS_A_DIGIT = 8000
"""Rows processed in the time of one operation."""

STEPS = 50

Split = tuple[int, int]
"""The rows of one pattern with the label -1, and with +1."""


class OwnFits:
    """Sets of columns that are tested by a fit of their own, each once; bound to one problem and one level."""

    def __init__(self, r: Regression, level: F) -> None:
        self.r, self.level = r, level
        self.closed: dict[frozenset[int], bool] = {}

    def closed_by_fit(self, T: frozenset[int]) -> bool:
        """Whether the bound at about the best model on some columns is no smaller than the level."""
        if T not in self.closed:
            self.closed[T] = self._closed_by_fit(T)
        return self.closed[T]

    def _closed_by_fit(self, T: frozenset[int]) -> bool:
        tally(len(self.r.y) * (2 + len(T)))
        r, everything = alone(self.r, sorted(T)), set(range(len(T)))
        x = {j: F(v) for j, v in enumerate(best(r))}
        if r.objective(x) < self.level:  # there is a model below it
            return False
        if r.least(everything, set(), r.sloped(r.slopes(x))) >= self.level:
            return True
        return not r.sizes and improved(r, everything, set(), x, [], self.level) >= self.level


class Patterns(OwnFits):
    """Regions closed by the covariate patterns of their sets of columns."""

    def __init__(self, r: Regression, level: F, demands: Demands | None = None) -> None:
        """``demands`` say which sets of columns may be chosen, where not all may."""
        super().__init__(r, level)
        self.demands = demands
        self.usable = r.loss.pattern_logs is not None and r.lam > 0 and all(len(group) == 1 for group in r.groups)
        self.usable &= r.loss.by_leaves and all(w.denominator == 1 for w in r.weights) and r.weight <= HEAVIEST
        self.top = math.floor(level * UNIT) + 1
        self.f, self.many = {} if r.loss.pattern_logs is None else r.loss.pattern_logs, 1 + len(r.y) / ROWS_A_DIGIT
        self.planes = planes([int(w) for w in r.weights]) if self.usable else []
        self.bits: dict[int, int | None] = {}

    def counted(self, S: set[int], C: set[int]) -> bool:
        """Whether no model of the region (S, C) costs less than the level."""
        slots = min(max(0, self.r.k - len(S)), len(C))
        bits = {j: self.bits_of(j) for j in C} if self.usable and slots else {}
        if not self.usable or None in bits.values():
            return False
        alike: dict[int, list[int]] = {}
        for j, rows in sorted(bits.items()):
            alike.setdefault(rows or 0, []).append(j)
        constant = alike.pop(0, [])
        kinds, start = list(alike.items()), self.patterns(S)
        size = min(slots, len(kinds))
        sets, cheap = set[tuple[int, ...]](), self.cheap(start, [rows for rows, _ in kinds], size)
        while True:
            # One by one: the first that a model below the level is on ends it.
            for chosen in cheap:
                for more in filled([kinds[c][1] for c in chosen], constant, slots):
                    if not all(self.closed_by_fit(T) for T in self.allowed(S, more)):
                        return False
                sets.add(tuple(chosen))
            if size == 0 or (not constant and all(len(columns) == 1 for _, columns in kinds)):
                return True
            # One more kind of column makes no set dearer, so those that are left are parts of those found before.
            size -= 1
            parts = {part for chosen in sets for part in combinations(chosen, size)}
            cheap = iter({part for part in parts if [*self.cheap(start, [kinds[c][0] for c in part], size)]})
            sets = set()

    def bits_of(self, j: int) -> int | None:
        """The rows in which a column has another entry than in the first; None where it has more than two."""
        if j not in self.bits:
            column = self.r.columns[j]
            tally(len(column))
            other = [v != column[0] for v in column]
            rest = {v for v, there in zip(column, other, strict=True) if there}
            self.bits[j] = None if len(rest) > 1 else number_of(other)
        return self.bits[j]

    def patterns(self, S: set[int]) -> list[Split]:
        """What the columns of S make of the rows, as far as there are both labels."""
        rows: dict[tuple[F, ...], list[int]] = {}
        n = len(self.r.y)
        tally(n * (1 + len(S)))
        for i, label in enumerate(self.r.y):
            tally(self.many)
            both = rows.setdefault(tuple(self.r.columns[j][i] for j in sorted(S)), [0, 0])
            both[label > 0] |= 1 << (n - 1 - i)
        splits = [(minus, plus) for minus, plus in rows.values()]
        return [split for split in splits if all(split)]

    def weight(self, rows: int) -> int:
        """The weights of some rows together."""
        if len(self.planes) == 1:
            return (rows & self.planes[0]).bit_count()
        return sum((rows & plane).bit_count() << b for b, plane in enumerate(self.planes))

    def cheap(self, splits: list[Split], kinds: Sequence[int], size: int, first: int = 0) -> Iterator[tuple[int, ...]]:
        """The sets of so many kinds of columns from ``first`` on that may cost less than the level.

        A sum over c patterns is off by no more than 3 c units.
        """
        if size == 0:
            if self.least([(self.weight(minus), self.weight(plus)) for minus, plus in splits]):
                yield ()
            return
        if size == 1:
            yield from ((c,) for c in self.last(splits, kinds, first))
            return
        for c in range(first, len(kinds) - size + 1):
            tally(2 * len(splits) * self.many)
            parts = [part for minus, plus in splits for part in halves(minus, plus, kinds[c])]
            for chosen in self.cheap([part for part in parts if all(part)], kinds, size - 1, c + 1):
                yield (c, *chosen)

    def last(self, splits: list[Split], kinds: Sequence[int], first: int) -> Iterator[int]:
        """The same for one more kind; most patterns need not be tested."""
        counts = [(minus, plus, self.weight(minus), self.weight(plus)) for minus, plus in splits]
        counts.sort(key=lambda each: -min(each[2:]))
        top, f, weight = self.top + 6 * len(counts), self.f, self.weight
        for c in range(first, len(kinds)):
            rows, total, looked = kinds[c], 0, 0
            for minus, plus, m, p in counts:
                looked += 1
                a, b = weight(minus & rows), weight(plus & rows)
                total += f[a + b] - f[a] - f[b] + f[m + p - a - b] - f[m - a] - f[p - b]
                if total > top:
                    break
            tally(0.5 + looked * self.many)
            if total <= top:
                yield c

    def least(self, counts: Iterable[Split]) -> bool:
        """Whether patterns of such weights may cost less than the level."""
        terms = [self.f[m + p] - self.f[m] - self.f[p] for m, p in counts]
        return sum(terms) <= self.top + 3 * len(terms)

    def allowed(self, S: set[int], chosen: tuple[int, ...]) -> Iterator[frozenset[int]]:
        """Sets of columns that hold every set of S and of those chosen that may be chosen together."""
        if self.demands is None:
            yield frozenset(S.union(chosen))
            return
        waiting: list[tuple[set[int], set[int]]] = [(set(S), set(chosen))]
        while waiting:
            tally(1 + len(self.r.columns) / 8)
            region = self.demands.pruned(waiting.pop(), self.r.k)
            if region is None:
                continue
            included, candidates = region
            full = self.demands.crowded(included | candidates)
            if full:
                waiting += [(included, candidates - {j}) for j in sorted(candidates & full)]
            else:
                yield frozenset(included | candidates)


def halves(minus: int, plus: int, rows: int) -> tuple[Split, Split]:
    """What a column makes of a pattern."""
    a, b = minus & rows, plus & rows
    return (a, b), (minus ^ a, plus ^ b)


def number_of(there: Sequence[bool]) -> int:
    """The whole number with these bits, the last first."""
    return int("".join("1" if bit else "0" for bit in there) or "0", 2)


def planes(weights: Sequence[int]) -> list[int]:
    """For each binary digit of the weights the rows that have it."""
    return [number_of([w >> b & 1 == 1 for w in weights]) for b in range(max(weights).bit_length())]


def filled(kinds: list[list[int]], constant: list[int], slots: int) -> Iterator[tuple[int, ...]]:
    """All sets of so many columns of these kinds, of each at least one, and of constant ones; some more than once."""
    everything = [*constant, *(j for columns in kinds for j in columns)]
    for chosen in product(*kinds):
        for more in combinations([j for j in everything if j not in chosen], slots - len(chosen)):
            tally(1)
            yield (*chosen, *more)


def alone(r: Regression, columns: list[int]) -> Regression:
    """The problem of some columns, with rows that are alike as one; what scales and means are does not change."""
    weights: dict[tuple[F, ...], F] = {}
    for i, row in enumerate(zip(r.y, *(r.columns[j] for j in columns), strict=True)):
        weights[row] = weights.get(row, F(0)) + r.weights[i]
    bounds = [[side[j] for j in columns] for side in r.bounds]
    other = Regression(
        [[as_float(v) for v in row[1:]] for row in weights], [as_float(row[0]) for row in weights], len(columns),
        r.loss, as_float(r.lam), [as_float(w) for w in weights.values()], r.level,
        [[j] for j in range(len(columns))], False, bounds,
    )  # fmt: skip
    other.squares, other.inverses = [r.squares[j] for j in columns], [r.inverses[j] for j in columns]
    other.ridge, other.sizes = [r.ridge[j] for j in columns], [r.sizes[j] for j in columns] if r.sizes else []
    return other


def best(r: Regression) -> list[float]:
    """About the best coefficients, in floats that need not be trusted: Newton steps, cut off at limits."""
    m = len(r.columns)
    rows = [[as_float(column[i]) for column in r.columns] + [1.0] * r.level for i in range(len(r.y))]
    y, weights = [as_float(v) for v in r.y], [as_float(w) for w in r.weights]
    ridge = [as_float(v) for v in r.ridge] + [0.0] * r.level
    low = [*(r.bounds[0] if r.bounds else [-math.inf] * m), *[-math.inf] * r.level]
    high = [*(r.bounds[1] if r.bounds else [math.inf] * m), *[math.inf] * r.level]
    x, size = [0.0] * len(ridge), range(len(ridge))

    def losses(x: list[float]) -> list[tuple[float, float, float]]:
        return [r.loss.in_floats(sum(map(float.__mul__, row, x)), t) for row, t in zip(rows, y, strict=True)]

    def value(x: list[float]) -> float:
        return math.fsum(w * row[0] for w, row in zip(weights, losses(x), strict=True)) + sum(
            e * v * v / 2 for e, v in zip(ridge, x, strict=True)
        )

    for _ in range(STEPS):
        tally(len(rows) * (2 + len(x)) ** 2 / 4)
        parts = losses(x)
        pulls = [w * slope for w, (_, slope, _) in zip(weights, parts, strict=True)]
        slope = [
            e * v + sum(g * row[j] for g, row in zip(pulls, rows, strict=True))
            for j, (e, v) in enumerate(zip(ridge, x, strict=True))
        ]
        free = [j for j in size if not ((x[j] <= low[j] and slope[j] > 0) or (x[j] >= high[j] and slope[j] < 0))]
        bends = [w * bend for w, (_, _, bend) in zip(weights, parts, strict=True)]
        H = [
            [
                F(sum(b * row[i] * row[j] for b, row in zip(bends, rows, strict=True)) + ridge[i] * (i == j))
                for j in free
            ]
            for i in free
        ]
        step, _ = solve(H, [[F(slope[j]) for j in free]])
        moved, length, before, after = dict(zip(free, map(as_float, step[0]), strict=True)), 1.0, value(x), x
        while length > 1e-12:
            after = [min(max(v - length * moved.get(j, 0.0), low[j]), high[j]) for j, v in enumerate(x)]
            if value(after) <= before:
                break
            length /= 2
        gained = sum(moved.get(j, 0.0) * slope[j] for j in size)
        x = after if length > 1e-12 else x
        if length <= 1e-12 or gained <= 1e-15 * before:
            break
    return x[:m]


class LeafRegions(OwnFits):
    """The leaf test, for any last one or two columns.

    The first checker bounds most sets beside the fit on the others; here each has a fit of its own.
    """

    def closes(self, S: set[int], C: set[int]) -> bool:
        """Whether no model on S and as many columns of C as there are places is below the level."""
        slots = min(max(0, self.r.k - len(S)), len(C))
        usable = self.r.loss.by_leaves and (self.r.lam or self.r.sizes)
        if not usable or slots > MOST_PLACES or len(self.r.groups) < len(self.r.columns):
            return False
        sets = combinations(sorted(C), slots)
        return all(self.closed_by_fit(frozenset(S.union(more))) for more in sets)


def of_leaves(n: int, columns: int) -> float:
    """What a fit on so many columns of n rows takes."""
    return n * (30.0 + 2.0 * (columns + 2) ** 2)
