"""Splits of the quadratic objective's curvature: the part that may be moved into separate terms, one per column.

With H = A'A + lam I and a diagonal D such that H - diag(D) is positive semidefinite, the objective is a convex
quadratic plus (1/2) sum D_j x_j^2, and the perspective relaxation strengthens the second part. D = lam is what the
ridge gives; the larger D, the better the bound, and D may be positive where lam is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from exactsel.algebra import dense
from exactsel.algebra.spectrum import smallest_eigenvalue
from exactsel.rounding import UNIT
from exactsel.types import FloatArray

WEIGHTS = ((1.0, 0.5), (0.1, 0.5), (0.01, 0.1))
"""Of the barrier, and the squared Newton decrement, in units of the weight, at which the next one may come. At the
last one D is as good as optimal: bounds change by less than a per mille."""

FEWER_WEIGHTS = ((1.0, 50.0), (0.3, 100.0), (0.1, 50.0))
"""Where columns are many, so that steps take long: a third of the steps, and D is lower by .2 to .3 per cent. Most of
that is made up for by what D may grow as a whole in the end."""

TO_THE_BOUNDARY = 0.9
"""Part of the way to the boundary that a step may go: on it the next system would be singular."""

IN_SINGLE_PRECISION = 1e-4
"""Smallest eigenvalue, relative to the largest diagonal entry, from which on steps in single precision do."""

DENSE_FROM = 200
"""Columns from which on Cholesky factors of scipy.linalg, in single precision too, save more than its import takes, and
fewer steps more than a better D is worth."""

GROWN = 0.9
"""Part of the rest to the boundary, as estimated by iterations, by which D grows in the end."""

POWERS = 20
"""Iterations for a largest eigenvalue that needs no digits."""

BALANCED_UP_TO = 600
"""Columns up to which D is balanced: some twenty inversions, of which each takes O(d^3)."""

BALANCED_SECONDS, UNIFORM_SECONDS = 5e-9, 1e-10
"""Rough seconds for either kind of D, times d^3."""

SHARE_OF_TIME = 0.25
"""Part of a time limit the curvature may take."""


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
        Called between steps; once it returns True the D reached is taken.
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
        Called between steps; once it returns True the D reached is taken.

    Returns
    -------
    array (d,) or None
        Such that H - diag(D) is positive semidefinite for the exact numbers of the data too: it was verified by a
        Cholesky factorisation with room for all rounding. None where H is too close to singular.
    """
    H, squares = _evened(H)
    room, many = rounding_room(H, roundings), len(H) >= DENSE_FROM
    single = many and _definite(_less_diagonal(H, max(8.0 * room, IN_SINGLE_PRECISION * float(np.diagonal(H).max()))))
    smallest = math.inf if single else float(np.linalg.eigvalsh(H)[0])
    if not smallest > 8.0 * room:
        return None
    climb = (_ClimbInBlocks if many else _Climb)(H, room, np.float32 if single else np.float64)
    for weight, centred in FEWER_WEIGHTS if many else WEIGHTS:
        for _ in range(50):
            if should_stop() or climb.step(weight) <= centred * weight:
                break
    D = climb.D
    if not np.all(np.isfinite(D) & (D > 0.0)):  # a factorisation need not end where it meets a nan
        return None
    for shrink in (climb.may_grow(), 1.0, 1.0 - 1e-9, 1.0 - 1e-6, 1.0 - 1e-3, 0.5):
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
    scale = np.where(diagonal > 0.0, np.ldexp(1.0, np.frexp(np.sqrt(np.maximum(diagonal, 0.0)))[1]), 1.0)
    return H / scale[:, None] / scale, scale**2


class _Climb:
    """Newton's method for sum_j log D_j + weight * log det(H - diag(D)); ``D`` (d,) is how far it has come.

    The steps may be taken in single precision: any D they lead to is verified in double precision afterwards.
    """

    def __init__(self, H: FloatArray, room: float, precision: type[np.floating]) -> None:
        """``room`` is what rounding is left of the eigenvalues of H."""
        self.H = np.asfortranarray(_less_diagonal(H, 2.0 * room), dtype=precision)
        self.D = self._start()
        self.inverse = self._inverse(self.D) if np.all(self.D > 0.0) else None
        if self.inverse is None:
            self.D = np.full(len(H), 0.5 * (float(np.linalg.eigvalsh(H)[0]) - 2.0 * room))
            self.inverse = self._inverse(self.D)

    def _inverse(self, D: FloatArray) -> FloatArray | None:
        """Of H - diag(D), where it is positive definite; its lower triangle will do."""
        matrix = _less_diagonal(self.H, D.astype(self.H.dtype))
        try:
            return np.asarray(np.linalg.inv(matrix)) if _definite(matrix) else None
        except np.linalg.LinAlgError:  # on the boundary: the one factorisation ends, the other does not
            return None

    def _solution(self, system: FloatArray, right: FloatArray) -> FloatArray | None:
        """Of a positive definite system, whose lower triangle is there; None where it cannot be had."""
        try:
            return np.asarray(np.linalg.solve(system, right))
        except np.linalg.LinAlgError:
            return None

    def _start(self) -> FloatArray:
        """Half of the largest possible multiple of the inverse's diagonal, inverted; zero where H has no inverse."""
        K = self._inverse(np.zeros(len(self.H)))
        if K is None:
            return np.zeros(len(self.H))
        scale = 1.0 / np.sqrt(np.diagonal(K))
        return np.asarray(0.5 * scale**2 / _largest(self._whole(K) * scale[:, None] * scale), dtype=float)

    def _whole(self, inverse: FloatArray) -> FloatArray:
        """An inverse with both triangles."""
        return inverse

    def may_grow(self) -> float:
        """A factor that D may be multiplied by, as estimated by iterations."""
        return 1.0

    def step(self, weight: float) -> float:
        """One damped step; the squared Newton decrement before it, 0 where there is no way on."""
        D, K = self.D, self.inverse
        if K is None:
            return 0.0  # on the boundary, up to rounding
        gradient = 1.0 / D - weight * np.diagonal(K).astype(float)
        # In units of D, so that columns of very different curvature are alike.
        system = weight * (K * D[:, None].astype(K.dtype) * D.astype(K.dtype) * K)
        system[np.diag_indices(len(D))] += 1.0
        solution = self._solution(system, (D * gradient).astype(K.dtype))
        if solution is None:
            return 0.0
        relative = solution.astype(float)
        decrement = float(D * gradient @ relative)
        if not decrement > 0.0:
            return 0.0
        length = min(1.0, TO_THE_BOUNDARY / max(1e-300, float(-relative.min())))
        while length > 1e-12:
            ahead = D * (1.0 + length * relative)
            inverse = self._inverse(ahead)
            if inverse is not None:
                self.D, self.inverse = ahead, inverse
                return decrement
            length *= 0.5
        return 0.0


class _ClimbInBlocks(_Climb):
    """The same by Cholesky factors of scipy.linalg, of which the lower triangles are used."""

    def _inverse(self, D: FloatArray) -> FloatArray | None:
        matrix = _less_diagonal(self.H, D.astype(self.H.dtype))
        factorise, invert = dense.get_lapack_funcs(("potrf", "potri"), (matrix,))
        factor, failed = factorise(matrix, lower=1, overwrite_a=1, clean=0)
        return None if failed else np.asarray(invert(factor, lower=1, overwrite_c=1)[0])

    def _solution(self, system: FloatArray, right: FloatArray) -> FloatArray | None:
        factorise, solve = dense.get_lapack_funcs(("potrf", "potrs"), (system,))
        factor, failed = factorise(system, lower=1, overwrite_a=1, clean=0)
        return None if failed else np.asarray(solve(factor, right, lower=1)[0])

    def _whole(self, inverse: FloatArray) -> FloatArray:
        below = np.tril(inverse, -1)
        return np.asarray(below + below.T + np.diag(np.diagonal(inverse)))

    def may_grow(self) -> float:
        if self.inverse is None:
            return 1.0
        root = np.sqrt(self.D).astype(self.H.dtype)
        largest = _largest(self._whole(self.inverse) * root[:, None] * root)
        return 1.0 + GROWN / float(largest) if largest > 0.0 else 1.0


def _largest(matrix: FloatArray) -> np.floating:
    """About the largest eigenvalue of a positive definite matrix, from below."""
    vector = np.ones(len(matrix), dtype=matrix.dtype)
    for _ in range(POWERS):
        vector = matrix @ vector
        vector /= np.linalg.norm(vector)
    return np.linalg.norm(matrix @ vector)


def _less_diagonal(H: FloatArray, diagonal: FloatArray | float) -> FloatArray:
    matrix = H.copy(order="K")
    matrix[np.diag_indices(len(H))] -= diagonal
    return matrix


def _definite(matrix: FloatArray) -> bool:
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return False
    return True
