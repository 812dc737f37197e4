"""The perspective relaxation of problems with limits on coefficients, by accelerated proximal gradients.

Any point gives a bound (:mod:`exactsel.kernels.boxed`); what is done here only decides how good it is. With quadratic
loss all the curvature D of the data takes the ridge's place where that is more, as in :mod:`exactsel.bounds.apg`: in
the variables sqrt(D) x formula (3) is formula (2) with lam = 1, and limits are those of the coefficients times sqrt(D).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactsel._jit import parallel_section
from exactsel.algebra.curvature import affordable, uniform_curvature
from exactsel.bounds.apg import AcceleratedGradientBound, curvature_of, curved_data, gains, may_gain
from exactsel.bounds.base import BoundOptions, BoundSolver, PreparedBound, Tightened, stack_points
from exactsel.bounds.witness import CurvedPoint, ModelPoint
from exactsel.errors import UnsupportedError, option
from exactsel.kernels.apg import relax_nodes
from exactsel.kernels.boxed import Box, GroupedBox, solved_bound
from exactsel.kernels.columns import RawData
from exactsel.kernels.dual import node_bound
from exactsel.kernels.forms import GramData
from exactsel.kernels.node import (
    OUT,
    Answers,
    empty_answers,
    is_convex,
    node_columns,
    solved_columns,
    write_solved,
)
from exactsel.problem.boxed import BoxedProblem
from exactsel.types import FloatArray, IntArray, StateArray

SMALL_GRAM = 2000
"""Columns up to which their Gram matrix is made where there are fewer rows."""

STRETCHED, FITTED = 1e6, 200
"""Largest eigenvalue, in units of the curvature taken, above which the first node begins at the fit on its columns, and
columns up to which that is affordable (measured on Diabetes with its products: with lam = 0 the bound is 0 without;
nothing is gained at 6e4, nor by fits for the nodes below)."""

COMPARED, AFTER_FIT = 100, 20
"""Proximal steps from the empty model that the root's fit in the box is held against, where there is no closed form: if
they leave the bound below the fit's all nodes begin at fits, and take so many steps from there."""


@dataclass(frozen=True)
class BoxedBound(BoundSolver):
    """The bound of problems with signs or limits of coefficients."""

    name = "boxed"
    family = "boxed"

    def prepare(self, problem: BoxedProblem, options: BoundOptions) -> PreparedBoxed:
        """Bind to a problem with lam > 0, or of quadratic loss and independent columns."""
        curvature = _known_curvature(problem, options)
        if curvature is None and problem.lam == 0:
            raise UnsupportedError(
                "signs and bounds of coefficients need curvature, but lam is 0 and the columns are (nearly) dependent; "
                f"give a small ridge ({option('lam', 1e-6)}), or leave columns out."
            )
        return PreparedBoxed(problem, options, curvature)


def _known_curvature(problem: BoxedProblem, options: BoundOptions) -> FloatArray | None:
    """The curvature of all columns where it is more than the ridge's; None where there is none, or no time for it."""
    free = problem.unlimited
    if not (free.is_quadratic and may_gain(free)):
        return None
    if affordable(free.objective.d, options.seconds) is None:
        return uniform_curvature(free.hessian, free.gram.roundings) if free.lam == 0 else None
    curvature = curvature_of(free, free.hessian, options)
    return curvature if curvature is not None and gains(curvature, free.lam) else None


def _outwards(limits: FloatArray, scale: FloatArray, end: float) -> FloatArray:
    """Limits (d,) in other units, never narrower: one that underflows would cost a column what it may gain."""
    with np.errstate(all="ignore"):
        return np.where(limits == 0.0, 0.0, np.nextafter(limits * scale, end))


class PreparedBoxed(PreparedBound):
    """Bound to one problem: its rows, or for quadratic loss the Gram matrix, with a curvature if there is one."""

    def __init__(self, problem: BoxedProblem, options: BoundOptions, curvature: FloatArray | None) -> None:
        self.problem, self.options, self.curvature = problem, options, curvature
        free = problem.unlimited
        in_gram = free.is_quadratic and free.objective.d <= max(free.n, SMALL_GRAM)
        self._data: GramData | RawData = free.gram if in_gram else free.raw
        self._lam, self._scale = free.lam, np.ones(free.objective.d)
        lipschitz = free.spectral_norm_squared * free.objective.steepness
        if curvature is not None:
            self._data, lipschitz = curved_data(free, free.hessian, curvature)
            self._lam, self._scale = 1.0, np.sqrt(curvature)
        self._rules = AcceleratedGradientBound().rules(free, max(lipschitz, 1e-300), options.thorough)
        # At the fit the bound is no smaller than what the fit costs, however slowly proximal steps get there.
        stretched = curvature is not None and lipschitz > STRETCHED
        few = free.objective.d <= FITTED
        self._begins_at_fit = stretched and few
        self._may_lead = few and not free.is_quadratic and free.objective.d < free.n
        self._fit_leads: bool | None = None if self._may_lead else False
        lower, upper = problem.lower, problem.upper
        if curvature is not None:
            lower, upper = _outwards(lower, self._scale, -np.inf), _outwards(upper, self._scale, np.inf)
        box = Box(lower, upper, self._lam, problem.null_objective)
        self._box: Box | GroupedBox = GroupedBox(*box, *problem.units.spans) if problem.units.grouped else box

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
            left, fixed = node_columns(state)
            if not is_convex(left, fixed, self.problem.k):
                relaxed.append(row)
            elif not options.stop[0]:
                points[row] = self._solve(solved_columns(left, fixed, self.problem.k), answers, row, cutoff)
        if relaxed:
            begun = [warm[row] if options.warm_start else None for row in relaxed]
            starts = stack_points(begun, self._scale.size)
            leads = self._fits_lead()
            for at, row in enumerate(relaxed):
                if (leads or (self._begins_at_fit and begun[at] is None)) and not options.stop[0]:
                    starts[at] = self.problem.fit(np.flatnonzero(states[row] != OUT)).coef
            target = cutoff if options.force_quit else np.inf
            told, found = self._relax(states[relaxed], starts, target, known[relaxed], AFTER_FIT if leads else None)
            for mine, theirs in zip(list[Any](answers), told, strict=True):
                mine[relaxed] = theirs
            for row, x in zip(relaxed, found, strict=True):
                points[row] = self._as_point(x)
        return Tightened(answers, points, points)

    def _fits_lead(self) -> bool:
        """Whether nodes are best bounded from the fits in the box on their columns; what leads at the root does below.

        As :mod:`exactsel.bounds.newton_fit` has it for free coefficients.
        """
        root, nothing = self.problem.root_state[None], np.full(1, -np.inf)
        if self._fit_leads is None and is_convex(*node_columns(root[0]), self.problem.k):
            self._fit_leads = False
        if self._fit_leads is None and not self.options.stop[0]:
            fit = self.problem.fit(np.flatnonzero(root[0] != OUT)).coef[None]
            reached = float(self._relax(root, fit, np.inf, nothing, 0)[0].bound[0])
            told, _ = self._relax(root, np.zeros_like(fit), reached, nothing, COMPARED)
            if not self.options.stop[0]:
                self._fit_leads = bool(told.bound[0] < reached)
        return bool(self._fit_leads)

    def _relax(
        self, states: StateArray, starts: FloatArray, cutoff: float, known: FloatArray, most: int | None = None
    ) -> tuple[Answers, FloatArray]:
        """Bound nodes that are no convex problems, from some starts (B, columns).

        By at most so many proximal steps; what comes with the answers are the models (B, columns) that prove them.
        """
        problem, grouped = self.problem, self.problem.units.grouped
        answers = empty_answers(len(states), problem.d, problem.k)
        points = np.zeros_like(starts) if grouped else answers.point
        rules = self._rules if most is None else self._rules._replace(max_iterations=most)
        with parallel_section(self.options.threads):
            relax_nodes(
                problem.base.row_loss, self._data, self._box, self._lam, problem.k, rules, states,
                starts * self._scale, cutoff, known, self.options.stop, answers, points,
            )  # fmt: skip
        points /= self._scale
        if not grouped:  # lengths of groups are to branch by, in whatever variables
            answers.x[:] /= self._scale
        return answers, points

    def _as_point(self, x: FloatArray) -> ModelPoint:
        point = ModelPoint.from_dense(x)
        return point if self.curvature is None else CurvedPoint(point.index, point.value, self.curvature)

    def _solve(self, chosen: IntArray, answers: Answers, row: int, cutoff: float) -> ModelPoint:
        """Bound a convex node by the fit on its units; the point that proves it."""
        problem = self.problem
        coef = problem.fit(chosen).coef
        bound = -np.inf
        if problem.lam > 0.0:
            base, q = problem.dual(coef, chosen)
            bound = float(node_bound(base, q, chosen.size, 0, problem.base.lam, np.empty(1)))
        point = ModelPoint.from_dense(coef)
        if self.curvature is not None and bound < cutoff:
            scaled = coef * self._scale
            curved = solved_bound(problem.base.row_loss, self._data, self._box, self._lam, chosen, scaled)
            if curved > bound:
                bound, point = float(curved), self._as_point(coef)
        write_solved(answers, row, chosen, problem.units.sizes(coef)[chosen], bound)
        return point
