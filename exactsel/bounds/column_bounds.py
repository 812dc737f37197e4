"""Lower bounds of all models, and of those with a given column, from passes over the data: no d x d matrix.

Two bounds that hold for the numbers of the original data, for any intercept:

*Touched rows* (quadratic loss, any lam >= 0). A model changes predictions only in rows in which one of its columns is
not zero. The others keep the residual y_i - c, so with U the rows that S touches and r = y - m for any number m

    2 P(S)  >=  min over c of  sum_i (r_i - c)^2 - sum_{i in U} (r_i - c)^2
            >=  min over c of  sum_i (r_i - c)^2 - sum_{j in S} h_j(c),    h_j(c) = sum of (r_i - c)^2 where a_ij != 0,

and no S of k columns has a larger last sum than that of the k largest. h_j is convex in c, so on an interval it is at
most the larger of its values at both ends; intervals are divided where the bound is lowest. It needs no ridge and no
condition on coefficients or cosines, so it serves where columns outnumber rows and lam is 0. It is strong where columns
have few entries, and says nothing where some k of them fill all rows.

*Formula (2)* (any loss, lam > 0), at the dual vector of predictions z, or a multiple of it. For quadratic loss with an
intercept the vector less its mean is meant, which is never formed: what its sum can change is taken off.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from exactsel._jit import njit
from exactsel.bounds.columns_within_limits import predictions_within_limits
from exactsel.bounds.fallback import Descent, best_multiple, best_scale
from exactsel.errors import TimeLimitError
from exactsel.kernels.boxed import OWN
from exactsel.kernels.rows import dual_rows, loss_gradient
from exactsel.problem.box_limits import gains_within
from exactsel.problem.capabilities import QUADRATIC_LOSS
from exactsel.problem.design import DesignColumns
from exactsel.problem.objective import Objective
from exactsel.problem.regression import Problem
from exactsel.rounding import UNIT
from exactsel.types import BoolArray, FloatArray

if TYPE_CHECKING:
    from exactsel.losses.base import Loss

MOST_INTERVALS = 48
"""Intervals of c: each needs a few passes over vectors of d numbers."""


class ColumnBounds(NamedTuple):
    """Lower bounds of objectives for the data as given, and what proves them."""

    lower: float
    """Of all models."""
    with_column: FloatArray
    """(d,) of those that use column j; inf where none may."""
    levels: tuple[float, ...] = ()
    """Ends of the intervals of the intercept that touched rows were bounded on, less the mean of the target; ..."""
    duals: tuple[FloatArray, ...] = ()
    """... and dual vectors (n,) of formula (2), as slopes of the rows."""

    def better(self, other: ColumnBounds) -> ColumnBounds:
        """The larger of each, and what proves both."""
        with_column = np.maximum(self.with_column, other.with_column)
        proven = (self.levels + other.levels, self.duals + other.duals)
        return ColumnBounds(max(self.lower, other.lower), with_column, *proven)


def column_bounds(
    problem: Problem, coef: FloatArray, should_stop: Callable[[], bool], value: float = math.inf,
    enough: int = -1,
) -> ColumnBounds:  # fmt: skip
    """The best of the bounds there are.

    Parameters
    ----------
    problem : Problem
        Over single columns that are not held as a table.
    coef : array (d,)
        A good model, whose residuals are one of the dual vectors.
    should_stop : callable
        Called between passes.
    value, enough : float, int
        No gradient steps on the relaxation are taken, where there is a ridge, once so few columns have a bound below
        that value. They continue until a stop.
    """
    allowed = np.ones(problem.d, dtype=np.bool_)
    allowed[list(problem.force_out)] = False
    # No loss is below zero anywhere.
    best = ColumnBounds(0.0, np.where(allowed, 0.0, np.inf))
    with suppress(TimeLimitError):  # in the middle of a pass: what was proven before holds
        if problem.has(QUADRATIC_LOSS):
            best = best.better(touched_rows(problem, allowed, should_stop))
        if Terms.of(problem, allowed).serve:
            # One pass, even where no step may be taken: without it nothing is known of the model.
            best = best.better(at_predictions(problem, allowed, coef @ problem.AT))
            many = int(np.count_nonzero(best.with_column < value))
            for z in _better_predictions(problem, best, coef, should_stop) if many > enough else ():
                best = best.better(at_predictions(problem, allowed, z))
    return best


def _better_predictions(
    problem: Problem, bounds: ColumnBounds, coef: FloatArray, should_stop: Callable[[], bool]
) -> Iterator[FloatArray]:
    """Predictions (n,) whose slopes are better dual vectors: those of relaxations."""
    if problem.coefficient_bounds is not None:
        allowed = np.isfinite(bounds.with_column)
        terms, slopes = Terms.of(problem, allowed), np.empty(problem.n)

        def taken(z: FloatArray) -> FloatArray:
            loss_gradient(terms.objective.row_loss, z.copy(), terms.objective.y, slopes)
            return terms.taken(terms.AT.products(slopes))

        z = coef @ problem.AT
        yield from predictions_within_limits(problem, allowed, taken, z, bounds.lower, should_stop)
        return
    predictions = Descent(problem).run(should_stop)
    if predictions is not None:
        yield predictions


def touched_rows(problem: Problem, allowed: BoolArray, should_stop: Callable[[], bool]) -> ColumnBounds:
    """The bound by touched rows (quadratic loss); ``allowed`` (d,) says which columns a model may use."""
    AT, y, intercept = _given(problem.objective)
    k, n = min(problem.k, int(allowed.sum())), y.size
    nothing = ColumnBounds(0.0, np.where(allowed, 0.0, np.inf))
    r = y - np.float64(math.fsum(y) / n) if intercept else y
    room = 1.01 * (n + 64) * UNIT  # what a sum of n terms that were rounded a few times each is off, relatively
    # numpy adds up the entries of a column one after the other.
    squares, sizes, signed, many = (
        np.where(allowed, part, 0.0)
        for part in (AT.touched(r * r), AT.touched(np.abs(r)), AT.touched(r), AT.counts.astype(np.float64))
    )
    whole, drift = float(r @ r) * (1.0 - room), abs(math.fsum(r)) + room * float(np.abs(r).sum())
    lowest = whole - _largest(squares * (1.0 + room), k)
    if not intercept:
        return _halved(lowest, whole, squares * (1.0 + room), allowed, k, room)
    untouched_rows = n - _largest(many, k)
    if not (untouched_rows > 0.0 and k > 0):
        return nothing if k > 0 else _halved(whole - drift**2 / n, whole, squares, allowed, 0, room)
    # What the rows that are left cost is convex in c, and beyond that distance from 0 it rises for every model.
    reach = 1.02 * (_largest(sizes * (1.0 + room), k) + drift) / untouched_rows
    if not reach > 0.0:
        return _halved(lowest, whole, squares * (1.0 + room), allowed, k, room)
    bounds = ColumnBounds(np.inf, np.full(len(AT), np.inf))

    def height(low: float, high: float) -> tuple[float, FloatArray]:
        most = np.zeros(len(AT))
        for c in (low, high):
            off = room * (squares + 2.0 * abs(c) * sizes + c * c * many)
            np.maximum(most, squares - 2.0 * c * signed + c * c * many + off, out=most)
        nearest = 0.0 if low <= 0.0 <= high else min(abs(low), abs(high))
        base = whole + n * nearest * nearest * (1.0 - room) - 2.0 * max(abs(low), abs(high)) * drift
        return base - _largest(most, k), most

    intervals = [(height(-reach, reach)[0], -reach, reach)]
    while len(intervals) < MOST_INTERVALS and not should_stop():
        _, low, high = heapq.heappop(intervals)
        middle = 0.5 * (low + high)
        for ends in ((low, middle), (middle, high)):
            heapq.heappush(intervals, (height(*ends)[0], *ends))
    for _, low, high in intervals:
        value, most = height(low, high)
        there = _halved(value, value + _largest(most, k), most, allowed, k, room)
        bounds = ColumnBounds(min(bounds.lower, there.lower), np.minimum(bounds.with_column, there.with_column))
    levels = sorted({end for _, *ends in intervals for end in ends})
    return ColumnBounds(max(0.0, bounds.lower), np.maximum(0.0, bounds.with_column), tuple(levels))


def at_predictions(problem: Problem, allowed: BoolArray, z: FloatArray) -> ColumnBounds:
    """Formula (2) at the best multiple of the slopes of the rows at predictions z (n,), where it says something."""
    terms = Terms.of(problem, allowed)
    if problem.has(QUADRATIC_LOSS):
        return _of_squares(terms, z - terms.objective.y)
    objective, slopes = terms.objective, np.empty(z.size)
    loss_gradient(objective.row_loss, z.copy(), objective.y, slopes)
    best = _at_point(terms, z)
    other = best_multiple(objective, slopes, terms.costs(terms.AT.products(slopes)))
    return best if other is None else best.better(_at_point(terms, other))


class Terms(NamedTuple):
    """What columns take off formula (2): q / (2 lam) where coefficients are free, less within limits."""

    objective: Objective
    AT: DesignColumns
    """The columns as given, nothing taken off."""
    y: FloatArray
    k: int
    """Of a model, at most."""
    allowed: BoolArray
    intercept: bool
    limits: tuple[FloatArray, FloatArray] | None
    """(d,), (d,) of the coefficients of these columns."""

    @classmethod
    def of(cls, problem: Problem, allowed: BoolArray) -> Terms:
        """Those of a problem; ``allowed`` (d,) says which columns a model may use."""
        bounds = problem.coefficient_bounds
        limits = None if bounds is None else (bounds.given_lower, bounds.given_upper)
        objective, k = problem.objective, min(problem.k, int(allowed.sum()))
        return cls(objective, *_given(objective)[:2], k, allowed, _given(objective)[2], limits)

    @property
    def serve(self) -> bool:
        """Whether anything keeps coefficients from being of any size."""
        if self.objective.asked_lam > 0.0 or self.limits is None:
            return self.objective.asked_lam > 0.0
        return bool(np.all(np.isfinite(self.limits[0]) & np.isfinite(self.limits[1]) | ~self.allowed))

    def costs(self, v: FloatArray) -> Callable[[float], float]:
        """What the columns of a model take at most at a multiple of a dual vector with products v (d,)."""
        if self.limits is None:
            return lambda t: t * t * _largest(self.taken(v), self.k)
        return lambda t: _largest(self.taken(t * v), self.k)

    def taken(self, v: FloatArray, off: FloatArray | float = 0.0) -> FloatArray:
        """Upper estimates (d,) of what each column takes at products v (d,) that are off by no more than that."""
        lam = self.objective.asked_lam
        if self.limits is None:
            upper = (np.abs(v) + off) * (1.0 + 4 * UNIT)
            most = upper * upper / (2.0 * lam)
        else:
            # The gain is convex in the slope, so over what that may be it is largest at an end.
            off = off + 4 * UNIT * (np.abs(v) + off)
            most = np.maximum(*(gains_within(*self.limits, lam, s) for s in (-v - off, -v + off))) * (1.0 + OWN)
        return np.where(self.allowed, most * (1.0 + (2 * self.k + 24) * UNIT), 0.0)

    def less(self, base: float, taken: FloatArray) -> ColumnBounds:
        """Formula (2) from a lower estimate of -L*(b) and upper ones of what columns take (d,)."""
        room = (2 * self.k + 16) * UNIT * abs(base)
        lower, with_column = _less_largest(base - room, taken, self.allowed, self.k)
        return ColumnBounds(lower, with_column)


def _at_point(terms: Terms, z: FloatArray) -> ColumnBounds:
    objective, b, slopes = terms.objective, np.empty(z.size), np.empty(z.size)
    base, roundings = _dual_rows(objective.row_loss, z.copy(), objective.y, b)
    loss_gradient(objective.row_loss, z.copy(), objective.y, slopes)
    # Blocks of a table in its file are added one after the other.
    room = 1.01 * (roundings + z.size + 64) * UNIT
    off = np.sqrt(terms.AT.summary.squares) * (1.0 + room) * (room * float(np.linalg.norm(b)))
    bounds = terms.less(float(base), terms.taken(terms.AT.products(b), off))
    return bounds._replace(duals=(slopes,))


@njit
def _dual_rows(loss: Loss, z: FloatArray, y: FloatArray, b: FloatArray) -> tuple[float, int]:
    """Take b = grad L(z); write it, and return a lower estimate of -L*(b) and the roundings to allow for in A'b."""
    base, roundings = dual_rows(loss, z, y, b)
    return base, roundings


def _of_squares(terms: Terms, b: FloatArray) -> ColumnBounds:
    """Formula (2) at the best multiple of b (n,), less its mean where there is an intercept; quadratic loss."""
    AT, y, intercept = terms.AT, terms.y, terms.intercept
    r = y - np.float64(math.fsum(y) / y.size) if intercept else y
    t = _best_multiple_of_squares(terms, b, r)
    b, v = t * b, AT.products(t * b)
    room = 1.01 * (y.size + 64) * UNIT
    length, sum_ = float(np.linalg.norm(b)) * (1.0 + room), abs(math.fsum(b)) * (1.0 + 4 * UNIT)
    lengths = np.sqrt(AT.summary.squares) * (1.0 + room)
    # Less its mean the vector is no longer, its products with columns change by the mean times the sums of these.
    moved = sum_ / math.sqrt(y.size) if intercept else 0.0
    off = room * length * float(np.linalg.norm(r)) + (sum_ * room * float(np.abs(r).max()) if intercept else 0.0)
    off += sum_ * abs(math.fsum(r)) / y.size if intercept else 0.0
    # The target less a constant is rounded, too.
    base = -0.5 * length * length - float(b @ r) - 1.01 * (off + 2.0 * UNIT * length * float(np.linalg.norm(r)))
    return terms.less(base, terms.taken(v, lengths * (room * length + moved)))._replace(duals=(b,))


def _best_multiple_of_squares(terms: Terms, b: FloatArray, r: FloatArray) -> float:
    """The t at which formula (2) says most at t b."""
    v, along, pull = terms.AT.products(b), float(b @ b), -float(b @ r)
    if terms.limits is None:
        along += 2.0 * _largest(terms.taken(v), terms.k)
        return pull / along if along > 0.0 else 0.0
    longest, cost = pull / along if along > 0.0 else 0.0, terms.costs(v)
    if not longest > 0.0:
        return 0.0
    return longest * best_scale(lambda s: s * longest * (pull - 0.5 * s * longest * along) - cost(s * longest))


def _halved(value: float, whole: float, gains: FloatArray, allowed: BoolArray, k: int, room: float) -> ColumnBounds:
    """Half of ``whole`` less the k largest gains, or those with one of them; ``value`` is the first of these."""
    _, with_column = _less_largest(whole, gains, allowed, k)
    off = room * abs(whole)
    return ColumnBounds(0.5 * (value - off), 0.5 * (with_column - off))


def _less_largest(whole: float, gains: FloatArray, allowed: BoolArray, k: int) -> tuple[float, FloatArray]:
    """``whole`` less the k largest gains (d,), and for each column less its own and the k - 1 largest of the others."""
    if k == 0:
        return whole, np.full(gains.size, np.inf)
    ranked = np.sort(np.partition(gains, gains.size - k)[gains.size - k :])
    first, others = float(ranked.sum()), float(ranked[1:].sum())
    with_column = np.where(gains >= ranked[0], whole - first, whole - others - gains)
    return whole - first, np.where(allowed, with_column, np.inf)


def _largest(parts: FloatArray, many: int) -> float:
    """The sum of the ``many`` largest, a little enlarged."""
    if many == 0:
        return 0.0
    first = parts.size - many
    return float(np.partition(parts, first)[first:].sum()) * (1.0 + (many + 8) * UNIT)


def _given(objective: Objective) -> tuple[DesignColumns, FloatArray, bool]:
    """Columns and target as given, and whether there is an intercept."""
    preparation = objective.preparation
    AT, y = (objective.AT, objective.y) if preparation is None else (preparation.AT, preparation.y)
    assert isinstance(AT, DesignColumns)
    return AT.as_given, y, preparation is not None and preparation.centred
