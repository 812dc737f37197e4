"""A smooth loss with a weighted sum of absolute values: Newton steps on a working set, each by coordinate descent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from exactsel._jit import njit
from exactsel.kernels.rows import loss_curvature, loss_gradient, loss_majorizer, loss_value
from exactsel.problem.capabilities import QUADRATIC_LOSS
from exactsel.types import FloatArray, IntArray
from exactsel_heuristics.base import never

if TYPE_CHECKING:
    from exactsel.losses.adjusted import RowLoss
    from exactsel.problem.regression import Problem

CONVERGED = 1e-8
"""Times the largest gradient entry at 0: the violation of the optimality conditions that counts as none."""

MAX_STEPS = 300
"""Limit on the Newton steps of one minimisation."""

MAX_SWEEPS = 1000
"""Limit on the sweeps of coordinate descent in one Newton step."""


@dataclass
class WeightedLasso:
    """Minimise L(Ax) + (lam/2) ||x||^2 + sum_j w_j |x_j| for several weights, each time from the last minimiser.

    Attributes
    ----------
    x : array (d,)
        The current point, exactly zero where the penalty holds a coefficient there.
    steepest : float
        The largest gradient entry at 0 in absolute value: equal weights of this size hold all coefficients at zero.
    """

    loss: RowLoss
    AT: FloatArray
    y: FloatArray
    lam: float
    x: FloatArray = field(init=False)
    steepest: float = field(init=False)
    _null: float = field(init=False)
    """Size of the objective at 0, on which rounding is judged."""

    def __post_init__(self) -> None:
        self.move_to(np.zeros(len(self.AT)))
        self.steepest = float(np.abs(self.gradient()).max())
        self._null = abs(self._objective(self.x, self._z, np.zeros(len(self.x))))

    @classmethod
    def of(cls, problem: Problem) -> WeightedLasso:
        """The solver for a problem; quadratic loss is the same on at most d + 1 rows, but for a constant."""
        if not problem.has(QUADRATIC_LOSS):
            return cls(problem.row_loss, problem.AT, problem.y, problem.lam)
        A, y = problem.reduced
        return cls(problem.loss, np.ascontiguousarray(A.T), np.ascontiguousarray(y), problem.lam)

    def move_to(self, x: FloatArray) -> None:
        """Continue from another point (d,)."""
        self.x, self._z = x.copy(), x @ self.AT

    def gradient(self) -> FloatArray:
        """Gradient of the loss and the ridge term at the current point, (d,)."""
        slopes = np.empty(self.y.size)
        loss_gradient(self.loss, self._z, self.y, slopes)
        return self.AT @ slopes + self.lam * self.x

    def violations(self, weights: FloatArray) -> FloatArray:
        """Distance of each partial derivative from 0, (d,): zero at the minimiser for these weights (d,)."""
        gradient = self.gradient()
        included = np.abs(gradient + np.sign(self.x) * weights)
        return np.where(self.x != 0.0, included, np.maximum(np.abs(gradient) - weights, 0.0))

    def minimise(self, weights: FloatArray, should_stop: Callable[[], bool] = never) -> bool:
        """Move to the minimiser for non-negative weights (d,); False after a stop on the way."""
        for _ in range(MAX_STEPS):
            if should_stop():
                return False
            violations = self.violations(weights)
            wanted = violations > CONVERGED * self.steepest
            if not wanted.any() or not self._step(np.flatnonzero(wanted | (self.x != 0.0)), weights):
                break
        return True

    def _step(self, working: IntArray, weights: FloatArray) -> bool:
        """A Newton step on some columns; where it would not descend, the minimiser of a majoriser instead."""
        columns, included = self.AT[working], weights[working]
        gradient, bends = self.gradient()[working], np.empty(self.y.size)
        before = self._objective(self.x[working], self._z, included)
        for bend in (loss_curvature, loss_majorizer):
            bend(self.loss, self._z, self.y, bends)
            H = (columns * bends) @ columns.T
            H[np.diag_indices_from(H)] += self.lam
            new = self.x[working]
            descend(H, gradient.copy(), included, 0.1 * CONVERGED * self.steepest, MAX_SWEEPS, new)
            z = self._z + (new - self.x[working]) @ columns
            # Near the minimiser the decrease drowns in rounding.
            if self._objective(new, z, included) <= before + 1e-14 * (self._null + abs(before)):
                self.x[working], self._z = new, z
                return True
        return False

    def _objective(self, x: FloatArray, z: FloatArray, weights: FloatArray) -> float:
        value = loss_value(self.loss, z, self.y)
        return float(value + 0.5 * self.lam * (x @ x) + weights @ np.abs(x))


@njit
def descend(
    H: FloatArray, gradient: FloatArray, weights: FloatArray, tolerance: float, max_sweeps: int, x: FloatArray
) -> int:
    """Minimise g'(u - x) + (u - x)'H(u - x)/2 + sum_j w_j |u_j| over u by coordinate descent, and write u over x.

    ``gradient`` is g (m,) and is overwritten by g + H(u - x). Stops when a sweep moves no coefficient by more than
    ``tolerance / H[j, j]``; returns the number of sweeps.
    """
    m = x.size
    for sweep in range(max_sweeps):
        farthest = 0.0
        for j in range(m):
            bend = H[j, j]
            if bend <= 0.0:
                continue
            free = bend * x[j] - gradient[j]
            new = 0.0
            if free > weights[j]:
                new = (free - weights[j]) / bend
            elif free < -weights[j]:
                new = (free + weights[j]) / bend
            move = new - x[j]
            if move != 0.0:
                x[j] = new
                for i in range(m):
                    gradient[i] += move * H[i, j]
                farthest = max(farthest, bend * abs(move))
        if farthest <= tolerance:
            return sweep + 1
    return max_sweeps
