"""The best model in a box, on columns that are given: Newton's method, each step a least-squares problem in the box."""

from __future__ import annotations

import numpy as np
from numpy.linalg import LinAlgError

from exactsel._jit import available_threads, parallel_section
from exactsel.algebra import dense
from exactsel.kernels.box import gram_box_objectives, newton_box_objectives
from exactsel.kernels.rows import loss_curvature, loss_gradient, loss_majorizer
from exactsel.problem.minima import WORTH_SHARING, in_rows, on_tables
from exactsel.problem.objective import Objective
from exactsel.problem.read_only import read_only
from exactsel.types import FloatArray, IntArray

STEPS = 200

CONVERGED = 1e-15
"""Part of the objective that a step must promise for it to be made."""

SHORTEST = 1e-6
"""Step length at which a direction is given up."""

JITTERS = (1e-14, 1e-12, 1e-9)
"""Parts by which a diagonal is enlarged where a matrix is singular in doubles."""

PROXIMAL, PROXIMAL_STEPS = 1e-5, 10
"""Root of the ridge of a proximal point step, times a column's length; and how many there are at most."""

HUGE = 1e5
"""Coefficients, times their columns' lengths, beyond which no objective can be trusted, in lengths of the target."""

NEGLIGIBLE = 1e-13
"""Part of a target's square that is no gain."""

MAJORISER_STEPS = 5
"""Steps by a majoriser of the loss before Newton's are tried again, where these had to be shortened much."""

GRAM_COLUMNS = 4000
"""With more columns than this the Gram matrix is not formed only to make quick objectives possible."""


def least_squares_in_box(
    matrix: FloatArray, target: FloatArray, lower: FloatArray, upper: FloatArray
) -> FloatArray:  # fmt: skip
    """argmin ||matrix w - target|| over the box, by an active-set method (Stark and Parker's BVLS)."""
    from scipy.optimize import lsq_linear

    count = matrix.shape[1]
    solution = lsq_linear(matrix, target, (lower, upper), method="bvls", tol=1e-14, max_iter=20 * count + 100).x
    included = (solution > lower) & (solution < upper)
    # The fit with the coefficients at their limits kept there, where that stays in the box.
    better = solution.copy()
    better[included] = np.linalg.lstsq(
        matrix[:, included], target - matrix[:, ~included] @ solution[~included], rcond=None
    )[0]
    in_box = np.all((better >= lower) & (better <= upper))
    return np.asarray(np.clip(better if in_box else solution, lower, upper))


def flat_least_squares_in_box(
    matrix: FloatArray, target: FloatArray, lower: FloatArray, upper: FloatArray
) -> FloatArray:  # fmt: skip
    """The same where columns may depend on each other: of the many solutions one that is not large.

    Where dependence is rounded, an active-set method takes it for none, and coefficients become huge. Proximal point
    steps have a ridge that costs nothing in the end.
    """
    ridge = np.diag(PROXIMAL * np.linalg.norm(matrix, axis=0))
    small, cost = np.zeros(matrix.shape[1]), np.inf
    for _ in range(PROXIMAL_STEPS):
        step = least_squares_in_box(
            np.vstack([matrix, ridge]), np.concatenate([target, ridge @ small]), lower, upper
        )  # fmt: skip
        before, cost = cost, float(np.sum((matrix @ step - target) ** 2))
        small = step
        if before - cost <= CONVERGED * cost:
            break
    other = least_squares_in_box(matrix, target, lower, upper)
    better = float(np.sum((matrix @ other - target) ** 2)) < cost - NEGLIGIBLE * float(target @ target)
    # What doubles say a model of huge coefficients costs is rounding.
    bounded = np.abs(other) @ np.linalg.norm(matrix, axis=0) <= HUGE * np.linalg.norm(target)
    return other if better and bounded else small


def newton_in_box(objective: Objective, used: IntArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """The best model (m,) in a box (m,), (m,) on the columns ``used``, for any loss with lam > 0.

    As in :func:`exactsel.kernels.refit.newton_refit` a step that needs heavy damping gives way to a few by a quadratic
    majoriser of the loss.
    """
    x, majorise = np.zeros(used.size), 0
    coef = np.zeros(objective.d)
    value = objective(coef)
    for _ in range(STEPS):
        coef[used] = x
        gradient, H = _derivatives(objective, coef, used, majorise > 0)
        R = _factor(H)
        if R is None and majorise == 0:  # rows without curvature: those of a majoriser have some
            majorise = MAJORISER_STEPS
            continue
        if R is None:
            break
        target = R @ x - dense.solve_triangular(R, gradient, trans="T", check_finite=False)
        step = least_squares_in_box(R, target, lower, upper) - x
        promised = -float(gradient @ step) - 0.5 * float(step @ H @ step)
        if not promised > CONVERGED * abs(value):
            break
        length, trial = 1.0, np.inf
        while length >= SHORTEST:
            coef[used] = np.clip(x + length * step, lower, upper)
            trial = objective(coef)
            if trial <= value - 1e-4 * length * promised:
                break
            length *= 0.5
        if not trial < value:
            if majorise > 0:
                break
            majorise = MAJORISER_STEPS
            continue
        majorise = MAJORISER_STEPS if majorise == 0 and length < 0.1 else max(0, majorise - 1)
        x, value = coef[used].copy(), trial
    return x


def _factor(H: FloatArray) -> FloatArray | None:
    """R with R'R = H; of a matrix near H where rounding leaves H singular: the step is another one, downhill still."""
    for more in (0.0, *JITTERS):
        try:
            return np.asarray(np.linalg.cholesky(H + more * np.diag(np.diagonal(H))).T, dtype=np.float64)
        except LinAlgError:
            continue
    return None


def _derivatives(
    objective: Objective, coef: FloatArray, used: IntArray, majorise: bool
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Gradient (m,) and Hessian (m, m) of the objective on some columns; or curvatures of a majoriser."""
    A, x = objective.AT[used], coef[used]
    z = objective.predicted(coef)
    slopes, bends = np.empty(objective.n), np.empty(objective.n)
    loss_gradient(objective.row_loss, z, objective.y, slopes)
    (loss_majorizer if majorise else loss_curvature)(objective.row_loss, z, objective.y, bends)
    total = float(bends.sum())
    middle = (A @ bends / total)[:, None] if objective.intercept and total > 0.0 else 0.0
    H = ((A - middle) * bends) @ (A - middle).T
    H[np.diag_indices(len(H))] += objective.lam
    return A @ slopes + objective.lam * x, H


def minima_in_box(
    objective: Objective, lower: FloatArray, upper: FloatArray, supports: IntArray, threads: int | None
) -> FloatArray:
    """Smallest value in the box (d,), (d,) on each set of columns (a row padded with -1), quick rather than exact.

    nan where the columns of a set are numerically dependent.
    """
    padded = in_rows(supports)
    if objective.on_demand:
        return on_tables(
            objective, padded,
            lambda table, columns, slots: minima_in_box(
                table, read_only(lower[columns]), read_only(upper[columns]), slots, threads
            ),
        )  # fmt: skip
    values = np.full(len(padded), np.nan)
    with parallel_section(1 if len(padded) < WORTH_SHARING else threads or available_threads()):
        if in_closed_form(objective):
            gram = objective.gram
            gram_box_objectives(gram.G, gram.b, gram.constant, objective.lam, lower, upper, padded, values)
        else:
            loss, AT = objective.row_loss, objective.raw.AT
            newton_box_objectives(loss, AT, objective.y, objective.lam, lower, upper, padded, values)
    return values


def in_closed_form(objective: Objective) -> bool:
    """Whether quick objectives are read off the Gram matrix of all columns."""
    return objective.is_quadratic and objective.d <= GRAM_COLUMNS and not objective.on_demand
