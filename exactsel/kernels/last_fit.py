"""The fit on a few columns, and what adding others to them would cost: where regions with one or two places end.

x is near the best model on S, z = Ax, b = grad L(z), pi_i = -y_i b_i the probability logistic loss gives the wrong
label. For a candidate j let c_j = H^-1 A_S'Wa_j and r_j = a_j - A_S c_j, with W = diag(omega) and H = A_S'WA_S + lam I:
adding d_j units of j and moving S along changes the predictions by t = sum d_j r_j and, to first order, b by Wt.

The dual vector b' = b + Wt is as good as any other (formula (2)), and -L*(b') is known without a logarithm: with
h(u) = (1 + u) log(1 + u) one row of L* rises by z_i (b'_i - b_i) plus

    KL = pi h(s) + (1 - pi) h(s'),   s = eta / pi,  s' = -eta / (1 - pi),   eta = the change of pi,

and h(u) <= u + u^2/2 - u^3/6 + u^4 (1/12 + |u|/20 + u^2/5) for u >= -1. (The series of h at -s has the terms
s^m / (m (m - 1)), whose sum from m = 6 on is at most s^6 / 5; for u > 0 the fourth derivative 2 / (1 + u)^3 is at most
2.) The weights omega may be any: they are pi (1 - pi), less where a probability is extreme, since eta must leave
pi + eta in [0, 1].
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from exactsel._jit import njit
from exactsel.kernels.dual import dual_at_point, node_bound
from exactsel.kernels.linalg import cholesky, cholesky_solve, correlate, dot, predict
from exactsel.kernels.rows import total_value
from exactsel.rounding import UNIT
from exactsel.types import FloatArray, IntArray

REACH = 2.0
"""A row's weight is lowered where its probability would leave [0, 1] at a change of the prediction of this size."""

EXTREME = 1e-6
"""Rows whose probability is nearer to 0 or 1 get no weight: 1 - pi has too few digits."""

FIT_STEPS = 30

SHARE = 1e-5
"""Part of the room left that the fit may be short of its minimum."""


class SmallFit(NamedTuple):
    """A model near the best one on S (k columns), and the quadratic around it. Filled by :func:`fit_small`."""

    columns: IntArray
    x: FloatArray
    z: FloatArray
    """(n,) Ax."""
    b: FloatArray
    gradient: FloatArray
    """(k,) upper estimates of |A_S'b + lam x|."""
    weights: FloatArray
    """(n,) omega, as the other arrays of this length."""
    roots: FloatArray
    """Square roots of omega."""
    upward: FloatArray
    """Change of pi / (1 - pi) times -1, for one unit of the prediction ..."""
    downward: FloatArray
    """... and of pi, both divided by what may not be exceeded."""
    thirds: FloatArray
    """Six times the cubic term of KL for one unit of the prediction, with its sign."""
    fourths: FloatArray
    """The quartic term for one unit, without the factor 1/12 + ..."""
    of_pi: FloatArray
    """1 / pi ..."""
    of_rest: FloatArray
    """... and 1 / (1 - pi), neither more than 1 / EXTREME."""
    weighted: FloatArray
    """(k, n) the columns of S times omega."""
    factor: FloatArray
    """(k, k) Cholesky factor of H, in the lower triangle."""
    lengths: FloatArray
    """(k,) square roots of the diagonal of H."""


class Candidates(NamedTuple):
    """What is known about m candidates: rows of arrays."""

    columns: IntArray
    scaled: FloatArray
    """(m, n + k) r_j times the square roots of omega, and sqrt(lam) c_j: their products are the bends of pairs."""
    moves: FloatArray
    """(m, k) c_j."""
    slopes: FloatArray
    """a_j'b."""
    bends: FloatArray
    """r_j'Wr_j + lam (1 + ||c_j||^2): the curvature along one unit of j, S moved along."""
    thirds: FloatArray
    """The cubic term of one unit of j alone, times six, with its sign ..."""
    third_sizes: FloatArray
    """... and the cube root of it without signs: a norm, so that sums of candidates obey the triangle inequality."""
    fourth_sizes: FloatArray
    """The fourth root of the quartic term, likewise."""
    reach_up: FloatArray
    """The largest part of what is allowed that one unit of j makes of a row's probability ..."""
    reach_down: FloatArray
    """... and minus one unit."""
    sizes: FloatArray
    """A bound of the W-length of r_j and of everything summed up on the way to it."""
    doubts: FloatArray
    """What may be wrong about the slopes, and about S for one unit of j."""


@njit
def empty_fit(columns: IntArray, x: FloatArray, n: int) -> SmallFit:
    """Room for a fit on these columns that begins at x."""
    k = columns.size
    return SmallFit(
        columns, x, np.empty(n), np.empty(n), np.empty(k), np.empty(n), np.empty(n), np.empty(n), np.empty(n),
        np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty((k, n)), np.empty((k, k)), np.empty(k),
    )  # fmt: skip


@njit
def empty_candidates(m: int, n: int, k: int) -> Candidates:
    """Room for m candidates beside k columns."""
    return Candidates(
        np.empty(m, dtype=np.int64), np.empty((m, n + k)), np.empty((m, k)), np.empty(m), np.empty(m), np.empty(m),
        np.empty(m), np.empty(m), np.empty(m), np.empty(m), np.empty(m), np.empty(m),
    )  # fmt: skip


@njit
def _hessian(AT: FloatArray, fit: SmallFit, lam: float) -> bool:
    """Factor A_S'WA_S + lam I for the weights of the fit."""
    for a in range(fit.columns.size):
        column, row = AT[fit.columns[a]], fit.weighted[a]
        for i in range(column.size):
            row[i] = fit.weights[i] * column[i]
        for e in range(a + 1):
            fit.factor[a, e] = dot(row, AT[fit.columns[e]])
        fit.factor[a, a] += lam
        fit.lengths[a] = np.sqrt(fit.factor[a, a])
    return bool(cholesky(fit.factor))


@njit
def _descend(loss: Any, AT: FloatArray, y: FloatArray, lam: float, cutoff: float, fit: SmallFit) -> bool:
    """Newton's method on the columns of the fit; whether it came to an end above the cut-off."""
    k = fit.columns.size
    values, trial, step = np.empty(y.size), np.empty(k), np.empty(k)
    value, length = np.inf, 0.0
    for _ in range(FIT_STEPS):
        predict(AT, fit.columns, fit.x, fit.z)
        new = total_value(loss, fit.z, y, values, fit.b) + 0.5 * lam * dot(fit.x, fit.x)
        if not new < value + 1e-12 * abs(new):
            if not length > 1e-3:
                return bool(new >= cutoff)
            length *= 0.5
            for a in range(k):
                fit.x[a] = trial[a] - length * step[a]
            continue
        value = new
        correlate(AT, fit.columns, fit.b, step)
        for a in range(k):
            step[a] += lam * fit.x[a]
        short = dot(step, step) / (2.0 * lam)
        if value < cutoff or short <= SHARE * (value - cutoff):
            return bool(value >= cutoff)
        for i in range(y.size):
            size = abs(fit.b[i])
            fit.weights[i] = size * (1.0 - size)
        if not _hessian(AT, fit, lam):
            return False
        cholesky_solve(fit.factor, step)
        trial[:] = fit.x
        length = 1.0
        for a in range(k):
            fit.x[a] -= step[a]
    return False


@njit
def _weigh(y: FloatArray, fit: SmallFit) -> None:
    """The weights of the rows, and what one unit of the prediction makes of them."""
    for i in range(y.size):
        pi = -y[i] * fit.b[i]
        rest = 1.0 - pi
        part = min(1.0, 1.0 / (REACH * max(pi, rest)))
        usable = min(pi, rest) > EXTREME
        part = part if usable else 0.0
        bend = pi * rest
        fit.weights[i] = bend * part
        fit.roots[i] = np.sqrt(bend * part)
        fit.upward[i] = y[i] * part * rest
        fit.downward[i] = -y[i] * part * pi
        fit.of_pi[i] = 1.0 / max(pi, EXTREME)
        fit.of_rest[i] = 1.0 / max(rest, EXTREME)
        cube = part * part * part
        fit.thirds[i] = -y[i] * bend * cube * (2.0 * pi - 1.0)
        fit.fourths[i] = bend * (1.0 - 3.0 * bend) * cube * part


@njit
def fit_small(
    loss: Any, AT: FloatArray, y: FloatArray, norms: FloatArray, lam: float, cutoff: float, fit: SmallFit
) -> tuple[float, float]:
    """Fill the fit from its x on; return a lower bound of every model on its columns, and of -L*(b).

    The bound is -inf where nothing came of it.
    """
    if not _descend(loss, AT, y, lam, cutoff, fit):
        return -np.inf, -np.inf
    k = fit.columns.size
    q, v = np.empty(k), np.empty(k)
    base = dual_at_point(loss, AT, y, norms, fit.columns, fit.z, fit.b, q, v)
    bound = node_bound(base, q, k, 0, lam, np.empty(1))
    rounding = 2.0 * (y.size + 64) * UNIT * np.sqrt(dot(fit.b, fit.b))
    for a in range(k):
        fit.gradient[a] = abs(v[a] + lam * fit.x[a]) + rounding * norms[fit.columns[a]] + 4 * UNIT * abs(lam * fit.x[a])
    _weigh(y, fit)
    return (bound if _hessian(AT, fit, lam) else -np.inf), base


@njit(sums=True, inline=True)
def _residual(AT: FloatArray, fit: SmallFit, move: FloatArray, column: FloatArray, r: FloatArray) -> None:
    """r = column - A_S move."""
    for i in range(r.size):
        r[i] = column[i]
    k, a = move.size, 0
    while a + 3 < k:
        columns = fit.columns[a : a + 4]
        first, second, third, fourth = AT[columns[0]], AT[columns[1]], AT[columns[2]], AT[columns[3]]
        for i in range(r.size):
            r[i] -= (move[a] * first[i] + move[a + 1] * second[i]) + (move[a + 2] * third[i] + move[a + 3] * fourth[i])
        a += 4
    while a < k:
        last = AT[fit.columns[a]]
        for i in range(r.size):
            r[i] -= move[a] * last[i]
        a += 1


@njit(sums=True, inline=True)
def _moments(
    fit: SmallFit, r: FloatArray, scaled: FloatArray, up: FloatArray, down: FloatArray
) -> tuple[float, float, float]:
    """Sums over the rows for r: the cubic term with and without signs, the quartic; and each row's reach."""
    signed, cubic, quartic = 0.0, 0.0, 0.0
    for i in range(r.size):
        one = r[i]
        two = one * one
        term = fit.thirds[i] * two * one
        signed += term
        cubic += abs(term)
        quartic += fit.fourths[i] * two * two
        scaled[i] = fit.roots[i] * one
        high, low = fit.upward[i] * one, fit.downward[i] * one
        up[i] = max(high, low)
        down[i] = max(-high, -low)
    return signed, cubic, quartic


@njit(inline=True)
def _largest(values: FloatArray) -> float:
    """The largest of numbers that are not negative, by the order of their bits, which the compiler vectorises."""
    bits = values.view(np.int64)
    largest = bits[0]
    at = 0
    for i in range(bits.size):
        largest = max(largest, bits[i])
    for i in range(bits.size):
        at = i if bits[i] == largest else at
    return float(values[at])


@njit(inline=True)
def add_candidate(
    AT: FloatArray, norms: FloatArray, lam: float, fit: SmallFit, column: int, slope: float, size_of_b: float,
    found: Candidates, at: int, room: FloatArray,
) -> None:  # fmt: skip
    """Fill row ``at`` of the candidates for a column with this slope; ``room`` (3, n) is to work in."""
    k, n = fit.columns.size, fit.z.size
    move, r = found.moves[at], room[0]
    correlate(fit.weighted, np.arange(k), AT[column], move)
    cholesky_solve(fit.factor, move)
    _residual(AT, fit, move, AT[column], r)
    signed, cubic, quartic = _moments(fit, r, found.scaled[at], room[1], room[2])
    size, doubt = 0.5 * norms[column] + np.sqrt(lam), 2.0 * (n + 64) * UNIT * norms[column] * size_of_b
    for a in range(k):
        size += abs(move[a]) * fit.lengths[a]
        doubt += abs(move[a]) * fit.gradient[a]
        found.scaled[at, n + a] = np.sqrt(lam) * move[a]
    found.columns[at] = column
    found.slopes[at] = slope
    found.bends[at] = dot(found.scaled[at], found.scaled[at]) + lam
    found.thirds[at] = signed
    found.third_sizes[at] = cubic ** (1.0 / 3.0)
    found.fourth_sizes[at] = np.sqrt(np.sqrt(quartic))
    found.reach_up[at] = _largest(room[1])
    found.reach_down[at] = _largest(room[2])
    found.sizes[at] = size
    found.doubts[at] = doubt
