"""Close listed sets that hold no model as good as U, in a Newton step or two each, by one curvature for all of them.

Where rows have at least the curvature w on the whole box that holds {P <= U}, for any point z of it,

    P(x) >= L(z) + b'(Ax - z) + (1/2) sum_i w_i (a_i'x - z_i)^2 + (lam/2) ||x||^2,   b = grad L(z),

is a minorant on {P <= U} (bounds/minorant.py), and the Gram matrix of w serves every z and every set. At predictions
near those of a set's best model its least value on the set is nearly that of P: what is missing is of second order in
the gradient, with this curvature in place of the ridge alone. So a set that is above U is known to be long before
Newton's method has converged.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from exactsel._jit import njit, prange
from exactsel.kernels.levels import plain_rows, row_bend
from exactsel.kernels.linalg import cholesky, cholesky_solve, correlate, predict
from exactsel.kernels.listing import Quadratic, lowest
from exactsel.kernels.rows import weighted_gram
from exactsel.rounding import UNIT
from exactsel.types import BoolArray, FloatArray, IntArray

CONVERGED = 1e-11
"""Part of the objective that a Newton step must promise for another to be made."""


class Box(NamedTuple):
    """Where {P <= U} is, the curvature there, and a bound on the rounding."""

    low: FloatArray
    """(n,) P(x) <= U implies low <= Ax <= high."""
    high: FloatArray
    w: FloatArray
    """(n,) no row has less curvature between them; weights included."""
    ridge: FloatArray
    """(m,) of the scaled columns."""
    scale: FloatArray
    """(m,) powers of two the columns were multiplied by."""
    lengths: FloatArray
    """(m,) of the scaled columns, rounded upwards."""
    largest: FloatArray
    """(m,) P(x) <= U implies that coefficients are no larger."""
    sums: float
    """What a sum over rows, of terms that are functions of z, may be off by, as a part of the size of its terms."""
    products: float
    """What an entry of a product of columns with a vector may be off by, as a part of the lengths."""
    slack: float
    """What the Gram matrix of w may be off by, in x'Hx/2."""
    upper: float
    """U."""


@njit
def _below(
    box: Box, H: FloatArray, columns: IntArray, x: FloatArray, z: FloatArray, y: FloatArray, weights: FloatArray,
    values: FloatArray, slopes: FloatArray, B: FloatArray, q: Quadratic, linear: FloatArray,
) -> bool:  # fmt: skip
    """Whether the minorant that touches P at z is above U on a set; values and slopes (of the loss alone) are at z.

    ``H`` receives the Cholesky factor of the Gram matrix on the set, x the coefficients with the least value.
    """
    count = columns.size
    constant, sizes, off_slopes, squares = 0.0, 0.0, 0.0, 0.0
    for i in range(z.size):
        weight = weights[i] if weights.size > 0 else 1.0
        value, slope, w = weight * values[i], weight * slopes[i], box.w[i]
        linear[i] = w * z[i] - slope
        constant += value - slope * z[i] + 0.5 * w * z[i] * z[i]
        sizes += abs(value) + abs(slope) * (abs(z[i]) + abs(y[i])) + w * z[i] * z[i]
        off_slopes += (abs(slope) + weight * (abs(z[i]) + abs(y[i]))) * (box.high[i] - box.low[i])
        size = w * abs(z[i]) + abs(slope)
        squares += size * size
    h = np.empty(count)
    correlate(B, columns, linear, h)
    noise = box.sums * sizes + 40.0 * UNIT * off_slopes + box.slack
    for a in range(count):
        j = columns[a]
        q.h[j], x[a] = h[a], h[a]
        noise += 1.3 * box.products * box.lengths[j] * squares**0.5 * box.largest[j]
        for b in range(a + 1):
            H[a, b] = q.H[j, columns[b]]
    if not cholesky(H):
        return False
    cholesky_solve(H, x)
    threshold = box.upper - constant + noise + 16 * UNIT * (abs(box.upper) + abs(constant))
    return bool(lowest(q, columns, count, x) > threshold)


@njit(parallel=True)
def close_sets(
    loss: Any, B: FloatArray, y: FloatArray, weights: FloatArray, q: Quadratic, box: Box, sets: IntArray, first: int,
    steps: int, stop: BoolArray, models: FloatArray, closed: BoolArray,
) -> None:  # fmt: skip
    """Say which sets are ``closed``: no model on them has P <= U. The others may have one, or not.

    B (m, n) holds the scaled columns, those from ``first`` on (an intercept) in every model; q.H is the Gram matrix of
    the curvature, ridge included. Rows of ``models`` hold coefficients to begin at, as
    ``raise_bounds`` writes them. It takes ``steps`` Newton steps at most, and halves those that go too far.
    """
    others = q.h.size - first
    for i in prange(sets.shape[0]):
        closed[i] = False
        if not stop[0]:
            width, n, chosen = sets.shape[1], y.size, np.sum(sets[i] >= 0)
            columns, x = np.empty(chosen + others, dtype=np.int64), np.empty(chosen + others)
            at = 0
            for a in range(width):
                if sets[i, a] >= 0:
                    columns[at], x[at] = sets[i, a], models[i, at] / box.scale[sets[i, a]]
                    at += 1
            for j in range(first, q.h.size):
                columns[at], x[at] = j, models[i, width + j - first] / box.scale[j]
                at += 1
            own = Quadratic(q.H, np.zeros(q.h.size), q.lengths, q.convexity)
            H, move, spare = np.empty((at, at)), np.zeros(at), np.empty(at)
            z, values, slopes, rest = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
            last = np.inf
            for step in range(steps + 1):
                predict(B, columns, x, z)
                for row in range(n):
                    rest[row] = z[row]
                    z[row] = min(max(z[row], box.low[row]), box.high[row])
                    rest[row] -= z[row]
                plain_rows(loss, z, y, values, slopes)
                # What P is, with rows that go straight on outside of the box.
                value = 0.0
                for row in range(n):
                    weight = weights[row] if weights.size > 0 else 1.0
                    value += weight * (values[row] + slopes[row] * rest[row])
                for a in range(at):
                    value += 0.5 * box.ridge[columns[a]] * x[a] * x[a]
                closed[i] = _below(box, H, columns, spare, z, y, weights, values, slopes, B, own, rest)
                if closed[i] or step == steps:
                    break
                if value > last:
                    for a in range(at):
                        move[a] *= 0.5
                        x[a] += move[a]
                    continue
                last = value
                for row in range(n):
                    weight = weights[row] if weights.size > 0 else 1.0
                    rest[row] = weight * row_bend(loss, z[row], y[row], slopes[row])
                    slopes[row] *= weight
                correlate(B, columns, slopes, move)
                weighted_gram(loss, B, columns, rest, 0.0, H)
                for a in range(at):
                    move[a] += box.ridge[columns[a]] * x[a]
                    H[a, a] += box.ridge[columns[a]]
                    spare[a] = move[a]
                if not cholesky(H):
                    break
                cholesky_solve(H, move)
                slope = 0.0
                for a in range(at):
                    slope += move[a] * spare[a]
                    x[a] -= move[a]
                if not slope > CONVERGED * abs(value):
                    break
