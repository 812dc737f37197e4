"""The perspective relaxation of problems with limits on coefficients, by accelerated proximal gradients.

Any point gives a bound (:mod:`exactsel.kernels.boxed`); what is done here only decides how good it is. With quadratic
loss all the curvature D of the data takes the ridge's place where that is more, as in :mod:`exactsel.bounds.apg`: in
the variables sqrt(D) x formula (3) is formula (2) with lam = 1, and limits are those of the coefficients times sqrt(D).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from exactsel._jit import parallel_section
from exactsel.algebra.curvature import affordable, uniform_curvature
from exactsel.bounds.apg import (
    AcceleratedGradientBound,
    PreparedAcceleratedGradient,
    curvature_of,
    curved_data,
    gains,
    may_gain,
)
from exactsel.bounds.base import BoundOptions, BoundSolver, Tightened, stack_points
from exactsel.bounds.boxed_fit import PreparedBoxedFit
from exactsel.bounds.kernel_form import KernelForm
from exactsel.bounds.newton_fit import beginning_at_fits, may_lead
from exactsel.bounds.rows_in_box import bound_from_rows, polished
from exactsel.bounds.witness import ModelPoint
from exactsel.bounds.working_set import KnownProducts, WorkingSet, many_columns
from exactsel.errors import UnsupportedError, option
from exactsel.kernels.apg import Perspective, relax_nodes
from exactsel.kernels.box import move_to_fits
from exactsel.kernels.boxed import Box, GroupedBox, solved_bound
from exactsel.kernels.columns import RawData
from exactsel.kernels.dual import node_bound
from exactsel.kernels.forms import GramData
from exactsel.kernels.node import (
    OUT,
    UNFINISHED,
    Answers,
    empty_answers,
    is_convex,
    node_columns,
    solved_columns,
    write_solved,
)
from exactsel.problem.capabilities import CLOSED_FORM, COEFFICIENT_BOUNDS, COEFFICIENTS
from exactsel.problem.read_only import read_only
from exactsel.problem.regression import Problem
from exactsel.types import FloatArray, IntArray, StateArray

SMALL_GRAM = 2000
"""Columns up to which their Gram matrix is made where there are fewer rows."""

STRETCHED, FITTED = 1e6, 200
"""Largest eigenvalue, in units of the curvature taken, above which nodes begin at the fit on their columns, and columns
up to which that is affordable (measured on Diabetes with its products: with lam = 0 the bound is 0 without; at 1e4 it
helps where all coefficients have signs and harms where half of them do)."""

AFTER_FIT = 10
"""Iterations after such a fit, which is nearly as good a bound as there is: more cost time and bring no fewer nodes."""


@dataclass(frozen=True)
class BoxedBound(BoundSolver):
    """The bound of problems with signs or limits of coefficients."""

    name = "boxed"
    needs = COEFFICIENTS | COEFFICIENT_BOUNDS

    def prepare(self, problem: Problem, options: BoundOptions) -> PreparedBoxed:
        """Bind to a problem with lam > 0, or of quadratic loss with independent columns or all coefficients limited."""
        curvature = _known_curvature(problem, options)
        bounds = problem.coefficient_bounds
        if curvature is None and problem.lam == 0 and not (bounds is not None and bounds.all_finite):
            raise UnsupportedError(
                "lam is 0, the features are (nearly) dependent, and not all coefficients are limited on both sides; "
                f"limit all of them, give a small ridge ({option('lam', 1e-6)}), or leave features out."
            )
        return PreparedBoxed(problem, options, curvature)


def _known_curvature(problem: Problem, options: BoundOptions) -> FloatArray | None:
    """The curvature of all columns where it is more than the ridge's; None where there is none, or no time for it."""
    free = problem.without_coefficient_bounds
    if not (free.has(CLOSED_FORM) and may_gain(free)) or free.objective.d > free.n:
        return None
    if affordable(free.objective.d, options.seconds) is None:
        return uniform_curvature(free.hessian, free.gram.roundings) if free.lam == 0 else None
    curvature = curvature_of(free, free.hessian, options)
    return curvature if curvature is not None and gains(curvature, free.lam) else None


def outwards(limits: FloatArray, scale: FloatArray, end: float) -> FloatArray:
    """Limits (d,) in other units, never narrower: one that underflows would cost a column what it may gain."""
    with np.errstate(all="ignore"):
        return read_only(np.where(limits == 0.0, 0.0, np.nextafter(limits * scale, end)))


class PreparedBoxed(PreparedAcceleratedGradient):
    """Bound to one problem: its rows, or for quadratic loss the Gram matrix, with a curvature if there is one."""

    def __init__(self, problem: Problem, options: BoundOptions, curvature: FloatArray | None) -> None:
        bounds = problem.coefficient_bounds
        assert bounds is not None
        self.problem, self.bounds, self.options, self.curvature = problem, bounds, options, curvature
        self.quick, free = bounds.all_finite, problem.without_coefficient_bounds
        wide = curvature is None and not problem.units.grouped and many_columns(free.n, free.d)
        in_gram = free.has(CLOSED_FORM) and not wide and free.objective.d <= max(free.n, SMALL_GRAM)
        data: GramData | RawData = free.gram if in_gram else free.raw
        lam, scale = free.lam, np.ones(free.objective.d)
        ridge, lam = 1.0 if lam > 0.0 else 0.0, bounds.unit
        by_parts = wide and free.has(CLOSED_FORM)
        lipschitz = 1.0 if by_parts else free.spectral_norm_squared * free.objective.steepness
        if curvature is not None:
            data, lipschitz = curved_data(free, curvature)
            lam, ridge, scale = 1.0, 1.0, np.sqrt(curvature)
        self.rules = AcceleratedGradientBound().rules(free, max(lipschitz, 1e-300), options.thorough)
        # At the fit the bound is no smaller than what the fit costs, however slowly proximal steps get there.
        stretched = curvature is not None and lipschitz > STRETCHED
        few = free.objective.d <= FITTED
        flat = curvature is None and problem.lam == 0.0
        self._begins_at_fit = (stretched or flat) and few
        self._flat_fit = PreparedBoxedFit(problem, options) if flat else None
        # Where there is next to no ridge proofs need more digits of models than kernels find.
        from_rows = isinstance(data, RawData) and not free.has(CLOSED_FORM)
        self._solves = from_rows and free.objective.ridge_limits is None
        self._fits_all = from_rows and not self._solves and few
        self._root_fit: FloatArray | None = None
        singles = free.has(CLOSED_FORM) and not problem.units.grouped
        self._near = free.gram if stretched and few and singles else None
        if self._near is not None:
            self.rules = self.rules._replace(max_iterations=AFTER_FIT)
        self._decided = not (few and may_lead(free, data))
        lower, upper = bounds.lower, bounds.upper
        if curvature is not None:
            lower, upper = outwards(lower, scale, -np.inf), outwards(upper, scale, np.inf)
        box: Box | GroupedBox = Box(lower, upper, lam, ridge, problem.objective.at_zero)
        if problem.units.grouped:
            spans = problem.units.spans
            box = GroupedBox(lower, upper, lam, ridge, problem.objective.at_zero, spans.members, spans.first)
        perspective = Perspective(free.row_loss, data, box, lam, problem.k, self.rules)
        self._form = KernelForm(perspective, scale)
        self._working: WorkingSet | None = None
        if wide:
            products = KnownProducts(free.AT, free.y) if free.has(CLOSED_FORM) else None
            self._working = WorkingSet(
                problem.objective, partial(bounds.dual, units=problem.units), perspective, options, products
            )

    def tighten(
        self, states: StateArray, warm: Sequence[Any], cutoff: float, upper: float, known: FloatArray | None = None
    ) -> Tightened:
        """See :class:`exactsel.bounds.base.PreparedBound`."""
        count, options = len(states), self.options
        answers = empty_answers(count, self.problem.d, self.problem.k)
        points: list[ModelPoint] = [ModelPoint.from_dense(np.zeros(0))] * count
        known = np.full(count, -np.inf) if known is None else known
        relaxed = []
        for row, state in enumerate(states):
            columns, fixed = node_columns(state)
            if self._solves or not is_convex(columns, fixed, self.problem.k):
                relaxed.append(row)
            elif not options.stop[0]:
                points[row] = self._solve(solved_columns(columns, fixed, self.problem.k), answers, row, cutoff)
        if relaxed:
            warm_starts = [warm[row] if options.warm_start else None for row in relaxed]
            starts = stack_points(warm_starts, self._form.scale.size)
            leads = self.begins_at_fits()
            if self._near is not None:
                gram, lam, bounds = self._near, self.problem.lam, self.bounds
                move_to_fits(gram.G, gram.b, lam, bounds.lower, bounds.upper, states[relaxed], starts)
            for at, row in enumerate(relaxed if self._near is None else ()):
                if (self._fits_all or (warm_starts[at] is None and self._begins_at_fit)) and not options.stop[0]:
                    included = self.problem.units.columns_of(np.flatnonzero(states[row] != OUT))
                    starts[at] = self.bounds.fit_within(included).coef
                elif leads and warm_starts[at] is None:
                    starts[at] = self._root_fit
            target = cutoff if options.force_quit else np.inf
            relaxed_answers, models = self._relax(states[relaxed], starts, target, known[relaxed])
            for mine, theirs in zip(list[Any](answers), relaxed_answers, strict=True):
                mine[relaxed] = theirs
            for row, x in zip(relaxed, models, strict=True):
                points[row] = self.as_point(x)
        return Tightened(answers, points, points)

    def _relax(
        self, states: StateArray, starts: FloatArray, cutoff: float, parent_bounds: FloatArray
    ) -> tuple[Answers, FloatArray]:  # fmt: skip
        """Bound nodes from some starts (B, columns); those that are convex problems only from the rows.

        What comes with the answers are the models (B, columns) that prove them.
        """
        problem, grouped, (perspective, scale) = self.problem, self.problem.units.grouped, self._form
        if self.begins_at_fits() and not self._fits_all:
            perspective = beginning_at_fits(perspective)
        answers = empty_answers(len(states), problem.d, problem.k)
        points = np.zeros_like(starts) if grouped else answers.point
        if self._working is not None:
            self._working.relax_all(states, starts, cutoff, parent_bounds, answers)
            return answers, points
        with parallel_section(self.options.threads):
            relax_nodes(*perspective, states, starts * scale, cutoff, parent_bounds, self.options.stop, answers, points)
        if not self._decided:
            answers.status[:] = UNFINISHED
        points /= scale
        if not grouped:  # lengths of groups serve for branching, in any variables
            answers.x[:] /= scale
        return answers, points

    def _solve(self, chosen: IntArray, answers: Answers, row: int, cutoff: float) -> ModelPoint:
        """Bound a convex node by the fit on its units; the point that proves it."""
        problem, bounds = self.problem, self.bounds
        if self._flat_fit is not None:
            return self._flat_fit.solve(chosen, answers, row)
        columns = problem.units.columns_of(chosen)
        coef = polished(bounds, bounds.fit_within(columns).coef, columns)
        bound = -np.inf
        if problem.lam > 0.0:
            base, q = bounds.dual(coef, chosen, problem.units)
            bound = float(node_bound(base, q, chosen.size, 0, problem.objective.lam, np.empty(1)))
        point = ModelPoint.from_dense(coef)
        if bounds.equalities is not None and problem.lam > 0.0:
            bound = max(bound, bound_from_rows(bounds, coef, columns, np.full(coef.size, problem.objective.lam)))
        if self.curvature is not None and bound < cutoff:
            loss, data, box, lam = self._form.perspective[:4]
            curved = solved_bound(loss, data, box, lam, chosen, coef * self._form.scale)
            if bounds.equalities is not None:
                curved = max(curved, bound_from_rows(bounds, coef, columns, self.curvature))
            if curved > bound:
                bound, point = float(curved), self.as_point(coef)
        write_solved(answers, row, chosen, problem.units.sizes(coef)[chosen], bound)
        return point
