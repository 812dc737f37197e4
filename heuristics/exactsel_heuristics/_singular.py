"""Column subset selection: the leading singular vectors of the matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from exactsel.types import FloatArray

if TYPE_CHECKING:
    from exactsel.problem.column_subset import ColumnSubsetProblem


@dataclass(frozen=True)
class SingularVectors:
    """The r leading singular vectors and values of A, where r is the smaller of k and the rank.

    Parameters
    ----------
    left : array (r, min(n, d))
        Left singular vectors as rows, rotated like :attr:`ColumnSubsetProblem.reduced`.
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
    """The singular vectors of the best approximation of rank k; values that are rounding are left out."""
    right, values, left = np.linalg.svd(problem.reduced, full_matrices=False)
    negligible = values[0] * max(problem.n, problem.d) * np.finfo(np.float64).eps
    rank = int(np.count_nonzero(values > negligible))
    r = min(problem.k, rank)
    return SingularVectors(left[:r], values[:r], right[:, :r], complete=r == rank)
