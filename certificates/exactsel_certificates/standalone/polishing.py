"""Points better than a file's, for the second checker: where a margin is thinner than the digits of a double.

Any point proves a true bound, so none can do harm. What a region's bound is the dual of is minimised in fractions: the
loss where every column of S pays its ridge, and those of C too, but for some that share their places (they tie: each
may have a part of a place), and the others, which are zero. Which are which is corrected from step to step.
"""

from __future__ import annotations

from fractions import Fraction as F
from typing import NamedTuple

from .algebra import BITS, Matrix, dot, near, root, solve
from .regression import Regression
from .work import tally

STEPS = 16

Point = dict[int, F]


class Pattern(NamedTuple):
    """Columns that pay in full, those that share places, and how many places these have."""

    full: list[int]
    shared: list[int]
    slots: int


class Local(NamedTuple):
    """What a point proves and, for each column, the derivative; the quadratic that takes the loss's place there."""

    bound: F
    slopes: list[F]
    bends: Matrix
    right: list[F]


class Region:
    """A region's relaxation; without inner products the intercept is one more column, which is free."""

    def __init__(self, r: Regression, S: set[int], C: set[int], D: list[F]) -> None:
        self.r, self.S, self.C, self.D = r, S, C, D
        self.slots = max(0, r.k - len(S))
        self.single = all(len(group) == 1 for group in r.groups)
        self.pay = [e * s for e, s in zip(D, r.squares, strict=True)]
        self.columns, self.free = r.columns, r.columns_of(S)
        if r.loss.by_products:
            self.left = r.left(D)
        elif r.level:
            self.free = [*self.free, len(r.columns)]
            self.columns = [*r.columns, [F(1)] * len(r.y)]
            self.pay.append(F(0))

    def start(self, x: Point) -> Point:
        """A point with the intercept beside it where that is a column."""
        if len(self.pay) == len(self.r.columns):
            return x
        z = self.predict(x)
        return x | {len(self.r.columns): self.r.loss.intercept(z, self.r.y, self.r.weights)}

    def predict(self, x: Point) -> list[F]:
        """Ax, and the intercept where it is a column."""
        tally(len(self.r.y) * (20 + len(x)), max((v.denominator.bit_length() for v in x.values()), default=0))
        return [sum((v * self.columns[j][i] for j, v in x.items()), F(0)) for i in range(len(self.r.y))]

    def at(self, x: Point, careful: bool = False) -> Local:
        """The bound at a point, and what the next step needs."""
        r = self.r
        if r.loss.by_products:
            slopes = [dot([row[j] for j in x], [*x.values()]) - b for row, b in zip(self.left, r.b, strict=True)]
            return Local(r.least(self.S, self.C, r.curved(x, self.D)), slopes, self.left, r.b)
        rows = [r.loss.bent(p, t, careful) for p, t in zip(self.predict(x), r.y, strict=True)]
        pulls = r.weigh([g for g, _ in rows])
        weights = r.weigh([h for _, h in rows])
        slopes = [dot(column, pulls) for column in self.columns]
        weighted = [[w * v for w, v in zip(weights, column, strict=True)] for column in self.columns]
        bends = [[dot(left, column) for column in self.columns] for left in weighted]
        right = [dot([row[j] for j in x], [*x.values()]) - g for row, g in zip(bends, slopes, strict=True)]
        return Local(r.least(self.S, self.C, r.sloped([g for g, _ in rows])), slopes, bends, right)

    def first(self, local: Local) -> Pattern:
        """The columns of C with the largest terms pay in full."""
        terms = {g: sum((self.term(local, j) for j in self.r.groups[g]), F(0)) for g in self.C}
        chosen = sorted(self.C, key=lambda g: (-terms[g], g))[: self.slots]
        return Pattern([*self.free, *self.r.columns_of(chosen)], [], 0)

    def term(self, local: Local, j: int) -> F:
        """What a column takes off the bound, twice, if it counts."""
        return local.slopes[j] ** 2 / self.pay[j]

    def next(self, last: Pattern, local: Local, x: Point) -> Pattern:
        """The pattern, less what the point it has led to shows to be wrong."""
        if not self.single or len(self.C) <= self.slots or not self.slots:
            return self.first(local)
        candidates = {*self.r.columns_of(self.C)}
        terms = {j: self.term(local, j) for j in candidates}
        shared, full = candidates & {*last.shared}, candidates & {*last.full}
        dropped = {j for j in shared if local.slopes[j] * x[j] > 0}
        filled: set[int] = set()
        if shared:
            low = high = max(terms[j] for j in shared)
            filled = {j for j in shared - dropped if x[j] ** 2 * self.pay[j] > high}
        else:
            low = max((terms[j] for j in candidates - full), default=F(0))
            high = min((terms[j] for j in full), default=F(0))
        entering = {j for j in candidates - full - shared if terms[j] > high}
        leaving = {j for j in full if terms[j] < low}
        full = (full | filled) - leaving
        return self.within_slots(full, (shared | entering | leaving) - dropped - filled, terms)

    def within_slots(self, full: set[int], shared: set[int], terms: dict[int, F]) -> Pattern:
        """A pattern in which columns share places only where they are more than the places."""
        ranked = sorted(terms, key=lambda j: (-terms[j], j))
        for j in reversed(ranked):
            if j in full and len(full) > self.slots - bool(shared):
                full, shared = full - {j}, shared | {j}
        if len(shared) <= self.slots - len(full):
            full = full | shared
            full = full | {*[j for j in ranked if j not in full][: self.slots - len(full)]}
            shared = set()
        return Pattern([*self.free, *sorted(full)], sorted(shared), self.slots - len(full))

    def solved(self, pattern: Pattern, local: Local) -> Point:
        """The best point of a pattern, for the current quadratic.

        Columns that share q places pay (the sum of their sizes)^2 / q, sizes times the roots of what they would pay
        alone. That sum, q times a common level, is the first unknown.
        """
        used = [*pattern.full, *pattern.shared]
        H = [[local.bends[i][j] + (self.pay[j] if i == j and j in pattern.full else 0) for j in used] for i in used]
        right = [local.right[j] for j in used]
        if pattern.shared:
            signs = [self.sign(local, j) if j in pattern.shared else F(0) for j in used]
            H = [[F(-pattern.slots), *signs], *([s, *row] for s, row in zip(signs, H, strict=True))]
            right = [F(0), *right]
        values = solve(H, [right])[0][0]
        return {j: near(v, BITS) for j, v in zip(used, values[bool(pattern.shared) :], strict=True)}

    def sign(self, local: Local, j: int) -> F:
        """The root of what a column pays, with the sign of its coefficient."""
        size: F = root(self.pay[j] * 2**BITS, above=False) / 2 ** (BITS // 2)
        return -size if local.slopes[j] > 0 else size


def improved(r: Regression, S: set[int], C: set[int], x: Point, curvatures: list[list[F]], claim: F) -> F:
    """The best bound of points found from one, and no more of them than needed for the claim."""
    best = F(0)
    for D in curvatures if r.loss.by_products else [[r.lam] * len(r.columns)]:
        region = Region(r, S, C, D)
        local = region.at(region.start(x))
        pattern = region.first(local)
        for _ in range(STEPS):
            point = region.solved(pattern, local)
            candidate = region.at(point)
            best = max(best, candidate.bound)
            if best >= claim:
                return best
            if r.loss.kinked and candidate.bound < local.bound:
                candidate = region.at(point, careful=True)
            following = region.next(pattern, candidate, point)
            if r.loss.by_products and following == pattern:
                break
            local, pattern = candidate, following
    return best
