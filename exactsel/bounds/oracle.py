"""The perspective relaxation by a general conic solver: slow, independent of our kernels, a reference for tests."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from exactsel.bounds.base import BoundOptions, BoundSolver, PreparedBound, Tightened, sparse_points
from exactsel.bounds.pdal import check_lam
from exactsel.bounds.pointwise import bound_at_model
from exactsel.errors import UnsupportedError, option
from exactsel.kernels.dual import dual_at_point
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
from exactsel.losses import Huber, Logistic, Poisson, Quadratic, SquaredHinge
from exactsel.problem.regression import Problem
from exactsel.types import FloatArray, IntArray, StateArray

if TYPE_CHECKING:
    import cvxpy

ACCURACY = 1e-12
"""Accuracy requested of the conic solver; it often delivers less and says so, and its answer is used all the same."""


@dataclass(frozen=True)
class CvxpyBound(BoundSolver):
    """Solve  min L(Ax) + (lam/2) sum_j x_j^2 / z_j,  0 <= z <= 1, z_S = 1, sum z_C <= r  by cvxpy, node by node.

    The conic solver's value is never trusted: the bound is formula (2) at its x.
    """

    name = "cvxpy"

    def prepare(self, problem: Problem, options: BoundOptions) -> PreparedOracle:
        """Bind to a problem with lam > 0 and a built-in loss."""
        check_lam(problem, self.name)
        if not isinstance(problem.loss, Quadratic | Huber | Logistic | SquaredHinge | Poisson):
            raise UnsupportedError(
                f"the bound 'cvxpy' knows the losses that come with exactsel, but the loss "
                f"is {problem.loss.name}; use {option('bound', 'apg')}."
            )
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                import cvxpy
        except ImportError:
            raise UnsupportedError(
                "the bound 'cvxpy' needs the package cvxpy, which is not installed; "
                f"run  pip install 'exactsel[cvxpy]',  or use {option('bound', 'apg')}."
            ) from None
        return PreparedOracle(problem, options, cvxpy)


class PreparedOracle(PreparedBound):
    """Builds and solves one conic program per node."""

    def __init__(self, problem: Problem, options: BoundOptions, cvxpy: ModuleType) -> None:
        self.problem = problem
        self.options = options
        self.cvxpy = cvxpy

    def tighten(
        self, states: StateArray, warm: Sequence[Any], cutoff: float, upper: float, known: FloatArray | None = None
    ) -> Tightened:
        """See :class:`exactsel.bounds.base.PreparedBound`; there is nothing to warm-start or to quit early."""
        answers = empty_answers(len(states), self.problem.d, self.problem.k)
        for row, state in enumerate(states):
            if self.options.stop[0]:
                answers.status[row] = UNFINISHED
            else:
                self._bound(state, cutoff if self.options.force_quit else np.inf, answers, row)
        return Tightened(answers, sparse_points(answers), [None] * len(states))

    def _bound(self, state: StateArray, cutoff: float, answers: Answers, row: int) -> None:
        problem = self.problem
        columns, fixed = node_columns(state)
        if is_convex(columns, fixed, problem.k):
            columns = solved_columns(columns, fixed, problem.k)
            coef = problem.fit(columns).coef
            write_solved(answers, row, columns, coef[columns], bound_at_model(problem, state, coef))
            return
        x, answers.iterations[row] = self.relaxed_model(columns, fixed)
        z = np.ascontiguousarray(x @ problem.AT[columns])
        b, q, v = np.empty(problem.n), np.empty(columns.size), np.empty(columns.size)
        base = dual_at_point(problem.loss, problem.raw.AT, problem.y, problem.raw.norms, columns, z, b, q, v)
        write_relaxed(answers, row, columns, fixed, problem.k, problem.lam, base, q, x, x, cutoff)

    def relaxed_model(self, columns: IntArray, fixed: int) -> tuple[FloatArray, int]:
        """The relaxation's solution on ``columns`` (compact, the first ``fixed`` are S) and the solver's iterations.

        Where the conic solver gives up the answer is x = 0, whose bound is weak but valid.
        """
        cp, problem, m = self.cvxpy, self.problem, columns.size
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # cvxpy warns about what a bound at a point makes harmless: inaccuracy
            x, z, t = cp.Variable(m), cp.Variable(m), cp.Variable(m)
            # t_j z_j >= x_j^2 as second-order cones, all columns at once
            perspective = cp.SOC(t + z, cp.vstack([2 * x, t - z]), axis=0)
            limits = [z[fixed:] >= 0, z[fixed:] <= 1, cp.sum(z[fixed:]) <= problem.k - fixed]
            if fixed:  # older versions of cvxpy know no empty constraint
                limits.insert(0, z[:fixed] == 1)
            cost = self._loss(problem.AT[columns].T @ x) + 0.5 * problem.lam * cp.sum(t)
            program = cp.Problem(cp.Minimize(cost), [perspective, *limits])
            try:
                program.solve(solver=cp.CLARABEL, tol_gap_abs=ACCURACY, tol_gap_rel=ACCURACY, tol_feas=ACCURACY)
            except cp.error.SolverError:
                return np.zeros(m), 0
        if x.value is None:
            return np.zeros(m), 0
        return np.array(x.value, dtype=np.float64), int(program.solver_stats.num_iters or 0)

    def _loss(self, prediction: cvxpy.Expression) -> cvxpy.Expression:
        """L as a cvxpy expression; cvxpy's huber is twice ours."""
        cp, loss, y = self.cvxpy, self.problem.loss, self.problem.y
        if isinstance(loss, Huber):
            return 0.5 * cp.sum(cp.huber(prediction - y, loss.delta))
        if isinstance(loss, Logistic):
            return cp.sum(cp.logistic(-cp.multiply(y, prediction)))
        if isinstance(loss, Poisson):
            return cp.sum(cp.exp(prediction) - cp.multiply(y, prediction))
        if isinstance(loss, SquaredHinge):
            return cp.sum(cp.square(cp.pos(1 - cp.multiply(y, prediction))))
        return 0.5 * cp.sum_squares(prediction - y)
