"""The fit on S and C together as a bound, for quadratic loss: the default for lam = 0 (see kernels/fit.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactsel._jit import parallel_section
from exactsel.bounds.base import BoundOptions, BoundSolver, PreparedBound, Tightened, sparse_points
from exactsel.bounds.witness import FitPoint, Proof
from exactsel.errors import UnsupportedError, option
from exactsel.kernels.dual import dual_at_point
from exactsel.kernels.fit import fit_gram
from exactsel.kernels.node import (
    ILL_CONDITIONED,
    UNFINISHED,
    Answers,
    empty_answers,
    is_convex,
    node_columns,
    solved_columns,
    write_relaxed,
    write_solved,
)
from exactsel.problem.capabilities import COEFFICIENT_BOUNDS, COEFFICIENTS, QUADRATIC_LOSS
from exactsel.problem.regression import BOUNDED_MODEL_RADIUS, Problem
from exactsel.rounding import UNIT
from exactsel.types import BoolArray, FloatArray, IntArray, StateArray

BOUNDED_MODELS = f"models with |x_j| ||a_j|| <= {BOUNDED_MODEL_RADIUS:g} ||y|| (lam = 0 and dependent features)"
"""The scope of a bound from the data where lam = 0."""

PRODUCTS_PER_COLUMN = 0.5
"""Products of a matrix and a vector, for each column, that are as much work as to factor and to invert the matrix."""


@dataclass(frozen=True)
class FitBound(BoundSolver):
    """Drop the limit on the size of the model: one linear system a node, and exact drop costs."""

    name = "fit"

    def prepare(self, problem: Problem, options: BoundOptions) -> PreparedFit:
        """Bind to a problem with quadratic loss."""
        if not problem.has(QUADRATIC_LOSS):
            raise UnsupportedError(
                f"the bound 'fit' needs quadratic loss, but the loss is {problem.loss.name}; use "
                f"{option('bound', 'apg')}."
            )
        return PreparedFit(problem, options)


@dataclass(frozen=True)
class RelaxedFitBound(FitBound):
    """The same of a problem whose coefficients have no bounds, but meet equalities, which its rows stand for."""

    needs = COEFFICIENTS | COEFFICIENT_BOUNDS

    def prepare(self, problem: Problem, options: BoundOptions) -> PreparedFit:
        """Bind to the problem without equalities."""
        return super().prepare(problem.without_coefficient_bounds, options)


@dataclass(frozen=True)
class FitTightened(Tightened):
    """The answer of the fit, which knows which of its child bounds are drop costs."""

    out_by_fit: BoolArray

    def child_proof(self, row: int, column: int, included: bool) -> Proof:
        """A drop cost is proven by the fit without the column, everything else as the node itself is."""
        if not included and self.out_by_fit[row, column]:
            return FitPoint()
        return self.proofs[row]


class PreparedFit(PreparedBound):
    """Calls the kernel, and works from the data where a node's columns are nearly dependent."""

    def __init__(self, problem: Problem, options: BoundOptions) -> None:
        self.problem = problem
        self.options = options

    def tighten(
        self, states: StateArray, warm: Sequence[Any], cutoff: float, upper: float, known: FloatArray | None = None
    ) -> Tightened:
        """See :class:`exactsel.bounds.base.PreparedBound`; there is nothing to warm-start."""
        problem = self.problem
        answers = empty_answers(len(states), problem.d, problem.k)
        out_by_fit = np.zeros((len(states), problem.d), dtype=np.bool_)
        target = cutoff if self.options.force_quit else np.inf
        stop = self.options.stop
        with parallel_section(self.options.threads):
            fit_gram(problem.gram, problem.lam, problem.k, states, target, stop, answers, out_by_fit)
        done = answers.status != UNFINISHED
        answers.iterations[done] = PRODUCTS_PER_COLUMN * np.count_nonzero(states[done], axis=1)
        valid_for = ""
        for row in np.flatnonzero(answers.status == ILL_CONDITIONED):
            if stop[0]:
                answers.status[row] = UNFINISHED
            else:
                self._from_data(states[row], cutoff, answers, int(row))
                valid_for = BOUNDED_MODELS if problem.lam == 0 else ""
        proofs: list[Proof] = [FitPoint()] * len(states) if problem.lam == 0 else list(sparse_points(answers))
        return FitTightened(answers, proofs, [None] * len(states), out_by_fit, valid_for=valid_for)

    def _from_data(self, state: StateArray, cutoff: float, answers: Answers, row: int) -> None:
        """The fit by an orthogonal factorisation of the data, for one node."""
        problem = self.problem
        columns, fixed = node_columns(state)
        convex = is_convex(columns, fixed, problem.k)
        if convex:
            columns = solved_columns(columns, fixed, problem.k)
            fixed = columns.size
        x = problem.fit(columns).coef[columns]
        if problem.lam > 0:
            base, q, scale = *self._dual(columns, x), problem.lam
        else:
            base, q, scale = self._bounded_models(columns, fixed, x), np.zeros(columns.size), 1.0
        weight = x * problem.norms[columns]
        if convex:
            write_solved(answers, row, columns, x, base - float(q.sum()) * (1.0 + 1e-12) / (2.0 * scale))
        else:
            write_relaxed(answers, row, columns, fixed, problem.k, scale, base, q, x, weight, cutoff)

    def _dual(self, columns: IntArray, x: FloatArray) -> tuple[float, FloatArray]:
        problem = self.problem
        z = np.ascontiguousarray(x @ problem.AT[columns])
        b, q, v = np.empty(problem.n), np.empty(columns.size), np.empty(columns.size)
        base = dual_at_point(problem.loss, problem.raw.AT, problem.y, problem.raw.norms, columns, z, b, q, v)
        return float(base), q

    def _bounded_models(self, columns: IntArray, fixed: int, x: FloatArray) -> float:
        """A bound for lam = 0 over models with abs(x_j) ||a_j|| <= R ||y||.

        For any vector b (here the residual of the fit) L(Ax) >= -L*(b) + sum_j x_j v_j with v = A'b, which would
        vanish in exact arithmetic. Extended precision keeps the error of v, which R multiplies, small.
        """
        problem = self.problem
        long = np.longdouble
        A, y = problem.AT[columns].astype(long), problem.y.astype(long)
        precise = x.astype(long)
        b = precise @ A - y
        solve_normal = _normal_solver(problem.reduced[0][:, columns])
        for _ in range(2):
            precise = precise - solve_normal((A @ b).astype(float))
            b = precise @ A - y
        unit = np.finfo(long).eps * (problem.n + columns.size + 32)
        base = -0.5 * (b @ b) - y @ b
        base -= unit * (b @ b + np.abs(y) @ np.abs(b))
        norms = problem.norms[columns]
        error = unit * norms * np.linalg.norm(b.astype(float))
        slack = np.divide(np.abs(A @ b) + error, norms, out=np.zeros(columns.size, dtype=long), where=norms > 0)
        counted = np.concatenate([slack[:fixed], np.sort(slack[fixed:])[::-1][: problem.k - fixed]])
        hidden = BOUNDED_MODEL_RADIUS * np.linalg.norm(problem.y) * counted.sum()
        bound = float(base - hidden)
        return bound - 4 * UNIT * abs(bound)


def _normal_solver(matrix: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """v -> (matrix' matrix)^+ v on the well-conditioned directions, for iterative refinement."""
    scale = np.linalg.norm(matrix, axis=0)
    scale[scale == 0] = 1.0
    _, singular, directions = np.linalg.svd(matrix / scale, full_matrices=False)
    mask = singular > 1e-6 * max(singular.max(initial=0.0), 1e-300)
    singular, directions = singular[mask], directions[mask]

    def solve(v: FloatArray) -> FloatArray:
        correction: FloatArray = ((directions @ (v / scale)) / singular**2) @ directions / scale
        return correction

    return solve
