"""Column subset selection: bounds of regions with every error stated.

The objective of a selection T is ||A - P A||_F^2 with P the projection on the span of its columns. For a region (S, C)
with r places, let E be what S leaves of A and Pi the projection on the span of E_C. Any r columns of C take away at
most the r largest singular values of Pi E, so with dist_r the distance to the matrices of rank r

    bound = ||E - Pi E||^2 + dist_r(Pi E)^2.

Its square root moves by no more than E and Pi E do (in the Frobenius norm), which is how rounding enters: a projection
computed from columns of length one whose smallest singular value is at least s, with a residual of at most e, is turned
by at most e / s. s is verified by a Cholesky factorisation; singular values are trusted to 16 (n + d) 2^-53 ||A||.
Where that falls short of the target, projections are exact (exact_selections.py).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from exactsel_certificates.exact_selections import ExactSelections
from exactsel_certificates.formula import ColumnInstance, FloatArray
from exactsel_certificates.rigorous import ROUNDED, TINY, U, gamma, lengths, runs_to_its_end
from exactsel_certificates.work import STEP, ExactWork, of_selections, spend

NEGLIGIBLE = 1e-9
"""A column of which less than this is left, once those before it are projected out, may be spoken of under a scope."""

RECONSTRUCTION = 1e4
"""The scope: reconstructions with abs(x_jl) ||a_j|| <= this * ||a_l||."""

DISTINCT = 0.01
"""A direction known no better than this is not used."""


class Span(NamedTuple):
    """Orthonormal columns (n, m), and a number the projection on their span is no further than from the true one."""

    basis: FloatArray
    angle: float

    def residual(self, M: FloatArray) -> FloatArray:
        """M less its projection."""
        return _residual(self.basis, M)


class SelectionBounds:
    """Bound to one matrix; ``bounded`` says whether the claim speaks of bounded reconstructions only.

    Bounds below ``target`` are made better by exact arithmetic, as long as ``exact_limit`` multiplications last.
    """

    def __init__(
        self, instance: ColumnInstance, bounded: bool, target: float = -math.inf, exact_limit: float = 0.0
    ) -> None:
        self.instance = instance
        self.k = instance.k
        self.target = target
        self.exact_regions = 0
        self._exact: ExactSelections | None = None
        self.work = ExactWork(exact_limit)
        self.A = np.ascontiguousarray(instance.A, dtype=np.float64)
        self.n, self.d = self.A.shape
        self.bounded = bounded
        self.norms = lengths(np.ascontiguousarray(self.A.T))
        self.names = [direction(column) for column in self.A.T]
        self.size = float(lengths(self.norms[None, :])[0])
        self.rounding = 4.0 * gamma(self.n + self.d) + 16.0 * (self.n + self.d) * U
        """What projecting A, or taking singular values, can do, in units of ||A||."""

    def bound(self, included: Sequence[int], candidates: Sequence[int]) -> float:
        """A number no selection of the region is below; 0 where nothing better is certain."""
        spend(of_selections(1, self.n, self.d))
        try:
            with np.errstate(all="ignore"):
                value = self._bound(list(included), list(candidates))
        except np.linalg.LinAlgError:  # numbers beyond doubles
            value = 0.0
        value = value if math.isfinite(value) else 0.0
        return value if value >= self.target else max(value, self._exactly(sorted(included), sorted(candidates)))

    def _exactly(self, included: list[int], candidates: list[int]) -> float:
        """The same by exact projections; 0 where the work left does not allow for them."""
        work = 2.0 * self.d * self.d * (len(included) + len(candidates) + 1)
        work += 0.0 if self._exact is not None else 1.0 * self.n * self.d * self.d
        if not self.work.allows(work):
            return 0.0
        self.exact_regions += 1
        if self._exact is None:
            self._exact = ExactSelections(self.instance, RECONSTRUCTION)
        slots = max(0, self.k - len(included))
        try:
            return self._exact.bound(included, candidates, slots, self.bounded)
        except np.linalg.LinAlgError:
            return 0.0

    def _bound(self, included: list[int], candidates: list[int]) -> float:
        slots = self.k - len(included)
        if len(candidates) <= slots:
            included, candidates, slots = [*included, *candidates], [], 0
        basis, skipped, hidden = self._independent(self._distinct(included), Counter(self.names[j] for j in included))
        span = self._span_of(basis)
        if span.angle > DISTINCT:
            return 0.0
        if skipped and not self.bounded:
            # A near combination may point anywhere: it counts as one more column to choose, out of all there could be.
            return self._best_directions(span, max(0, slots) + skipped, [], 0.0)
        directions = {self.names[j] for j in basis}
        useful = [j for j in self._distinct(candidates) if self.names[j] not in directions]
        if slots <= 0 or not useful:
            residual = _size(span.residual(self.A))
            return self._square(residual * (1.0 - gamma(self.n * self.d)), span.angle * self.size, hidden)
        if slots == 1:
            return self._best_addition(span, useful, hidden)
        return self._best_directions(span, slots, useful, hidden)

    def useful(self, included: Sequence[int], candidates: Sequence[int]) -> list[int]:
        """The candidates that may take something away: one of each direction, none that S holds already."""
        directions = {self.names[j] for j in included}
        return [j for j in self._distinct(list(candidates)) if self.names[j] not in directions]

    def projected(self, included: Sequence[int]) -> tuple[Span | None, float]:
        """The span of S and what near combinations may hide; None where it is known badly, or ``included`` has some
        that may not be spoken of.
        """
        columns = list(included)
        basis, skipped, hidden = self._independent(self._distinct(columns), Counter(self.names[j] for j in columns))
        span = self._span_of(basis)
        return (None if span.angle > DISTINCT or (skipped and not self.bounded) else span), hidden

    def _square(self, value: float, moved: float, hidden: float) -> float:
        low = value * (1.0 - gamma(8)) - moved - self.rounding * self.size - hidden
        positive: float = max(0.0, low)  # 0 also where low is nan
        return positive * positive * (1.0 - 4 * U)

    def _distinct(self, columns: list[int]) -> list[int]:
        """One of each direction but no column that is zero: copies add nothing to a span."""
        first: dict[bytes, int] = {}
        for j in sorted(columns):
            if self.norms[j] > 0:
                first.setdefault(self.names[j], j)
        return list(first.values())

    def _independent(self, columns: list[int], times: Mapping[bytes, int]) -> tuple[list[int], int, float]:
        """Columns that are no near combinations of those before, how many are, and what these may hide.

        ``times`` says how many columns have the direction of each: copies share a larger coefficient.
        """
        pivots: list[int] = []
        basis = np.zeros((self.n, 0))
        skipped, copies, left_over = 0, 0, 0.0
        for j in columns:
            rest = _residual(basis, self.A[:, j : j + 1] / self.norms[j])
            length = float(np.linalg.norm(rest))
            if length <= NEGLIGIBLE or len(pivots) == self.n:
                many = times[self.names[j]]
                skipped, copies, left_over = skipped + 1, copies + many, left_over + many * length
                continue
            pivots.append(j)
            basis = np.concatenate([basis, _residual(basis, rest / length)], axis=1)
            basis[:, -1] /= np.linalg.norm(basis[:, -1])
        # The exact share left differs from the computed one by no more than the turning of the span times the length.
        turned = self._span_of(pivots).angle + gamma(self.n + 8)
        return pivots, skipped, RECONSTRUCTION * (left_over + copies * turned) * self.size * 1.001

    def _span_of(self, columns: list[int]) -> Span:
        units = self.A[:, columns] / self.norms[columns]
        return verified_span(units, gamma(4) * math.sqrt(len(columns) + 1))

    def _best_addition(self, span: Span, candidates: list[int], hidden: float) -> float:
        rest = span.residual(self.A)
        size = _size(rest)
        error = span.angle + self.rounding
        values = []
        for j in candidates:
            spend(STEP + 4.0 * self.n * self.d)
            length = float(np.linalg.norm(rest[:, j]))
            turned = 1.01 * error * float(self.norms[j]) / length if length > 0 else math.inf
            if not turned < DISTINCT:
                return self._best_directions(span, 1, candidates, hidden)
            unit = rest[:, j : j + 1] / length
            remaining = float(np.linalg.norm(rest - unit @ (unit.T @ rest))) * (1.0 - gamma(self.n * self.d))
            values.append(self._square(remaining, span.angle * self.size + turned * size, hidden))
        return min(values)

    def _best_directions(self, span: Span, slots: int, candidates: list[int], hidden: float) -> float:
        rest = span.residual(self.A)
        size = _size(rest)
        moved = span.angle * self.size
        outside, included = np.zeros_like(rest), rest
        directions = self._span_of_rest(rest, candidates, span.angle + self.rounding)
        if directions is not None:
            outside = directions.residual(rest)
            included = rest - outside
            moved += 2.0 * directions.angle * size
        singular = np.linalg.svd(included, compute_uv=False)
        tail = np.concatenate([singular[slots:], np.zeros(1)])
        value = math.hypot(float(np.linalg.norm(outside)), float(np.linalg.norm(tail)))
        return self._square(value * (1.0 - gamma(self.n * self.d)), moved, hidden)

    def _span_of_rest(self, rest: FloatArray, candidates: list[int], error: float) -> Span | None:
        """The span of what is left of the candidates, if they are far enough from dependent to say."""
        size = np.linalg.norm(rest[:, candidates], axis=0)
        if not candidates or len(candidates) >= self.n:
            return None
        turned = 1.01 * error * self.norms[candidates] / size
        span = verified_span(rest[:, candidates] / size, float(np.linalg.norm(turned)) * 1.001 + gamma(self.n + 8))
        return span if span.angle < DISTINCT else None


def _residual(basis: FloatArray, M: FloatArray) -> FloatArray:
    """M less its projection on the span of orthonormal columns, twice for the sake of its digits."""
    once = M - basis @ (basis.T @ M)
    return np.asarray(once - basis @ (basis.T @ once))


def _size(M: FloatArray) -> float:
    """The Frobenius norm, rounded upwards."""
    return float(lengths(np.ravel(M)[None, :])[0])


def direction(column: FloatArray) -> bytes:
    """Equal for columns that are copies of each other up to a sign and a power of two."""
    used = np.flatnonzero(column)
    if not used.size:
        return b""
    exponent = int(np.frexp(np.max(np.abs(column)))[1])
    scaled = np.ldexp(np.sign(column[used[0]]) * column, -exponent) + 0.0
    exact = np.array_equal(np.abs(np.ldexp(scaled, exponent)), np.abs(column))
    return scaled.tobytes() if exact else b"=" + column.tobytes()


def verified_span(units: FloatArray, error: float) -> Span:
    """The span of columns of length one that are known up to ``error`` (Frobenius norm)."""
    n, m = units.shape
    if m == 0:
        return Span(np.zeros((n, 0)), 0.0)
    if m > n or not np.all(np.isfinite(units)):
        return Span(np.zeros((n, 0)), math.inf)
    basis = np.linalg.qr(units)[0]
    room = 2.0 * m * (gamma(n + 8) + gamma(m + 4))
    skew = float(np.linalg.norm(basis.T @ basis - np.eye(m))) * 1.001 + m * gamma(n + 4)
    # No combination of the basis is nearer to a column than its projection, so any coordinates show what is missed.
    coordinates = basis.T @ units
    reach = np.abs(units) + np.abs(basis) @ np.abs(coordinates)
    missed = float(np.linalg.norm(units - basis @ coordinates)) * 1.001 + gamma(m + 4) * float(np.linalg.norm(reach))
    gram = units.T @ units
    smallest = 0.9 * float(np.linalg.eigvalsh(gram)[0])
    if not (smallest > room and runs_to_its_end(gram - (smallest + room) * np.eye(m))):
        return Span(basis, math.inf)
    least = math.sqrt(smallest) * (1.0 - 1e-9) - error
    if not (least > 0 and skew < DISTINCT):
        return Span(basis, math.inf)
    return Span(basis, ((missed + error) / least + 2.0 * skew) * 1.001)


def selection_objective_above(instance: ColumnInstance, chosen: Sequence[int]) -> float:
    """An upper estimate of the objective of a selection: of *some* reconstruction from its columns."""
    A = np.asarray(instance.A, dtype=np.float64)
    if not np.any(A):
        return 0.0
    columns = A[:, sorted(chosen)]
    if not np.all(lengths(A) < np.sqrt(np.finfo(np.float64).max)):
        return math.inf
    with np.errstate(all="ignore"):
        scale = lengths(np.ascontiguousarray(columns.T))
        units = columns[:, scale > 0] / scale[scale > 0]
        X = np.zeros((units.shape[1], A.shape[1]))
        for _ in range(2):
            X = X + np.linalg.lstsq(units, A - units @ X, rcond=1e-12)[0]
        rest = np.abs(A - units @ X) + gamma(len(chosen) + 8) * (np.abs(units) @ np.abs(X) + np.abs(A))
        value = _size(rest) ** 2 * ROUNDED + TINY
    return value if math.isfinite(value) else math.inf
