"""The exact minimiser of the objective on a given set of columns."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from exactsel.kernels.refit import newton_refit
from exactsel.problem.row_newton import improved, misjudged
from exactsel.types import FloatArray, IntArray

if TYPE_CHECKING:
    from exactsel.problem.objective import Objective

GRADIENT_TOLERANCE = 1e-10
"""Times the problem's gradient scale: the gradient norm at which a support counts as solved."""

ROUNDED = 1e-15
"""Part of an objective that is no difference."""


@dataclass(frozen=True)
class Fit:
    """A minimiser on some columns.

    ``coef`` is the full coefficient vector (d,), ``value`` the objective recomputed from the data, and
    ``gradient_norm`` the norm of the gradient on ``columns``.
    """

    columns: IntArray
    coef: FloatArray
    value: float
    gradient_norm: float
    converged: bool = field(default=True, kw_only=True)
    """Whether no better model on the columns is known to be possible."""

    @property
    def support(self) -> tuple[int, ...]:
        """Columns with a non-zero coefficient, ascending."""
        return tuple(int(j) for j in np.flatnonzero(self.coef))


@dataclass(frozen=True)
class Selection(Fit):
    """Columns chosen without a model for them (column subset selection): ``coef`` is empty."""

    @property
    def support(self) -> tuple[int, ...]:
        """The chosen columns, ascending."""
        return tuple(int(j) for j in self.columns)


def fit_support(objective: Objective, columns: IntArray) -> Fit:
    """Minimise P over models on ``columns`` (ascending, distinct) to a gradient norm of 1e-10 ||grad P(0)||.

    Newton on the data; where its systems are singular, an orthogonal factorisation takes over (minimum-norm
    solution for lam = 0). Where the gradient is no measure, or comes to no end, Newton's method in rows goes on
    (:mod:`exactsel.problem.row_newton`); ``converged`` says whether it came to one.
    """
    tolerance = min(0.1 * GRADIENT_TOLERANCE * objective.gradient_scale, objective.close_enough)
    compact, z = np.zeros(columns.size), np.zeros(objective.n)
    # All arguments are given: a call that leaves some at their defaults takes numba's slow way, milliseconds long.
    newton_refit(
        objective.row_loss,
        objective.raw.AT,
        objective.y,
        objective.lam,
        columns,
        tolerance,
        compact,
        z,
        np.inf,
        0.0,
    )
    best = _as_fit(objective, columns, compact)
    unsolved = best.gradient_norm > 10.0 * tolerance
    if objective.is_quadratic:
        orthogonal = _orthogonal_fit(objective, columns) if unsolved else best
        return orthogonal if orthogonal.gradient_norm < best.gradient_norm else best
    if unsolved or misjudged(objective, best.value):
        start = compact if np.all(np.isfinite(compact)) else np.zeros(columns.size)
        compact, converged = improved(objective, columns, start)
        other = replace(_as_fit(objective, columns, compact), converged=converged)
        nearer = other.gradient_norm < best.gradient_norm and other.value <= best.value * (1.0 + ROUNDED)
        best = other if other.value < best.value or nearer else replace(best, converged=converged)
    return best


def _as_fit(objective: Objective, columns: IntArray, compact: FloatArray) -> Fit:
    coef = np.zeros(objective.d)
    coef[columns] = np.where(objective.norms[columns] > 0, compact, 0.0)  # an empty column can only gather noise
    return Fit(columns, coef, objective(coef), float(np.linalg.norm(objective.gradient(coef, columns))))


def _orthogonal_fit(objective: Objective, columns: IntArray) -> Fit:
    """Quadratic loss by a singular value decomposition of the (ridge-augmented) columns, refined once."""
    A, y = objective.reduced
    matrix, target = A[:, columns], y
    if objective.lam > 0:
        matrix = np.vstack([matrix, np.sqrt(objective.lam) * np.eye(columns.size)])
        target = np.concatenate([y, np.zeros(columns.size)])
    # Unit columns, so that a badly scaled column is not mistaken for a dependent one.
    scale = np.linalg.norm(matrix, axis=0)
    scale[scale == 0] = 1.0
    compact = np.zeros(columns.size)
    for _ in range(2):
        residual = target - matrix @ compact
        compact = compact + np.linalg.lstsq(matrix / scale, residual, rcond=1e-13)[0] / scale
    return _as_fit(objective, columns, compact)
