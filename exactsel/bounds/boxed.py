"""The perspective relaxation of problems with limits on coefficients, by accelerated proximal gradients in numpy.

Any point gives a bound (:meth:`exactsel.problem.boxed.BoxedProblem.dual`); what is done here only decides how good it
is. With signs alone the step is exact: the regulariser grows with the size of every entry, so its prox with w >= 0 is
that of max(u, 0). Finite limits are not in the relaxation, but in the bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactsel.bounds.base import BoundOptions, BoundSolver, PreparedBound, Tightened, sparse_points
from exactsel.bounds.witness import ModelPoint
from exactsel.kernels.dual import node_bound
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
from exactsel.kernels.topk_prox import prox_conjugate
from exactsel.problem.boxed import BoxedProblem
from exactsel.types import FloatArray, IntArray, StateArray

MOST_STEPS, LOOK_EVERY = 400, 10
"""Steps of one call, and between two looks at the bound."""

ENOUGH = 1e-7
"""Times the empty model's objective: a bound that rises by less between two looks is as good as it gets."""


@dataclass(frozen=True)
class BoxedBound(BoundSolver):
    """The bound of problems with signs or limits of coefficients."""

    name = "boxed"
    family = "boxed"

    def prepare(self, problem: BoxedProblem, options: BoundOptions) -> PreparedBoxed:
        """Bind to a problem."""
        return PreparedBoxed(problem, options)


class PreparedBoxed(PreparedBound):
    """Bounds nodes one after the other."""

    def __init__(self, problem: BoxedProblem, options: BoundOptions) -> None:
        self.problem, self.options = problem, options
        self._step = 1.0 / max(problem.base.steepness * problem.base.spectral_norm_squared, 1e-300)
        self._low = np.where(problem.lower < 0.0, -np.inf, 0.0)
        self._high = np.where(problem.upper > 0.0, np.inf, 0.0)

    def tighten(
        self, states: StateArray, warm: Sequence[Any], cutoff: float, upper: float, known: FloatArray | None = None
    ) -> Tightened:
        """See :class:`exactsel.bounds.base.PreparedBound`."""
        answers = empty_answers(len(states), self.problem.d, self.problem.k)
        target = cutoff if self.options.force_quit else np.inf
        for row, state in enumerate(states):
            if self.options.stop[0]:
                answers.status[row] = UNFINISHED
                continue
            columns, fixed = node_columns(state)
            if is_convex(columns, fixed, self.problem.k):
                self._solve(solved_columns(columns, fixed, self.problem.k), answers, row)
            else:
                self._relax(columns, fixed, self._start(warm[row]), target, answers, row)
        points = sparse_points(answers)
        return Tightened(answers, points, points)

    def _start(self, warm: Any) -> FloatArray:
        known = self.options.warm_start and isinstance(warm, ModelPoint)
        return warm.dense(self.problem.d) if known else np.zeros(self.problem.d)

    def _solve(self, columns: IntArray, answers: Answers, row: int) -> None:
        problem = self.problem
        coef = problem.fit(columns).coef
        base, q = problem.dual(coef, columns)
        bound = node_bound(base, q, columns.size, 0, problem.base.lam, np.empty(1))
        write_solved(answers, row, columns, coef[columns], float(bound))

    def _relax(
        self, columns: IntArray, fixed: int, start: FloatArray, target: float, answers: Answers, row: int
    ) -> None:
        problem, step = self.problem, self._step
        lam, places = problem.base.lam, problem.k - fixed
        low, high = self._low[columns], self._high[columns]
        x = start[columns]
        ahead, momentum, ranked = x, 1.0, np.empty(places + 1)
        best: tuple[float, float, FloatArray, FloatArray] | None = None
        for taken in range(MOST_STEPS + 1):
            if taken % LOOK_EVERY == 0:
                point = np.zeros(problem.d)
                point[columns] = x
                base, q = problem.dual(point, columns)
                bound = float(node_bound(base, q, fixed, places, lam, ranked))
                before = -np.inf if best is None else best[0]
                if best is None or bound > before:
                    best = (bound, base, q, x)
                risen = bound - before
                if risen < 0.0 and not np.isfinite(problem.base.loss.smoothness):
                    # The step is a guess then; one that is too long makes bounds fall.
                    step, ahead, x, momentum = 0.25 * step, best[3], best[3], 1.0
                    continue
                if bound >= target or self.options.stop[0] or (
                    taken > 0 and risen < ENOUGH * problem.null_objective
                ):  # fmt: skip
                    break
            full = np.zeros(problem.d)
            full[columns] = ahead
            slope = problem.base.gradient(full, columns) - lam * ahead
            moved = np.clip(ahead - step * slope, low, high)
            new = np.empty_like(moved)
            prox_conjugate(moved, fixed, places, step, lam, new)
            faster = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum))
            ahead, x, momentum = new + (momentum - 1.0) / faster * (new - x), new, faster
        assert best is not None  # the first look
        _, base, q, x = best
        answers.iterations[row] = taken
        write_relaxed(answers, row, columns, fixed, problem.k, lam, base, q, x, x, target)
