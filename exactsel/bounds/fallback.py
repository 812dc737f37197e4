"""A lower bound of a whole problem when there is hardly any time: gradient steps that can end after each of them.

The bound solvers prepare a Gram matrix, a fit on all columns, or kernels of their own before they say anything. Here
the perspective relaxation is descended from nothing, by passes over the data alone. Whenever it ends, formula (2) is
evaluated at one dual vector with all allowances for rounding. Of a dual vector b all multiples t b are dual vectors
too; the best of them is taken, which is above 0 however far the descent has come.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from exactsel._jit import njit
from exactsel.algebra import dense
from exactsel.algebra.threads import one_thread
from exactsel.bounds.base import BoundOptions
from exactsel.bounds.fit import FitBound
from exactsel.kernels.dual import dual_at_point, node_bound
from exactsel.kernels.loss import point_conjugate_derivative
from exactsel.kernels.node import node_columns
from exactsel.kernels.rows import total_value
from exactsel.kernels.selection import prox_k_support
from exactsel.problem.design import some_of
from exactsel.rounding import UNIT
from exactsel.types import FloatArray

if TYPE_CHECKING:
    from exactsel.losses.base import Loss
    from exactsel.problem.column_subset import ColumnSubsetProblem
    from exactsel.problem.objective import Objective
    from exactsel.problem.regression import Problem

MOST_STEPS, MOST_HALVINGS = 500, 40

SCALES, LEAST_LOG = 24, -30.0
"""Steps of the golden section, which leave a thousandth of log t, and where log t begins."""

GOLDEN = 0.5 * (np.sqrt(5.0) - 1.0)

EIGENVALUES_UP_TO = 2500
"""Rows and columns up to which eigenvalues take about a second."""

POWER_STEPS = 3
"""Of the power method, for the first step length; a step that is too long is halved."""


def fallback_bound(problem: Problem, coef: FloatArray, should_stop: Callable[[], bool]) -> float:
    """A lower bound of the problem: proven by ``coef`` (d,), a good model, or by gradient steps until a stop.

    Parameters
    ----------
    problem : Problem
        Over single columns, with lam > 0.
    coef : array (d,)
    should_stop : callable
        Called after each step.

    Returns
    -------
    float
        -inf where the loss lacks the derivative of its conjugate and nothing is proven.
    """
    with one_thread():
        descent = Descent(problem)
        best = descent.proven(coef @ problem.AT)
        last = descent.run(should_stop)
        return best if last is None else max(best, descent.proven(last))


def fallback_fit_bound(problem: Problem) -> tuple[float, str]:
    """The fit on all columns as a lower bound (quadratic loss), and what it is restricted to, in words."""
    fit = FitBound().prepare(problem, BoundOptions()).tighten(problem.root_state[None], [None], np.inf, np.inf)
    return float(fit.answers.bound[0]), fit.valid_for


def fallback_selection_bound(problem: ColumnSubsetProblem) -> float:
    """A lower bound of column subset selection: what no k directions capture, without looking at columns.

    The k largest eigenvalues of A'A are computed, or where that would take long bounded by its trace t and Frobenius
    norm f: of m numbers with sum t and sum of squares f^2 no k sum up to more than
    kt/m + sqrt(k(m - k)/m (f^2 - t^2/m)).
    """
    AT, k = problem.objective.reduced, problem.k
    with one_thread():
        square = problem.objective.gram if AT.shape[1] >= AT.shape[0] else AT.T @ AT
        m, trace = len(square), float(np.trace(square))
        if k >= m:
            return 0.0
        if m <= EIGENVALUES_UP_TO:
            captured = float(dense.eigvalsh(square, subset_by_index=(m - k, m - 1), check_finite=False).sum())
        else:
            squares = float(np.sum(square**2))
            # Where the eigenvalues are nearly equal the difference is rounding, which the root would magnify.
            hair = 16.0 * (problem.n + problem.d) * UNIT * (squares + math.sqrt(squares) * trace + trace**2 / m)
            spread = max(squares - trace**2 / m, 0.0) + hair
            captured = k * trace / m + math.sqrt(k * (m - k) / m * spread)
    rounding = 16.0 * (problem.n + problem.d) * math.sqrt(k) * UNIT * problem.null_objective
    return float(max(0.0, problem.null_objective - captured - rounding))


class Descent:
    """Accelerated proximal gradient steps on the relaxation of the root, with the data alone."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._columns, self._fixed = node_columns(problem.root_state)
        self._slots = min(problem.k - self._fixed, self._columns.size - self._fixed)
        if self._slots <= 0:
            self._columns, self._slots = self._columns[: self._fixed], 0
        everything = self._columns.size == problem.d and bool(np.all(np.diff(self._columns) > 0))
        self._AT: FloatArray = problem.AT if everything else some_of(problem.AT, self._columns)

    def run(self, should_stop: Callable[[], bool]) -> FloatArray | None:
        """Predictions (n,) where the steps ended; None where there was no time for a single one."""
        problem, AT, lam = self._problem, self._AT, self._problem.lam
        if self._columns.size == 0 or should_stop():
            return None
        step, level, t = self._first_step(), 0.0, 1.0
        x, ahead = np.zeros(self._columns.size), np.zeros(self._columns.size)
        z, z_ahead, slopes, new = np.zeros(problem.n), np.zeros(problem.n), np.empty(problem.n), np.empty(x.size)
        best, answer = -np.inf, None
        for _ in range(MOST_STEPS):
            value = self._value(z_ahead, slopes)
            gradient = AT @ slopes
            reached = self._quickly(value, slopes, z_ahead, gradient)
            if reached > best:
                best, answer = reached, z_ahead.copy()
            if should_stop():
                break
            for _ in range(MOST_HALVINGS):
                _, level = prox_k_support(ahead - step * gradient, self._fixed, self._slots, step * lam, level, new)
                z_new = new @ AT
                move = new - ahead
                allowed = value + gradient @ move + 0.5 * (move @ move) / step
                if self._value(z_new, np.empty(problem.n)) <= allowed + 1e-12 * abs(value) or should_stop():
                    break
                step *= 0.5
            else:
                break  # nothing more can be gained in floating point
            momentum, t = ((t - 1.0) / t, 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t)))
            if (ahead - new) @ (new - x) > 0.0:
                momentum, t = 0.0, 1.0
            ahead, z_ahead = new + momentum * (new - x), z_new + momentum * (z_new - z)
            x, z = new.copy(), z_new
        return answer

    def _value(self, z: FloatArray, slopes: FloatArray) -> float:
        # A loss with an intercept levels the predictions it is given.
        return float(total_value(self._problem.row_loss, z.copy(), self._problem.y, np.empty(z.size), slopes))

    def _first_step(self) -> float:
        vector = np.ones(self._columns.size)
        for _ in range(POWER_STEPS):
            vector = self._AT @ (vector @ self._AT)
            length = float(np.linalg.norm(vector))
            if not length > 0.0:
                return 1.0
            vector /= length
        weights = self._problem.weights
        most = self._problem.objective.steepness * (1.0 if weights is None else float(weights.max()))
        return 1.0 / (most * length)

    def _quickly(self, value: float, slopes: FloatArray, z: FloatArray, gradient: FloatArray) -> float:
        """About what the dual vector proves, multiples of it included, were the loss a parabola along it."""
        squares = np.sort(gradient[self._fixed :] ** 2)[::-1][: self._slots].sum()
        squares += np.sum(gradient[: self._fixed] ** 2)
        cost = 0.5 * float(squares) / self._problem.lam
        base = value - float(slopes @ z)
        linear = base + 0.5 * float(slopes @ slopes) / self._problem.objective.steepness
        bend = 0.5 * float(slopes @ slopes) / self._problem.objective.steepness + cost
        return max(base - cost, 0.25 * linear * linear / bend if linear > 0.0 and bend > 0.0 else -np.inf)

    def proven(self, z: FloatArray) -> float:
        """Formula (2) at the best multiple of the slopes at predictions z, for the exact numbers of the data."""
        objective = self._problem.objective
        slopes = np.empty(objective.n)
        self._value(z, slopes)
        bound = self._at(z)
        gradient = self._AT @ slopes
        squares = np.sort(gradient[self._fixed :] ** 2)[::-1][: self._slots].sum()
        cost = 0.5 * float(squares + np.sum(gradient[: self._fixed] ** 2)) / objective.lam
        other = best_multiple(objective, slopes, lambda t: t * t * cost)
        return bound if other is None else max(bound, self._at(other))

    def _at(self, z: FloatArray) -> float:
        """Formula (2) at the dual vector grad L(z); any z will do."""
        problem, columns = self._problem.objective, self._columns
        b, q, v = np.empty(problem.n), np.empty(columns.size), np.empty(columns.size)
        base = dual_at_point(problem.row_loss, problem.raw.AT, problem.y, problem.raw.norms, columns, z.copy(), b, q, v)
        return float(node_bound(base, q, self._fixed, self._slots, problem.lam, np.empty(self._slots + 1)))


def best_multiple(objective: Objective, slopes: FloatArray, cost: Callable[[float], float]) -> FloatArray | None:
    """Predictions (n,) at which rows have the multiple of the slopes that is best for formula (2).

    ``cost`` says what columns take of the bound at a multiple t of the slopes, and is convex in t. None where the loss
    lacks the derivative of its conjugate.
    """
    if not hasattr(objective.loss, "point_conjugate_derivative"):
        return None

    def height(t: float) -> float:
        at = _predictions(objective, t * slopes)
        value = float(total_value(objective.row_loss, at.copy(), objective.y, np.empty(at.size), np.empty(at.size)))
        return value - t * float(slopes @ at) - cost(t)

    return _predictions(objective, best_scale(height) * slopes)


def best_scale(height: Callable[[float], float]) -> float:
    """About where a concave function is largest in (0, 1]; where that is near 0, its logarithm is about right."""
    low, high = LEAST_LOG, 0.0
    first, second = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_first, at_second = height(math.exp(first)), height(math.exp(second))
    for _ in range(SCALES):
        if at_first >= at_second:
            high, second, at_second = second, first, at_first
            first = high - GOLDEN * (high - low)
            at_first = height(math.exp(first))
        else:
            low, first, at_first = first, second, at_second
            second = low + GOLDEN * (high - low)
            at_second = height(math.exp(second))
    return math.exp(0.5 * (low + high))


def _predictions(objective: Objective, slopes: FloatArray) -> FloatArray:
    """Predictions (n,) at which the rows have these slopes."""
    z = np.zeros(slopes.size)
    weights = np.ones(slopes.size) if objective.weights is None else objective.weights
    _write_predictions(objective.loss, slopes, weights, objective.y, z)
    return z


@njit
def _write_predictions(loss: Loss, slopes: FloatArray, weights: FloatArray, y: FloatArray, z: FloatArray) -> None:
    """Write to z where each row has its slope; 0 where it has no weight."""
    for i in range(z.size):
        if weights[i] > 0.0:
            z[i] = point_conjugate_derivative(loss, slopes[i] / weights[i], y[i])
