"""Bounds of the regions a proof closes, cheapest method first.

Each region is bounded in doubles with all rounding taken off; where that falls short of the target, the next way is
tried: exact arithmetic, then points better than the file's (polishing.py). The best of what was proven is reported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from exactsel_certificates.container import FIRST_POINT, FIRST_STRONG, FIT, Proof
from exactsel_certificates.exact import RADIUS, ExactBounds, float_below
from exactsel_certificates.fits import MOST_ENTRIES, Fits
from exactsel_certificates.formula import FloatArray, Instance, may_choose
from exactsel_certificates.group_counting import GroupCounting
from exactsel_certificates.losses import ExactLoss
from exactsel_certificates.points import Points, left_first, shown_radii, taken_after_split
from exactsel_certificates.polishing import Polisher
from exactsel_certificates.rigorous import RigorousBounds, Rows, States, leaves_convex, model_objective
from exactsel_certificates.scaled import Scaled, scaled
from exactsel_certificates.semidefinite import Semidefinite
from exactsel_certificates.strong import StrongColumns
from exactsel_certificates.walk import BY_COUNTING, FREE, IN, OUT, Leaves, each_addition
from exactsel_certificates.work import STEP, ExactWork, of_fits, of_points, spend

CUTS = (1e-12, 1e-15)
"""Parts of the largest eigenvalue below which a direction counts as dependent, when a fit is refined."""

NEAR = 0.05
"""Part of the target a bound must reach for its point to be worth improving: the digits of a point hide no more."""

COUNTED_FOR_ONE = 200
"""Sets that may be counted for each multiplication exact arithmetic may take."""

STEPS = 6
"""Corrections of a fit from its exact gradient."""


class RegressionRegions:
    """Bounds of regions of a regression problem; numbers below the target are made as large as they can be."""

    def __init__(
        self, instance: Instance, proof: Proof, exact_limit: float, curvature: FloatArray | None = None
    ) -> None:
        """``curvature`` is one known to serve all regions to come; else the file's is checked."""
        self.instance, self.k, self.target = instance, instance.k, proof.lower
        self.bounded = proof.valid_for != ""
        self.points = Points(proof)
        self.plain = RigorousBounds(instance)
        # Limits on coefficients are about models up to a level, and so are bounds that rest on them.
        self.most, self.plain.sizes = shown_radii(instance, proof) or (math.inf, None)
        self.quadratic = instance.formulas.quadratic
        self._has_exact = isinstance(instance.formulas, ExactLoss)
        self.fits = Fits(instance, self.plain)
        usable = curvature is None and self._usable(proof)
        self.curvature = np.array(proof.curvature, dtype=np.float64) if usable else curvature
        self._after_split = taken_after_split(instance, proof) if curvature is None else None
        self._left_curvature = np.array(proof.curvature, dtype=np.float64)
        self.exact_regions = 0
        self.work = ExactWork(exact_limit)
        self._counted_most, self._left_first = COUNTED_FOR_ONE * exact_limit, left_first(proof)
        self._values: dict[tuple[int, ...], float] = {}

    @cached_property
    def semidefinite(self) -> Semidefinite:
        """Made when it is first needed, for it takes a table of all columns."""
        return Semidefinite(self.plain, self.target, self._counted_most, self._left_first)

    @cached_property
    def strong(self) -> StrongColumns:
        """Made when it is first needed, for it takes a copy of the data."""
        return StrongColumns(self.plain, self.target)

    @cached_property
    def _counting(self) -> Semidefinite | GroupCounting:
        """What counts the sets of a region: of columns, or of groups."""
        groups = self.instance.groups
        return GroupCounting(self.semidefinite, groups) if groups else self.semidefinite

    def _usable(self, proof: Proof) -> bool:
        plain = proof.curvature.size == self.plain.d and not proof.curvature_split.size
        return self.quadratic and plain and leaves_convex(self.instance, proof.curvature)

    def bounds(self, leaves: Leaves) -> FloatArray:
        """A bound for each region; 0, which no objective is below, at the least."""
        result = np.zeros(len(leaves.states))
        numbers, dense = (leaves.witness - FIRST_POINT) // 2, (leaves.witness - FIRST_POINT) % 2 == 1
        splits = (leaves.witness < 0) & (~leaves.witness < min(self.points.splits, FIRST_STRONG))
        strong = ~leaves.witness - FIRST_STRONG
        single = self.quadratic and not self.instance.groups
        has_point = (numbers >= 0) & (numbers < np.where(dense, self.points.duals, len(self.points)))
        for chosen, method, indices in (
            ((leaves.witness == FIT) & self.quadratic, self._at_fits, numbers),
            (has_point & ~dense, self._at_points, numbers),
            (has_point & dense, self._at_dual_vectors, numbers),
            ((leaves.witness == BY_COUNTING) & self.quadratic, self._by_counting, numbers),
            (splits & single, self._at_splits, ~leaves.witness),
            (self.points.has_strong(strong) & single, self._by_strong, strong),
        ):
            if (rows := np.flatnonzero(chosen)).size:
                result[rows] = np.maximum(method(leaves.states[rows], indices[rows]), 0.0)
        return np.minimum(result, self.most)

    def _by_counting(self, states: States, _: NDArray[np.int64]) -> FloatArray:
        """Regions of which every model is evaluated: those margins are too thin for in exact arithmetic."""
        counting = self._counting
        result = np.where(counting.counted(states, self.k), self.target, -np.inf)
        for row in np.flatnonzero(result < self.target).tolist() if counting.usable else ():
            if not counting.may_count(states[row], self.k):
                continue
            result[row] = self.target
            for columns in counting.undecided(states[row], self.k):
                spend(STEP)
                if may_choose(self.instance, columns) or not self.semidefinite.alone(columns):
                    result[row] = min(result[row], self.value(columns))
                if result[row] <= 0.0:
                    break  # below which no objective is
        return result

    def value(self, columns: list[int]) -> float:
        """The smallest objective of a model in scope on some columns, rounded downwards; 0 where work runs out."""
        key = tuple(columns)
        if key not in self._values:
            self._values[key] = 0.0
            if self._affords(len(columns)):
                self.exact_regions += 1
                polisher = self._polisher
                value = float_below(polisher.least_squares(columns))
                # Of bounded models of groups nothing is said here, nor of copies, which share a larger coefficient.
                speaks = self.bounded and not self.instance.groups and not self.semidefinite.has_copies(columns)
                if speaks and value < self.target and self._affords(len(columns), systems=len(columns) + 1):
                    within = polisher.exact.for_bounded_models(columns, [], polisher.within_bounds(columns))
                    value = max(value, float_below(within))
                self._values[key] = value
        return self._values[key]

    def in_scope(self, state: NDArray[np.uint8], columns: list[int]) -> float:
        """A bound of a region for bounded models, near the fit on some columns; 0 where work runs out."""
        if not self.work.allows(4.0 * self.plain.n * (1 + len(columns)) * (1 + STEPS)):
            return 0.0
        self.exact_regions += 1
        S, C = np.flatnonzero(state == IN).tolist(), np.flatnonzero(state == FREE).tolist()
        x = self._corrected([Fraction(0)] * self.plain.d, columns, CUTS[0])
        return float_below(self._exact_bounds.for_bounded_models(S, C, x))

    def _at_splits(self, states: States, numbers: NDArray[np.int64]) -> FloatArray:
        pairs = zip(states, map(self.points.split, numbers.tolist()), strict=True)
        return np.where([self.semidefinite.split(state, self.k, split) for state, split in pairs], self.target, -np.inf)

    def _by_strong(self, states: States, numbers: NDArray[np.int64]) -> FloatArray:
        pairs = zip(states, map(self.points.strong, numbers.tolist()), strict=True)
        return np.where([self.strong.closes(state, *columns) for state, columns in pairs], self.target, -np.inf)

    def _at_points(self, states: States, numbers: NDArray[np.int64]) -> FloatArray:
        distinct, which = np.unique(numbers, return_inverse=True)
        spend(of_points(len(distinct), len(states), self.plain.n, self.plain.d))
        return self.at_models(self.points.models(distinct), which, states)

    def at_models(self, W: FloatArray, which: Rows, states: States) -> FloatArray:
        """Bounds of regions at models W (P, d), of which ``which`` (B,) names one for each."""

        def start(row: int) -> list[Fraction]:
            return [Fraction(value) for value in W[which[row]].tolist()]

        result = self._curved(W, which, states, start) if self.quadratic else np.full(len(states), -np.inf)
        if not self.quadratic or self.plain.sizes is not None:
            flat = self._at_duals(
                self.plain.gradients(W), which, states, lambda exact, row: exact.dual_vector(W[which[row]])
            )
            result = np.maximum(result, flat)
        return self._polished(result, states, self._curvatures(), start)

    def _at_dual_vectors(self, states: States, numbers: NDArray[np.int64]) -> FloatArray:
        distinct, which = np.unique(numbers, return_inverse=True)
        spend(of_points(len(distinct), len(states), self.plain.n, self.plain.d))
        B = self.plain.projected(self.points.dual_vectors(distinct))
        result = self._at_duals(B, which, states, lambda exact, row: scaled(B[which[row]]))

        def start(row: int) -> list[Fraction]:
            # Where no column ties, this is the model the dual vector belongs to.
            with np.errstate(all="ignore"):
                x = -(B[which[row]] @ self.plain.A) / self.instance.lam
            return [Fraction(value) for value in np.where(np.isfinite(x), x, 0.0).tolist()]

        return self._polished(result, states, self._curvatures(), start)

    def _at_duals(
        self, B: FloatArray, which: Rows, states: States, precise: Callable[[ExactBounds, int], Scaled]
    ) -> FloatArray:
        """Formula (2) at the dual vectors B[which], of which ``precise`` gives better ones."""
        if self.instance.lam == 0 and self.plain.sizes is None:
            return np.full(len(states), -np.inf)
        result = self.plain.bounds(self.plain.at_duals(B), which, states)
        return self._exactly(result, states, lambda exact, S, C, row: exact.at_dual(S, C, precise(exact, row)))

    def _curved(
        self, W: FloatArray, which: Rows, states: States, precise: Callable[[int], Sequence[Fraction]]
    ) -> FloatArray:
        """Formula (3) at the models W[which], with the curvature of the proof, then the ridge's, then both exactly."""
        result = np.full(len(states), -np.inf)
        if self._after_split is not None:
            after = self.plain.at_models(W, self._left_curvature, self._after_split)
            result = self.plain.bounds(after, which, states)
        for curvature in self._curvatures():
            short = np.flatnonzero(~(result >= self.target))
            if short.size:
                used, again = np.unique(which[short], return_inverse=True)
                bounds = self.plain.bounds(self.plain.at_models(W[used], curvature), again, states[short])
                result[short] = np.maximum(result[short], bounds)
        for curvature in self._curvatures():

            def exactly(
                exact: ExactBounds, S: list[int], C: list[int], row: int, D: FloatArray = curvature
            ) -> Fraction:
                return exact.at_model(S, C, precise(row), D)

            result = self._exactly(result, states, exactly)
        return result

    def _curvatures(self) -> list[FloatArray]:
        ridge = [self.plain.ridge] if self.instance.lam > 0 else []
        return ridge if self.curvature is None else [self.curvature, *ridge]

    def _at_fits(self, states: States, _: NDArray[np.int64]) -> FloatArray:
        """Regions closed by the fit on their columns; with one place left by the cheapest addition."""
        slots = self.k - np.sum(states == IN, axis=1)
        single = (slots == 1) & np.any(states == FREE, axis=1)
        result = np.full(len(states), -np.inf)
        rows = np.flatnonzero(~single)
        if rows.size:
            result[rows] = self._at_region_fits(states[rows])
        rows = np.flatnonzero(single)
        if rows.size and not self.instance.groups and self.fits.affordable(self.plain.d):
            result[rows] = np.where(self.semidefinite.counted(states[rows], self.k), self.target, -np.inf)
        for row in rows[~(result[rows] >= self.target)].tolist():
            parts = each_addition(states[row], max(1, MOST_ENTRIES // states.shape[1]))
            result[row] = max(result[row], min(float(np.min(self._at_region_fits(part))) for part in parts))
        return result

    def _at_region_fits(self, states: States) -> FloatArray:
        used = self._as_columns(states)
        result = np.full(len(states), -np.inf)
        spend(self._of_fits(used))
        points = self.fits.on_regions(used, self.k)
        for curvature in self._curvatures():
            evaluated = self.plain.at_models(points, curvature)
            result = np.maximum(result, self.plain.bounds(evaluated, np.arange(len(points)), states))
        short = np.flatnonzero(~(result >= self.target))
        if short.size and self.fits.affordable(self.plain.d):
            full = np.sum(used[short] == IN, axis=1) >= self.k
            proven = self.semidefinite.on_all(np.where(full[:, None], used[short] == IN, used[short] != OUT))
            result[short[proven]] = self.target
            short = short[~proven]
        if short.size:
            result[short] = np.maximum(result[short], self._at_refined_fits(states[short], used[short], points[short]))
        return result

    def _of_fits(self, used: States) -> float:
        """What fits on columns of regions take, and bounds at them."""
        n, d = self.plain.n, self.plain.d
        return of_fits(len(used), int(np.max(np.sum(used != OUT, axis=1)))) + of_points(len(used), len(used), n, d)

    def _at_refined_fits(self, states: States, used: States, W: FloatArray) -> FloatArray:
        if self._curvatures():
            return self._curved(W, np.arange(len(W)), states, lambda row: self._refined(W[row], used[row]))
        curvatures = np.stack([self.fits.own_curvature(self._columns(state)) for state in used])
        result = self.plain.bounds(self.plain.at_models(W, curvatures), np.arange(len(W)), states)

        def least(exact: ExactBounds, S: list[int], C: list[int], row: int) -> Fraction:
            columns = self._columns(used[row])
            return self._polisher.least_squares(columns) if self._affords(len(columns)) else Fraction(0)

        def within(exact: ExactBounds, S: list[int], C: list[int], row: int) -> Fraction:
            columns = self._columns(used[row])
            if not self._affords(len(columns), systems=len(columns) + 1):
                return Fraction(0)
            return exact.for_bounded_models(S, C, self._polisher.within_bounds(columns))

        def refined(exact: ExactBounds, S: list[int], C: list[int], row: int) -> Fraction:
            # Which of nearly dependent columns count as dependent is a guess: the better one is taken.
            return max(exact.for_bounded_models(S, C, self._refined(W[row], used[row], c)) for c in CUTS)

        for method in (least, within, refined) if self.bounded else (least,):
            result = self._exactly(result, states, method)
        return result

    def _as_columns(self, states: States) -> States:
        """With groups: which columns the fits of regions use, as regions that have decided on every column."""
        if not self.instance.groups:
            return states
        used = states != OUT
        full = np.sum(states == IN, axis=1) >= self.k
        used[full] = states[full] == IN
        return np.where(used, np.uint8(IN), np.uint8(OUT))[:, self.instance.unit_of]

    def _columns(self, state: NDArray[np.uint8]) -> list[int]:
        included = np.flatnonzero(state == IN)
        return (included if included.size >= self.k else np.flatnonzero(state != OUT)).tolist()

    def _refined(self, w: FloatArray, state: NDArray[np.uint8], cut: float = CUTS[0]) -> list[Fraction]:
        """The fit to about twice the precision of doubles: two corrections from exact gradients."""
        columns = [j for j in self._columns(state) if self.plain.norms[j] > 0]
        if self._curvatures() and self._affords(len(columns)):
            return self._polisher.fit(columns)
        scale = self.fits.scale[columns]
        # A singular system may have given anything.
        useless = np.any(np.abs(w[columns]) * scale > RADIUS * self.fits.target)
        return self._corrected([Fraction(0) if useless else Fraction(value) for value in w.tolist()], columns, cut)

    def _corrected(self, x: list[Fraction], columns: list[int], cut: float) -> list[Fraction]:
        """A point (d,) after corrections on some columns, as long as they bring it nearer to their fit."""
        scale, least = self.fits.scale[columns], np.inf
        try:
            if not self.fits.affordable(len(columns)):
                return x
            inverse = np.linalg.pinv(self.fits.hessian_of(np.array(columns, dtype=np.intp)), rcond=cut, hermitian=True)
            for _ in range(STEPS):
                gradient = self._exact_bounds.gradient(columns, x) / scale
                if not np.max(np.abs(gradient), initial=0.0) < least:
                    break
                least = 0.5 * float(np.max(np.abs(gradient)))
                step = inverse @ gradient / scale
                changes = [Fraction(change) for change in step.tolist()]
                for j, change in zip(columns, changes, strict=True):
                    x[j] -= change
        except (np.linalg.LinAlgError, OverflowError, ValueError):
            pass  # numbers beyond doubles: the fit as it is will have to do
        return x

    def _polished(
        self, result: FloatArray, states: States, curvatures: Sequence[FloatArray],
        start: Callable[[int], Sequence[Fraction]],
    ) -> FloatArray:  # fmt: skip
        """Improve what is a little below the target by points better than those of the file."""
        for row in np.flatnonzero(result < self.target).tolist() if self._has_exact else ():
            # Where all columns are given, the digits of a point may hide everything, and its own cost tells.
            is_leaf = not np.any(states[row] == FREE) or np.sum(states[row] == IN) >= self.k
            hidden = is_leaf and model_objective(self.instance, np.array(start(row), dtype=np.float64)) >= self.target
            if not (hidden or result[row] >= NEAR * self.target):
                continue
            S, C = np.flatnonzero(states[row] == IN).tolist(), np.flatnonzero(states[row] == FREE).tolist()
            size = len(self.instance.columns_of([*S, *C]))
            for curvature in curvatures:
                if result[row] >= self.target or not self._affords(size):
                    break
                exact = self._exact_bounds
                for point in self._polisher.steps(S, C, start(row), curvature):
                    if self.quadratic:
                        value = exact.at_model(S, C, point.x, curvature)
                    else:
                        value = exact.at_dual(S, C, point.slopes)
                    result[row] = max(result[row], float_below(value))
                    if result[row] >= self.target or not self._affords(size):
                        break
        return result

    def _affords(self, columns: int, systems: int = 1) -> bool:
        """Whether the work left allows for exact systems of so many columns; if so, it is taken off."""
        return self.work.allows(8.0 * self.plain.n * (columns + 1) ** 2 + systems * (columns + 4.0) ** 4)

    @cached_property
    def _polisher(self) -> Polisher:
        return Polisher(self._exact_bounds)

    @cached_property
    def _exact_bounds(self) -> ExactBounds:
        return ExactBounds(self.instance, self.plain.sizes)

    def _exactly(
        self,
        result: FloatArray,
        states: States,
        method: Callable[[ExactBounds, list[int], list[int], int], Fraction],
    ) -> FloatArray:
        """Improve what is below the target by exact arithmetic, as long as the limit on its work allows."""
        for row in np.flatnonzero(~(result >= self.target)).tolist() if self._has_exact else ():
            work = 4.0 * self.plain.n * (1 + np.count_nonzero(states[row]))
            if not self.work.allows(work):
                break
            self.exact_regions += 1
            S, C = np.flatnonzero(states[row] == IN).tolist(), np.flatnonzero(states[row] == FREE).tolist()
            result[row] = max(result[row], float_below(method(self._exact_bounds, S, C, row)))
        return result
