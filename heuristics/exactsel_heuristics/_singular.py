"""Column subset selection: the leading singular vectors of the matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from exactsel.algebra import dense
from exactsel.types import FloatArray

if TYPE_CHECKING:
    from exactsel.problem.column_subset import ColumnSubsetProblem

MANY = 500
"""With more rows and columns than this the leading vectors alone are computed, in a quarter of the time of all."""

TOLD_APART = 1e-9
"""Share of the largest eigenvalue of A'A from which on an eigenvalue is more than rounding and its vector known."""


@dataclass(frozen=True)
class SingularVectors:
    """The r leading singular vectors and values of A, where r is the smaller of k and the rank.

    Parameters
    ----------
    left : array (r, min(n, d))
        Left singular vectors as rows, rotated like ``Reconstruction.reduced``.
    values : array (r,)
        Singular values, descending.
    right : array (d, r)
        Right singular vectors as columns: one row per column of A.
    complete : bool
        Whether they are all there are: k reaches the rank of A.
    """

    left: FloatArray
    values: FloatArray
    right: FloatArray
    complete: bool


def leading_singular_vectors(problem: ColumnSubsetProblem) -> SingularVectors:
    """The singular vectors of the best approximation of rank k; values that are rounding are dropped."""
    vectors = _by_gram_matrix(problem) if min(problem.n, problem.d) > MANY else None
    if vectors is not None:
        return vectors
    right, values, left = np.linalg.svd(problem.objective.reduced, full_matrices=False)
    negligible = values[0] * max(problem.n, problem.d) * np.finfo(np.float64).eps
    rank = int(np.count_nonzero(values > negligible))
    r = min(problem.k, rank)
    return SingularVectors(left[:r], values[:r], right[:, :r], complete=r == rank)


def _by_gram_matrix(problem: ColumnSubsetProblem) -> SingularVectors | None:
    """The k leading ones as eigenvectors of A'A or A A'; None where squaring hides how small values are."""
    AT = problem.objective.reduced
    k, wide = problem.k, AT.shape[1] < AT.shape[0]
    square = AT.T @ AT if wide else problem.objective.gram
    size = len(square)
    if k >= size:
        return None
    values, vectors = dense.eigh(square, subset_by_index=(size - k - 1, size - 1), check_finite=False)
    if not values[0] > TOLD_APART * values[-1]:
        return None
    roots, leading = np.sqrt(values[:0:-1]), vectors[:, :0:-1]
    if wide:
        return SingularVectors(leading.T, roots, (AT @ leading) / roots, complete=False)
    return SingularVectors(((AT.T @ leading) / roots).T, roots, leading, complete=False)
