"""The exact minimiser of the objective on a given set of columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from exactsel.kernels.refit import newton_refit
from exactsel.kernels.rows import loss_curvature, loss_gradient
from exactsel.types import FloatArray, IntArray

if TYPE_CHECKING:
    from exactsel.problem.objective import Objective

GRADIENT_TOLERANCE = 1e-10
"""Times the problem's gradient scale: the gradient norm at which a support counts as solved."""


NEARLY_DEPENDENT = 1e-8
"""Smallest eigenvalue of the Hessian, of columns of length one, up to which a small gradient is no proof of a fit."""

ALIKE = 1e-14
"""Part by which two objectives differ through rounding alone."""


@dataclass(frozen=True)
class Fit:
    """A minimiser on some columns.

    ``coef`` is the full coefficient vector (d,), ``value`` the objective recomputed from the data, and
    ``gradient_norm`` the norm of the gradient on ``columns``, each entry as that of a column as long as the longest.
    """

    columns: IntArray
    coef: FloatArray
    value: float
    gradient_norm: float

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
    solution for lam = 0). Where rounding makes the tolerance unreachable the best point found is returned and
    ``gradient_norm`` says so.
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
        objective.gradient_tolerance(0.1 * GRADIENT_TOLERANCE),
        compact,
        z,
        np.inf,
        0.0,
    )
    best = _as_fit(objective, columns, compact)
    if not best.gradient_norm <= 10.0 * tolerance or _nearly_dependent(objective, columns):
        for candidate in (_orthogonal_fit(objective, columns), _robust_newton(objective, columns, compact)):
            if candidate is not None and _is_better(candidate, best):
                best = candidate
    return best


def _nearly_dependent(objective: Objective, columns: IntArray) -> bool:
    """Whether the objective may still fall where the gradient is small (quadratic loss)."""
    if not objective.is_quadratic:
        return False
    A, _ = objective.reduced
    squares = objective.norms[columns] ** 2 + objective.lam
    lengths = np.sqrt(np.where(squares > 0.0, squares, 1.0))
    matrix = A[:, columns] / lengths
    hessian = matrix.T @ matrix + np.diag(objective.lam / lengths**2)
    hessian[np.diag_indices(columns.size)] += squares == 0.0
    return columns.size > 1 and not bool(np.linalg.eigvalsh(hessian)[0] > NEARLY_DEPENDENT)


def _is_better(candidate: Fit, best: Fit) -> bool:
    """Whether a fit costs less, or as much as far as rounding tells and has the smaller gradient."""
    if not abs(candidate.value - best.value) <= ALIKE * abs(best.value):
        return candidate.value < best.value or not np.isfinite(best.value)
    return candidate.gradient_norm < best.gradient_norm


def _as_fit(objective: Objective, columns: IntArray, compact: FloatArray) -> Fit:
    coef, norms = np.zeros(objective.d), objective.norms[columns]
    coef[columns] = np.where(norms > 0.0, compact, 0.0)  # an empty column can only gather noise
    longest = float(objective.norms.max()) or 1.0
    stretched = objective.gradient(coef, columns) * (longest / np.where(norms > 0.0, norms, longest))
    return Fit(columns, coef, objective(coef), float(np.linalg.norm(stretched)))


def _orthogonal_fit(objective: Objective, columns: IntArray) -> Fit | None:
    """Quadratic loss by a singular value decomposition of the (ridge-augmented) columns, refined once."""
    if not objective.is_quadratic:
        return None
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


def _robust_newton(objective: Objective, columns: IntArray, start: FloatArray) -> Fit | None:
    """Newton steps from least-squares solutions of the scaled system, for Hessians Cholesky rejects."""
    if objective.is_quadratic or not np.all(np.isfinite(start)):
        return None
    A = objective.A[:, columns]
    best = _as_fit(objective, columns, start)
    b, weights = np.empty(objective.n), np.empty(objective.n)
    for _ in range(50):
        z = A @ best.coef[columns]
        loss_gradient(objective.row_loss, z, objective.y, b)
        loss_curvature(objective.row_loss, z, objective.y, weights)
        gradient = A.T @ b + objective.lam * best.coef[columns]
        middle = np.average(A, axis=0, weights=weights) if objective.intercept and np.any(weights) else 0.0
        hessian = ((A - middle).T * weights) @ (A - middle) + objective.lam * np.eye(columns.size)
        scale = np.sqrt(np.diag(hessian))
        step = np.linalg.lstsq(hessian / np.outer(scale, scale), gradient / scale, rcond=None)[0] / scale
        trials = (_as_fit(objective, columns, best.coef[columns] - 0.5**halvings * step) for halvings in range(30))
        better = next((t for t in trials if t.value < best.value or t.gradient_norm < 0.5 * best.gradient_norm), None)
        if better is None:
            return best
        best = better
    return best
