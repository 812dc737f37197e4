"""How much of the quadratic objective's curvature may be moved into separate terms, one per column.

With H = A'A + lam I and a diagonal D such that H - diag(D) is positive semidefinite, the objective is a convex
quadratic plus (1/2) sum D_j x_j^2, and the perspective relaxation strengthens the second part. D = lam is what the
ridge gives; the larger D, the better the bound, and D may be positive where lam is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from exactsel.algebra.spectrum import smallest_eigenvalue
from exactsel.rounding import UNIT
from exactsel.types import FloatArray

CENTRED = 0.1
"""Newton decrement, relative to the barrier's weight, at which the weight may be lowered."""

BALANCED_UP_TO = 600
"""Columns up to which D is balanced: some fifty inversions, of which each takes O(d^3)."""

BALANCED_SECONDS, UNIFORM_SECONDS = 5e-9, 1e-10
"""Rough seconds for either kind of D, times d^3."""

SHARE_OF_TIME = 0.25
"""Part of a time limit the curvature may take."""

LAST_WEIGHT = 5e-3
"""Weight of the barrier at which D is as good as optimal: bounds change by less than a per mille."""


def best_curvature(
    H: FloatArray, roundings: int, seconds: float | None = None, should_stop: Callable[[], bool] = lambda: False
) -> FloatArray | None:
    """The best D there is time for: balanced for up to :data:`BALANCED_UP_TO` columns, else the same for all.

    Parameters
    ----------
    H, roundings
        As for :func:`balanced_curvature`.
    seconds : float, optional
        The time limit of the search, of which this may take no more than :data:`SHARE_OF_TIME`.
    should_stop : callable
        Asked between steps; once it returns True the D reached is taken.
    """
    kind = affordable(len(H), seconds)
    if kind is None:
        return None
    return balanced_curvature(H, roundings, should_stop) if kind == "balanced" else uniform_curvature(H, roundings)


def affordable(d: int, seconds: float | None) -> str | None:
    """Which curvature can be had for d columns within a time limit: ``balanced``, ``uniform`` or None."""
    allowed = math.inf if seconds is None else SHARE_OF_TIME * seconds
    if d <= BALANCED_UP_TO and BALANCED_SECONDS * d**3 <= allowed:
        return "balanced"
    return "uniform" if UNIFORM_SECONDS * d**3 <= allowed else None


def has_curvature(H: FloatArray, roundings: int) -> bool:
    """Whether H is so far from singular that there is a D > 0."""
    H, _ = _evened(H)
    return _definite(_less_diagonal(H, 8.0 * rounding_room(H, roundings)))


def uniform_curvature(H: FloatArray, roundings: int) -> FloatArray | None:
    """The smallest eigenvalue of H, nearly, for every column; None where H is too close to singular.

    Of columns that are divided by powers of two near their lengths.
    """
    H, squares = _evened(H)
    room = rounding_room(H, roundings)
    value = (1.0 - 1e-9) * (smallest_eigenvalue(H) - 4.0 * room)
    for shrink in (1.0, 1.0 - 1e-3, 0.9, 0.5):
        if shrink * value > 2.0 * room and _definite(_less_diagonal(H, shrink * value + room)):
            return shrink * value * squares
    return None


def balanced_curvature(
    H: FloatArray, roundings: int, should_stop: Callable[[], bool] = lambda: False
) -> FloatArray | None:
    """D > 0 with H - diag(D) positive semidefinite, every entry as large as the others allow.

    Maximises sum_j log D_j + w log det(H - diag(D)) by Newton for falling w. The logarithm keeps every entry positive
    and balanced, where the largest sum would leave most of them at zero.

    Parameters
    ----------
    H : array (d, d)
        A'A + lam I, as computed.
    roundings : int
        How exact the entries of A'A are, see :class:`exactsel.kernels.forms.GramData`.
    should_stop : callable
        Asked between steps; once it returns True the D reached is taken.

    Returns
    -------
    array (d,) or None
        Such that H - diag(D) is positive semidefinite for the exact numbers of the data too: it was verified by a
        Cholesky factorisation with room for all rounding. None where H is too close to singular.
    """
    H, squares = _evened(H)
    smallest = float(np.linalg.eigvalsh(H)[0])
    room = rounding_room(H, roundings)
    if not smallest > 8.0 * room:
        return None
    shifted = H - 2.0 * room * np.eye(len(H))
    D = np.full(len(H), 0.5 * (smallest - 2.0 * room))
    weight = 1.0
    while weight > LAST_WEIGHT and not should_stop():
        for _ in range(50):
            D, decrement = _newton_step(shifted, D, weight)
            if decrement <= CENTRED * weight or should_stop():
                break
        weight *= 0.1
    for shrink in (1.0, 1.0 - 1e-9, 1.0 - 1e-6, 1.0 - 1e-3, 0.5):
        if _definite(_less_diagonal(H, shrink * D + room)):
            return shrink * D * squares
    return None


def rounding_room(H: FloatArray, roundings: int) -> float:
    """What the smallest eigenvalue of a computed H, and a Cholesky factorisation of it, may be off by."""
    return float(2.0 * (roundings + len(H) + 32) * UNIT * np.trace(H))


def _evened(H: FloatArray) -> tuple[FloatArray, FloatArray]:
    """H for columns that are divided by powers of two near their lengths, and the squares of these (d,).

    What rounding may have done to an entry is then judged by the two columns it is of, and not by the longest of all.
    """
    diagonal = np.diagonal(H)
    even = np.where(diagonal > 0.0, np.ldexp(1.0, np.frexp(np.sqrt(np.maximum(diagonal, 0.0)))[1]), 1.0)
    return H / even[:, None] / even, even**2


def _newton_step(H: FloatArray, D: FloatArray, weight: float) -> tuple[FloatArray, float]:
    """One damped step of sum log D + weight * log det(H - diag(D)), and the squared Newton decrement before it."""
    try:
        inverse = np.linalg.inv(H - np.diag(D))
    except np.linalg.LinAlgError:
        return D, 0.0  # on the boundary, as far as rounding can tell
    gradient = 1.0 / D - weight * np.diagonal(inverse)
    step = np.linalg.solve(np.diag(1.0 / D**2) + weight * inverse**2, gradient)
    decrement = float(gradient @ step)
    length = 1.0
    while length > 1e-12:
        ahead = D + length * step
        if np.all(ahead > 0) and _definite(H - np.diag(ahead)):
            # Not onto the boundary: the next system would be singular.
            return (ahead if length == 1.0 else D + 0.9 * length * step), decrement
        length *= 0.5
    return D, 0.0


def _less_diagonal(H: FloatArray, diagonal: FloatArray | float) -> FloatArray:
    matrix = H.copy()
    matrix[np.diag_indices(len(H))] -= diagonal
    return matrix


def _definite(matrix: FloatArray) -> bool:
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return False
    return True
