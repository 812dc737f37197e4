"""Fits on a set of columns that shrinks, for recursive feature elimination; each can be stopped on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import numpy as np

from exactsel.algebra import dense
from exactsel.kernels.refit import newton_refit
from exactsel.problem.capabilities import QUADRATIC_LOSS
from exactsel.types import FloatArray, IntArray
from exactsel_heuristics._elimination import GRAM_COLUMNS
from exactsel_heuristics._newton_fit import newton_fit
from exactsel_heuristics._triangle import AT_ONCE, back_substituted, delete_column, triangle_of

if TYPE_CHECKING:
    from exactsel.problem.regression import Problem

DEPENDENT = 1e-11
"""A column counts as dependent when no more than this share of its norm is left by the columns before it."""

GRADIENT_TOLERANCE = 1e-8
"""Times 1 + ||grad P(0)||: the gradient norm at which Newton's weights are good enough to be compared."""

WELL_POSED = 1e-8
"""Share of ||A||_F² from which on a ridge keeps the condition of the normal equations below its reciprocal."""

MANY_ENTRIES = 100_000
"""Entries of a wide system from which on its rows are taken for independent, if they are: a tenth of the work."""

KERNEL_WORK = 2e8
"""Multiplications of a Newton step (about a tenth of a second) up to which a kernel makes all of them in one go."""

Ask = Callable[[], bool]


class ColumnFits(Protocol):
    """A fit on a set of columns that shrinks."""

    columns: IntArray

    def coef(self) -> FloatArray | None:
        """The coefficients on ``columns``; after a stop, those so far, or None where there are none."""
        ...

    def delete(self, positions: IntArray) -> None:
        """Remove the columns at some positions, given in ascending order."""
        ...


def fits_of(problem: Problem, should_stop: Ask) -> ColumnFits:
    """Fits of a problem, on all its columns to begin with."""
    if not problem.has(QUADRATIC_LOSS):
        return NewtonFits(problem, should_stop)
    wide = problem.d > problem.n and is_well_posed(problem)
    return WideFits(problem, should_stop) if wide else TriangleFits(problem, should_stop)


def is_well_posed(problem: Problem) -> bool:
    """Whether the ridge keeps the normal equations, of columns or of rows, well-posed."""
    return problem.lam > WELL_POSED * float(np.sum(problem.norms**2))


class TriangleFits:
    """Quadratic loss: a triangular factor of [A y] (with ridge rows), from which columns are taken by rotations.

    Unlike the inverse of the Gram matrix this stays accurate for badly conditioned columns. A deletion costs O(d^2),
    and so does a solve as long as the columns are independent.
    """

    def __init__(self, problem: Problem, should_stop: Ask) -> None:
        self._problem, self._should_stop = problem, should_stop
        self._triangle: FloatArray | None = None
        self.columns: IntArray = np.arange(problem.d)

    def coef(self) -> FloatArray | None:
        """See :class:`ColumnFits`."""
        if self._triangle is None:
            self._triangle = self._factorised()
        if self._triangle is None:
            return None
        m = self.columns.size
        matrix, target = self._triangle[:, :m], self._triangle[:, m]
        norms = np.linalg.norm(matrix, axis=0)
        if m <= len(matrix) and np.all(np.abs(np.diagonal(matrix)) > DEPENDENT * norms):
            solution: FloatArray = back_substituted(self._triangle, m)
            return solution
        # Unit columns, so that a badly scaled column is not mistaken for a dependent one.
        scale = np.where(norms > 0.0, norms, 1.0)
        return shortest_solution(matrix / scale, target) / scale

    def delete(self, positions: IntArray) -> None:
        """See :class:`ColumnFits`; ends half way after a stop."""
        mask = np.ones(self.columns.size, dtype=np.bool_)
        for position in positions[::-1]:
            if self._should_stop():
                break
            assert self._triangle is not None
            delete_column(self._triangle, int(position))
            # Rows below the diagonal are empty.
            width = self._triangle.shape[1] - 1
            self._triangle = self._triangle[:width, :width]
            mask[position] = False
        self.columns = self.columns[mask]

    def _factorised(self) -> FloatArray | None:
        problem = self._problem
        if 2.0 * problem.n * problem.d**2 > AT_ONCE and problem.d <= GRAM_COLUMNS and is_well_posed(problem):
            root, b = dense.cholesky(problem.hessian, check_finite=False), problem.gram.b
            return np.column_stack([root, dense.solve_triangular(root, b, trans="T", check_finite=False)])
        A, y = problem.reduced
        table = np.column_stack([A, y])
        if problem.lam > 0.0:
            ridge = np.sqrt(problem.lam) * np.eye(problem.d, problem.d + 1)
            table = np.vstack([table, ridge])
        return triangle_of(table, self._should_stop)


def shortest_solution(matrix: FloatArray, target: FloatArray) -> FloatArray:
    """The solution of smallest norm (m,) of least squares; matrix (r, m)."""
    rows, m = matrix.shape
    if m > rows and matrix.size > MANY_ENTRIES:
        lower, solution, _ = dense.lapack.dgels(matrix, np.append(target, np.zeros(m - rows)), lwork=64 * (rows + m))
        sizes = np.abs(np.diagonal(lower))
        if sizes.min() > DEPENDENT * sizes.max():
            return np.asarray(solution)
    return np.asarray(np.linalg.lstsq(matrix, target, rcond=DEPENDENT)[0])


class WideFits:
    """Quadratic loss with a ridge and more columns than rows: x = A'(A A' + lam I)⁻¹y, a system of n rows.

    A deletion takes the column's square off the system; all is summed again once as many columns have gone as there
    are rows, so that rounding does not pile up, and once there are no more columns than rows a factor takes over.
    """

    def __init__(self, problem: Problem, should_stop: Ask) -> None:
        self._problem, self._should_stop = problem, should_stop
        self.columns: IntArray = np.arange(problem.d)
        self._AT: FloatArray = problem.AT
        self._system: FloatArray = self._summed()
        self._deleted = 0

    def coef(self) -> FloatArray | None:
        """See :class:`ColumnFits`."""
        try:
            solved = dense.cho_solve(
                dense.cho_factor(self._system, check_finite=False), self._problem.y, check_finite=False
            )
        except np.linalg.LinAlgError:
            self._system, self._deleted = self._summed(), 0
            solved = np.linalg.lstsq(self._system, self._problem.y, rcond=None)[0]
        coef: FloatArray = self._AT @ solved
        return coef

    def delete(self, positions: IntArray) -> None:
        """See :class:`ColumnFits`."""
        leaving = self._AT[positions]
        self.columns, self._AT = np.delete(self.columns, positions), np.delete(self._AT, positions, axis=0)
        self._deleted += len(positions)
        if self._deleted > self._problem.n:
            self._system, self._deleted = self._summed(), 0
        else:
            self._system -= leaving.T @ leaving

    def _summed(self) -> FloatArray:
        system: FloatArray = self._AT.T @ self._AT
        system[np.diag_indices_from(system)] += self._problem.lam
        return system


class NewtonFits:
    """Any loss: Newton from the coefficients of the columns that stay; a fresh fit where its systems are singular."""

    def __init__(self, problem: Problem, should_stop: Ask) -> None:
        self._problem, self._should_stop = problem, should_stop
        self._start: FloatArray = np.zeros(problem.d)
        self.columns: IntArray = np.arange(problem.d)

    def coef(self) -> FloatArray | None:
        """See :class:`ColumnFits`."""
        problem, m = self._problem, self.columns.size
        tolerance = problem.objective.gradient_tolerance(GRADIENT_TOLERANCE)
        if 0.5 * problem.n * m**2 > KERNEL_WORK:
            self._start = newton_fit(problem, self.columns, self._start, tolerance, self._should_stop)
            return self._start if np.any(self._start) else None
        compact, z = self._start.copy(), np.zeros(problem.n)
        _, norm = newton_refit(
            problem.row_loss, problem.raw.AT, problem.y, problem.lam, self.columns, tolerance, compact, z
        )
        self._start = compact if norm <= tolerance else problem.fit(self.columns).coef[self.columns]
        return self._start

    def delete(self, positions: IntArray) -> None:
        """See :class:`ColumnFits`."""
        self._start = np.delete(self._start, positions)
        self.columns = np.delete(self.columns, positions)
