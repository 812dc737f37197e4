"""Coefficient bounds as a term of the objective: coefficients with signs or bounds, and linear equalities among them.

    minimise  P(x) = L(Ax) + (lam/2) ||x||^2   over x with  lower_j <= x_j <= upper_j,  and 0 between the two

with lam > 0, or any loss but squared hinge. Formulas for free coefficients do not hold: methods that use them ask for
FREE_COEFFICIENTS, or take the problem without bounds (:mod:`exactsel.problem.restrictions`). What bounds change in the
dual bound is one term: at s = -a_j'b a column gains c_j(s) = max of s w - (lam/2) w^2 within its bounds, where a free
column gains s^2 / (2 lam). With w >= 0 that is max(0, s)^2 / (2 lam).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from exactsel.algebra.curvature import has_curvature
from exactsel.kernels.boxed import OWN
from exactsel.kernels.dual import dual_at_point, node_bound
from exactsel.kernels.grouped import spans_of, unit_sums
from exactsel.kernels.node import node_columns
from exactsel.problem.box_limits import gains_within
from exactsel.problem.boxed_fit import flat_least_squares_in_box, least_squares_in_box, minima_in_box, newton_in_box
from exactsel.problem.equality_fit import EqualityFits
from exactsel.problem.fit import Fit, among_all, fit_support, on_columns
from exactsel.problem.objective import Objective
from exactsel.problem.read_only import read_only
from exactsel.problem.units import Units
from exactsel.rounding import UNIT
from exactsel.types import BoolArray, FloatArray, IntArray, StateArray


class CoefficientBounds:
    """Bounds of the coefficients of all columns, -inf and inf where there is none, and equalities, of an objective.

    Parameters
    ----------
    objective : Objective
        P as it is searched, equalities included, with free coefficients.
    given_lower, given_upper : array (columns,)
        Of the columns as they were given, read-only.
    """

    def __init__(self, objective: Objective, given_lower: FloatArray, given_upper: FloatArray) -> None:
        self.objective, self.given_lower, self.given_upper = objective, given_lower, given_upper
        divisors = np.ones(objective.d) if objective.divisors is None else objective.divisors
        # There is nearly no ridge to limit the others, but no model beyond what is known beats the empty one.
        radii = objective.ridge_limits and objective.ridge_limits.limits
        most = np.full(objective.d, np.inf) if radii is None else radii.size
        self.lower = read_only(np.maximum(given_lower * divisors, -most))
        """(columns,) of the columns as they are searched."""
        self.upper = read_only(np.minimum(given_upper * divisors, most))
        self.equalities = None if objective.equalities is None else EqualityFits(objective, self.lower, self.upper)
        """How models are fitted that meet linear equalities; None where there are none."""

    def on(self, objective: Objective) -> CoefficientBounds:
        """The same bounds, of another objective on the same columns as they were given."""
        if objective is self.objective:
            return self
        return CoefficientBounds(objective, self.given_lower, self.given_upper)

    @cached_property
    def all_finite(self) -> bool:
        """Whether every coefficient has finite bounds on both sides."""
        return bool(np.all(np.isfinite(self.lower) & np.isfinite(self.upper)))

    @cached_property
    def none(self) -> bool:
        """Whether no coefficient has a bound, so that equalities are all there is."""
        return not bool(np.any(np.isfinite(self.given_lower) | np.isfinite(self.given_upper)))

    @property
    def text(self) -> str:
        """How many coefficients have bounds, for people."""
        limited = int(np.count_nonzero(np.isfinite(self.lower) | np.isfinite(self.upper)))
        return f"coefficients of {limited} features within bounds"

    def entry(self) -> list[list[str]]:
        """What a problem's hash holds of them."""
        return [[float(v).hex() for v in side] for side in (self.given_lower, self.given_upper)]

    def describe(self) -> list[list[float | None]]:
        """Lower and upper ones as plain data, None where there is no bound."""
        return [[None if np.isinf(v) else float(v) for v in side] for side in (self.given_lower, self.given_upper)]

    def violated(self, coef: FloatArray) -> BoolArray:
        """Which coefficients (columns,) of the columns as they were given lie outside."""
        return np.asarray((coef < self.given_lower) | (coef > self.given_upper))

    def reached(self, coef: FloatArray) -> BoolArray:
        """Which coefficients (columns,) of the columns as they were given are equal to a bound."""
        return np.asarray((coef == self.given_lower) | (coef == self.given_upper))

    def admit(self, coef: FloatArray) -> bool:
        """Whether coefficients (columns,) of the columns as they are searched lie within."""
        return bool(np.all((coef >= self.lower) & (coef <= self.upper)))

    @property
    def unit(self) -> float:
        """The ridge weight, or 1 where there is none: gains are counted in units of half its inverse."""
        return self.objective.lam or 1.0

    def gains(self, slopes: FloatArray, columns: IntArray) -> FloatArray:
        """max of s w - (lam/2) w^2 within the bounds of each column, to double precision; ``slopes`` s go with them."""
        return gains_within(self.lower[columns], self.upper[columns], self.objective.lam, slopes)

    def dual(self, x: FloatArray, chosen: IntArray, units: Units) -> tuple[float, FloatArray]:
        """A lower estimate of -L*(b) at b = grad L(Ax), and 2 units times upper estimates of what units gain at b.

        ``x`` (columns,) is any model; what comes back is what :func:`exactsel.kernels.dual.node_bound` takes. Rounding
        is accounted for: the gain is convex in the slope, so over what the slope may be it is largest at an end.
        """
        objective, spans = self.objective, spans_of(units.spans, chosen)
        columns = spans.columns
        b, q, v = np.empty(objective.n), np.empty(columns.size), np.empty(columns.size)
        z, raw = objective.predicted(x), objective.raw
        value = dual_at_point(objective.row_loss, raw.AT, objective.y, raw.norms, columns, z, b, q, v)
        reach = np.sqrt(q) * (1.0 + 4 * UNIT)
        off = np.maximum(reach - np.abs(v), 0.0) * (1.0 + 4 * UNIT) + 4 * UNIT * np.abs(v)
        most = np.maximum(self.gains(-v - off, columns), self.gains(-v + off, columns))
        taken = np.empty(chosen.size)
        unit_sums(2.0 * self.unit * most * (1.0 + OWN), spans.first, taken)
        return float(value), taken

    def dual_bound(self, x: FloatArray, state: StateArray, k: int, units: Units) -> float:
        """The dual bound of the region ``state`` (d,) of at most k units at grad L(Ax); x is (columns,), any model."""
        chosen, fixed = node_columns(state)
        slots = max(0, min(k - fixed, chosen.size - fixed))
        chosen = chosen[:fixed] if slots == 0 else chosen
        base, q = self.dual(x, chosen, units)
        return float(node_bound(base, q, fixed, slots, self.unit, np.empty(slots + 1)))

    def fit(self, columns: IntArray) -> Fit:
        """The best admissible model that uses only ``columns``, which ascend."""
        return self.fit_within(columns) if self.equalities is None else self.equalities.fit(columns)

    def fit_within(self, columns: IntArray) -> Fit:
        """The best model within the bounds that uses only ``columns``, whether or not it meets equalities.

        It minimises the objective, so it proves a bound where a model that meets equalities does not.
        """
        objective, coef = self.objective, np.zeros(self.objective.d)
        if not objective.is_quadratic:
            free = fit_support(objective, columns)  # a hundredth of the time, where no bound is met
            if free.converged and self.admit(free.coef):
                return free
        if objective.on_demand:
            return self._fit_of_design(columns)
        used = columns[(objective.norms[columns] > 0) & (self.lower[columns] < self.upper[columns])]
        if used.size and objective.is_quadratic:
            A, y = objective.reduced
            matrix = np.vstack([A[:, used], np.sqrt(objective.lam) * np.eye(used.size)])
            target = np.concatenate([y, np.zeros(used.size)])
            flat = objective.lam == 0 and not independent(objective)
            fitted = flat_least_squares_in_box if flat else least_squares_in_box
            coef[used] = fitted(matrix, target, self.lower[used], self.upper[used])
        elif used.size:
            coef[used] = newton_in_box(objective, used, self.lower[used], self.upper[used])
        slope = objective.gradient(coef, used)
        inner = (coef[used] > self.lower[used]) & (coef[used] < self.upper[used])
        return Fit(columns, coef, objective(coef), float(np.linalg.norm(slope[inner])))

    def _fit_of_design(self, columns: IntArray) -> Fit:
        """The same of data that are not held as a table: a fit on the columns alone, which are."""
        selection = columns if columns.size else np.zeros(1, dtype=np.int64)
        objective, lower, upper = on_columns(self.objective, selection), self.lower[selection], self.upper[selection]
        limited = bool(np.any(np.isfinite(lower) | np.isfinite(upper)))
        slots = np.arange(columns.size)
        fit = CoefficientBounds(objective, lower, upper).fit(slots) if limited else fit_support(objective, slots)
        return among_all(fit, columns, self.objective.d)

    def minima(self, supports: IntArray, threads: int | None = None) -> FloatArray:
        """The smallest value on each set of columns (a row of numbers padded with -1), quick rather than exact."""
        return minima_in_box(self.objective, self.lower, self.upper, supports, threads)


def independent(objective: Objective) -> bool:
    """Whether all columns are independent, so that lam = 0 leaves some curvature; looked at once for all k."""
    key = ("independent",)
    if key not in objective.shared:
        few = objective.d <= objective.n
        objective.shared[key] = few and has_curvature(objective.gram.G, objective.gram.roundings)
    return bool(objective.shared[key])
