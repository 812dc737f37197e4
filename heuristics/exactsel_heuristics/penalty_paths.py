"""Lasso, SCAD and MCP: follow the path of a penalised problem until more than k coefficients are non-zero."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from exactsel.errors import InputError
from exactsel.types import FloatArray
from exactsel_heuristics._weighted_lasso import WeightedLasso
from exactsel_heuristics.base import Context, Proposal, never, regression

if TYPE_CHECKING:
    from exactsel.problem.interface import SubsetProblem

REWEIGHTINGS = 60
"""Limit on the lasso problems solved per level of a concave penalty; they converge linearly, at about 1 / shape."""

SETTLED = 1e-6
"""Weights that change by no more than this share of the level have settled."""

Slope = Callable[[FloatArray, float], FloatArray]
"""Derivative of a penalty at magnitudes (d,) for a level."""


@dataclass(frozen=True)
class _Path:
    """The options all paths share, and the way along them."""

    name: ClassVar[str]
    concave: ClassVar[bool] = True
    points: int = 150
    ratio: float = 1e-6
    halvings: int = 12

    def __post_init__(self) -> None:
        """Raise :class:`InputError` unless the levels form a falling sequence."""
        if self.points < 2:
            raise InputError(f"points is {self.points}, but a path needs a beginning and an end; give at least 2.")
        if not 0.0 < self.ratio < 1.0:
            raise InputError(
                f"ratio is {self.ratio:g}, but it is the last level over the first; give a number between 0 and 1."
            )
        if self.halvings < 0:
            raise InputError(f"halvings is {self.halvings}, but it is a count; give 0 or more.")

    def slope(self, magnitudes: FloatArray, level: float) -> FloatArray:
        """The penalty's derivative at absolute values of coefficients (d,); ``level`` is its derivative at 0."""
        raise NotImplementedError

    def run(self, problem: SubsetProblem, context: Context) -> Proposal:
        """Follow the path, deterministically, and return its last support of at most k columns.

        These are fewer than k where several coefficients become non-zero at once, or k is not reached before the end of
        the path. No support is evaluated on the way.
        """
        problem = regression(problem, self.name)
        solver = WeightedLasso.of(problem)
        best = solver.x.copy()
        first = solver.steepest / problem.n
        if problem.k == 0 or first == 0.0:
            return Proposal.of((), 0)
        fits, fails = first, 0.0
        for level in first * np.geomspace(1.0, self.ratio, self.points)[1:]:
            if context.should_stop():
                break
            if not solve_level(solver, level, problem.n, self.slope, self.concave, context.should_stop):
                break
            if np.count_nonzero(solver.x) > problem.k:
                fails = level
                break
            fits, best = level, solver.x.copy()
        for _ in range(self.halvings if fails > 0.0 else 0):
            if context.should_stop():
                break
            level = float(np.sqrt(fits * fails))
            solver.move_to(best)
            if not solve_level(solver, level, problem.n, self.slope, self.concave, context.should_stop):
                break
            if np.count_nonzero(solver.x) > problem.k:
                fails = level
            else:
                fits, best = level, solver.x.copy()
        return Proposal.of(np.flatnonzero(best), 0)


def solve_level(
    solver: WeightedLasso, level: float, n: int, slope: Slope, concave: bool, should_stop: Callable[[], bool] = never
) -> bool:
    """Move to a stationary point of P(x)/n + sum_j p_level(|x_j|), near the current point; False after a stop.

    A concave penalty is replaced by its tangent at the current point, which lies above it, again and again (local
    linear approximation; Zou and Li 2008): no step raises the objective, and each is a weighted lasso.
    """
    weights = n * slope(np.abs(solver.x), level)
    for _ in range(REWEIGHTINGS if concave else 1):
        if not solver.minimise(weights, should_stop):
            return False
        before, weights = weights, n * slope(np.abs(solver.x), level)
        if np.abs(weights - before).max() <= SETTLED * n * level:
            break
    return True


@dataclass(frozen=True)
class LassoPath(_Path):
    """The lasso (Tibshirani 1996), cut at the last point with at most k non-zero coefficients.

    Minimises P(x)/n + level sum_j |x_j| for falling levels, by coordinate descent from the point before, until more
    than k coefficients are non-zero; then the level at which that happens is closed in on. Serves every loss, and a
    ridge term of the problem is kept. The penalty treats columns as they are given, so the answer depends on their
    units; standardise them beforehand. The caller refits the support, which takes away the shrinkage.

    Parameters
    ----------
    points : int
        Number of levels on a geometric scale, at least 2.
    ratio : float
        The last level divided by the first, which is the least that holds all coefficients at zero.
    halvings : int
        How often the step at which k is exceeded is halved.

    References
    ----------
    R. Tibshirani, Regression shrinkage and selection via the lasso. Journal of the Royal Statistical Society B 58(1),
    1996.
    J. Friedman, T. Hastie and R. Tibshirani, Regularization paths for generalized linear models via coordinate
    descent. Journal of Statistical Software 33(1), 2010.
    """

    name: ClassVar[str] = "lasso"
    concave: ClassVar[bool] = False

    def slope(self, magnitudes: FloatArray, level: float) -> FloatArray:
        """The level, everywhere; see :meth:`_Path.slope`."""
        return np.full(magnitudes.shape, level)


@dataclass(frozen=True)
class ScadPath(_Path):
    """The smoothly clipped absolute deviation penalty (Fan and Li 2001), its path cut as that of the lasso.

    p'(t) = level for t <= level, (shape level - t)_+ / (shape - 1) beyond, on P(x)/n. See :class:`LassoPath` for the
    other parameters and the units of the columns; the penalty is meant for columns of mean square 1. The points of
    the path are stationary, not always minimal, because the penalty is not convex.

    Parameters
    ----------
    shape : float
        The constant a of the paper, above 2.

    References
    ----------
    J. Fan and R. Li, Variable selection via nonconcave penalized likelihood and its oracle properties. Journal of the
    American Statistical Association 96, 2001.
    H. Zou and R. Li, One-step sparse estimates in nonconcave penalized likelihood models. Annals of Statistics 36(4),
    2008.
    """

    name: ClassVar[str] = "scad"
    shape: float = 3.7

    def __post_init__(self) -> None:
        """Raise :class:`InputError` unless the penalty levels off after it has begun to bend."""
        super().__post_init__()
        if not 2.0 < self.shape < np.inf:
            raise InputError(f"shape is {self.shape:g}, but SCAD needs more than 2; give for example 3.7.")

    def slope(self, magnitudes: FloatArray, level: float) -> FloatArray:
        """Equation (2.7) of the paper; see :meth:`_Path.slope`."""
        beyond = np.maximum(self.shape * level - magnitudes, 0.0) / (self.shape - 1.0)
        return np.where(magnitudes <= level, level, beyond)


@dataclass(frozen=True)
class McpPath(_Path):
    """The minimax concave penalty (Zhang 2010), its path cut as that of the lasso.

    p'(t) = (level - t / shape)_+ on P(x)/n. See :class:`LassoPath` for the other parameters and the units of the
    columns; the penalty is meant for columns of mean square 1. The points of the path are stationary, not always
    minimal, because the penalty is not convex.

    Parameters
    ----------
    shape : float
        The constant gamma of the paper, above 1.

    References
    ----------
    C.-H. Zhang, Nearly unbiased variable selection under minimax concave penalty. Annals of Statistics 38(2), 2010.
    """

    name: ClassVar[str] = "mcp"
    shape: float = 3.0

    def __post_init__(self) -> None:
        """Raise :class:`InputError` unless single columns keep the problem convex."""
        super().__post_init__()
        if not 1.0 < self.shape < np.inf:
            raise InputError(f"shape is {self.shape:g}, but MCP needs more than 1; give for example 3.")

    def slope(self, magnitudes: FloatArray, level: float) -> FloatArray:
        """Equation (2.1) of the paper, differentiated; see :meth:`_Path.slope`."""
        return np.maximum(level - magnitudes / self.shape, 0.0)
