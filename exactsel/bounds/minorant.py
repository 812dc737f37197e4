"""Quadratic minorants: a quadratic function that is nowhere above P on {P <= U}, wherever models that count are.

Let z0 be a vector and B a box of predictions, low <= Ax <= high, with z0 in it, and w_i the curvature row i has on
its interval from z0_i (losses/base.py). On B

    P(x) >= q(x) = L(z0) + b'(Ax - z0) + (1/2) sum_i w_i (a_i'x - z0_i)^2 + (lam/2) ||x||^2,   b = grad L(z0).

**A box that holds {P <= U}.** If {q <= U} lies inside B, away from its faces, and B holds some point with P <= U,
then B holds {P <= U}: this set is convex, so if it left B it would do so at a face, at a point with q <= P <= U, and
there is none. So intervals are widened from those of zero width at the fit, each to a little more than {q <= U}
needs, until they suffice; that takes a few rounds of O(n d^2), or too many, and then there is no minorant. From there
on every q, wherever it touches P, gives an ellipsoid {q <= U} that holds {P <= U}, and cuts the intervals.

An intercept is one more column of ones, without ridge, in every model. Row weights multiply L's rows, so b and w.

**Rounding.** The point z0, w and b (as doubles) *define* q; what b is off by, times how far a prediction may be from
z0_i, is taken off. H, h and c of x'Hx/2 - h'x + c are sums over rows: an entry of H is off by at most e sqrt(H_jj
H_kk) (Cauchy), one of h by e ||B_j|| ||w |z0| + |b| ||. With m columns of unit length and a smallest eigenvalue of at
least 1e4 m e, the exact H and the computed one are within 1e-4 of each other, as quadratic forms; intervals, which
need not be sharp, are enlarged by 1e-3. What q itself may be off by on {P <= U}, where the ellipsoid limits the
coefficients, is a number, which is added to the level.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.linalg import LinAlgError

from exactsel.algebra import dense
from exactsel.algebra.elimination import gamma
from exactsel.kernels.listing import Quadratic
from exactsel.losses.base import curvature_known
from exactsel.problem.objective import Objective
from exactsel.problem.rows import Rows, Unusable, known_fit
from exactsel.rounding import UNIT
from exactsel.types import BoolArray, FloatArray

ROUNDS = 12
"""Boxes tried."""

CUTS = 1
"""Times that intervals are cut by ellipsoids, two each time."""

TOUCHES = 0.75
"""Where q touches P in the end, on the way from the fit to the best model known (at .75 lists have 101, 43 and 2,535
sets where they have 372, 298 and 3,349 at .5; at 1.0 they are longer again)."""

WIDER = 1.03
"""Times what an ellipsoid needs: the next box."""

ENLARGED = 1e-3
"""Part by which intervals are enlarged, for rounding."""

CLOSE = 1e-4
"""By how much, as quadratic forms, the computed H may differ from the exact one for intervals to be trusted."""

LEAST_GAP = 1e-4
"""Part of U: a fit nearer to it than that counts as this far away."""

BELOW = 1e-6
"""Part of U that a point must lie below it to be certainly no worse."""


class TangentMinorant(NamedTuple):
    """q, which touches P at one point, and the ellipsoid {q <= U}."""

    quadratic: Quadratic
    constant: float
    """c, so that q(x) = x'Hx/2 - h'x + c."""
    noise: float
    """What c is off by, and the linear term in its own point."""
    noise_linear: FloatArray
    """(m,) what entries of h are off by."""
    noise_square: float
    """What entries of H are off by, as a part of the roots of its diagonal."""
    center: FloatArray
    """(m,) coefficients that minimise q, nearly."""
    value: float
    """No larger than the minimum of q."""
    radius: float
    """||x - center||_H is at most this in {q <= U}."""
    factor: FloatArray
    """(m, m) upper triangular R, R'R = H."""


class Minorant(NamedTuple):
    """q(x) <= P(x) on {P <= U}: x'Hx/2 - h'x, to be compared with ``threshold``; the scaled columns, an intercept
    last.
    """

    quadratic: Quadratic
    threshold: float
    """P(x) <= U implies that this quadratic function, without constant, is at most this; rounding included."""
    low: FloatArray
    """(n,) P(x) <= U implies low <= Ax <= high."""
    high: FloatArray
    scale: FloatArray
    """(m,) powers of two the columns were multiplied by: x of the data is this times x of q."""
    point: FloatArray
    """(m,) coefficients x of q where q touches P, nearly ..."""
    fit: FloatArray
    """(m,) ... and those of the fit on all columns."""


def touching(
    rows: Rows, z: FloatArray, low: FloatArray, high: FloatArray, upper: float, curvature: FloatArray | None = None
) -> TangentMinorant:
    """q that touches P at predictions z, on a box that holds z; with ``curvature`` (n,) where that is given."""
    values, slopes = rows.at(z)[:2]
    w = rows.curvatures(low, high, z) if curvature is None else curvature
    H, h = rows.gram(w), rows.products(w * z - slopes)
    constant, sizes, off, together = _sums(rows, _At(values, slopes, w, z), low, high)
    noise = gamma(rows.n + 64) * sizes + 1.1 * off
    noise_linear = rows.error * 1.1 * rows.lengths * together
    lengths = np.sqrt(np.diagonal(H)) * (1.0 + 4 * UNIT)
    if not (np.all(np.isfinite(H)) and np.all(lengths > 0.0)):
        raise Unusable
    m = len(H)
    unit = H / np.outer(lengths, lengths)
    convexity = 0.99 * float(np.linalg.eigvalsh(unit)[0]) - 100 * m * m * UNIT
    if not convexity * CLOSE > m * rows.error:
        raise Unusable
    factor: FloatArray = np.asarray(np.linalg.cholesky(H).T, dtype=np.float64)
    half = dense.solve_triangular(factor, h, trans="T", check_finite=False)
    center = dense.solve_triangular(factor, half, check_finite=False)
    gradient = H @ center - h
    size = float(lengths @ np.abs(center))
    off = np.abs(gradient) + 2.0 * rows.error * lengths * size + noise_linear + m * UNIT * np.abs(h)
    distance = float(np.linalg.norm(off / lengths)) / np.sqrt(convexity)
    value = 0.5 * float(center @ (gradient - h)) + constant
    value -= noise + rows.error * size * size + 2.0 * float(noise_linear @ np.abs(center)) + 0.6 * distance * distance
    gap = max(upper - value, LEAST_GAP * abs(upper))
    radius = np.sqrt(2.0 * gap) * (1.0 + ENLARGED) + 1.01 * distance
    quadratic = Quadratic(H, h, lengths, convexity)
    return TangentMinorant(quadratic, constant, noise, noise_linear, rows.error, center, value, radius, factor)


class _At(NamedTuple):
    """Rows at predictions z, all (n,)."""

    values: FloatArray
    slopes: FloatArray
    w: FloatArray
    z: FloatArray


def _sums(rows: Rows, at: _At, low: FloatArray, high: FloatArray) -> tuple[float, float, float, float]:
    """The constant of q, the sizes of what is added up in it, what slopes that are off can do on the box, and the
    length of what is added up in the linear term.
    """
    constant = sizes = off = squares = 0.0
    for part in rows.parts:
        values, slopes, w, z = (vector[part] for vector in at)
        reach = np.abs(z) + np.abs(rows.y[part])
        constant += float(np.sum(values - slopes * z + 0.5 * w * z * z))
        sizes += float(np.sum(np.abs(values) + np.abs(slopes) * reach + w * z * z))
        weights = 1.0 if rows.weights is None else rows.weights[part]
        off += float((32 * UNIT * (np.abs(slopes) + weights * reach)) @ (high[part] - low[part]))
        linear = w * np.abs(z) + np.abs(slopes)
        squares += float(linear @ linear)
    return constant, sizes, off, float(np.sqrt(squares))


def ellipsoid(rows: Rows, q: TangentMinorant) -> tuple[FloatArray, FloatArray]:
    """The predictions at the centre, and by how much they vary on {q <= U}."""
    m = len(q.center)
    # What rounding does to a_i'x is measured by ||D a_i|| ||D^-1 x||, D = diag(H)^-1/2, and ||D a_i|| by the interval.
    rounding = gamma(m + 8) * np.sqrt(m) * float(q.quadratic.lengths @ np.abs(q.center)) / q.radius
    if not rounding < ENLARGED:
        raise Unusable
    needed = rows.half_widths(q.factor)
    needed *= q.radius
    needed *= 1.0 + 2.0 * ENLARGED + rounding
    return rows.predictions(q.center), needed


def reached(rows: Rows, q: TangentMinorant) -> tuple[FloatArray, FloatArray]:
    """The lowest and the highest predictions on {q <= U}."""
    center, needed = ellipsoid(rows, q)
    lowest = center - needed
    return lowest, np.add(center, needed, out=center)


def row_intervals(rows: Rows, fit: FloatArray, value: float, upper: float) -> tuple[FloatArray, FloatArray]:
    """A box low <= Ax <= high that holds {P <= U}, widened from predictions at the ``fit``, where P is ``value``."""
    if not value < upper - BELOW * abs(upper):
        raise Unusable
    z = rows.predictions(fit)
    half = np.zeros(rows.n)
    for _ in range(ROUNDS):
        low, high = z - half, z + half
        q = touching(rows, z, low, high, upper)
        center, needed = ellipsoid(rows, q)
        if np.all(rows.empty | ((center - needed > low) & (center + needed < high))):
            return np.maximum(low, center - needed), np.minimum(high, center + needed)
        half = np.maximum(half, WIDER * (needed + np.abs(center - z)))
    raise Unusable


def _cut(rows: Rows, z: FloatArray, low: FloatArray, high: FloatArray, upper: float) -> tuple[FloatArray, FloatArray]:
    """Smaller intervals, by the q that touches P at z."""
    lowest, highest = reached(rows, touching(rows, z, low, high, upper))
    return np.maximum(low, lowest, out=lowest), np.minimum(high, highest, out=highest)


def minorant(
    objective: Objective,
    upper: float,
    best: FloatArray,
    least: float = 0.0,
    stop: BoolArray | None = None,
    threads: int = 1,
    touches: float = TOUCHES,
    without_ridge: bool = False,
) -> Minorant | None:
    """The quadratic minorant of P on {P <= upper}; None where there is none, or none that is likely to help.

    ``best`` (d,) are coefficients of a good model: q touches P on the way to it from the fit on all columns, after
    ``touches`` of it. Where P at the fit is below ``least`` times ``upper`` it is not tried, and the result is None
    once ``stop`` is set. With lam = 0 it is built only on request: columns must then be independent.
    """
    ridge = objective.lam > 0.0 or without_ridge
    if not curvature_known(objective.loss) or not ridge or not upper > 0.0:
        return None
    try:
        quiet = np.errstate(over="ignore", invalid="ignore")
        with quiet, Rows(objective, stop, threads) as rows:
            return _minorant(rows, objective, upper, best, least, touches)
    except (Unusable, LinAlgError):
        return None


def _minorant(
    rows: Rows, objective: Objective, upper: float, best: FloatArray, least: float, touches: float
) -> Minorant:
    start = rows.model(best, objective)
    fit, value = known_fit(objective, rows)
    if value < least * upper:
        raise Unusable
    low, high = row_intervals(rows, fit, value, upper)
    z, best_z = rows.predictions(fit), rows.predictions(start)
    for _ in range(CUTS):
        for share in (0.0, 0.5):
            low, high = _cut(rows, np.clip(z + share * (best_z - z), low, high), low, high, upper)
    z = np.clip(z + touches * (best_z - z), low, high)
    point = fit + touches * (start - fit)
    return as_minorant(rows, touching(rows, z, low, high, upper), low, high, upper, point, fit)


def least_curvature(rows: Rows, low: FloatArray, high: FloatArray) -> FloatArray:
    """(n,) What every row has at least anywhere on its interval, if l'' is least at an end (logistic loss)."""
    return np.asarray(np.minimum(rows.at(low)[2], rows.at(high)[2]) * (1.0 - 1e-9))


def largest_in(q: TangentMinorant) -> FloatArray:
    """(m,) the sizes coefficients can have in {q <= U}."""
    widths = np.linalg.norm(dense.solve_triangular(q.factor, np.eye(len(q.center)), check_finite=False), axis=1)
    return np.asarray(np.abs(q.center) + q.radius * widths * (1.0 + 2.0 * ENLARGED))


def as_minorant(
    rows: Rows, q: TangentMinorant, low: FloatArray, high: FloatArray, upper: float, point: FloatArray, fit: FloatArray
) -> Minorant:  # fmt: skip
    """q with a level that allows for its rounding on {P <= upper}."""
    largest = largest_in(q)
    size = float(q.quadratic.lengths @ largest)
    slack = q.noise + q.noise_square * size * size + 1.1 * float(q.noise_linear @ largest)
    threshold = upper - q.constant
    threshold += slack + 8 * UNIT * (abs(upper) + abs(q.constant))
    return Minorant(q.quadratic, threshold, low, high, rows.scale, point, fit)
