"""Best subsets whose coefficients have signs or limits: lower_j <= x_j <= upper_j, with 0 between the two.

    minimise  P(x) = L(Ax) + (lam/2) ||x||^2   over x in the box with at most k non-zeros

with lam > 0, or any other loss but squared hinge, or quadratic loss and independent columns.

Nothing that knows formulas for free coefficients may see such a problem: walks, listing, counting and closed forms all
begin from :attr:`BoxedProblem.objective`, which is None here, as it is where a model has no coefficients. What a box
changes in the dual bound is one term: at s = -a_j'b a column gains c_j(s) = max of s w - (lam/2) w^2 over the box,
where a free column gains s^2 / (2 lam). With w >= 0 that is max(0, s)^2 / (2 lam).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from exactsel.algebra.curvature import has_curvature
from exactsel.arguments import entries, with_aliases
from exactsel.errors import InputError, UnsupportedError, option
from exactsel.kernels.boxed import OWN
from exactsel.kernels.dual import dual_at_point, node_bound
from exactsel.problem.boxed_fit import least_squares_in_box, minima_in_box, newton_in_box
from exactsel.problem.fit import Fit
from exactsel.problem.groups import matching
from exactsel.problem.interface import SubsetProblem
from exactsel.problem.numbered import Position
from exactsel.problem.objective import Objective
from exactsel.problem.offsets import has_offset
from exactsel.problem.preparing import Preparation
from exactsel.problem.regression import Problem
from exactsel.problem.units import Units
from exactsel.rounding import UNIT
from exactsel.types import BoolArray, FloatArray, IntArray, StateArray

ALL = "all"
"""In place of names: every column."""


class BoxedProblem:
    """A problem of best-subset selection with limits on the coefficients.

    Parameters
    ----------
    problem : Problem
        Data, k, any loss, lam and demands; columns chosen one by one. With quadratic loss and lam = 0 columns must be
        independent. It may have an intercept, which is free, weights, a hierarchy, and limits on groups; scaled
        columns, too, where no bound is other than 0 and infinity.
    lower, upper : array (d,)
        -inf and inf where there is no limit; lower <= 0 <= upper.

    Raises
    ------
    InputError
        For limits that are none, or a problem of another kind; in one sentence.
    """

    family = "boxed"
    objective: None = None
    """Nothing that knows an objective of free coefficients may take this one for it; see :attr:`base`."""
    infimum = 0.0

    def __init__(self, problem: Problem, lower: ArrayLike, upper: ArrayLike) -> None:
        _check_kind(problem)
        self.given_lower = _limits(lower, problem.d, "lower")
        """(d,) the limits as they were given, read-only."""
        self.given_upper = _limits(upper, problem.d, "upper")
        """(d,) read-only."""
        lower, upper = self.given_lower, self.given_upper
        wrong = np.flatnonzero(~((lower <= 0.0) & (upper >= 0.0)))
        if wrong.size:
            j = int(wrong[0])
            raise InputError(
                f"the bounds of column {j} are {lower[j]:g} and {upper[j]:g}, but 0, the coefficient of a "
                f"column that is not chosen, must lie between them; correct them."
            )
        if not np.any(np.isfinite(lower) | np.isfinite(upper)):
            raise InputError("the bounds limit no coefficient; name columns with their limits, or leave bounds out.")
        made = problem.preparation
        if (
            made is not None
            and made.scaled
            and np.any(np.isfinite(lower) & (lower != 0.0) | np.isfinite(upper) & (upper != 0.0))
        ):
            raise InputError(
                f"bounds other than 0 go with columns as they are, for scaling rounds them; leave "
                f"{option('standardize')} out, or scale the columns yourself."
            )
        self.base: Objective = problem.objective
        """P without the box."""
        self._settle(problem.units, problem.k)

    def _settle(self, units: Units, k: int) -> None:
        units.check(k)
        self.units, self.k = units, k
        self.d, self.n = units.d, self.base.n
        even = np.ones(self.d) if self.base.even is None else self.base.even
        # There is nearly no ridge to limit the others, but no model beyond what is known beats the empty one.
        known = self.base.vanishing and self.base.vanishing.limits
        most = np.full(self.d, np.inf) if known is None else known.size
        self.lower, self.upper = np.maximum(self.given_lower * even, -most), np.minimum(self.given_upper * even, most)
        """(d,) limits of the coefficients of the columns as they are searched."""
        self.AT = self.base.AT
        self.feature_names, self.scope = units.names, self.base.scope
        self.must_have, self.must_not = units.must_have, units.must_not
        self._frozen = True

    def __setattr__(self, name: str, value: Any) -> None:
        if getattr(self, "_frozen", False):
            raise AttributeError(f"a BoxedProblem is frozen; make a new one instead of changing '{name}'.")
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        return f"BoxedProblem({self.base.loss_text}, n={self.n}, d={self.d}, k={self.k}, lam={self.base.lam:g})"

    @cached_property
    def unlimited(self) -> Problem:
        """The same problem without the box: the objective of every model is the same in both."""
        return Problem.held(self.base, self.units, self.k)

    @property
    def preparation(self) -> Preparation | None:
        """What was done to the data before, see :meth:`exactsel.Problem.prepared`."""
        return self.base.preparation

    @property
    def A(self) -> FloatArray:
        """The data (n, d) as given, read-only."""
        return self.base.A if self.base.preparation is None else self.base.preparation.AT.T

    @property
    def lam(self) -> float:
        """The ridge weight; 0 with quadratic loss and independent columns only."""
        return self.base.lam

    @property
    def null_objective(self) -> float:
        """The objective of the empty model."""
        return self.base.at_zero

    @property
    def root_state(self) -> StateArray:
        """What is decided before the search begins, (d,)."""
        region = self.units.region(self.k)
        assert region is not None  # checked when the problem was made
        return region

    @property
    def objective_text(self) -> str:
        """What is minimised, for people."""
        limited = int(np.count_nonzero(np.isfinite(self.lower) | np.isfinite(self.upper)))
        return f"{self.base.text}, coefficients of {limited} columns within bounds"

    @cached_property
    def hash(self) -> str:
        """sha256 over everything that defines the problem (names excluded)."""
        return self.base.hash_with(**{"k": self.k} | self.units.entries() | {"bounds": self._entry()})

    def _entry(self) -> list[list[str]]:
        return [[float(v).hex() for v in side] for side in (self.given_lower, self.given_upper)]

    def gains(self, slopes: FloatArray, columns: IntArray) -> FloatArray:
        """max of s w - (lam/2) w^2 over the box of each column, to double precision; ``slopes`` s go with columns."""
        lam = self.base.lam
        best = np.clip(slopes / lam, self.lower[columns], self.upper[columns])
        with np.errstate(all="ignore"):
            gained: FloatArray = np.where(best == 0.0, 0.0, best * (slopes - 0.5 * lam * best))
        return np.where(np.isfinite(gained), np.maximum(gained, 0.0), np.inf)

    def dual(self, x: FloatArray, columns: IntArray) -> tuple[float, FloatArray]:
        """A lower estimate of -L*(b) at b = grad L(Ax), and 2 lam times upper estimates of what columns gain at b.

        ``x`` (d,) is any model; what comes back is what :func:`exactsel.kernels.dual.node_bound` takes. Rounding is
        accounted for: the gain is convex in the slope, so over what the slope may be it is largest at an end.
        """
        base = self.base
        b, q, v = np.empty(self.n), np.empty(columns.size), np.empty(columns.size)
        z = base.predicted(x)
        value = dual_at_point(base.row_loss, base.raw.AT, base.y, base.raw.norms, columns, z, b, q, v)
        reach = np.sqrt(q) * (1.0 + 4 * UNIT)
        off = np.maximum(reach - np.abs(v), 0.0) * (1.0 + 4 * UNIT) + 4 * UNIT * np.abs(v)
        most = np.maximum(self.gains(-v - off, columns), self.gains(-v + off, columns))
        return float(value), 2.0 * base.lam * most * (1.0 + OWN)

    def fit(self, columns: Iterable[int]) -> Fit:
        """The best model in the box that uses only ``columns``."""
        base, chosen, coef = self.base, np.unique(np.fromiter(columns, dtype=np.int64)), np.zeros(self.d)
        used = chosen[(base.norms[chosen] > 0) & (self.lower[chosen] < self.upper[chosen])]
        if used.size and base.is_quadratic:
            A, y = base.reduced
            matrix = np.vstack([A[:, used], np.sqrt(base.lam) * np.eye(used.size)])
            target = np.concatenate([y, np.zeros(used.size)])
            coef[used] = least_squares_in_box(matrix, target, self.lower[used], self.upper[used])
        elif used.size:
            coef[used] = newton_in_box(base, used, self.lower[used], self.upper[used])
        slope = base.gradient(coef)[used]
        free = (coef[used] > self.lower[used]) & (coef[used] < self.upper[used])
        return Fit(chosen, coef, base(coef), float(np.linalg.norm(slope[free])))

    def admits(self, coef: FloatArray) -> bool:
        """Whether coefficients (d,) of the columns as they are searched keep to their limits."""
        return bool(np.all((coef >= self.lower) & (coef <= self.upper)))

    def outside(self, coef: FloatArray) -> BoolArray:
        """Which coefficients (d,) of the columns as they were given do not keep to their limits."""
        return np.asarray((coef < self.given_lower) | (coef > self.given_upper))

    def objectives(self, supports: IntArray, threads: int | None = None) -> FloatArray:
        """The objective on each support (a row of numbers padded with -1), quick rather than exact.

        ``threads`` share the work, all cores by default. nan where the columns of a support are numerically
        dependent; :meth:`fit` handles those.
        """
        return minima_in_box(self.base, self.lower, self.upper, self.units.in_columns(supports), threads)

    def bound_at(self, x: FloatArray, state: StateArray) -> float:
        """The dual bound of the region ``state`` (d,) at the gradient of L at Ax; x is (d,), any model."""
        from exactsel.kernels.node import node_columns

        columns, fixed = node_columns(state)
        places = max(0, min(self.k - fixed, columns.size - fixed))
        columns = columns[:fixed] if places == 0 else columns
        base, q = self.dual(x, columns)
        return float(node_bound(base, q, fixed, places, self.base.lam, np.empty(places + 1)))

    def solved_from_data(self, state: StateArray, allowed: IntArray) -> tuple[float, FloatArray] | None:
        """None: bounds are worked out from the data anyway."""
        return None

    def describe(self) -> dict[str, Any]:
        """The problem as plain data, without its arrays."""
        made = self.base.preparation
        return {
            "problem": self.family, "n": self.n, "d": self.d, "k": self.k, "loss": self.base.loss.name,
            "loss_parameters": self.base.loss_parameters, "lam": self.base.asked_lam, "problem_hash": self.hash,
            "feature_names": self.feature_names, "must_have": self.must_have, "must_not": self.must_not,
            "intercept": made is not None and made.centred, "scale": made is not None and made.scaled,
            "weights": made is not None and made.weighted, "offset": has_offset(self.base), "unit": self.units.noun,
            "left_side": None if self.units.coding is None else self.units.coding.target,
            "bounds": [
                [None if np.isinf(v) else float(v) for v in side] for side in (self.given_lower, self.given_upper)
            ],
        }  # fmt: skip

    def replace(self, **changes: Any) -> BoxedProblem:
        """A copy with some of k, lam, must_have, must_not, feature_names changed."""
        changed = self.unlimited.replace(**changes)
        _check_kind(changed)
        made = object.__new__(BoxedProblem)
        made.base, made.given_lower, made.given_upper = changed.objective, self.given_lower, self.given_upper
        made._settle(changed.units, changed.k)
        return made


def _check_kind(problem: Problem) -> None:
    """:class:`InputError` for a problem whose coefficients cannot be limited yet."""
    if not isinstance(problem, Problem):
        raise InputError(f"a {type(problem).__name__} was given, but a Problem was expected; limit that one.")
    what = {
        f"{problem.units.noun}s of columns": problem.units.grouped,
        "rows that have been reduced": problem.objective.tall is not None,
    }
    found = next((name for name, holds in what.items() if holds), None)
    if found is not None:
        raise InputError(
            f"signs and bounds of coefficients need columns chosen one by one, and the rows themselves, but there are "
            f"{found}; leave one of them out."
        )
    if problem.objective.lam > 0:  # a small one stands for none where that has been proven to do
        return
    if not independent(problem):
        raise InputError(
            "signs and bounds of coefficients go without a ridge where columns are independent, but lam = 0 and the "
            f"columns are (nearly) dependent, or one is constant; give a small ridge ({option('lam', 1e-6)}), or "
            "leave "
            "columns out."
        )


def independent(problem: Problem) -> bool:
    """Whether all columns are independent, so that lam = 0 leaves some curvature; looked at once for all k."""
    key = ("columns are independent",)
    if key not in problem.shared:
        few = problem.objective.d <= problem.n
        problem.shared[key] = few and has_curvature(problem.gram.G, problem.gram.roundings)
    return bool(problem.shared[key])


def _limits(given: ArrayLike, d: int, side: str) -> FloatArray:
    try:
        limits = np.array(given, dtype=np.float64) + 0.0  # 0 has no sign
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"the {side} bounds are no numbers ({error}); give one for each column.") from None
    if limits.shape != (d,):
        raise InputError(
            f"the {side} bounds have shape {limits.shape}, but a number for each of {d} columns is needed."
        )
    if np.any(np.isnan(limits)):
        raise InputError(f"the {side} bound of column {int(np.argmax(np.isnan(limits)))} is NaN; give a number.")
    limits.flags.writeable = False
    return limits


def box_options(problem: Any) -> dict[str, Any]:
    """What makes a problem on other rows have the limits of this one; nothing where it has none."""
    if not isinstance(problem, BoxedProblem):
        return {}
    limits = zip(range(problem.d), problem.given_lower.tolist(), problem.given_upper.tolist(), strict=True)
    return {"bounds": [(j, low, high) for j, low, high in limits if low > -np.inf or high < np.inf]}


def with_free_coefficients(problem: Problem | BoxedProblem) -> Problem:
    """The problem itself, for what knows formulas for free coefficients; :class:`UnsupportedError` for others."""
    refuse_boxes(problem, "this method")
    assert isinstance(problem, Problem)
    return problem


def objective_of(problem: SubsetProblem) -> Objective | None:
    """What is minimised over the models of a regression problem, in a box or not; None for columns alone."""
    return problem.base if isinstance(problem, BoxedProblem) else problem.objective


def refuse_boxes(problem: Any, what: str) -> None:
    """:class:`UnsupportedError` for a problem with signs or bounds, where ``what`` does not know them."""
    if isinstance(problem, BoxedProblem):
        raise UnsupportedError(f"{what} does not know signs or bounds of coefficients yet; use solve.")


@with_aliases
def boxed(
    problem: Problem,
    positive: bool | str | Sequence[int | str] = (),
    bounds: Sequence[tuple[Any, float | None, float | None]] = (),
) -> BoxedProblem:
    """The problem with limits on its coefficients.

    Parameters
    ----------
    problem : Problem
    positive : bool, or sequence of int or str
        Columns whose coefficients may not be negative: numbers, names, or patterns of names such as ``"dose_*"``; True
        (or "all") for every one. ``nonnegative`` is another word for it.
    bounds : sequence of (column, lower, upper)
        Limits of single columns, None or infinite where there is none; 0 lies between them.

    Raises
    ------
    InputError
        As for :class:`BoxedProblem`, for a column that is unknown, one whose bounds are given twice, and for
        bounds that are none or limit nothing.
    """
    _check_kind(problem)
    lower, upper = np.full(problem.d, -np.inf), np.full(problem.d, np.inf)
    for j, (low, high) in _named(problem, bounds).items():
        lower[j], upper[j] = low, high
    every = positive is True or (isinstance(positive, str) and positive == ALL)
    named = () if positive is False else positive
    for entry in map(Position, range(problem.d)) if every else entries("positive", named):
        several = matching(entry, problem.units.names, "nonnegative columns")
        for j in [problem.units.number(entry, "nonnegative")] if several is None else several:
            lower[j] = max(lower[j], 0.0)
    return BoxedProblem(problem, lower, upper)


def _named(
    problem: Problem, bounds: Sequence[tuple[Any, float | None, float | None]]
) -> dict[int, tuple[float, float]]:
    """The limits of each column that is named."""
    found: dict[int, tuple[float, float]] = {}
    for entry in entries("bounds", bounds, "bounds (column, lower, upper)"):
        try:
            column, low, high = entry
            j = problem.units.number(column, "bounds")
            limits = (-math.inf if low is None else float(low), math.inf if high is None else float(high))
        except InputError:  # a column that is not there
            raise
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(
                f"the bounds hold {entry!r}, but (column, lower, upper) was expected ({error}); correct it."
            ) from None
        if j in found:
            raise InputError(f"the bounds name column {column!r} twice; name it once.")
        found[j] = limits
    return found
