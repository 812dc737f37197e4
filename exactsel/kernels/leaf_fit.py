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

Row weights v_i multiply a row's value, b_i = v_i l'(z_i), omega_i and KL. An **intercept** c is one more column of S,
of ones, without ridge: the last unknown of the fit, with z = A_S x + c 1. Formula (2) then holds of dual vectors whose
sum is zero, to the last bit. 1'(b + Wt) is what is left of 1'b and what rounding leaves of 1'Wr_j, so the dual vector
*meant* is b + W(t + tau 1) with the exact number tau that makes up for it. In terms of sigma = |tau| root(1'W1), which
is small, A'b' is off by sigma times the W-lengths of columns, and what else becomes of that is taken off with what
other errors cost (kernels/leaf_cost.py).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from exactsel._jit import in_numpy, njit
from exactsel.kernels.columns import PLACE, Columns, add_entries
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

LEVEL_STEPS = 6

LEVELLED = 1e-11
"""Part of the slopes' total size at which their sum will do as zero: what is left of it is taken off."""

FAR_OFF = 1e-7
"""A level that is wrong by more than this is not made up for."""

WRONG, LENGTH, HEAVY, TOTAL = 0, 1, 2, 3
"""In ``level`` of a fit: the W-length sigma of what 1'b asks for; root(1'W1), 0 without an intercept; a bound of the
W-length of a column of norm 1; the sum of the row weights."""


class SmallFit(NamedTuple):
    """A model near the best one on S (k columns), and the quadratic around it. Filled by :func:`fit_small`.

    There are u unknowns: k coefficients, and the intercept as the last where there is one.
    """

    columns: IntArray
    included: FloatArray
    """(k, n) the columns themselves."""
    rows: FloatArray
    """(n,) row weights."""
    level: FloatArray
    """(4,) what :data:`WRONG` and the following name."""
    x: FloatArray
    """(u,)"""
    z: FloatArray
    """(n,) Ax, with the intercept."""
    b: FloatArray
    gradient: FloatArray
    """(u,) upper estimates of |A_S'b + lam x|, and of |1'b|."""
    weights: FloatArray
    """(n,) omega, as the other arrays of this length."""
    roots: FloatArray
    """Square roots of omega."""
    upward: FloatArray
    """Change of pi / (1 - pi) times -1, for one unit of the prediction ..."""
    downward: FloatArray
    """... and of pi, both divided by what may not be exceeded."""
    scaled_upward: FloatArray
    """Both for one unit of the prediction times the root of omega ..."""
    scaled_downward: FloatArray
    """... zero where omega is."""
    thirds: FloatArray
    """Six times the cubic term of KL for one unit of the prediction, with its sign."""
    fourths: FloatArray
    """The quartic term for one unit, without the factor 1/12 + ..."""
    of_pi: FloatArray
    """1 / pi ..."""
    of_rest: FloatArray
    """... and 1 / (1 - pi), neither more than 1 / EXTREME."""
    weighted: FloatArray
    """(u, n) the columns of S, and of ones, times omega."""
    factor: FloatArray
    """(u, u) Cholesky factor of H, in the lower triangle."""
    lengths: FloatArray
    """(u,) square roots of the diagonal of H."""


@njit
def empty_fit(columns: IntArray, x: FloatArray, rows: FloatArray, levelled: bool) -> SmallFit:
    """Room for a fit on these columns that begins at x (k,), with these row weights (n,)."""
    k, n = columns.size, rows.size
    u = k + 1 if levelled else k
    begin = np.zeros(u)
    begin[:k] = x
    return SmallFit(
        columns, np.empty((k, n)), rows, np.zeros(4), begin, np.empty(n), np.empty(n), np.empty(u), np.empty(n),
        np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n),
        np.empty(n), np.empty((u, n)), np.empty((u, u)), np.empty(u),
    )  # fmt: skip


@njit
def _hessian(fit: SmallFit, lam: float) -> bool:
    """Factor A_S'WA_S + lam I for the weights of the fit, with a row more for the intercept."""
    k = fit.columns.size
    for a in range(k):
        column, row = fit.included[a], fit.weighted[a]
        for i in range(column.size):
            row[i] = fit.weights[i] * column[i]
        for e in range(a + 1):
            fit.factor[a, e] = dot(row, fit.included[e])
        fit.factor[a, a] += lam
    if fit.lengths.size > k:
        fit.weighted[k] = fit.weights
        for e in range(k):
            fit.factor[k, e] = dot(fit.weights, fit.included[e])
        fit.factor[k, k] = np.sum(fit.weights)
    for a in range(fit.lengths.size):
        fit.lengths[a] = np.sqrt(fit.factor[a, a])
    return bool(cholesky(fit.factor))


@njit
def _value(loss: Any, y: FloatArray, lam: float, fit: SmallFit, values: FloatArray) -> float:
    """The objective at x; z and b of the fit are made."""
    k = fit.columns.size
    predict(fit.included, np.arange(k), fit.x, fit.z)
    if fit.x.size > k:
        for i in range(y.size):
            fit.z[i] += fit.x[k]
    return float(total_value(loss, fit.z, y, values, fit.b) + 0.5 * lam * dot(fit.x[:k], fit.x[:k]))


@njit
def _bends(fit: SmallFit) -> float:
    """Write the curvatures of the rows; return their sum."""
    total = 0.0
    for i in range(fit.b.size):
        size = abs(fit.b[i]) / fit.rows[i]
        fit.weights[i] = fit.rows[i] * (size * (1.0 - size))
        total += fit.weights[i]
    return total


@in_numpy(_bends)
def _bends_of_array(fit: SmallFit) -> float:
    size = abs(fit.b) / fit.rows
    fit.weights[:] = fit.rows * (size * (1.0 - size))
    return float(fit.weights.sum())


@njit
def _descend(loss: Any, y: FloatArray, lam: float, cutoff: float, fit: SmallFit) -> bool:
    """Newton's method on the columns of the fit; whether it ended above the cut-off."""
    k, u = fit.columns.size, fit.x.size
    values, trial, step = np.empty(y.size), np.empty(u), np.empty(u)
    value, length = np.inf, 0.0
    for _ in range(FIT_STEPS):
        new = _value(loss, y, lam, fit, values)
        if not new < value + 1e-12 * abs(new):
            if not length > 1e-3:
                return bool(new >= cutoff)
            length *= 0.5
            for a in range(u):
                fit.x[a] = trial[a] - length * step[a]
            continue
        value = new
        correlate(fit.included, np.arange(k), fit.b, step[:k])
        for a in range(k):
            step[a] += lam * fit.x[a]
        short = dot(step[:k], step[:k]) / (2.0 * lam)
        if value < cutoff:
            return False
        bends = _bends(fit)
        if u > k:
            if not bends > 0.0:
                return False
            step[k] = np.sum(fit.b)
            short += step[k] * step[k] / (2.0 * bends)
        if short <= SHARE * (value - cutoff):
            return True
        if not _hessian(fit, lam):
            return False
        cholesky_solve(fit.factor, step)
        trial[:] = fit.x
        length = 1.0
        for a in range(u):
            fit.x[a] -= step[a]
    return False


@njit
def _begin_level(y: FloatArray, fit: SmallFit) -> None:
    """The intercept of the empty model."""
    plus = 0.0
    for i in range(y.size):
        plus += fit.rows[i] if y[i] > 0.0 else 0.0
    if 0.0 < plus < fit.level[TOTAL]:
        fit.x[fit.columns.size] = np.log(plus / (fit.level[TOTAL] - plus))


@njit
def _find_level(loss: Any, y: FloatArray, lam: float, fit: SmallFit) -> bool:
    """Newton's method on the intercept alone, until 1'b is zero but for rounding; whether that was reached."""
    values = np.empty(y.size)
    for _ in range(LEVEL_STEPS):
        _value(loss, y, lam, fit, values)
        slope, bends = np.sum(fit.b), _bends(fit)
        if abs(slope) <= LEVELLED * np.sum(np.abs(fit.b)):
            return True
        if not bends > 0.0:
            return False
        fit.x[fit.columns.size] -= slope / bends
    return False


@njit
def _weigh(y: FloatArray, fit: SmallFit) -> None:
    """The weights of the rows, and what one unit of the prediction makes of them."""
    for i in range(y.size):
        pi = -y[i] * fit.b[i] / fit.rows[i]
        rest = 1.0 - pi
        part = min(1.0, 1.0 / (REACH * max(pi, rest)))
        usable = min(pi, rest) > EXTREME
        part = part if usable else 0.0
        bend = pi * rest
        heavy = fit.rows[i] * bend
        fit.weights[i] = heavy * part
        fit.roots[i] = np.sqrt(heavy * part)
        fit.upward[i] = y[i] * part * rest
        fit.downward[i] = -y[i] * part * pi
        root = fit.roots[i]
        fit.scaled_upward[i] = fit.upward[i] / root if root > 0.0 else 0.0
        fit.scaled_downward[i] = fit.downward[i] / root if root > 0.0 else 0.0
        fit.of_pi[i] = 1.0 / max(pi, EXTREME)
        fit.of_rest[i] = 1.0 / max(rest, EXTREME)
        cube = part * part * part
        fit.thirds[i] = -y[i] * heavy * cube * (2.0 * pi - 1.0)
        fit.fourths[i] = heavy * (1.0 - 3.0 * bend) * cube * part


@njit
def _lose_level(fit: SmallFit, q: FloatArray) -> float:
    """Move squares q outwards by what 1'b, which is not quite zero, can do to them; what else it takes off a bound.

    That of the dual vector b - W1 (1'b / 1'W1), of which z'W1 is at most the sum of length_a |x_a|; inf where the level
    is too far off.
    """
    k, n = fit.columns.size, fit.b.size
    fit.gradient[k] = abs(np.sum(fit.b)) + (n + 8) * UNIT * np.sum(np.abs(fit.b))
    fit.level[LENGTH] = fit.lengths[k]
    fit.level[WRONG] = wrong = 1.01 * fit.gradient[k] / fit.lengths[k]
    length = 0.0
    for a in range(k + 1):
        length += fit.lengths[a] * abs(fit.x[a])
    for a in range(k):
        upper = np.sqrt(q[a]) + wrong * fit.lengths[a]
        q[a] = upper * upper * (1.0 + 8 * UNIT)
    lost = wrong * (2.0 * length + wrong) + UNIT * fit.level[TOTAL]
    return lost if wrong <= FAR_OFF * fit.lengths[k] else np.inf


@njit
def fit_small(
    loss: Any, AT: Columns, y: FloatArray, norms: FloatArray, lam: float, cutoff: float, fit: SmallFit
) -> tuple[float, float]:
    """Fill the fit from its x on; return a lower bound of every model on its columns, and of -L*(b).

    ``loss`` has no intercept: that is the fit's. The bound is -inf where nothing came of it.
    """
    k, levelled = fit.columns.size, fit.x.size > fit.columns.size
    for a in range(k):
        place = AT.where[fit.columns[a], PLACE]
        if place < 0:
            fit.included[a, :] = 0.0
            add_entries(AT, fit.columns[a], 1.0, fit.included[a])
        else:
            fit.included[a] = AT.whole[place]
    fit.level[HEAVY], fit.level[TOTAL] = 0.5 * np.sqrt(np.max(fit.rows)), np.sum(fit.rows)
    if levelled:
        _begin_level(y, fit)
    if not _descend(loss, y, lam, cutoff, fit) or (levelled and not _find_level(loss, y, lam, fit)):
        return -np.inf, -np.inf
    q, v, own = np.empty(k), np.empty(k), norms[fit.columns]
    base = dual_at_point(loss, fit.included, y, own, np.arange(k), fit.z, fit.b, q, v)
    _weigh(y, fit)
    if not _hessian(fit, lam):
        return -np.inf, base
    lost = _lose_level(fit, q) if levelled else 0.0
    bound = node_bound(base, q, k, 0, lam, np.empty(1)) - lost
    rounding = 2.0 * (y.size + 64) * UNIT * np.sqrt(dot(fit.b, fit.b))
    for a in range(k):
        fit.gradient[a] = abs(v[a] + lam * fit.x[a]) + rounding * own[a] + 4 * UNIT * abs(lam * fit.x[a])
        fit.gradient[a] += fit.level[WRONG] * fit.lengths[a]
    return bound, base
