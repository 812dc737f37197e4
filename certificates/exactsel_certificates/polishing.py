"""Better points than those of a file, for regions whose margin is thinner than the digits of a point.

With columns of very different sizes, hardly any ridge, or row weights many powers of ten apart, the best point of a
region, rounded to doubles, may prove visibly less than the search had in its registers. Any point proves a true
bound, so one is found here: Newton steps from the point of the file, with systems solved in exact arithmetic. What they
minimise is what the region's bound is the dual of: the loss with, for columns that count fully, their ridge, and for
those that tie for the last q places (sum of their sizes)^2 / q.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from exactsel_certificates.exact import RADIUS, ExactBounds, nearest, root_above, root_below
from exactsel_certificates.formula import FloatArray
from exactsel_certificates.levels import find_levels
from exactsel_certificates.scaled import Scaled, fraction_of
from exactsel_certificates.work import look

STEPS = 30
"""Newton steps at most."""

DIGITS = 400
"""Binary digits kept of a coefficient."""

FEW_DIGITS = 60
"""Of what bounds a coefficient, which goes into systems: their numbers should have no denominators of their own."""

TIED = 1e-5
"""Terms this close to each other (relative) tie."""


class Polished(NamedTuple):
    """A point with more digits than doubles have, and the slopes of the rows there, in the domain of l*."""

    x: list[Fraction]
    slopes: Scaled


class Counting(NamedTuple):
    """Columns that count fully at a point, those that tie, and the places these have."""

    full: list[int]
    tied: list[int]
    slots: int


class Polisher:
    """Bound to one instance, through its exact bounds."""

    def __init__(self, exact: ExactBounds) -> None:
        self.exact = exact
        self.instance = exact.instance
        self.n, self.d = self.instance.A.shape
        self.loss, self.w = exact.loss, exact.w
        # An exponent at which 1 is an integer too, for the intercept.
        self.e = min(exact.A.exponent, 0)
        self.A = exact.A.at(self.e)

    def steps(
        self, S: Sequence[int], C: Sequence[int], start: Sequence[Fraction], curvature: FloatArray
    ) -> Iterator[Polished]:
        """Points after each step, from the one given; S and C are columns or groups."""
        x, level = list(start), self._level(start)
        for _ in range(STEPS):
            slopes, bends = self._slopes(x, level)
            pull = Scaled(self.w.values * slopes.values, self.w.exponent + slopes.exponent)
            counting = self._counting(S, C, x, pull, curvature)
            used = [*counting.full, *counting.tied]
            before = x, level
            step = solved(*self._system(counting, x, pull, bends, curvature))
            x, level = self._moved(before, used, step)
            if self.loss.kinked and not self._objective(x, level) <= self._objective(*before):
                # Newton's method has stepped over kinks; a quadratic above the loss leads down for certain.
                above = dyadic([*map(shortened, self.loss.exact_majorizer(self._predictions(*before), self.exact.y))])
                step = solved(*self._system(counting, before[0], pull, above, curvature))
                x, level = self._moved(before, used, step)
            yield Polished(x, self._slopes(x, level)[0])
            if before == (x, level):
                return

    def _moved(
        self, point: tuple[list[Fraction], Fraction], used: list[int], step: list[Fraction]
    ) -> tuple[list[Fraction], Fraction]:
        """A point less a step, whose last entry is the intercept's where there is one."""
        x = [Fraction(0)] * self.d
        for j, change in zip(used, step, strict=False):
            x[j] = shortened(point[0][j] - change)
        return x, shortened(point[1] - step[-1]) if self.instance.intercept else point[1]

    def _objective(self, x: Sequence[Fraction], level: Fraction) -> Fraction:
        """The objective of a model."""
        ridge = self.exact.lam * sum((v * v for v in x), Fraction(0)) / 2
        return ridge + self.loss.exact_value(self._predictions(x, level), self.exact.y, self.w)

    def _level(self, x: Sequence[Fraction]) -> Fraction:
        if not self.instance.intercept:
            return Fraction(0)
        about, z = self.instance, self._predictions(x, Fraction(0))
        row = np.array([[nearest(fraction_of(v, z.exponent)) for v in z.values]])
        with np.errstate(all="ignore"):
            return Fraction(float(find_levels(self.loss, about.y, about.weights, row)[0]))

    def _predictions(self, x: Sequence[Fraction], level: Fraction) -> Scaled:
        used = [j for j, value in enumerate(x) if value]
        numbers = dyadic([*(x[j] for j in used), level])
        products = self.A[:, used] @ numbers.values[:-1] if used else np.array([0] * self.n, dtype=object)
        return Scaled(products + numbers.values[-1] * (1 << -self.e), self.e + numbers.exponent)

    def _slopes(self, x: Sequence[Fraction], level: Fraction) -> tuple[Scaled, Scaled]:
        """The slopes of the rows, and about their second derivatives."""
        return self.loss.exact_slopes(self._predictions(x, level), self.exact.y)

    def _gradient(self, j: int, x: Sequence[Fraction], pull: Scaled, D: Fraction) -> Fraction:
        """The derivative by x_j of the loss and of what the curvature leaves of the ridge."""
        return fraction_of(self.A[:, j] @ pull.values, self.e + pull.exponent) + (self.exact.lam - D) * x[j]

    def _counting(
        self, S: Sequence[int], C: Sequence[int], x: Sequence[Fraction], pull: Scaled, curvature: FloatArray
    ) -> Counting:
        slots = self.instance.k - len(S)
        included, candidates = self.instance.columns_of(S), self.instance.columns_of(C)
        if slots <= 0 or len(C) <= slots or self.instance.groups:
            # Of regions of groups only the fit is polished.
            return Counting([*included, *(candidates if slots > 0 else [])], [], 0)
        sizes = {}
        for j in candidates:
            D = float(curvature[j])
            sizes[j] = abs(nearest(self._gradient(j, x, pull, Fraction(D)))) / math.sqrt(D)
        last = sorted(sizes.values(), reverse=True)[slots - 1]
        full = [j for j in candidates if sizes[j] > last * (1.0 + TIED)]
        tied = [j for j in candidates if last * (1.0 - TIED) <= sizes[j] <= last * (1.0 + TIED)]
        remaining = slots - len(full)
        return (
            Counting([*included, *full, *tied], [], 0)
            if len(tied) <= remaining
            else Counting([*included, *full], tied, remaining)
        )

    def _system(
        self, counting: Counting, x: Sequence[Fraction], pull: Scaled, bends: Scaled, curvature: FloatArray
    ) -> tuple[list[list[Fraction]], list[Fraction]]:
        """The Newton system of the region's problem at x, with a last row for the intercept where there is one."""
        full, tied, slots = counting
        used = [*full, *tied]
        V = self.A[:, used]
        if self.instance.intercept:
            V = np.column_stack([V, np.array([1 << -self.e] * self.n, dtype=object)])
        bent = self.w.values * bends.values
        exponent = 2 * self.e + self.w.exponent + bends.exponent
        products = V.T @ (bent[:, None] * V)
        matrix = [[fraction_of(int(v), exponent) for v in row] for row in products]
        right = [fraction_of(int(v), self.e + pull.exponent) for v in V.T @ pull.values]
        roots = {}
        for i, j in enumerate(used):
            D = Fraction(float(curvature[j])) if j in tied else Fraction(0)
            matrix[i][i] += self.exact.lam - D
            if j in tied:
                sign = -1 if self._gradient(j, x, pull, D) > 0 else 1
                roots[i] = sign * Fraction(math.sqrt(float(curvature[j])))
            right[i] += (self.exact.lam - D) * x[j]
        # Columns that tie pay for the sum of their sizes, each times the root of its curvature.
        reach = sum((root * x[used[i]] for i, root in roots.items()), Fraction(0))
        for i, root in roots.items():
            right[i] += root * reach / slots
            for other, second in roots.items():
                matrix[i][other] += root * second / slots
        return matrix, right

    def fit(self, columns: Sequence[int]) -> list[Fraction]:
        """The best model on some columns, to DIGITS; quadratic loss."""
        gram = self._gram(columns)
        x = [Fraction(0)] * self.d
        for j, value in zip(
            columns, solved([row[:-1] for row in gram[:-1]], [row[-1] for row in gram[:-1]]), strict=True
        ):
            x[j] = shortened(value)
        return x

    def least_squares(self, columns: Sequence[int]) -> Fraction:
        """The smallest objective of a model on some columns, exactly; quadratic loss."""
        gram = self._gram(columns)
        N, unit = as_integers(gram)
        rows, last = [N[i, i:].tolist() for i in range(len(N))], 1
        for _ in columns:  # what is left is symmetric
            look()
            first, *rows = rows
            pivot = first[0]
            if pivot:
                parts = (first[i:] for i in range(1, len(first)))
                rows = [
                    [(pivot * v - part[0] * w) // last for v, w in zip(row, part, strict=True)]
                    for row, part in zip(rows, parts, strict=True)
                ]
                last = pivot
        return Fraction(rows[0][0], last * unit * 2)

    def _gram(self, columns: Sequence[int]) -> list[list[Fraction]]:
        """The inner products of some columns and y, with the ridge."""
        exponent = min(self.e, self.exact.y.exponent)
        V = np.column_stack([Scaled(self.A[:, list(columns)], self.e).at(exponent), self.exact.y.at(exponent)])
        gram = [[fraction_of(int(v), 2 * exponent) for v in row] for row in V.T @ V]
        for i in range(len(columns)):
            gram[i][i] += self.exact.lam
        return gram

    def within_bounds(self, columns: Sequence[int]) -> list[Fraction]:
        """About the best model with abs(x_j) ||a_j|| <= RADIUS ||y|| on some columns; lam = 0."""
        gram = self._gram(columns)
        slots = [i for i in range(len(columns)) if gram[i][i]]
        target = RADIUS * root_below(gram[-1][-1])
        most = {i: shortened(target / root_above(gram[i][i]), FEW_DIGITS) for i in slots}
        x = [Fraction(0)] * self.d
        fixed: dict[int, Fraction] = {}
        while True:
            free = [i for i in slots if i not in fixed]
            right = [gram[i][-1] - sum((gram[i][o] * v for o, v in fixed.items()), Fraction(0)) for i in free]
            fit = dict(zip(free, solved([[gram[i][o] for o in free] for i in free], right), strict=True))
            worst = max(free, key=lambda i: abs(fit[i]) / most[i], default=-1)
            if worst < 0 or abs(fit[worst]) <= most[worst]:
                break
            fixed[worst] = most[worst] if fit[worst] > 0 else -most[worst]
        for i, value in (fixed | fit).items():
            x[columns[i]] = shortened(value)
        return x


def solved(matrix: list[list[Fraction]], right: list[Fraction]) -> list[Fraction]:
    """The solution of a positive semidefinite system, exactly; 0 where a column depends on those before it."""
    m = len(right)
    if not m:
        return []
    N, _ = as_integers([[*row, value] for row, value in zip(matrix, right, strict=True)])
    last, pivots = 1, []
    for i in range(m):
        look()
        if not N[i, i]:
            continue
        right_of = N[i + 1 :, i + 1 :]
        right_of[:] = (int(N[i, i]) * right_of - np.multiply.outer(N[i + 1 :, i], N[i, i + 1 :])) // last
        last = int(N[i, i])
        pivots.append(i)
    numerators = [0] * m
    for i in reversed(pivots):
        rest = last * int(N[i, m]) - sum(int(N[i, j]) * numerators[j] for j in pivots if j > i)
        numerators[i] = rest // int(N[i, i])
    return [Fraction(v, last) for v in numerators]


def as_integers(rows: list[list[Fraction]]) -> tuple[Any, int]:
    """The same numbers times a common denominator, and that."""
    unit = math.lcm(*(value.denominator for row in rows for value in row))
    return np.array([[int(value * unit) for value in row] for row in rows], dtype=object), unit


def dyadic(values: Sequence[Fraction]) -> Scaled:
    """Fractions whose denominators are powers of two."""
    bits = max(value.denominator.bit_length() for value in values) - 1
    return Scaled(np.array([int(value * (1 << bits)) for value in values], dtype=object), -bits)


def shortened(value: Fraction, digits: int = DIGITS) -> Fraction:
    """The value with its first binary digits, as a fraction whose denominator is a power of two."""
    if not value:
        return value
    bits = max(0, digits + value.denominator.bit_length() - abs(value.numerator).bit_length())
    return Fraction((value.numerator << bits) // value.denominator, 1 << bits)
