"""Best subsets whose coefficients have signs or limits: lower_j <= x_j <= upper_j, with 0 between the two.

    minimise  P(x) = L(Ax) + (lam/2) ||x||^2   over x in the box with at most k non-zeros

with lam > 0, or any loss but squared hinge.

Nothing that knows formulas for free coefficients may see such a problem: walks, listing, counting and closed forms all
ask for FREE_COEFFICIENTS, which it does not have, or take the problem without the box
(:mod:`exactsel.problem.restrictions`). What a box
changes in the dual bound is one term: at s = -a_j'b a column gains c_j(s) = max of s w - (lam/2) w^2 over the box,
where a free column gains s^2 / (2 lam). With w >= 0 that is max(0, s)^2 / (2 lam).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from exactsel.algebra.curvature import has_curvature
from exactsel.arguments import entries, with_aliases
from exactsel.errors import InputError, UnsupportedError, option
from exactsel.kernels.boxed import OWN
from exactsel.kernels.dual import dual_at_point, node_bound
from exactsel.kernels.grouped import spans_of, unit_sums
from exactsel.problem.box_limits import (
    CoefficientBounds,
    checked_limits,
    columns_behind,
    gains_within,
    largest_size,
    named_limits,
)
from exactsel.problem.boxed_fit import flat_least_squares_in_box, least_squares_in_box, minima_in_box, newton_in_box
from exactsel.problem.capabilities import COEFFICIENT_BOUNDS, COEFFICIENTS
from exactsel.problem.equalities import named_equalities, with_equalities
from exactsel.problem.equality_fit import EqualityFits
from exactsel.problem.equality_start import admissible_support
from exactsel.problem.fit import Fit, among_all, on_columns
from exactsel.problem.frozen import FrozenRegression
from exactsel.problem.groups import matching
from exactsel.problem.numbered import Position
from exactsel.problem.objective import Objective
from exactsel.problem.regression import Problem
from exactsel.problem.units import Units, ascending
from exactsel.rounding import UNIT
from exactsel.types import FloatArray, IntArray, StateArray
from exactsel_certificates.equalities import Equalities, within_equalities

ALL = "all"
"""In place of names: every column."""


class BoxedProblem(FrozenRegression):
    """A problem of best-subset selection with limits on the coefficients.

    Parameters
    ----------
    problem : Problem
        Data, k, any loss, lam and demands. It may have an intercept, which is free, weights, groups of columns, a
        hierarchy, and limits on groups; scaled columns, too, where no bound is other than 0 and infinity. With
        quadratic loss, lam = 0 and columns that depend on each other lower bounds are about all models where every
        coefficient is limited on both sides, and about bounded models (``valid_for`` of a result) elsewhere.
    lower, upper : array (columns,)
        -inf and inf where there is no limit; lower <= 0 <= upper.
    equalities : (C, c), optional
        Arrays (m, columns) and (m,): models meet C x = c (:mod:`exactsel.problem.equalities`).

    Raises
    ------
    InputError
        For limits that are none, or a problem of another kind; in one sentence.
    """

    _of_models = COEFFICIENTS | COEFFICIENT_BOUNDS
    coefficient_bounds: CoefficientBounds
    infimum = 0.0

    def __init__(
        self, problem: Problem, lower: ArrayLike, upper: ArrayLike,
        equalities: tuple[FloatArray, FloatArray] | Equalities | None = None,
    ) -> None:  # fmt: skip
        _check_kind(problem)
        if equalities is not None:
            problem = Problem.of(with_equalities(problem.objective, *equalities), problem.units, problem.k)
        self.given_lower = checked_limits(lower, problem.units.columns, "lower")
        """(columns,) the limits as they were given, read-only."""
        self.given_upper = checked_limits(upper, problem.units.columns, "upper")
        """(columns,) read-only."""
        if equalities is not None and not (problem.preparation is not None and problem.preparation.scaled):
            implied = within_equalities(*equalities[:2], self.given_lower, self.given_upper)
            self.given_upper = checked_limits(implied, problem.units.columns, "upper")
        lower, upper = self.given_lower, self.given_upper
        wrong = np.flatnonzero(~((lower <= 0.0) & (upper >= 0.0)))
        if wrong.size:
            j = int(wrong[0])
            raise InputError(
                f"the bounds of column {j} are {lower[j]:g} and {upper[j]:g}, but 0, the coefficient of a "
                f"column that is not chosen, must lie between them; correct them."
            )
        if equalities is None and not np.any(np.isfinite(lower) | np.isfinite(upper)):
            raise InputError("the bounds limit no coefficient; name columns with their limits, or leave bounds out.")
        made = problem.preparation
        if (
            made is not None
            and made.scaled
            and np.any(np.isfinite(lower) & (lower != 0.0) | np.isfinite(upper) & (upper != 0.0))
        ):
            raise InputError(
                f"limits on coefficients other than 0 go with columns as they are, for scaling rounds them; leave "
                f"{option('standardize')} out, or scale the columns yourself."
            )
        self._settle(problem.objective, problem.units, problem.k)

    def _settle(self, base: Objective, units: Units, k: int) -> None:
        units.check(k)
        self._keep(base, units, k)
        even = np.ones(self.objective.d) if self.objective.even is None else self.objective.even
        # There is nearly no ridge to limit the others, but no model beyond what is known beats the empty one.
        known = self.objective.ridge_limits and self.objective.ridge_limits.limits
        most = np.full(self.objective.d, np.inf) if known is None else known.size
        self.lower, self.upper = np.maximum(self.given_lower * even, -most), np.minimum(self.given_upper * even, most)
        """(columns,) limits of the coefficients of the columns as they are searched."""
        self.coefficient_bounds = CoefficientBounds(self.given_lower, self.given_upper, self.lower, self.upper)
        self.equalities = (
            None if self.objective.equalities is None else EqualityFits(self.objective, self.lower, self.upper)
        )
        """How models are fitted that meet linear equalities; None where there are none."""
        if self.equalities is not None:
            self.first_support = admissible_support(self, self.k)
        self._frozen = True

    def __repr__(self) -> str:
        size = f"d={self.objective.d}" + (f" in {self.d} groups" if self.units.grouped else "")
        return f"BoxedProblem({self.objective.loss_text}, n={self.n}, {size}, k={self.k}, lam={self.objective.lam:g})"

    @cached_property
    def without_coefficient_bounds(self) -> Problem:
        """The same problem with free coefficients: the objective of every model is the same in both."""
        return Problem.held(self.objective, self.units, self.k)

    @property
    def objective_text(self) -> str:
        """What is minimised, for people."""
        limited = int(np.count_nonzero(np.isfinite(self.lower) | np.isfinite(self.upper)))
        chosen = f", x on at most k of {self.d} groups of columns" if self.units.grouped else ""
        return f"{self.objective.text}{chosen}, coefficients of {limited} columns within bounds"

    @property
    def null_objective(self) -> float:
        """The size of the objective of the empty model, which the rows of equalities have no part in."""
        return super().null_objective if self.equalities is None else self.equalities.null_objective

    @cached_property
    def fewest(self) -> int:
        """The least number of units of an admissible model that is known."""
        if self.equalities is None:
            return 0
        fewest = len(self.first_support or ())
        while fewest > 0:
            try:
                fewest = len(admissible_support(self, fewest - 1))
            except InputError:
                break
        return fewest

    @property
    def unit(self) -> float:
        """The ridge weight, or 1 where there is none: gains are counted in units of half its inverse."""
        return self.objective.lam or 1.0

    def gains(self, slopes: FloatArray, columns: IntArray) -> FloatArray:
        """max of s w - (lam/2) w^2 over the box of each column, to double precision; ``slopes`` s go with columns."""
        return gains_within(self.lower[columns], self.upper[columns], self.objective.lam, slopes)

    def dual(self, x: FloatArray, chosen: IntArray) -> tuple[float, FloatArray]:
        """A lower estimate of -L*(b) at b = grad L(Ax), and 2 units times upper estimates of what units gain at b.

        ``x`` (columns,) is any model; what comes back is what :func:`exactsel.kernels.dual.node_bound` takes. Rounding
        is accounted for: the gain is convex in the slope, so over what the slope may be it is largest at an end.
        """
        base, spans = self.objective, spans_of(self.units.spans, chosen)
        columns = spans.columns
        b, q, v = np.empty(self.n), np.empty(columns.size), np.empty(columns.size)
        z = base.predicted(x)
        value = dual_at_point(base.row_loss, base.raw.AT, base.y, base.raw.norms, columns, z, b, q, v)
        reach = np.sqrt(q) * (1.0 + 4 * UNIT)
        off = np.maximum(reach - np.abs(v), 0.0) * (1.0 + 4 * UNIT) + 4 * UNIT * np.abs(v)
        most = np.maximum(self.gains(-v - off, columns), self.gains(-v + off, columns))
        taken = np.empty(chosen.size)
        unit_sums(2.0 * self.unit * most * (1.0 + OWN), spans.first, taken)
        return float(value), taken

    def fit(self, columns: Iterable[int]) -> Fit:
        """The best admissible model that uses only ``columns``; where groups are chosen, these groups."""
        if self.equalities is None:
            return self.fit_in_box(columns)
        chosen = ascending(columns)
        return self.units.fitted(chosen, self.equalities.fit(self.units.columns_of(chosen)))

    def fit_in_box(self, columns: Iterable[int]) -> Fit:
        """The best model in the box that uses only ``columns``, whether or not it meets equalities.

        It minimises :attr:`base`, so it proves a bound where a model that meets equalities does not.
        """
        base, chosen, coef = self.objective, ascending(columns), np.zeros(self.objective.d)
        if not base.is_quadratic:
            free = self.without_coefficient_bounds.fit(chosen)  # a hundredth of the time, where no bound is met
            if free.converged and self.admits(free.coef):
                return free
        held = self.units.columns_of(chosen)
        if base.on_demand:
            return self.units.fitted(chosen, self._fit_of_design(held))
        used = held[(base.norms[held] > 0) & (self.lower[held] < self.upper[held])]
        if used.size and base.is_quadratic:
            A, y = base.reduced
            matrix = np.vstack([A[:, used], np.sqrt(base.lam) * np.eye(used.size)])
            target = np.concatenate([y, np.zeros(used.size)])
            flat = base.lam == 0 and not independent(self.without_coefficient_bounds)
            fitted = flat_least_squares_in_box if flat else least_squares_in_box
            coef[used] = fitted(matrix, target, self.lower[used], self.upper[used])
        elif used.size:
            coef[used] = newton_in_box(base, used, self.lower[used], self.upper[used])
        slope = base.gradient(coef, used)
        inner = (coef[used] > self.lower[used]) & (coef[used] < self.upper[used])
        return self.units.fitted(chosen, Fit(held, coef, base(coef), float(np.linalg.norm(slope[inner]))))

    def _fit_of_design(self, columns: IntArray) -> Fit:
        """The same of data that are not held as a table: a fit on the columns alone, which are."""
        shown = columns if columns.size else np.zeros(1, dtype=np.int64)
        own = Problem.held(on_columns(self.objective, shown), Units(shown.size), shown.size)
        lower, upper = self.lower[shown], self.upper[shown]
        limited = bool(np.any(np.isfinite(lower) | np.isfinite(upper)))
        fit = (BoxedProblem(own, lower, upper) if limited else own).fit(range(columns.size))
        return among_all(fit, columns, self.objective.d)

    def admits(self, coef: FloatArray) -> bool:
        """Whether coefficients (columns,) of the columns as they are searched keep to their limits."""
        return bool(np.all((coef >= self.lower) & (coef <= self.upper)))

    def objectives(self, supports: IntArray, threads: int | None = None) -> FloatArray:
        """The objective on each support (a row of numbers padded with -1), quick rather than exact.

        ``threads`` share the work, all cores by default. nan where the columns of a support are numerically
        dependent; :meth:`fit` handles those.
        """
        return minima_in_box(self.objective, self.lower, self.upper, self.units.in_columns(supports), threads)

    def bound_at(self, x: FloatArray, state: StateArray) -> float:
        """The dual bound of the region ``state`` (d,) at the gradient of L at Ax; x is (columns,), any model."""
        from exactsel.kernels.node import node_columns

        chosen, fixed = node_columns(state)
        slots = max(0, min(self.k - fixed, chosen.size - fixed))
        chosen = chosen[:fixed] if slots == 0 else chosen
        base, q = self.dual(x, chosen)
        return float(node_bound(base, q, fixed, slots, self.unit, np.empty(slots + 1)))

    def solved_from_data(self, state: StateArray, allowed: IntArray) -> tuple[float, FloatArray] | None:
        """As that of :class:`Problem`; None for quadratic loss, whose bounds are worked out from the data anyway."""
        if self.objective.is_quadratic:
            return None
        coef = self.fit(allowed).coef
        return self.bound_at(coef, state), coef

    def replace(self, **changes: Any) -> BoxedProblem:
        """A copy with some of k, lam, force_in, force_out, feature_names changed."""
        return self._of(self.without_coefficient_bounds.replace(**changes))

    def choosing(self, units: Units, k: int) -> BoxedProblem:
        """The same objective and limits, where at most k of other units on the same columns are chosen."""
        return self._of(Problem.of(self.objective, units, k))

    def _of(self, changed: Problem) -> BoxedProblem:
        _check_kind(changed)
        made = object.__new__(BoxedProblem)
        made.given_lower, made.given_upper = self.given_lower, self.given_upper
        made._settle(changed.objective, changed.units, changed.k)
        return made


def _check_kind(problem: Problem) -> None:
    """:class:`InputError` for a problem whose coefficients cannot be limited yet."""
    if not isinstance(problem, Problem):
        raise InputError(f"a {type(problem).__name__} was given, but a Problem was expected; limit that one.")
    if problem.objective.tall is not None:
        raise InputError(
            "signs and bounds of coefficients need the rows themselves, but these have been reduced; give all rows, or "
            "leave the bounds out."
        )


def independent(problem: Problem) -> bool:
    """Whether all columns are independent, so that lam = 0 leaves some curvature; looked at once for all k."""
    key = ("columns are independent",)
    if key not in problem.shared:
        few = problem.objective.d <= problem.n
        problem.shared[key] = few and has_curvature(problem.gram.G, problem.gram.roundings)
    return bool(problem.shared[key])


def with_free_coefficients(problem: Problem | BoxedProblem) -> Problem:
    """The problem itself, for what knows formulas for free coefficients; :class:`UnsupportedError` for others."""
    refuse_boxes(problem, "this method")
    return problem.without_coefficient_bounds


def refuse_boxes(problem: Any, what: str) -> None:
    """:class:`UnsupportedError` for a problem with signs or bounds, where ``what`` does not know them."""
    if problem.coefficient_bounds is not None:
        raise UnsupportedError(f"{what} does not know signs or bounds of coefficients yet; use solve.")


@with_aliases
def boxed(
    problem: Problem,
    positive: bool | str | Sequence[int | str] = (),
    bounds: Sequence[tuple[Any, float | None, float | None]] = (),
    max_coef: float | None = None,
    equalities: Sequence[tuple[Mapping[Any, float], float]] = (),
    sum_to: float | None = None,
) -> BoxedProblem:
    """The problem with limits on its coefficients, and equalities that they meet.

    Parameters
    ----------
    problem : Problem
    positive : bool, or sequence of int or str
        Columns whose coefficients may not be negative: numbers, names, or patterns of names such as ``"dose_*"``; True
        (or "all") for every one. ``nonnegative`` is another word for it. Where groups are chosen, numbers are still of
        columns, and the name of a group stands for all of its columns.
    bounds : sequence of (column, lower, upper)
        Limits of single columns, None or infinite where there is none; 0 lies between them.
    max_coef : float, optional
        No coefficient of any column is larger than this, or smaller than its negative; the intercept may be. What is
        proven is then about such models (the big-M of mixed-integer formulations): a limit that is not known to hold
        changes the problem.
    equalities : sequence of (terms, right-hand side), optional
        Linear equalities on coefficients of the features as given, for quadratic loss: ``({"a": 1, "b": -2}, 0.5)``
        for a - 2 b = 0.5 (:mod:`exactsel.problem.equalities`). The intercept has no part in them.
    sum_to : float, optional
        What all coefficients add up to.

    Raises
    ------
    InputError
        As for :class:`BoxedProblem`, for a column that is unknown, one whose bounds are given twice, and for
        bounds that are none or limit nothing.
    """
    _check_kind(problem)
    columns = columns_behind(problem.units)
    size = largest_size(max_coef)
    lower, upper = np.full(columns.d, -size), np.full(columns.d, size)
    for j, (low, high) in named_limits(columns, bounds).items():
        lower[j], upper[j] = max(low, -size), min(high, size)
    every = positive is True or (isinstance(positive, str) and positive == ALL)
    named = () if positive is False else positive
    for entry in map(Position, range(columns.d)) if every else entries("positive", named):
        several = matching(entry, columns.names, "nonnegative columns")
        if isinstance(entry, str) and several is None and not columns.called(entry):
            several = problem.units.columns_of(problem.units.called(entry)).tolist() or None
        for j in [columns.number(entry, "nonnegative")] if several is None else several:
            lower[j] = max(lower[j], 0.0)
    return BoxedProblem(problem, lower, upper, named_equalities(columns, equalities, sum_to))
