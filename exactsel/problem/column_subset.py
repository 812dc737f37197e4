"""Column subset selection: the second family of problems.

    minimise  f(S) = ||A - S S⁺ A||_F²   over at most k columns S of A

The objective is :class:`exactsel.problem.reconstruction.Reconstruction`. Centre and scale the columns beforehand if you
want that: it takes them as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from exactsel.problem.checks import checked_k, checked_matrix
from exactsel.problem.design import is_design
from exactsel.problem.frames import frame_matrix
from exactsel.problem.interface import SubsetProblem
from exactsel.problem.reconstruction import Reconstruction
from exactsel.problem.units import Units


class ColumnSubsetProblem(SubsetProblem):
    """One instance of column subset selection, validated once and frozen.

    Parameters
    ----------
    A : array, sparse matrix or data frame (n, d)
        The matrix whose columns are to be selected; finite numbers. float32 is converted.
    k : int
        Largest number of columns. More than d is taken as d, with a warning.
    feature_names : sequence of str, optional
        Names of the columns.

    Raises
    ------
    InputError
        With one sentence that says what was found, what was expected and what to do.

    References
    ----------
    C. Feng, C. Qian and K. Tang, Unsupervised feature selection by Pareto optimization. AAAI 2019.
    """

    objective: Reconstruction
    _of_units = ("feature_names",)

    def __init__(self, A: ArrayLike, k: int, *, feature_names: Sequence[str] | None = None) -> None:
        matrix, feature_names = frame_matrix(A, feature_names)
        matrix = matrix.table() if is_design(matrix) else matrix
        AT = np.ascontiguousarray(checked_matrix(matrix).T)
        AT.flags.writeable = False
        k = checked_k(k, len(AT))
        self._settle(Reconstruction(AT), Units.of(len(AT), feature_names, (), ()), k)
