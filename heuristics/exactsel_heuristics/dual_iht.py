"""Dual iterative hard thresholding: supergradient ascent on the dual, whose primal point is always k-sparse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from exactsel._jit import njit
from exactsel.errors import UnsupportedError
from exactsel.kernels.loss import point_conjugate_derivative, point_project
from exactsel.kernels.rows import loss_gradient
from exactsel.problem.capabilities import CLOSED_FORM
from exactsel.types import FloatArray, IntArray
from exactsel_heuristics._elimination import GRAM_COLUMNS
from exactsel_heuristics._scoring import evaluate, largest, padded
from exactsel_heuristics.base import Context, Proposal, at_least, regression

if TYPE_CHECKING:
    from exactsel.problem.interface import SubsetProblem
    from exactsel.problem.regression import Problem


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
        Number of steps between two checks of the support.

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

    def run(self, problem: SubsetProblem, context: Context) -> Proposal:
        """Ascend the dual and refit the supports met, deterministically.

        :class:`UnsupportedError` when lam = 0, or a plug-in loss lacks the functions of its conjugate.
        """
        problem = regression(problem, self.name)
        _check_applies(problem)
        seen: dict[tuple[int, ...], None] = {}
        in_gram = problem.has(CLOSED_FORM) and problem.d <= GRAM_COLUMNS
        ascent = _GramAscent(problem) if in_gram else _DataAscent(problem)
        # The dual is strongly concave with modulus 1/smoothness, so steps smoothness/t suffice; starting at this t
        # instead of 1 keeps the first steps below the curvature ||A||^2/lam of the quadratic part.
        first = 1.0 + problem.loss.smoothness * problem.spectral_norm_squared / problem.lam
        t = 0
        for look in sorted({*range(0, self.max_steps, self.refit_every), self.max_steps - 1}):
            t = ascent.advance(t, look, first, context) if look > 0 else 0
            if t < look or (look == 0 and context.should_stop()):
                break
            seen[tuple(largest(np.abs(ascent.correlation), problem.k).tolist())] = None
        return Proposal.of(_best(problem, list(seen), context), len(seen))


def _best(problem: Problem, supports: list[tuple[int, ...]], context: Context) -> Sequence[int]:
    """The support of the best model on one of these; none where there is nothing to choose from."""
    if not supports:
        return ()
    if not problem.has(CLOSED_FORM) or problem.d > GRAM_COLUMNS:
        fits = [problem.fit(())]
        for columns in supports:
            fits.append(problem.fit(columns))
            if context.should_stop():
                break
        return min(fits, key=lambda fit: fit.value).support
    values, _ = evaluate(problem, padded(supports, problem.k), context.should_stop)
    return supports[int(np.argmin(values))]


class _DataAscent:
    """The dual vector beta and its correlation A'beta with every column, for any loss."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._beta = np.empty(problem.n)
        loss_gradient(problem.loss, np.zeros(problem.n), problem.y, self._beta)
        self.correlation: FloatArray = problem.AT @ self._beta

    def advance(self, t: int, end: int, first: float, context: Context) -> int:
        """Make the steps from ``t`` on, of length smoothness / (first + t), up to ``end``; how far that came."""
        while t < end and not context.should_stop():
            columns = largest(np.abs(self.correlation), self._problem.k)
            self.step(columns, self._problem.loss.smoothness / (first + t))
            t += 1
        return t

    def step(self, columns: IntArray, length: float) -> None:
        """Along the supergradient at the primal point on ``columns``, then back to the domain of the conjugate."""
        problem = self._problem
        prediction = (-self.correlation[columns] / problem.lam) @ problem.AT[columns]
        _ascend(problem.loss, self._beta, prediction, length, problem.y)
        self.correlation = problem.AT @ self._beta


class _GramAscent:
    """Quadratic loss, where the ascent needs only the correlations, without beta: O(d k) a step given A'A."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self.correlation: FloatArray = -problem.gram.b

    def advance(self, t: int, end: int, first: float, context: Context) -> int:
        """As :meth:`_DataAscent.advance`; a few steps take no time."""
        problem = self._problem
        if context.should_stop():
            return t
        _ascend_on_gram(problem.gram.G, problem.gram.b, problem.lam, problem.k, t, end, first, self.correlation)
        return end


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
    if not np.isfinite(problem.loss.smoothness):
        raise UnsupportedError(
            f"dual iterative hard thresholding needs a loss of bounded curvature, which {problem.loss.name} loss has "
            f"not; use another heuristic."
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


@njit(sums=True)
def _ascend_on_gram(
    G: FloatArray, b: FloatArray, lam: float, k: int, t: int, end: int, first: float, correlation: FloatArray
) -> None:
    """Steps of length 1 / (first + t) on the correlations (d,), in place, for t up to ``end``.

    grad L*(beta) = beta + y, and no beta is outside the domain. Of equal correlations the lower column is chosen.
    """
    d = b.size
    chosen, sizes, change = np.zeros(min(k, d), dtype=np.int64), np.zeros(min(k, d)), np.empty(d)
    for now in range(t, end):
        sizes[:] = -1.0
        for j in range(d if sizes.size > 0 else 0):
            size, at = abs(correlation[j]), sizes.size - 1
            if not size > sizes[at]:
                continue
            while at > 0 and sizes[at - 1] < size:
                sizes[at], chosen[at] = sizes[at - 1], chosen[at - 1]
                at -= 1
            sizes[at], chosen[at] = size, j
        for j in range(d):
            change[j] = -correlation[j] - b[j]
        for at in range(chosen.size):
            row, x = G[chosen[at]], -correlation[chosen[at]] / lam
            for j in range(d):
                change[j] += x * row[j]
        length = 1.0 / (first + now)
        for j in range(d):
            correlation[j] += length * change[j]
