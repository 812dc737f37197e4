"""A quadratic function that is nowhere above P where models that count are (FORMAT.md, MINORANT), and its proof.

Let z be predictions, doubles, and B the box low <= Ax + c <= high of doubles that hold z. With p_i no more than the
curvature of row i on its interval (see Rows) and s_i its slope, both times its weight, P is on B at least

    q(x, c) = sum v_i + s_i (t_i - z_i) + p_i (t_i - z_i)^2 / 2 + (lam / 2) ||x||^2,    t = Ax + c.

If P is at most L' >= L at some point of B and each face of B has a q, touching P at any point, that is above L' on all
of it, then {P <= L'}, which is convex, does not leave B: where it did it would pass a face, at a point with q <= P <=
L'. So q <= P wherever P <= L.

**Rounding.** p, s and z are doubles and define q; what v and s are off by counts with the widths of B, and is taken off
the constant. Variables are scaled by r, doubles near the roots of the diagonal of q's matrix, so that this matrix K has
a diagonal of one but for roundings, and by Cauchy and Schwarz entries that are off by ``off_square``. Which faces the
ellipsoid {q <= L} stays away from is shown by any G, which comes from a Cholesky factor: with ||G'KG - I|| <= e < 1 any
a has a'K^-1 a <= ||G'a||^2 / (1 - e), which limits predictions on {q <= L}. The products of doubles this takes are
allowed for as everywhere (rigorous.py).

**Rows.** With u = 2^-53, z, y and delta doubles, r = z - y is right to one rounding, and so, piecewise, are Huber's
value and slope but for a few; comparing with delta may go wrong where it makes no difference, for both are continuous.
For logistic loss exponentials and logarithms are taken to be right to 16 units. Values and slopes are right to
:data:`ROUNDED` of their own size.

A curvature w holds on [low, high] from z, in it, if l(t) >= l(z) + l'(z)(t - z) + (w / 2)(t - z)^2 for all t there. The
largest one t allows is phi(t) = (2 / v^2) int_0^v s m(s) ds, v = t - z, with m(s) the mean of l'' between z and z + s.
As l'' of such a loss grows up to a point and falls from there on, so do m, to each side of z, and phi: a mean grows as
long as what comes in is above it, and once it is not nothing is any more. So phi is nowhere below the smaller of its
limit at z, which is l''(z), and its value at the end.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exactsel_certificates.formula import Instance
from exactsel_certificates.levels import find_levels
from exactsel_certificates.losses.base import MINORANTS, FloatArray, Loss, U
from exactsel_certificates.rigorous import TINY, gamma
from exactsel_certificates.sums import row_slices
from exactsel_certificates.work import look, spend

BLOCK = 8192
"""Rows processed together."""

ROUNDED = 64 * U
"""Part of themselves that values and slopes of rows may be off by."""

SMALLEST = 1e-100
"""An intercept needs at least so much curvature in all."""

LARGEST = 1e100
"""Predictions and widths beyond this are not used."""

CLOSE = 0.01
"""What G'KG may differ from I."""


class Minorant(NamedTuple):
    """q(x) = constant - h'(r x) + (r x)'K(r x) / 2 <= P(x) wherever P(x) <= L; with an intercept that comes last."""

    square: FloatArray
    """K (m, m), entries at most 1 but for roundings, off by ``off_square`` at most."""
    linear: FloatArray
    """h (m,)"""
    constant: float
    """Rounded downwards."""
    size: FloatArray
    """r (m,)"""
    off_square: float
    off_linear: FloatArray
    """(m,) what entries of h are off by."""


class _Box(NamedTuple):
    """Intervals of predictions (n,)."""

    low: FloatArray
    high: FloatArray


class _Touching(NamedTuple):
    """Where a q touches P."""

    x: FloatArray
    z: FloatArray
    off: FloatArray
    """(n,) how far z may be from the predictions of the model x with the intercept taken."""


def minorant(
    instance: Instance, models: FloatArray, below: FloatArray, above: FloatArray, level: float
) -> Minorant | None:  # fmt: skip
    """The minorant that touches P at the first of some models (B, d); None where it is not shown to hold.

    Intervals go from ``below`` less to ``above`` more than the predictions of the first one (n,). The others help to
    show it. ``level`` is L. For losses that serve minorants.
    """
    if MINORANTS not in instance.formulas.serves:
        return None
    with np.errstate(all="ignore"):
        points = [_touching(instance, x) for x in models]
        box = _Box(points[0].z - below, points[0].z + above)
        room = 4.0 * points[0].off
        included = np.all(points[0].z - box.low > room) and np.all(box.high - points[0].z > room)
        if not (included and np.all(np.maximum(-box.low, box.high) < LARGEST)):
            return None
        # Then B holds a point of {P <= held}, and all of it.
        held = max(level, _objective(instance, points[0]))
        first, faces = None, np.zeros((2, len(points[0].z)), dtype=np.bool_)
        for at in points:
            spend(4.0 * len(at.z) * len(at.x) ** 2 + 4.0 * float(len(at.x)) ** 3)
            # What touches beyond the box holds nowhere.
            q = _function(instance, at, box) if np.all((box.low <= at.z) & (at.z <= box.high)) else None
            first = q if at is points[0] else first
            if q is None or first is None:
                continue
            faces |= _away(instance, q, box, held)
        return first if np.all(faces) else None


def _touching(instance: Instance, x: FloatArray) -> _Touching:
    A, y, d = np.asarray(instance.A), np.asarray(instance.y), len(x)
    z, sizes = A @ x, np.concatenate([np.abs(A[rows]) @ np.abs(x) for rows in _blocks(len(y))])
    if instance.intercept:
        level = find_levels(instance.formulas, y, instance.weights, z[None])[0]
        z, sizes = z + level, sizes + abs(level)
    return _Touching(x, z, gamma(d + 4) * sizes + d * TINY)


def _objective(instance: Instance, at: _Touching) -> float:
    """P at the model x and the intercept that z was made with, rounded upwards: a point of B, as ``off`` is small."""
    values, slopes = values_and_slopes(instance.formulas, at.z, np.asarray(instance.y))
    rows = values + (np.abs(slopes) * (1.0 + ROUNDED) + at.off) * at.off
    rows = rows if instance.weights is None else instance.weights * (rows + TINY)
    total = float(np.sum(rows) + 0.5 * instance.lam * np.sum(at.x * at.x))
    return total * (1.0 + gamma(len(rows) + len(at.x)) + 2 * ROUNDED) + TINY


def _function(instance: Instance, at: _Touching, box: _Box) -> Minorant | None:
    y, n = np.asarray(instance.y), len(at.z)
    values, slopes = values_and_slopes(instance.formulas, at.z, y)
    p = curvatures(instance.formulas, at.z, y, box.low, box.high)
    if instance.weights is not None:
        values, slopes, p = (part * instance.weights for part in (values, slopes, p * (1.0 - 4 * U)))
    size, lengths, ridge = _sizes(instance, p)
    if not (np.all(size > SMALLEST) and np.all(np.isfinite(size))):
        return None
    K, h, terms = np.diag(ridge / size / size), np.zeros(len(size)), np.empty(n)
    sizes, reached, squares = 0.0, 0.0, 0.0
    for rows in _blocks(n):
        look()
        z, value, slope, bend = at.z[rows], values[rows], slopes[rows], p[rows]
        part = _scaled(instance, rows, size)
        h += (bend * z - slope) @ part
        part *= np.sqrt(bend)[:, None]
        K += part.T @ part
        square = bend * z * z
        terms[rows] = value - slope * z + 0.5 * square
        sizes += float(np.sum(np.abs(value) + np.abs(slope * z) + square))
        reach = (box.high[rows] - box.low[rows]) * (1.0 + 4 * U)
        reached += float(np.sum(np.abs(value) + np.abs(slope) * reach))
        squares += float(np.sum((np.abs(bend * z) + np.abs(slope)) ** 2))
    constant = math.fsum(terms) if np.all(np.isfinite(terms)) else np.nan
    noise = gamma(16) * sizes + 1.01 * ROUNDED * reached
    noise += TINY * n * (1.0 if instance.weights is None else float(np.max(instance.weights)))
    together = math.sqrt(squares)
    many = min(n, BLOCK) + n // BLOCK
    off_linear = 1.01 * (gamma(many + 24) * lengths / size * together + n * TINY)
    q = Minorant(0.5 * (K + K.T), h, constant - 1.01 * noise, size, 1.01 * gamma(many + 24), off_linear)
    return q if all(np.all(np.isfinite(part)) for part in (K, h, q.constant, off_linear)) else None


def _sizes(instance: Instance, p: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """r, the lengths of the columns and their ridge (m,)."""
    A = np.asarray(instance.A)
    ridge = np.full(A.shape[1], instance.lam)
    if instance.lam == 0.0:
        # Coefficients of columns of zeros change nothing, so of models only those count that have none there.
        ridge[~np.any(A, axis=0)] = 1.0
    squares, lengths = ridge.copy(), np.zeros(A.shape[1])
    for rows in _blocks(len(p)):
        part = A[rows] * A[rows]
        squares += p[rows] @ part
        lengths += np.sum(part, axis=0)
    if instance.intercept:
        squares, lengths, ridge = np.append(squares, np.sum(p)), np.append(lengths, len(p)), np.append(ridge, 0.0)
    return np.sqrt(squares), np.sqrt(lengths), ridge


def _blocks(n: int) -> list[slice]:
    return [slice(first, min(first + BLOCK, n)) for first in range(0, n, BLOCK)]


def _scaled(instance: Instance, rows: slice, size: FloatArray) -> FloatArray:
    """Some rows (., m) of the data divided by r, with a column of ones for an intercept before."""
    part = np.asarray(instance.A)[rows]
    if instance.intercept:
        part = np.hstack([part, np.ones((len(part), 1))])
    return np.asarray(part / size)


def _away(instance: Instance, q: Minorant, box: _Box, level: float) -> NDArray[np.bool_]:
    """Which lower and which upper faces of the box (2, n) the ellipsoid {q <= level} stays away from."""
    K, h, m = q.square, q.linear, len(q.linear)
    none = np.zeros((2, len(box.low)), dtype=np.bool_)
    try:
        G = np.linalg.inv(np.linalg.cholesky(K)).T
    except np.linalg.LinAlgError:
        return none
    reach = np.sum(np.abs(G), axis=0)
    entries = 1.01 * (q.off_square + 1.1 * gamma(2 * m + 16))
    apart = float(np.linalg.norm(G.T @ K @ G - np.eye(m))) + entries * float(reach @ reach)
    if not apart <= CLOSE:
        return none
    wider = (1.0 + 4 * U) / np.sqrt(1.0 - 1.01 * apart)
    center = G @ (G.T @ h)
    gradient = K @ center - h
    total = float(np.sum(np.abs(center)))
    off = 1.01 * ((q.off_square + 1.1 * gamma(m + 8)) * total + q.off_linear + gamma(m + 8) * np.abs(h))
    value = 0.5 * float(center @ (gradient - h)) + q.constant
    value -= 1.01 * float(np.abs(center) @ (off + q.off_linear + gamma(m + 8) * (np.abs(gradient) + np.abs(h))))
    value -= 8 * U * (abs(q.constant) + abs(value))
    slope = 1.01 * wider * float(np.linalg.norm(np.abs(G).T @ (np.abs(gradient) + off)))
    radius = (1.0 + 32 * U) * (slope + np.sqrt(slope * slope + 2.0 * max(0.0, level - value)))
    return _beyond(instance, box, q.size, G, center, wider * radius) if np.isfinite(radius) else none


def _beyond(
    instance: Instance, box: _Box, size: FloatArray, G: FloatArray, center: FloatArray, radius: float
) -> NDArray[np.bool_]:  # fmt: skip
    """Which lower and upper faces (2, n) no point reaches that is at most ``radius`` from the center, by ||G^-1 .||."""
    rough, long = gamma(len(center) + 8) * np.abs(center), gamma(len(center) + 8) * np.linalg.norm(G, axis=1)
    result = np.zeros((2, len(box.low)), dtype=np.bool_)
    for rows in _blocks(len(box.low)):
        look()
        part = _scaled(instance, rows, size)
        middle = part @ center
        turned = part @ G
        sizes = np.abs(part, out=part)
        half = np.sqrt(np.einsum("ij,ij->i", turned, turned)) * (1.0 + gamma(len(center) + 8)) + sizes @ long
        room = half * radius * (1.0 + 8 * U) + 1.01 * (sizes @ rough) + TINY
        result[0, rows], result[1, rows] = middle - room > box.low[rows], middle + room < box.high[rows]
    return result


def values_and_slopes(loss: Loss, z: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """l and l' of each row, all (n,)."""
    rows = row_slices(len(z))
    values = np.concatenate([loss.values(z[some], y[some]) for some in rows])
    return np.asarray(values, dtype=np.float64), np.concatenate([loss.slopes(z[some], y[some]) for some in rows])


def curvatures(loss: Loss, z: FloatArray, y: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Curvatures (n,) of the rows on [low, high] from z, rounded downwards; never negative."""
    found = np.empty(len(z))
    for rows in row_slices(len(z)):
        w = loss.curvature_on(z[rows], y[rows], low[rows], high[rows])
        found[rows] = np.where(w > 0.0, w, 0.0)  # nan is 0, too
    return found
