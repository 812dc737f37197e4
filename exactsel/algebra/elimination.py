"""Statements about exact matrices that a Cholesky factorisation in doubles proves.

For a level L below c = ||y||^2/2 and T = 2 (c - L), no model on the columns S is below L if and only if
Q = H - b b'/T is positive semidefinite on S, with H = A'A + lam I and b = A'y (the Schur complement of
[[T, b'], [b, H]]; b_S lies in the range of H_SS, so dependent columns and lam = 0 are no exception).

Every entry of the computed Q is off by at most some eps sqrt(H_ii H_jj). A factorisation of a matrix of m columns that
completes is the exact one of a matrix off by gamma_(m+1) sqrt(H_ii H_jj) an entry (Higham 2002, theorem 10.3; |R|'|R|
is no larger than that because the diagonal of R'R is no larger than H's). A symmetric matrix off by e in every entry
has eigenvalues off by m e. So where the factorisation of Q - mu diag(H) completes, for mu not less than m times the sum
of both, Q itself is positive semidefinite.
"""

from __future__ import annotations

import numpy as np
from numpy.linalg import LinAlgError

from exactsel.rounding import UNIT
from exactsel.types import FloatArray

CAREFUL = 1.1
"""Room for all terms of second order."""


def gamma(operations: float) -> float:
    """The relative error of a sum or product of so many roundings."""
    return operations * UNIT / (1.0 - operations * UNIT)


def entry_error(roundings: int, constant: float, level: float) -> float:
    """How far an entry of the computed Q is from the exact one, as a part of sqrt(H_ii H_jj).

    Parameters
    ----------
    roundings : int
        Of the sums in H, b and ``constant``, at most.
    constant : float
        c = ||y||^2/2.
    level : float
        L, below c.
    """
    share = constant / (constant - level)  # of b b'/T in H: |b_i b_j| <= share * T sqrt(H_ii H_jj)
    of_target = gamma(roundings + 2) * share + 4.0 * UNIT
    return CAREFUL * (gamma(roundings + 2) + share * (2.0 * gamma(roundings + 2) + of_target + 4.0 * UNIT) + 4.0 * UNIT)


def shift(columns: int, error: float) -> float:
    """mu: the part of diag(H) to take off Q on so many columns, whose entries are off by ``error``."""
    return CAREFUL * columns * (error + gamma(columns + 4))


def definite(matrix: FloatArray) -> bool:
    """Whether a Cholesky factorisation of the symmetric matrix completes, all numbers finite."""
    try:
        factor = np.linalg.cholesky(matrix)
    except LinAlgError:
        return False
    return bool(np.isfinite(factor).all())
