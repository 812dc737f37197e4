"""Triangular factors of tall matrices, each with a bound on how far it is off, worked out from the factors themselves.

For a block B a factor R and a vector e are found such that, for some W with orthonormal columns,

    ||B_j - W R_j|| <= e_j        for every column j,

so that ||Bv|| and ||Rv|| differ by sum_j e_j |v_j| at most, for every v. Nothing is assumed of LAPACK: with the Q that
was computed, B - QR and Q'Q - I are computed too, what these are off is added, and Q is within ||Q'Q - I|| of
orthonormal columns. Assumed is that sums of products are what they are called, in any order (no Strassen).

Two ways lead to Q. Householder's is right for every matrix, and slow on tall ones. Where a factor P of other rows of
the same data is known, Q = B P^-1 has nearly orthogonal columns already, and with R2'R2 = Q'Q (Cholesky) the factor is
R2 P. This is three products, in place of what takes five times as long, and just as good, for the squared matrix is
well conditioned for any data. Where it is not, as with columns that depend on each other, it is Householder's way.

Factors of parts are put together (:func:`merged`) as those of blocks are: the errors of different parts are at right
angles, and merges in a tree make the bound grow with the logarithm of the number of rows only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from exactsel.algebra import dense
from exactsel.rounding import UNIT
from exactsel.types import FloatArray, IntArray

CHUNK = 256
"""Rows whose products are added up at a time: few roundings in a row make bounds small."""

DEPENDENT = 1e-8
"""Of the length of a column: what is left of it beside the columns before, in a factor others are compared with."""

LOOSEST = 100.0
"""Times its least: how large R2^-1 may be, squared, on Cholesky's way, whose error is that many times larger."""

ROOM = 1.001
"""For the roundings of what is computed with upper estimates."""


class Factor(NamedTuple):
    """A factor R (r, w) of some rows, and how far its columns are off at most (w,)."""

    R: FloatArray
    error: FloatArray


class Held(NamedTuple):
    """A factor of other rows that new ones are compared with."""

    P: FloatArray
    """(s, s) upper triangular."""
    used: IntArray
    """(s,) the columns it is of; all others were empty."""


def factorised(B: FloatArray, held: Held | None = None) -> Factor:
    """The factor of the rows B (m, w), m > 0; ``held`` makes it quick where the rows are like those it comes from."""
    if held is None:
        return _by_householder(B)
    width = B.shape[1]
    if held.used.size == width:
        return _by_cholesky(B, held.P) or _by_householder(B)
    others = np.setdiff1d(np.arange(width), held.used)
    factor = None if B[:, others].any() else _by_cholesky(np.ascontiguousarray(B[:, held.used]), held.P)
    if factor is None:
        return _by_householder(B)
    R, error = np.zeros((len(factor.R), width)), np.zeros(width)
    R[:, held.used], error[held.used] = factor
    return Factor(R, error)


def merged(parts: Sequence[Factor]) -> Factor:
    """One factor in place of those of several parts of the rows."""
    if len(parts) == 1:
        return parts[0]
    R, error = _by_householder(np.vstack([part.R for part in parts]))
    return Factor(R, ROOM * np.sqrt(sum(part.error**2 for part in parts)) + error)


def to_hold_against(R: FloatArray) -> Held | None:
    """A factor (r, w) that others can be compared with; None where columns are made up of others, or nearly so."""
    used = np.flatnonzero(R.any(axis=0))
    P = np.linalg.qr(R[:, used], mode="r")
    diagonal = np.abs(np.diagonal(P))
    independent = len(P) == used.size > 0 and bool(np.all(diagonal > DEPENDENT * np.linalg.norm(P, axis=0)))
    return Held(np.asfortranarray(P), used) if independent else None


def column_lengths(B: FloatArray) -> FloatArray:
    """Upper estimates of the lengths of the columns of B (m, w), entries below 1e-160 aside, whose squares vanish."""
    return np.asarray(np.sqrt(np.einsum("ij,ij->j", B, B)) * (1.0 + _gamma(len(B) + 8)))


def _gamma(roundings: int) -> float:
    return 1.01 * roundings * UNIT


def _by_householder(B: FloatArray) -> Factor:
    Q, R = np.linalg.qr(B)
    gram, off = _gram(Q)
    gram[np.diag_indices(len(gram))] -= 1.0
    skew = float(np.linalg.norm(gram)) * ROOM + off
    error = _missed(B, Q, R) + skew * column_lengths(R)
    return Factor(np.asarray(R), ROOM * error)


def _by_cholesky(B: FloatArray, held: FloatArray) -> Factor | None:
    """None where columns are empty or depend on each other, so that nothing good comes of it."""
    width = len(held)
    if len(B) < width:
        return None
    Q = dense.blas.dtrsm(1.0, held, B.T, side=0, lower=0, trans_a=1).T
    gram, off = _gram(Q)
    if not np.isfinite(gram).all():
        return None
    try:
        R2 = np.linalg.cholesky(gram).T
    except np.linalg.LinAlgError:
        return None
    inverse = np.asarray(dense.solve_triangular(R2, np.eye(width)))
    wrong = float(np.linalg.norm(R2 @ inverse - np.eye(width))) + _gamma(width + 8) * float(
        np.linalg.norm(R2) * np.linalg.norm(inverse)
    )
    size = float(np.linalg.norm(inverse, 1) * np.linalg.norm(inverse, np.inf))
    if not (wrong < 1e-3 and size * float(np.trace(gram)) <= LOOSEST * width):
        return None
    short = float(np.linalg.norm(R2.T @ R2 - gram)) + _gamma(width + 8) * float(np.trace(gram))
    skew = ROOM * size / (1.0 - wrong) ** 2 * (short + off)
    R = R2 @ held
    rounded = _gamma(width + 8) * (np.linalg.norm(R2, axis=0) @ np.abs(held))
    error = _missed(B, Q, held) + skew * (column_lengths(R) + rounded) + (1.0 + skew) * rounded
    return Factor(np.asarray(R), ROOM * error)


def _gram(Q: FloatArray) -> tuple[FloatArray, float]:
    """Q'Q, and how far it is off at most, as a matrix."""
    whole = len(Q) // CHUNK
    width = Q.shape[1]
    gram = np.zeros((width, width))
    for first in range(0, len(Q), CHUNK):
        rows = Q[first : first + CHUNK]
        gram += rows.T @ rows
    return gram, _gamma(CHUNK + whole + 4) * float(np.trace(gram)) * ROOM


def _missed(B: FloatArray, Q: FloatArray, R: FloatArray) -> FloatArray:
    """How long the columns of B - QR are at most."""
    tiny = np.where(B.any(axis=0), 1e-150 * len(B), 0.0)  # more than all squares that vanish
    return column_lengths(B - Q @ R) + _gamma(len(R) + 4) * (column_lengths(Q) @ np.abs(R)) * ROOM + tiny
