"""The second-order model of an objective at a model, as a least-squares problem of its own."""

from __future__ import annotations

import numpy as np

from exactsel.algebra import dense
from exactsel.problem.regression import Problem
from exactsel.problem.rows import Rows, Unusable
from exactsel.types import FloatArray

MOST_COLUMNS = 2000
"""With more columns than this their Hessian is not formed."""

MANY_COLUMNS = 500
"""With more columns than this a triangular root of the Hessian serves, a twentieth of the work of eigenvectors."""

SINGULAR = 1e-12
"""Share of the largest eigenvalue, or of the norm, that every direction of the Hessian has at least."""


def second_order_form(problem: Problem, rows: Rows, at: FloatArray, lift: float = 0.0) -> tuple[FloatArray, FloatArray]:
    """H (d, d), with the ridge, and h (d,): the second-order model x'Hx/2 - h'x of P, up to a constant.

    ``at`` (m,) are coefficients of the scaled columns, an intercept last, which is eliminated. ``lift`` (0 to 1) says
    how far the curvature of each row is lifted towards the largest it can have: a model that is less exact near by and,
    where rows hardly bend (outliers of Huber's loss), less wrong far away.

    Raises
    ------
    Unusable
        Where no row bends, or after a stop.
    """
    _, slopes, bends = rows.at(rows.predictions(at))
    if lift > 0.0:
        bends = bends + lift * np.maximum(_largest_bends(problem, rows) - bends, 0.0)
    if not np.any(bends > 0.0):
        raise Unusable  # the ridge alone would choose
    H = rows.gram(bends)
    h = H @ at - (rows.products(slopes) + rows.ridge * at)
    H, h = H / np.outer(rows.scale, rows.scale), h / rows.scale
    d = problem.d
    if problem.intercept:
        if not H[d, d] > 0.0:
            raise Unusable
        H, h = H[:d, :d] - np.outer(H[:d, d], H[d, :d]) / H[d, d], h[:d] - H[:d, d] * (h[d] / H[d, d])
    if not (np.all(np.isfinite(H)) and np.all(np.isfinite(h))):
        raise Unusable
    rows.go_on()
    return H, h


def second_order_model(problem: Problem, rows: Rows, at: FloatArray) -> Problem:
    """The same as a problem: least squares on d rows, with A'A = H - lam I and A'y = h.

    Raises
    ------
    Unusable
        As for :func:`second_order_form`.
    """
    H, h = second_order_form(problem, rows, at)
    A, y = _rooted(H - problem.lam * np.eye(problem.d), h)
    rows.go_on()
    if not (np.all(np.isfinite(A)) and np.all(np.isfinite(y))):
        raise Unusable
    return Problem(
        A, y, problem.k, lam=problem.lam,
        force_in=problem.force_in, force_out=problem.force_out,
    )  # fmt: skip


def _rooted(square: FloatArray, h: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A and y with A'A = square (d, d), made a little larger where it is singular, and A'y = h.

    Raises
    ------
    Unusable
        Where nothing of the matrix is positive: no row bends, and the ridge alone would choose.
    """
    if len(square) > MANY_COLUMNS:  # where eigenvectors would take seconds
        largest = float(np.linalg.norm(square))
        if not largest > 0.0:
            raise Unusable
        root = np.asarray(np.linalg.cholesky(square + SINGULAR * largest * np.eye(len(square))).T, dtype=np.float64)
        return root, dense.solve_triangular(root, h, trans="T", check_finite=False)
    values, vectors = np.linalg.eigh(square)
    if not values[-1] > 0.0:
        raise Unusable
    with np.errstate(all="ignore"):
        roots = np.sqrt(np.maximum(values, values[-1] * SINGULAR))
        return (vectors * roots) @ vectors.T, vectors @ ((vectors.T @ h) / roots)


def _largest_bends(problem: Problem, rows: Rows) -> FloatArray:
    """The curvature no row exceeds (n,), weights included."""
    smooth = problem.objective.steepness
    return np.full(rows.n, smooth) if rows.weights is None else smooth * np.asarray(rows.weights)
