"""Extreme eigenvalues of large symmetric matrices by Lanczos steps; estimates, never proofs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from exactsel.algebra import dense
from exactsel.algebra.threads import one_thread
from exactsel.types import FloatArray

DENSE_UP_TO = 600
"""Size up to which all eigenvalues of a matrix are computed instead."""

MOST_STEPS = 80
"""Lanczos steps at most; with full reorthogonalisation they cost little beside the products."""

ACCURACY = 1e-3
"""Relative residual at which the largest eigenvalue counts as found."""

PERSISTENT = 8
"""Steps for which it must stay found: until then a larger one, of which the start held little, may turn up."""


def largest_eigenvalue(matrix: FloatArray) -> float:
    """The largest eigenvalue of a positive semidefinite matrix: to rounding for small ones, else to a per mille."""
    if len(matrix) <= DENSE_UP_TO:
        return float(np.linalg.eigvalsh(matrix)[-1])
    return lanczos_largest(lambda v: matrix @ v, len(matrix))


def smallest_eigenvalue(matrix: FloatArray) -> float:
    """The smallest eigenvalue of a symmetric matrix: to rounding for small ones, else to a per mille.

    Large matrices that are not positive definite have 0.
    """
    if len(matrix) <= DENSE_UP_TO:
        return float(np.linalg.eigvalsh(matrix)[0])
    with one_thread():
        try:
            factor = dense.cho_factor(matrix, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            return 0.0
        # Of the inverse it is the largest, which a few steps find however close to singular the matrix is.
        inverse = lanczos_largest(lambda v: dense.cho_solve(factor, v, check_finite=False), len(matrix))
    return 1.0 / inverse if np.isfinite(inverse) and inverse > 0.0 else 0.0


def lanczos_largest(product: Callable[[FloatArray], FloatArray], size: int) -> float:
    """The largest eigenvalue of a positive semidefinite operator, enlarged by what Lanczos steps leave unknown.

    Parameters
    ----------
    product : callable
        The operator applied to a vector (size,).
    size : int

    Returns
    -------
    float
        The largest Ritz value plus its residual: rather too large, unless the largest eigenvalues lie close together.
    """
    steps = min(size, MOST_STEPS)
    basis = np.zeros((steps, size))
    diagonal, beside = np.zeros(steps), np.zeros(steps)
    vector = np.random.default_rng(0).standard_normal(size)
    vector /= np.linalg.norm(vector)
    value = residual = 0.0
    settled = 0
    for step in range(steps):
        basis[step] = vector
        image = product(vector)
        diagonal[step] = vector @ image
        for _ in range(2):
            image = image - (basis[: step + 1] @ image) @ basis[: step + 1]
        beside[step] = float(np.linalg.norm(image))
        done = step + 1
        triangle = np.diag(diagonal[:done]) + np.diag(beside[: done - 1], 1) + np.diag(beside[: done - 1], -1)
        values, vectors = np.linalg.eigh(triangle)
        value, residual = float(values[-1]), float(beside[step] * abs(vectors[-1, -1]))
        settled = settled + 1 if not residual > ACCURACY * value else 0
        if settled == PERSISTENT or not beside[step] > 1e-14 * value:
            break
        vector = image / beside[step]
    return value + residual
