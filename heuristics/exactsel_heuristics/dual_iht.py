"""Dual iterative hard thresholding: supergradient ascent on the dual, whose primal point is always k-sparse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from exactsel._jit import loss_session, njit
from exactsel.errors import UnsupportedError
from exactsel.kernels.loss import point_conjugate_derivative, point_project
from exactsel.kernels.rows import loss_gradient
from exactsel.types import FloatArray, IntArray
from exactsel_heuristics._elimination import GRAM_COLUMNS
from exactsel_heuristics._scoring import largest
from exactsel_heuristics.base import Context, Proposal, at_least, regression

if TYPE_CHECKING:
    from exactsel.problem.regression import Problem
    from exactsel_heuristics.base import AnyProblem


@dataclass(frozen=True)
class DualIterativeHardThresholding:
    """Dual iterative hard thresholding (Liu, Yuan, Wang, Liu and Metaxas 2017).

    Ascends the concave dual D(beta) = -L*(beta) - (1/2lam) (sum of the k largest (A'beta)_j^2). At beta the primal
    point is x = -H_k(A'beta)/lam, where H_k keeps the k entries of largest absolute value, and A x - grad L*(beta)
    is a supergradient. Every ``refit_every`` steps the support of x is refitted, and the best one is returned.

    Parameters
    ----------
    max_steps : int
        Number of ascent steps.
    refit_every : int
        Number of steps between two looks at the support.

    References
    ----------
    B. Liu, X.-T. Yuan, L. Wang, Q. Liu and D. N. Metaxas, Dual iterative hard thresholding: from non-convex sparse
    minimization to non-smooth concave maximization. ICML 2017.
    """

    name: ClassVar[str] = "dual-iht"
    max_steps: int = 300
    refit_every: int = 10

    def __post_init__(self) -> None:
        """Raise :class:`InputError` for an option out of range."""
        at_least(self.name, "max_steps", self.max_steps, 1)
        at_least(self.name, "refit_every", self.refit_every, 1)

    def run(self, problem: AnyProblem, context: Context) -> Proposal:
        """Ascend the dual and refit the supports met.

        Parameters
        ----------
        problem : Problem
            With lam > 0.
        context : Context
            Only ``should_stop`` is used; the method is deterministic.

        Returns
        -------
        Proposal

        Raises
        ------
        UnsupportedError
            When lam = 0, or a plug-in loss lacks the functions of its conjugate.
        """
        problem = regression(problem, self.name)
        _check_applies(problem)
        best = problem.fit(())
        seen: set[tuple[int, ...]] = set()
        ascent = _GramAscent(problem) if problem.is_quadratic and problem.d <= GRAM_COLUMNS else _DataAscent(problem)
        # The dual is strongly concave with modulus 1/smoothness, so steps smoothness/t suffice; starting at this t
        # instead of 1 keeps the first steps below the curvature ||A||^2/lam of the quadratic part.
        first = 1.0 + problem.loss.smoothness * problem.spectral_norm_squared / problem.lam
        for t in range(self.max_steps):
            if context.should_stop():
                break
            columns = largest(np.abs(ascent.correlation), problem.k)
            key = tuple(columns.tolist())
            if (t % self.refit_every == 0 or t == self.max_steps - 1) and key not in seen:
                seen.add(key)
                fit = problem.fit(columns)
                best = fit if fit.value < best.value else best
            ascent.step(columns, problem.loss.smoothness / (first + t))
        return Proposal.of(best.columns, len(seen))


class _DataAscent:
    """The dual vector beta and its correlation A'beta with every column, for any loss."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._beta = np.empty(problem.n)
        with loss_session(problem.loss):
            loss_gradient(problem.loss, np.zeros(problem.n), problem.y, self._beta)
        self.correlation: FloatArray = problem.AT @ self._beta

    def step(self, columns: IntArray, length: float) -> None:
        """Along the supergradient at the primal point on ``columns``, then back to the domain of the conjugate."""
        problem = self._problem
        prediction = (-self.correlation[columns] / problem.lam) @ problem.AT[columns]
        with loss_session(problem.loss):
            _ascend(problem.loss, self._beta, prediction, length, problem.y)
        self.correlation = problem.AT @ self._beta


class _GramAscent:
    """Quadratic loss, where the correlations alone go on without beta: O(d k) a step with A'A at hand."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self.correlation: FloatArray = -problem.gram.b

    def step(self, columns: IntArray, length: float) -> None:
        """As :meth:`_DataAscent.step`; grad L*(beta) = beta + y, and no beta is outside the domain."""
        problem, gram = self._problem, self._problem.gram
        x = -self.correlation[columns] / problem.lam
        self.correlation = self.correlation + length * (x @ gram.G[columns] - self.correlation - gram.b)


def _check_applies(problem: Problem) -> None:
    if problem.lam == 0.0:
        raise UnsupportedError(
            "dual iterative hard thresholding divides by lam, but lam is 0; give a positive lam or another heuristic."
        )
    if problem.row_loss is not problem.loss:
        raise UnsupportedError(
            f"dual iterative hard thresholding knows neither row weights nor an intercept of {problem.loss.name} loss; "
            f"use another heuristic."
        )
    missing = [f for f in ("point_conjugate_derivative", "point_project") if not hasattr(problem.loss, f)]
    if missing:
        raise UnsupportedError(
            f"dual iterative hard thresholding needs the conjugate of the loss, but {problem.loss.name} loss lacks "
            f"{' and '.join(missing)}; add what is missing or use another heuristic."
        )


@njit
def _ascend(loss: Any, beta: FloatArray, prediction: FloatArray, step: float, y: FloatArray) -> None:
    """One projected supergradient step: overwrite beta (n,) with Proj(beta + step (prediction - grad L*(beta)))."""
    for i in range(beta.size):
        slope = prediction[i] - point_conjugate_derivative(loss, beta[i], y[i])
        beta[i] = point_project(loss, beta[i] + step * slope, y[i])
