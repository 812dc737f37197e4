"""The exact minimiser of the objective on a given set of columns."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from exactsel.kernels.refit import newton_refit
from exactsel.problem.row_newton import improved, misjudged, surely
from exactsel.types import FloatArray, IntArray

if TYPE_CHECKING:
    from exactsel.problem.objective import Objective

GRADIENT_TOLERANCE = 1e-10
"""Times the problem's gradient scale: the gradient norm at which a support counts as solved."""

ROUNDED = 1e-15
"""Part of an objective that is no difference."""


NEARLY_DEPENDENT = 1e-8
"""Smallest eigenvalue of the Hessian, of columns of length one, up to which a small gradient is no proof of a fit."""

ALIKE = 1e-14
"""Part by which two objectives differ through rounding alone."""

FEW_ROWS = 20_000
"""Rows up to which products of the columns of one fit are formed from all of them."""

RECENT = 64
"""Fits an objective keeps: a search, and the next one on the same data, needs the same few again and again ..."""

RECENT_UP_TO = 2000
"""... over so many columns at most, so that they take little memory."""


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

    Newton on the data; where its systems are singular, an orthogonal factorisation takes over (minimum-norm solution
    for lam = 0). Where the gradient is no measure, or the iteration does not converge, Newton's method in rows
    continues (:mod:`exactsel.problem.row_newton`). ``converged`` says whether it converged.
    """
    if objective.on_demand:
        return _of_design(objective, columns)
    if objective.d > RECENT_UP_TO:
        return _minimised(objective, columns)
    recent, key = objective.recent_fits, columns.tobytes()
    fit = recent.get(key)
    if fit is None:
        fit = _minimised(objective, columns)
        if len(recent) >= RECENT:
            recent.clear()
        recent[key] = fit
    # Callers may change the arrays they get, so the cache returns copies.
    return replace(fit, columns=fit.columns.copy(), coef=fit.coef.copy())


def _minimised(objective: Objective, columns: IntArray) -> Fit:
    """The fit, worked out."""
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
    unsolved = not best.gradient_norm <= 10.0 * tolerance
    if objective.is_quadratic:
        if unsolved or _nearly_dependent(objective, columns):
            orthogonal = _orthogonal_fit(objective, columns)
            best = orthogonal if _is_better(orthogonal, best) else best
        return best
    if unsolved or misjudged(objective, columns, best.value):
        start = compact if np.all(np.isfinite(compact)) else np.zeros(columns.size)
        compact, converged = improved(objective, columns, start)
        other = replace(_as_fit(objective, columns, compact), converged=converged)
        nearer = other.gradient_norm < best.gradient_norm and other.value <= best.value * (1.0 + ROUNDED)
        costs = [surely(objective, columns, fit.coef[columns]) for fit in (other, best)]
        best = other if costs[0] < costs[1] or nearer else replace(best, converged=converged)
    return best


def _of_design(objective: Objective, columns: IntArray) -> Fit:
    """The same of data that are not held as a table: a fit on the columns alone, which are."""
    fit = fit_support(on_columns(objective, columns), np.arange(columns.size))
    return among_all(fit, columns, objective.d)


def on_columns(objective: Objective, columns: IntArray) -> Objective:
    """The objective of some columns as they are searched, which become a table; of one where there are none."""
    AT = objective.AT[columns if columns.size else np.zeros(1, dtype=np.int64)]  # a table has a column
    return replace(objective, AT=AT, preparation=None, before=None, divisors=None, coefficient_bounds=None, shared={})


def among_all(fit: Fit, columns: IntArray, d: int) -> Fit:
    """A fit on a table of some columns as one of all d of them."""
    coef = np.zeros(d)
    coef[columns] = fit.coef[: columns.size]
    return replace(fit, columns=columns, coef=coef)


def _nearly_dependent(objective: Objective, columns: IntArray) -> bool:
    """Whether the objective may still fall where the gradient is small; quadratic loss."""
    if columns.size < 2:
        return False
    # A factor of all columns takes longer than what it saves, unless there are many rows.
    A = objective.A if objective.n <= FEW_ROWS else objective.reduced[0]
    squares = objective.norms[columns] ** 2 + objective.lam
    lengths = np.sqrt(np.where(squares > 0.0, squares, 1.0))
    matrix = A[:, columns] / lengths
    hessian = matrix.T @ matrix + np.diag(objective.lam / lengths**2)
    hessian[np.diag_indices(columns.size)] += squares == 0.0
    return not bool(np.linalg.eigvalsh(hessian)[0] > NEARLY_DEPENDENT)


def _is_better(candidate: Fit, best: Fit) -> bool:
    """Whether a fit costs less, or the same up to rounding and has the smaller gradient."""
    if not abs(candidate.value - best.value) <= ALIKE * abs(best.value):
        return candidate.value < best.value or not np.isfinite(best.value)
    return candidate.gradient_norm < best.gradient_norm


def _as_fit(objective: Objective, columns: IntArray, compact: FloatArray) -> Fit:
    coef, norms = np.zeros(objective.d), objective.norms[columns]
    coef[columns] = np.where(norms > 0.0, compact, 0.0)  # an empty column can only gather noise
    longest = float(objective.norms.max()) or 1.0
    stretched = objective.gradient(coef, columns) * (longest / np.where(norms > 0.0, norms, longest))
    return Fit(columns, coef, objective(coef), float(np.linalg.norm(stretched)))


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
