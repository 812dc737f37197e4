"""The node bound, formula (2), evaluated so that rounding can never lift it.

For a dual vector b with correlations v = A'b and q = v^2, every model of the node (S, C) with r places left costs
at least

    D(b; S, C, r) = -L*(b) - (1 / 2 lam) ( sum_{j in S} q_j  +  the r largest q_j, j in C ).            (2)

b is always the gradient of L at some z, where Fenchel's equality gives -L*(b) = L(z) - b'z. The functions here
return ``base``, a lower estimate of -L*(b), and ``q``, upper estimates of the squares: both are moved outwards by the
a-priori error of a floating-point sum (valid for every order of summation within a block of rows, blocks being added
one after another, see :mod:`exactsel.kernels.linalg`), so the bound built from them, and every
bound a child inherits, holds for the exact numbers of the data.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from exactsel._jit import njit
from exactsel.kernels.columns import Columns
from exactsel.kernels.linalg import BLOCK, correlate, dot, sum_roundings
from exactsel.kernels.loss import point_conjugate
from exactsel.kernels.rows import dual_rows
from exactsel.kernels.selection import top_sum
from exactsel.rounding import UNIT
from exactsel.types import FloatArray, IntArray


@njit(inline=True)
def _squares(
    AT: Columns, norms: FloatArray, columns: IntArray, b: FloatArray, roundings: int, q: FloatArray, v: FloatArray
) -> None:
    """Correlations v of the listed columns with b, and upper estimates q of their squares."""
    rounding = roundings * UNIT * 1.01 * np.sqrt(dot(b, b))
    correlate(AT, columns, b, v)
    for i in range(columns.size):
        upper = abs(v[i]) + rounding * norms[columns[i]]
        q[i] = upper * upper * (1.0 + 8 * UNIT)


@njit(inline=True)
def dual_at_point(
    loss: Any, AT: Columns, y: FloatArray, norms: FloatArray, columns: IntArray,
    z: FloatArray, b: FloatArray, q: FloatArray, v: FloatArray,
) -> float:  # fmt: skip
    """Take b = grad L(z); write b, v and q; return ``base`` <= -L*(b). Any z will do.

    With an intercept z comes back levelled, see :mod:`exactsel.kernels.levels`.
    """
    base, roundings = dual_rows(loss, z, y, b)
    _squares(AT, norms, columns, b, roundings, q, v)
    return float(base)


@njit
def dual_at_vector(
    loss: Any, AT: Columns, y: FloatArray, norms: FloatArray, columns: IntArray,
    b: FloatArray, q: FloatArray, v: FloatArray,
) -> float:  # fmt: skip
    """As :func:`dual_at_point` for a b in the domain of L*, by the conjugate itself."""
    total, magnitude, many = 0.0, 0.0, sum_roundings(b.size)
    for first in range(0, b.size, BLOCK):
        part, size = 0.0, 0.0
        for i in range(first, min(first + BLOCK, b.size)):
            value = point_conjugate(loss, b[i], y[i])
            part -= value
            size += abs(value) + abs(b[i]) * (abs(y[i]) + abs(b[i]))
        total += part
        magnitude += size
    _squares(AT, norms, columns, b, many + 16, q, v)
    return float(total - (many + 32) * UNIT * magnitude)


@njit
def dual_from_gram(
    Gx: FloatArray, b: FloatArray, constant: float, roundings: int,
    norms: FloatArray, x: FloatArray, q: FloatArray,
) -> float:  # fmt: skip
    """Quadratic loss in Gram form: base and q at the dual vector Ax - y, all arguments compact.

    Gx = G x, b = A'y, ``constant`` = ||y||^2/2, ``norms`` the column norms, ``roundings`` those of an
    entry of G at most, see :class:`exactsel.kernels.forms.GramData`. Costs O(m).
    """
    size = 0.0
    quadratic = 0.0
    for i in range(x.size):
        size += abs(x[i]) * norms[i]
        quadratic += x[i] * Gx[i]
    target = np.sqrt(2.0 * constant)
    unit = (roundings + 2 * x.size + 32) * UNIT
    for i in range(x.size):
        upper = abs(Gx[i] - b[i]) + unit * norms[i] * (size + target)
        q[i] = upper * upper * (1.0 + 8 * UNIT)
    return constant - 0.5 * quadratic - unit * (constant + size * size)


@njit
def node_bound(base: float, q: FloatArray, fixed: int, slots: int, lam: float, ranked: FloatArray) -> float:
    """Formula (2) from ``base`` and ``q``; ``ranked`` receives the largest q of C in descending order."""
    total = top_sum(q, fixed, slots, ranked)
    for j in range(fixed):
        total += q[j]
    return float(base - total * (1.0 + (q.size + 8) * UNIT) / (2.0 * lam))


@njit
def child_bounds(
    bound: float, q: FloatArray, fixed: int, slots: int, lam: float, ranked: FloatArray,
    bound_in: FloatArray, bound_out: FloatArray,
) -> None:  # fmt: skip
    """Bounds of the children that fix each candidate to 1 or to 0, by the same dual vector.

    Fixing to 1 a column outside the r largest pushes the r-th largest out of the sum; fixing to 0 one inside lets the
    next one in. ``ranked`` is as :func:`node_bound` left it.
    """
    shave = 1.0 - (q.size + 16) * UNIT
    bound_in[:fixed] = bound
    bound_out[:fixed] = bound
    weakest = ranked[slots - 1] if slots > 0 else 0.0
    following = max(ranked[slots], 0.0)
    for j in range(fixed, q.size):
        bound_in[j] = bound + max(0.0, weakest - q[j]) * shave / (2.0 * lam) if weakest > -np.inf else bound
        bound_out[j] = bound + max(0.0, q[j] - following) * shave / (2.0 * lam)
