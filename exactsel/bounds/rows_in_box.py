"""The bound of a convex region within limits of coefficients that a model proves, worked out from the rows.

Kernels work on the Gram matrix of the rows. Where rows of equalities are among them their targets are large beside the
objective, and what rounding takes of products of theirs would leave a gap. Here b = Ax - y comes first, in extended
precision, in which large targets cancel. With curvature D no larger than the Hessian, formula (3) at x says

    P(w)  >=  ||b||^2 / 2 + (lam/2) ||x||^2 + x'Dx / 2 - g'x - sum_j c_j(D_j x_j - g_j),      g = A'b + lam x,

where c_j(s) is the largest s w - D_j w^2 / 2 within the limits of column j.
"""

from __future__ import annotations

import numpy as np

from exactsel.problem.box_limits import gains_within
from exactsel.problem.coefficient_bounds import CoefficientBounds
from exactsel.rounding import UNIT
from exactsel.types import FloatArray, IntArray

LONG = np.longdouble

POLISHED = 2
"""Newton steps from a fit in doubles, with slopes in extended precision."""


def bound_from_rows(bounds: CoefficientBounds, coef: FloatArray, columns: IntArray, curvature: FloatArray) -> float:
    """The bound of all models on some columns that a model of them proves, quadratic loss; rounded downwards."""
    base = bounds.objective
    A, x, y = base.AT[columns].astype(LONG), coef[columns].astype(LONG), base.y.astype(LONG)
    D, lam = curvature[columns].astype(LONG), LONG(base.lam)
    b = x @ A - y
    g = A @ b + lam * x
    unit = float(np.finfo(LONG).eps) * (base.n + columns.size + 32)
    size = float(np.abs(x) @ base.norms[columns]) + float(np.linalg.norm(base.y))
    length = float(np.sqrt(b @ b)) + unit * size
    error = (
        1.01 * unit * (base.norms[columns] * (length + size) + (base.lam + curvature[columns]) * np.abs(coef[columns]))
    )
    parts = [0.5 * (b @ b), 0.5 * lam * (x @ x), 0.5 * (x @ (D * x)), -(g @ x)]
    value = sum(parts, LONG(0.0))
    value -= unit * (sum(map(abs, parts), LONG(0.0)) + 2.0 * length * size) + np.abs(x) @ error
    slopes = (D * x - g).astype(np.float64)
    error = error + UNIT * np.abs(slopes)
    lower, upper = bounds.lower[columns], bounds.upper[columns]
    ends = [gains_within(lower, upper, curvature[columns], slopes + sign * error) for sign in (-1.0, 1.0)]
    taken = np.maximum(*ends) * (1.0 + 16 * UNIT)
    total = float(value) - 2 * UNIT * abs(float(value)) - float(np.sum(taken)) * (1.0 + (columns.size + 4) * UNIT)
    return total - 4 * UNIT * abs(total)


def polished(bounds: CoefficientBounds, coef: FloatArray, columns: IntArray) -> FloatArray:
    """A model (columns,) near the fit on some columns whose slopes are smaller, where equalities have rows.

    Such a row multiplies the last digit of a large coefficient by much, so the smallest ones make up for the others.
    """
    base = bounds.objective
    inner = columns[(coef[columns] > bounds.lower[columns]) & (coef[columns] < bounds.upper[columns])]
    if base.equalities is None or not inner.size:
        return coef
    preparation = base.preparation
    assert preparation is not None
    best, shortest = coef, np.inf
    A, used = base.AT[inner], np.flatnonzero(coef)
    squares = np.sqrt(np.einsum("ij,ij->i", A, A) + base.lam)
    squares[squares == 0.0] = 1.0
    H = (A / squares[:, None]) @ (A / squares[:, None]).T + np.diag(base.lam / squares**2)
    rows = base.equalities.rows[:, inner] / (preparation.made.scale[inner])
    weights = base.equalities.sizes**2
    for turn in range(2 * POLISHED):
        x = coef[used].astype(LONG)
        slopes = A.astype(LONG) @ (x @ base.AT[used].astype(LONG) - base.y) + base.lam * coef[inner].astype(LONG)
        stretched = np.asarray(slopes / squares, dtype=np.float64)
        length = float(np.linalg.norm(stretched))
        if length < shortest:
            best, shortest = coef.copy(), length
        moved = coef.copy()
        if turn % 2 == 0:
            moved[inner] -= np.linalg.lstsq(H, stretched, rcond=1e-15)[0] / squares
        else:
            missed = np.linalg.lstsq((rows * weights[:, None] / squares).T, stretched, rcond=1e-12)[0]
            few = _finest(rows, np.abs(coef[inner]))
            moved[inner[few]] -= np.linalg.lstsq(rows[:, few], missed, rcond=1e-12)[0]
        inside = (moved[inner] > bounds.lower[inner]) & (moved[inner] < bounds.upper[inner])
        if not inside.all() or not np.all(np.isfinite(moved)):
            break
        coef, used = moved, np.flatnonzero(moved)
    return best


def _finest(rows: FloatArray, sizes: FloatArray) -> IntArray:
    """Columns of rows (m, p), as many as are independent, those of the smallest sizes first."""
    residual, chosen = rows.copy(), list[int]()
    for j in np.argsort(sizes, kind="stable").tolist():
        length = float(np.linalg.norm(residual[:, j]))
        if length > 0.1 * float(np.linalg.norm(rows[:, j])) and len(chosen) < len(rows):
            chosen.append(j)
            along = residual[:, j] / length
            residual = residual - np.outer(along, along @ residual)
    return np.array(chosen, dtype=np.int64)
