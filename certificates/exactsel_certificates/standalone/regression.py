"""Exact bounds for regression, for the second checker.

Row weights, an intercept and scaling never touch the data: where inner products <u, v> say all they are in
these, the sums of w_i u_i v_i over rows less what the means account for; else in the rows' slopes. Coefficients are
those of the data as given throughout.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from copy import copy
from fractions import Fraction as F

from .algebra import Matrix, dot, inverse_root, near, root, shares, solve
from .losses import Loss
from .work import tally

RADIUS = 10**6

Bound = tuple[F, list[F]]
"""A value and a term for each column: the value less half the terms that count (those of S and the largest of C)."""


class Regression:
    """Exact bounds for one regression problem.

    Every term in sight is rational: with s_j the scale of column j, lam s_j^2 is its ridge weight.
    """

    def __init__(
        self, A: Sequence[Sequence[float]], y: Sequence[float], k: int, loss: Loss, lam: float,
        weights: Sequence[float] | None = None, level: bool = False, groups: Sequence[Sequence[int]] = (),
        scale: bool = False, bounds: Sequence[Sequence[float]] = (), more: Sequence[tuple[list[F], F]] = (),
    ) -> None:  # fmt: skip
        d = len(A[0])
        self.bounds = bounds
        self.rows = [i for i in range(len(y)) if weights is None or weights[i]]
        self.groups = groups or [[j] for j in range(d)]
        self.columns = [[F(A[i][j]) for i in self.rows] for j in range(d)]
        self.weights = [F(1) if weights is None else F(weights[i]) for i in self.rows]
        self.y, self.level = [F(y[i]) for i in self.rows], level
        self.k, self.loss, self.lam = k, loss, F(lam)
        self.weight = sum(self.weights, F(0))
        weighted = [self.weigh(column) for column in self.columns]
        self.means = [sum(column, F(0)) / self.weight for column in weighted]
        mean = dot(self.weights, self.y) / self.weight
        self.c = (dot(self.weigh(self.y), self.y) - self.taken(mean, mean)) / 2
        self.b = [dot(w, self.y) - self.taken(m, mean) for w, m in zip(weighted, self.means, strict=True)]
        self.G = [[F(0)] * d for _ in range(d)]
        for i in range(d):
            # Without inner products the squares are needed only.
            for j in range(i + 1) if loss.by_products else (i,):
                product = dot(weighted[i], self.columns[j]) - self.taken(self.means[i], self.means[j])
                self.G[i][j] = self.G[j][i] = product
        self.squares = [self.G[j][j] / self.weight if scale and self.G[j][j] else F(1) for j in range(d)]
        self.inverses = [inverse_root(s) for s in self.squares]
        self.ridge = [self.lam * s for s in self.squares]
        self.sizes: list[F] = []
        """How large coefficients of the data as given can be, where that is known (limits.py)."""
        self.own = len(self.y)
        """Rows that are not those of equalities, which have no part in an intercept."""
        for row, target in more:
            self.append(row, target)
        self.after_split: tuple[list[F], dict[tuple[int, int], F]] | None = None
        """The curvature that is left after a split, and the split's E, where the file has one."""

    def append(self, row: list[F], target: F) -> None:
        """Another row of quadratic loss, of weight one, which an intercept does not reach."""
        for i, entry in enumerate(row):
            self.columns[i].append(entry)
            self.b[i] += entry * target
            self.G[i] = [v + entry * right for v, right in zip(self.G[i], row, strict=True)]
        self.c += target * target / 2
        self.y.append(target)
        self.weights.append(F(1))

    def free(self) -> Regression:
        """The same problem without bounds of coefficients."""
        other = copy(self)
        other.bounds, other.sizes = (), []
        return other

    def weigh(self, column: list[F]) -> list[F]:
        """Numbers times the weights of their rows."""
        return [w * v for w, v in zip(self.weights, column, strict=True)]

    def taken(self, left: F, right: F) -> F:
        """What an intercept takes off an inner product, from the two means."""
        return self.weight * left * right if self.level else F(0)

    def least(self, S: set[int], C: set[int], bound: Bound) -> F:
        """What a bound says of a region; the terms of a group's columns are added up."""
        value, terms = bound
        tally(len(S) + len(C))
        counted = {g: sum((terms[j] for j in self.groups[g]), F(0)) for g in S | C}
        largest = sorted((counted[g] for g in C), reverse=True)[: max(0, self.k - len(S))]
        return value - (sum((counted[g] for g in S), F(0)) + sum(largest, F(0))) / 2

    def columns_of(self, units: Iterable[int]) -> list[int]:
        """The columns of some groups."""
        return sorted(j for g in units for j in self.groups[g])

    def predict(self, x: dict[int, F]) -> list[F]:
        """Ax, and about the best intercept where there is one (for the losses whose rows are evaluated)."""
        tally(len(self.y) * (1 + len(x)), max((v.denominator.bit_length() for v in x.values()), default=0))
        z = [sum((v * self.columns[j][i] for j, v in x.items()), F(0)) for i in range(len(self.y))]
        # Inner products account for the intercept.
        level = self.level and not self.loss.by_products
        c = self.loss.intercept(z, self.y, self.weights) if level else F(0)
        return [v + c for v in z]

    def times(self, x: dict[int, F]) -> list[F]:
        """Gx."""
        return [dot([row[i] for i in x], [*x.values()]) for row in self.G]

    def curved(self, x: dict[int, F], D: Sequence[F], E: dict[tuple[int, int], F] | None = None) -> Bound:
        """Formula (3), D as it is for prepared columns; with the entries of E that have been taken off, too."""
        Mx = self.times(x)
        for j, v in x.items():
            Mx[j] += (self.ridge[j] - D[j] * self.squares[j]) * v
        for (i, j), v in (E or {}).items():
            Mx[i] -= v * x.get(j, F(0))
        slopes = [m - b for m, b in zip(Mx, self.b, strict=True)]
        terms = [self.taken_by(j, g, e * s) for j, (g, e, s) in enumerate(zip(slopes, D, self.squares, strict=True))]
        return self.c - sum((v * Mx[j] for j, v in x.items()), F(0)) / 2, terms

    def left(self, D: Sequence[F]) -> Matrix:
        """What must be positive semidefinite for formula (3), rows and columns times their scales."""
        added = [r - e * s for r, e, s in zip(self.ridge, D, self.squares, strict=True)]
        return [[v + (added[j] if i == j else 0) for j, v in enumerate(row)] for i, row in enumerate(self.G)]

    def sloped(self, g: list[F]) -> Bound:
        """Formula (2) at slopes of the rows, in the domain of the conjugate."""
        value, products = self.spoken(g)
        return value, [self.term(j, v) for j, v in enumerate(products)]

    def spoken(self, g: list[F]) -> tuple[F, list[F]]:
        """-L* at slopes of the rows, rounded downwards, and the products of the columns with the dual vector."""
        value, beta = self.weighed(g)
        return value, [dot(column, beta) for column in self.columns]

    def weighed(self, g: list[F]) -> tuple[F, list[F]]:
        """-L* at slopes of the rows, rounded downwards, and the dual vector."""
        counts = self.weights
        tally(self.loss.operations * len(g))
        if self.level and self.loss.by_products:
            mean = dot(self.weights[: self.own], g[: self.own]) / self.weight
            g = [v - mean for v in g[: self.own]] + g[self.own :]
        elif self.level:
            counts = shares(g, self.weights)
        values = [self.loss.minus_conjugate(v, t) for v, t in zip(g, self.y, strict=True)]
        return dot(counts, values), [s * v for s, v in zip(counts, g, strict=True)]

    def term(self, j: int, v: F) -> F:
        """What a column takes off a bound, twice, where v is its product with the dual vector."""
        return self.taken_by(j, v, self.ridge[j] if self.lam else F(0))

    def taken_by(self, j: int, v: F, bend: F) -> F:
        """The largest -2 v w - bend w^2 over the coefficients w of column j; bend may be 0 where sizes are known."""
        w = -v / bend if bend else (self.sizes[j] if v < 0 else -self.sizes[j])
        if self.sizes:
            w = max(min(w, self.sizes[j]), -self.sizes[j])
        if self.bounds:
            low, high = (side[j] for side in self.bounds)
            w = max(w, F(low)) if math.isfinite(low) else w
            w = min(w, F(high)) if math.isfinite(high) else w
        return -w * (2 * v + bend * w)

    def at_dual(self, beta: Sequence[float]) -> list[Bound]:
        """The bound a dual vector proves."""
        if self.lam == 0 and not self.sizes:
            return []
        g = [F(beta[i]) for i in self.rows]
        if self.loss.by_products:
            g = [v * inverse_root(w) for v, w in zip(g, self.weights, strict=True)]
        return [self.sloped(self.in_domain(g))]

    def in_domain(self, g: list[F]) -> list[F]:
        """The slopes of rows in the domain of the conjugate that are nearest to these."""
        return [self.loss.in_domain(v, t) for v, t in zip(g, self.y, strict=True)]

    def slopes(self, x: dict[int, F]) -> list[F]:
        """About the slopes of rows at a point, in the domain of the conjugate."""
        return [self.loss.slope(z, t) for z, t in zip(self.predict(x), self.y, strict=True)]

    def given(self, prepared: dict[int, F]) -> dict[int, F]:
        """Coefficients of the data as given, from those of prepared columns."""
        return {j: v * self.inverses[j] for j, v in prepared.items()}

    def at_point(self, prepared: dict[int, F], curvatures: Sequence[Sequence[F]]) -> list[Bound]:
        """The bounds a point proves, whose coefficients are those of prepared columns."""
        x = self.given(prepared)
        if self.loss.by_products:
            flat = [] if self.lam or not self.sizes else [self.sloped(self.slopes(x))]
            split = [] if self.after_split is None else [self.curved(x, *self.after_split)]
            return split + [self.curved(x, D) for D in curvatures] + flat
        return [] if self.lam == 0 and not self.sizes else [self.sloped(self.slopes(x))]

    def at_fit(self, S: set[int], C: set[int], curvatures: Sequence[Sequence[F]], bounded: bool) -> F:
        """The bound the fit proves."""
        if self.k - len(S) == 1 and C:
            return min(self.at_fit(S | {j}, set(), curvatures, bounded) for j in C)
        used = self.columns_of(S if len(S) >= self.k else S | C)
        H = [[self.G[i][j] + (self.ridge[j] if i == j else 0) for j in used] for i in used]
        x, _ = solve(H, [[self.b[j] for j in used]])
        fit = dict(zip(used, x[0], strict=True))
        values = [self.c - sum((v * self.b[j] for j, v in fit.items()), F(0)) / 2]
        if curvatures:
            rounded = {j: near(v) for j, v in fit.items()}
            values += [self.least(S, C, self.curved(rounded, D)) for D in curvatures]
        if bounded:
            values += [self.least(S, C, self.bounded(used, H, F(1, 10**e))) for e in (8, 12)]
        return max(values)

    def bounded(self, used: list[int], H: Matrix, share: F) -> Bound:
        """A bound for models of bounded size, at a fit without nearly dependent directions."""
        ridge = [[v + (share * H[i][i] if i == j else 0) for j, v in enumerate(row)] for i, row in enumerate(H)]
        x = {j: F(0) for j in used}
        for _ in range(6):
            Gx = self.times(x)
            step, _ = solve(ridge, [[near(self.b[j] - Gx[j]) for j in used]])
            x = {j: near(x[j] + s, 140) for j, s in zip(used, step[0], strict=True)}
        Gx = self.times(x)
        size = root(2 * self.c, above=True)
        terms = []
        for j, v in enumerate(abs(p - q) for p, q in zip(Gx, self.b, strict=True)):
            terms.append(2 * RADIUS * size * v / root(self.G[j][j], above=False) if v else F(0))
        return self.c - sum((v * Gx[j] for j, v in x.items()), F(0)) / 2, terms

    def objective(self, x: dict[int, F]) -> F:
        """The objective of a model, rounded upwards; rows of equalities, which it is to meet, have no part in it."""
        ridge = sum((self.ridge[j] * v * v for j, v in x.items()), F(0)) / 2
        if not x and self.loss.costs_nothing(self.y, self.level):
            return F(0)
        if self.loss.by_products:
            Gx = self.times(x)
            whole = ridge + self.c + sum((v * (Gx[j] / 2 - self.b[j]) for j, v in x.items()), F(0))
            z = self.predict(x)[self.own :] if self.own < len(self.y) else []
            return whole - sum((self.loss.value(v, t) for v, t in zip(z, self.y[self.own :], strict=True)), F(0))
        z = self.predict(x)
        tally(20 * len(z))
        return ridge + dot(self.weights, [self.loss.value(v, t) for v, t in zip(z, self.y, strict=True)])
