"""Recursive feature elimination: fit, delete the column of smallest weight, and again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np
from scipy.linalg import qr_delete, solve_triangular

from exactsel._jit import loss_session
from exactsel.algebra.threads import one_thread
from exactsel.errors import InputError
from exactsel.kernels.refit import newton_refit
from exactsel.types import FloatArray, IntArray
from exactsel_heuristics._scoring import largest
from exactsel_heuristics.base import Context, Proposal, regression

if TYPE_CHECKING:
    from exactsel.problem.regression import Problem
    from exactsel_heuristics.base import AnyProblem

DEPENDENT = 1e-11
"""A column counts as dependent when no more than this share of its norm is left by the columns before it."""

GRADIENT_TOLERANCE = 1e-8
"""Times 1 + ||grad P(0)||: the gradient norm at which Newton's weights are good enough to be compared."""


@dataclass(frozen=True)
class RecursiveFeatureElimination:
    """Recursive feature elimination (Guyon, Weston, Barnhill and Vapnik 2002) with the problem's own loss and ridge.

    Starting from all columns, fit and delete the column whose coefficient is smallest in absolute value, until k are
    left. Without a ridge dependent columns have no unique coefficients; they then get those of smallest norm, on
    columns scaled to unit norm. Coefficients are compared as they are, so the answer depends on the units of the
    columns; standardise them beforehand, or set ``scaled``.

    Parameters
    ----------
    step : float
        Share of the remaining columns deleted per round, at least 0 and below 1; one column at the least.
    scaled : bool
        Compare abs(x_j) ||a_j|| instead of abs(x_j), so that the units of the columns do not matter when lam = 0.

    References
    ----------
    I. Guyon, J. Weston, S. Barnhill and V. Vapnik, Gene selection for cancer classification using support vector
    machines. Machine Learning 46, 2002.
    """

    name: ClassVar[str] = "rfe"
    step: float = 0.0
    scaled: bool = False

    def __post_init__(self) -> None:
        """Raise :class:`InputError` unless ``step`` is a share."""
        if not 0.0 <= self.step < 1.0:
            raise InputError(
                f"step is {self.step:g}, but it is the share of columns to delete per round; give a number from 0 (one "
                "column at a time) to below 1."
            )

    def run(self, problem: AnyProblem, context: Context) -> Proposal:
        """Delete all but k columns.

        Parameters
        ----------
        problem : Problem
        context : Context
            Only ``should_stop`` is used; when stopped early, the k columns of largest weight in the last fit are
            the answer, and no column when there was no fit.

        Returns
        -------
        Proposal
        """
        problem = regression(problem, self.name)
        if problem.k == 0 or context.should_stop():
            return Proposal.of((), 0)
        with one_thread():  # many small systems, on which threads of BLAS only get in each other's way
            return self._eliminate(problem, context)

    def _eliminate(self, problem: Problem, context: Context) -> Proposal:
        model: _Model = _LeastSquares(problem) if problem.is_quadratic else _Newton(problem)
        units = problem.norms if self.scaled else np.ones(problem.d)
        fits = 0
        while True:
            weights = np.abs(model.coef()) * units[model.columns]
            fits += 1
            excess = weights.size - problem.k
            if excess <= 0 or context.should_stop():
                return Proposal.of(model.columns[largest(weights, problem.k)], fits)
            count = min(excess, max(1, int(self.step * weights.size)))
            model.delete(np.sort(np.argsort(weights, kind="stable")[:count]))


class _Model(Protocol):
    """A fit on a set of columns that shrinks."""

    columns: IntArray

    def coef(self) -> FloatArray:
        """The coefficients on ``columns``."""
        ...

    def delete(self, positions: IntArray) -> None:
        """Leave out the columns at some positions, given in ascending order."""
        ...


class _LeastSquares:
    """Quadratic loss: a triangular factor of [A y] (with ridge rows), from which columns are taken by rotations.

    Unlike the inverse of the Gram matrix this stays accurate for badly conditioned columns. A deletion costs O(d^2),
    and so does a solve as long as the columns are independent.
    """

    def __init__(self, problem: Problem) -> None:
        A, y = problem.reduced
        table = np.column_stack([A, y])
        if problem.lam > 0.0:
            ridge = np.sqrt(problem.lam) * np.eye(problem.d, problem.d + 1)
            table = np.vstack([table, ridge])
        self._triangle: FloatArray = np.asarray(np.linalg.qr(table, mode="r"))
        self.columns: IntArray = np.arange(problem.d)

    def coef(self) -> FloatArray:
        m = self.columns.size
        matrix, target = self._triangle[:, :m], self._triangle[:, m]
        norms = np.linalg.norm(matrix, axis=0)
        if m <= len(matrix) and np.all(np.abs(np.diagonal(matrix)) > DEPENDENT * norms):
            solution: FloatArray = solve_triangular(matrix[:m], target[:m])
            return solution
        # Unit columns, so that a badly scaled column is not mistaken for a dependent one.
        scale = np.where(norms > 0.0, norms, 1.0)
        shortest: FloatArray = np.linalg.lstsq(matrix / scale, target, rcond=DEPENDENT)[0] / scale
        return shortest

    def delete(self, positions: IntArray) -> None:
        for position in positions[::-1]:
            # The factor of [A y] is all that counts, so every step may begin with the identity as its rotation.
            identity = np.eye(len(self._triangle))
            _, triangle = qr_delete(identity, self._triangle, int(position), which="col", check_finite=False)
            # Rows below the diagonal are empty.
            self._triangle = triangle[: triangle.shape[1]]
        self.columns = np.delete(self.columns, positions)


class _Newton:
    """Any loss: Newton from the coefficients of the columns that stay; a fresh fit where its systems are singular."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._start: FloatArray = np.zeros(problem.d)
        self.columns: IntArray = np.arange(problem.d)

    def coef(self) -> FloatArray:
        problem = self._problem
        compact, z = self._start.copy(), np.zeros(problem.n)
        tolerance = GRADIENT_TOLERANCE * problem.gradient_scale
        with loss_session(problem.loss):
            _, norm = newton_refit(
                problem.row_loss, problem.raw.AT, problem.y, problem.lam, self.columns, tolerance, compact, z
            )
        self._start = compact if norm <= tolerance else problem.fit(self.columns).coef[self.columns]
        return self._start

    def delete(self, positions: IntArray) -> None:
        self._start = np.delete(self._start, positions)
        self.columns = np.delete(self.columns, positions)
