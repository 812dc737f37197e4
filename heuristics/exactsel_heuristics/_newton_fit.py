"""The minimiser on many columns, for data on which one step of the kernels would take too long to be waited for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from exactsel.kernels.rows import loss_curvature, loss_majorizer, total_value
from exactsel.types import FloatArray, IntArray

if TYPE_CHECKING:
    from exactsel.problem.regression import Problem

MAX_STEPS = 200
"""Limit on the Newton steps."""

MAX_DIRECTIONS = 1000
"""Limit on the conjugate directions of one step."""

SHORTEST = 1e-4
"""Length at which a step is given up for one that minimises a majoriser."""

ROUNDING = 1e-13
"""Times the objective: a decrease in which rounding has the last word."""


def newton_fit(
    problem: Problem, columns: IntArray, start: FloatArray, tolerance: float, should_stop: Callable[[], bool]
) -> FloatArray:
    """Minimise P over models on ``columns`` (m,) by Newton's method, its systems solved by conjugate gradients.

    Nothing of size (m, m) is made: each direction passes twice over the data, and ``should_stop`` is called in between.

    Returns
    -------
    array (m,)
        With a gradient of norm ``tolerance``, or where nothing more can be gained, or after a stop.
    """
    AT = problem.AT if columns.size == problem.d else problem.AT[columns]
    return _Descent(problem, AT, start).to(tolerance, should_stop)


class _Descent:
    """A point that comes down, and what is known there."""

    def __init__(self, problem: Problem, AT: FloatArray, start: FloatArray) -> None:
        self._loss, self._y, self._lam, self._AT = problem.row_loss, problem.y, problem.lam, AT
        self._levelled, self._scale = problem.intercept, problem.gradient_scale
        self._squares: FloatArray = np.einsum("ij,ij->i", AT, AT)
        self.x = start.copy()
        self._z = start @ AT
        self._slopes = np.empty(problem.n)
        self._value = self._at(self.x, self._z)

    def _at(self, x: FloatArray, z: FloatArray) -> float:
        """P at a point with predictions z; the slopes of the rows are kept."""
        return float(total_value(self._loss, z, self._y, np.empty(z.size), self._slopes) + 0.5 * self._lam * (x @ x))

    def to(self, tolerance: float, should_stop: Callable[[], bool]) -> FloatArray:
        """The point at which the gradient's norm is ``tolerance``, nothing more can be gained, or it was stopped."""
        majorise, bends = False, np.empty(self._z.size)
        for _ in range(MAX_STEPS):
            gradient = self._AT @ self._slopes + self._lam * self.x
            norm = float(np.linalg.norm(gradient))
            if norm <= tolerance:
                break
            (loss_majorizer if majorise else loss_curvature)(self._loss, self._z, self._y, bends)
            # A better direction as the gradient falls, so that Newton's speed is kept, but no better than requested.
            share = max(min(0.25, np.sqrt(norm / self._scale)), 0.3 * tolerance / norm)
            step = self._direction(gradient, bends, share, should_stop)
            if step is None:
                break
            before = self._value
            if not self._moved(step, float(gradient @ step)):
                if majorise:
                    break
                majorise = True
                continue
            majorise = False
            if not self._value < before - ROUNDING * abs(before):
                break
        return self.x

    def _moved(self, step: FloatArray, slope: float) -> bool:
        """Go back along ``step``, half as far until the objective falls enough; False where it does not."""
        change, length = step @ self._AT, 1.0
        while length >= SHORTEST:
            x, z = self.x - length * step, self._z - length * change
            value = self._at(x, z)
            if value <= self._value - 1e-4 * length * slope or slope <= ROUNDING * abs(self._value):
                self.x, self._z, self._value = x, z, value
                return True
            length *= 0.5
        self._at(self.x, self._z)  # the slopes are to be those here
        return False

    def _direction(
        self, gradient: FloatArray, bends: FloatArray, share: float, should_stop: Callable[[], bool]
    ) -> FloatArray | None:
        """The Hessian's solution for the gradient but for a ``share`` of it (preconditioned conjugate gradients)."""
        total = float(bends.sum())
        diagonal = np.maximum(self._squares * (total / bends.size) + self._lam, 1e-300)
        step, rest = np.zeros(gradient.size), gradient.copy()
        scaled = rest / diagonal
        along, energy = scaled.copy(), float(rest @ scaled)
        target = share * float(np.linalg.norm(gradient))
        for _ in range(MAX_DIRECTIONS):
            if should_stop():
                return None
            products = bends * (along @ self._AT)
            if self._levelled and total > 0.0:
                products -= bends * (float(products.sum()) / total)
            image = self._AT @ products + self._lam * along
            curvature = float(along @ image)
            if not curvature > 0.0:
                break
            length = energy / curvature
            step += length * along
            rest -= length * image
            if float(np.linalg.norm(rest)) <= target:
                break
            scaled = rest / diagonal
            before, energy = energy, float(rest @ scaled)
            along = scaled + (energy / before) * along
        return step
