"""Iterative hard thresholding: a gradient step, the k largest coefficients, and again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from exactsel.errors import InputError
from exactsel.types import FloatArray, IntArray
from exactsel_heuristics._limits import sizes, within
from exactsel_heuristics._scoring import largest, smoothness
from exactsel_heuristics.base import Context, Proposal, with_coefficients

if TYPE_CHECKING:
    from exactsel.problem.interface import SubsetProblem
    from exactsel.problem.regression import Problem

SHRINK = 2.0
"""Factor by which the normalised method shortens a step that is too long (kappa (1 - c) of the paper)."""

HALVINGS = 60
"""Of a step with a loss of unbounded curvature."""

SURE = 0.99
"""Share of the longest sure step that a step may have when the support changes (1 - c of the paper)."""


@dataclass(frozen=True)
class IterativeHardThresholding:
    """Iterative hard thresholding (Blumensath and Davies 2008, 2010) for smooth losses.

    From x = 0: take a gradient step and keep the k entries of largest absolute value. The support of the last point
    is the answer; its coefficients are not refitted on the way. The plain method steps 1 / (smoothness ||A||_2^2 +
    lam), with which the objective never rises. The normalised one steps as far as suits the present support, and
    shortens the step where the support changes, so that the objective never rises either; it does not depend on the
    units of A as a whole. Both depend on the units of single columns: they work on the columns as given. Within limits
    of coefficients every step is projected on the models that keep to them.

    Parameters
    ----------
    normalised : bool
        Choose the step again each time (2010) instead of the sure one (2008).
    max_steps : int
        Limit on the number of steps.
    tolerance : float
        Stop when a step moves x by at most this share of its norm, above 0.

    References
    ----------
    T. Blumensath and M. E. Davies, Iterative thresholding for sparse approximations. Journal of Fourier Analysis and
    Applications 14, 2008.
    T. Blumensath and M. E. Davies, Normalized iterative hard thresholding: guaranteed stability and performance. IEEE
    Journal of Selected Topics in Signal Processing 4(2), 2010.
    """

    name: ClassVar[str] = "iht"
    normalised: bool = False
    max_steps: int = 2000
    tolerance: float = 1e-9

    def __post_init__(self) -> None:
        """Raise :class:`InputError` unless the method can take a step and stop."""
        if self.max_steps < 1:
            raise InputError(f"max_steps is {self.max_steps}, but the first step finds the support; give at least 1.")
        if not self.tolerance > 0.0:
            raise InputError(
                f"tolerance is {self.tolerance:g}, but the iteration stops when a step is shorter; give a small number "
                "above 0, such as 1e-9."
            )

    def run(self, problem: SubsetProblem, context: Context) -> Proposal:
        """Iterate until the point stands still, deterministically; no support is evaluated on the way."""
        served = with_coefficients(problem, self.name)
        objective, point = served.objective, np.zeros(served.d)
        for _ in range(self.max_steps):
            if context.should_stop():
                break
            gradient = objective.gradient(point)
            new = (_normalised_step if self.normalised else _sure_step)(served, point, gradient)
            if not np.isfinite(objective.loss.smoothness):
                new = _shortened(served, point, gradient, new)
            moved = float(np.linalg.norm(new - point))
            point = new
            if moved <= self.tolerance * float(np.linalg.norm(point)):
                break
        return Proposal.of(np.flatnonzero(point), 0)


def _threshold(problem: Problem, point: FloatArray) -> FloatArray:
    """The k entries of largest absolute value, all others zero (H_k of the papers), or the projection within limits."""
    support = largest(sizes(problem, point), problem.k)
    result = np.zeros_like(point)
    result[support] = within(problem, point)[support]
    return result


def _sure_length(problem: Problem) -> float:
    objective = problem.objective
    return 1.0 / (objective.steepness * objective.spectral_norm_squared + objective.lam)


def _sure_step(problem: Problem, point: FloatArray, gradient: FloatArray) -> FloatArray:
    return _threshold(problem, point - _sure_length(problem) * gradient)


def _shortened(problem: Problem, point: FloatArray, gradient: FloatArray, new: FloatArray) -> FloatArray:
    """``new``, or where the curvature is not bounded and the objective rose the first shorter step that descends."""
    objective, length = problem.objective, _sure_length(problem)
    value = objective(point)
    for _ in range(HALVINGS):
        if objective(new) <= value:
            return new
        new, length = _threshold(problem, point - length * gradient), 0.5 * length
    return point


def _normalised_step(problem: Problem, point: FloatArray, gradient: FloatArray) -> FloatArray:
    """A step of the length that minimises the quadratic majoriser along the gradient on the support (eq. 13).

    A length mu is sure for the move it makes when mu <= ||move||^2 / curvature(move) (eq. 14).
    """
    support = np.flatnonzero(point)
    if support.size == 0:
        support = largest(np.abs(gradient), problem.k)
    direction = np.zeros(problem.d)
    direction[support] = gradient[support]
    bent = _curvature(problem, direction, support)
    if bent <= 0.0:
        return _sure_step(problem, point, gradient)
    length = float(direction @ direction) / bent
    while True:
        new = _threshold(problem, point - length * gradient)
        changed = np.flatnonzero(new)
        move = new - point
        bent = _curvature(problem, move, np.flatnonzero(move))
        # A projected step can be too long for its own support, too.
        is_exact = np.array_equal(changed, support) and problem.coefficient_bounds is None
        if is_exact or length * bent <= SURE * float(move @ move):
            return new
        length /= SHRINK


def _curvature(problem: Problem, move: FloatArray, used: IntArray) -> float:
    """Upper bound on how far the objective bends along ``move``: smoothness ||A move||^2 + lam ||move||^2."""
    image = move[used] @ problem.AT[used]
    return float(smoothness(problem) * (image @ image) + problem.lam * (move @ move))
