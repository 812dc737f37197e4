"""The fit within limits of coefficients on S and C together as a bound, for quadratic loss and lam = 0.

Where columns depend on each other there is no curvature that would limit coefficients. But for any vector b, with
v = A'b, a model within the limits costs at least

    -L*(b) - sum of c_j over S and the r largest in C,    c_j = the largest -v_j w over what coefficient w may be,

and at the residual of the fit within the limits that is no less than what the fit costs: v_j is 0 where its coefficient
is inside its limits, and has the sign that pushes outwards where it is at one. A coefficient that is not limited on
both sides is by the scope: the bound is about bounded models then. Rounding in v counts as often as coefficients are
large, so sums are formed in extended precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactsel.bounds.base import BoundOptions, BoundSolver, PreparedBound, Tightened
from exactsel.bounds.rows_in_box import polished
from exactsel.bounds.witness import ModelPoint
from exactsel.kernels.dual import node_bound
from exactsel.kernels.grouped import spans_of, unit_sums
from exactsel.kernels.node import (
    UNFINISHED,
    Answers,
    empty_answers,
    is_convex,
    node_columns,
    solved_columns,
    write_relaxed,
    write_solved,
)
from exactsel.problem.capabilities import COEFFICIENT_BOUNDS, COEFFICIENTS
from exactsel.problem.regression import Problem
from exactsel.rounding import UNIT
from exactsel.types import FloatArray, IntArray, StateArray

RADIUS = 1e4
"""Bounded models are those with abs(x_j) ||a_j|| <= this * ||y||, as with other losses and lam = 0."""

BOUNDED_MODELS = f"models with |x_j| ||a_j|| <= {RADIUS:g} ||y|| (lam = 0 and dependent features)"
"""The scope where a coefficient is not limited on both sides."""

LONG = np.longdouble


@dataclass(frozen=True)
class BoxedFitBound(BoundSolver):
    """The bound of problems with signs or limits of coefficients whose columns depend on each other, lam = 0."""

    name = "boxed-fit"
    needs = COEFFICIENTS | COEFFICIENT_BOUNDS

    def prepare(self, problem: Problem, options: BoundOptions) -> PreparedBoxedFit:
        """Bind to a problem of quadratic loss."""
        return PreparedBoxedFit(problem, options)


def known_limits(problem: Problem) -> tuple[FloatArray, FloatArray, str]:
    """What coefficients (columns,) can be, finite on both sides, and the scope in which that is so; empty for all."""
    base, bounds = problem.objective, problem.coefficient_bounds
    assert bounds is not None
    lower, upper = bounds.lower.copy(), bounds.upper.copy()
    lengths = np.sqrt(np.einsum("ij,ij->i", base.AT, base.AT))
    out = lengths == 0.0
    out[problem.units.columns_of(problem.force_out)] = True
    lower[out], upper[out] = 0.0, 0.0
    if np.all(np.isfinite(lower) & np.isfinite(upper)):
        return lower, upper, ""
    # A checker rounds the radius upwards, by less.
    size = np.where(out, 0.0, 1.002 * RADIUS * float(np.linalg.norm(base.y)) / np.where(out, 1.0, lengths))
    return np.maximum(lower, -size), np.minimum(upper, size), BOUNDED_MODELS


class PreparedBoxedFit(PreparedBound):
    """Fits one node after the other, from the data."""

    def __init__(self, problem: Problem, options: BoundOptions) -> None:
        assert problem.coefficient_bounds is not None
        self.problem, self.options, self._bounds = problem, options, problem.coefficient_bounds
        self._lower, self._upper, self._valid_for = known_limits(problem)

    def tighten(
        self, states: StateArray, warm: Sequence[Any], cutoff: float, upper: float, known: FloatArray | None = None
    ) -> Tightened:
        """See :class:`exactsel.bounds.base.PreparedBound`; there is nothing to warm-start."""
        problem, count = self.problem, len(states)
        answers = empty_answers(count, problem.d, problem.k)
        points = [ModelPoint.from_dense(np.zeros(0))] * count
        for row, state in enumerate(states):
            if self.options.stop[0]:
                answers.status[row] = UNFINISHED
                continue
            chosen, fixed = node_columns(state)
            if is_convex(chosen, fixed, problem.k):
                points[row] = self.solve(solved_columns(chosen, fixed, problem.k), answers, row)
                continue
            points[row], weight, base, q = self._fitted(chosen)
            write_relaxed(answers, row, chosen, fixed, problem.k, 1.0, base, q, weight, weight, cutoff)
            answers.iterations[row] = 1
        return Tightened(answers, points, [None] * count, valid_for=self._valid_for)

    def solve(self, chosen: IntArray, answers: Answers, row: int) -> ModelPoint:
        """Bound a convex node by the fit on its units, all of which a model may use; the point that proves it."""
        point, weight, base, q = self._fitted(chosen)
        write_solved(answers, row, chosen, weight, node_bound(base, q, chosen.size, 0, 1.0, np.empty(1)))
        answers.iterations[row] = 1
        return point

    def _fitted(self, chosen: IntArray) -> tuple[ModelPoint, FloatArray, float, FloatArray]:
        """The fit on some units, how much it uses each, and what it says of what they take."""
        columns = self.problem.units.columns_of(chosen)
        coef = polished(self._bounds, self._bounds.fit_within(columns).coef, columns)
        base, q = self._dual(coef, chosen)
        sizes = self.problem.units.sizes(coef * self.problem.objective.norms)[chosen]
        return ModelPoint.from_dense(coef), sizes, base, q

    def _dual(self, coef: FloatArray, chosen: IntArray) -> tuple[float, FloatArray]:
        """-L*(b) at the residual b of a model, rounded downwards, and twice what units take, rounded upwards.

        What b itself is off by counts, too: a checker has another one.
        """
        base, spans = self.problem.objective, spans_of(self.problem.units.spans, chosen)
        columns = spans.columns
        A, x, y = base.AT[columns].astype(LONG), coef[columns].astype(LONG), base.y.astype(LONG)
        b = x @ A - y
        unit = np.finfo(LONG).eps * (base.n + columns.size + 32)
        # A checker that knows no prepared data has those as given, from which they are a rounding away.
        preparation = base.preparation
        rounded = preparation is not None and (base.equalities is None or bool(np.any(preparation.made.column_error)))
        off = unit + 2 * UNIT if rounded else unit
        size = np.abs(x) @ base.norms[columns] + np.linalg.norm(base.y)
        value = -0.5 * (b @ b) - y @ b
        value -= unit * (b @ b + np.abs(y) @ np.abs(b)) + unit * size * size
        v, error = A @ b, off * base.norms[columns] * (np.linalg.norm(b.astype(float)) + 2 * size)
        low, high = self._lower[columns], self._upper[columns]
        most = np.zeros(columns.size, dtype=LONG)
        for s in (-v - error, -v + error):
            most = np.maximum(most, np.where(s > 0, s * high, s * low))
        taken = np.empty(chosen.size)
        unit_sums(2.0 * most.astype(np.float64) * (1.0 + 8 * UNIT), spans.first, taken)
        return float(value) - 4 * UNIT * abs(float(value)), taken
