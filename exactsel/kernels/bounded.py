"""The fit where columns depend on each other and lam = 0: a bound for bounded models from any coefficients.

For every x with residual b = Ax - y and v = A'b = Hx - A'y, weak duality says of every model z

    P(z) >= -L*(b) + z'v = c - x'(v + A'y)/2 + z'v,

so of models with abs(z_j) ||a_j|| <= R ||y|| whose support is S and at most r columns of C

    P(z) >= c - x'(v + A'y)/2 - R ||y|| ( sum_S abs(v_j)/||a_j|| + the r largest abs(v_j)/||a_j||, j in C ).

At the fit v is zero, for any rank of the columns, and nothing has to be said about their rank. R multiplies the
rounding errors of v, so H, A'y and x are kept to twice the digits of a double (algebra/extended.py) and v is computed
to these by error-free transformations (Dekker 1971; Ogita, Rump, Oishi 2005). x is refined with a K in doubles that
need be the inverse of H plus a small ridge only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exactsel._jit import njit
from exactsel.kernels.counting import SubtreeData
from exactsel.rounding import UNIT
from exactsel.types import FloatArray, IntArray

SPLITTER = 134217729.0
"""2^27 + 1."""

PRODUCT_ERROR = 2.0**-100
"""What H and A'y are off by, times the lengths of the two vectors."""

MOST_ROUGH, MOST_REFINEMENTS = 2, 5
"""Refinements with v in doubles, which is thirty times as fast, and then with v to twice the digits."""

HOPELESS = 1e-9
"""Part of c that the fit may be short of a level, up to rounding, to be computed at all."""


class BoundedWorkspace(NamedTuple):
    """Memory for one bound after the other over at most d columns."""

    x: FloatArray
    x_low: FloatArray
    """(d,) the coefficients, as a sum of two."""
    v: FloatArray
    v_low: FloatArray
    """(d,) Hx - A'y of all columns of the problem, as a sum of two."""
    w: FloatArray
    step: FloatArray
    largest: FloatArray
    """(d + 1,)"""


@njit
def bounded_workspace(d: int) -> BoundedWorkspace:
    """Memory for bounds over at most d columns."""
    return BoundedWorkspace(
        np.zeros(d), np.zeros(d), np.zeros(d), np.zeros(d), np.zeros(d), np.zeros(d), np.zeros(d + 1)
    )  # fmt: skip


@njit
def product(a: float, b: float) -> tuple[float, float]:
    """A product, and what rounding took (Dekker)."""
    high = a * b
    t = SPLITTER * a
    a_high = t - (t - a)
    a_low = a - a_high
    t = SPLITTER * b
    b_high = t - (t - b)
    b_low = b - b_high
    return high, ((a_high * b_high - high) + a_high * b_low + a_low * b_high) + a_low * b_low


@njit
def add(high: float, low: float, more: float, more_low: float) -> tuple[float, float]:
    """The sum of two sums of two, not normalised."""
    total = high + more
    part = total - high
    return total, low + (((high - (total - part)) + (more - part)) + more_low)


@njit
def _residual(data: SubtreeData, columns: IntArray, m: int, workspace: BoundedWorkspace) -> None:
    """v = Hx - A'y for all columns of the problem, x on the first m of ``columns``."""
    v, v_low, d = workspace.v, workspace.v_low, data.b.size
    for i in range(d):
        v[i] = -data.b[i]
        v_low[i] = -data.low_b[i]
    for j in range(m):
        x, x_low = workspace.x[j], workspace.x_low[j]
        row, row_low = data.H[columns[j]], data.low[columns[j]]
        t = SPLITTER * x
        x_a = t - (t - x)
        x_b = x - x_a
        for i in range(d):
            h = row[i]
            p = h * x
            t = SPLITTER * h
            h_a = t - (t - h)
            h_b = h - h_a
            e = ((h_a * x_a - p) + h_a * x_b + h_b * x_a) + h_b * x_b
            e += h * x_low + row_low[i] * x
            before = v[i]
            total = before + p
            part = total - before
            v[i] = total
            v_low[i] += ((before - (total - part)) + (p - part)) + e


@njit
def _rough_residual(data: SubtreeData, columns: IntArray, m: int, workspace: BoundedWorkspace) -> None:
    """The same in doubles."""
    v, d = workspace.v, data.b.size
    for i in range(d):
        v[i] = -data.b[i]
    for j in range(m):
        row, x = data.H[columns[j]], workspace.x[j]
        for i in range(d):
            v[i] += row[i] * x


@njit(sums=True)
def _step(K: FloatArray, m: int, w: FloatArray, step: FloatArray) -> None:
    """K w, of which the lower triangle is read."""
    for i in range(m):
        row, w_i, total = K[i], w[i], 0.0
        for j in range(i):
            total += row[j] * w[j]
            step[j] += row[j] * w_i
        step[i] = total + row[i] * w_i


@njit
def _refine(K: FloatArray, columns: IntArray, m: int, skip: int, workspace: BoundedWorkspace) -> None:
    """Take K v off x; where a column is skipped, the inverse without it, which makes its coefficient stay 0."""
    w, step = workspace.w, workspace.step
    for i in range(m):
        w[i] = workspace.v[columns[i]] + workspace.v_low[columns[i]]
    if skip >= 0:
        w[skip] = 0.0
        total = 0.0
        for j in range(m):
            total += (K[skip, j] if j <= skip else K[j, skip]) * w[j]
        w[skip] = -total / K[skip, skip]
    _step(K, m, w, step)
    for i in range(m):
        if i != skip:
            total, low = add(workspace.x[i], workspace.x_low[i], -step[i], 0.0)
            workspace.x[i] = total + low
            workspace.x_low[i] = low - (workspace.x[i] - total)


@njit
def _hidden(
    data: SubtreeData, columns: IntArray, fixed: int, m: int, slots: int, skip: int, error: float,
    workspace: BoundedWorkspace
) -> float:  # fmt: skip
    """R ||y|| times the sum in the bound; ``error`` times the length of a column is what its v is off by."""
    largest, total = workspace.largest[:slots], 0.0
    largest[:] = 0.0
    for i in range(m):
        if i == skip:
            continue
        j = columns[i]
        weight = (abs(workspace.v[j] + workspace.v_low[j]) * (1.0 + 4.0 * UNIT) + error * data.lengths[j]) * data.reach[
            j
        ]
        if i < fixed:
            total += weight
        elif slots > 0 and weight > largest[slots - 1]:
            at = slots - 1
            while at > 0 and largest[at - 1] < weight:
                largest[at] = largest[at - 1]
                at -= 1
            largest[at] = weight
    for i in range(slots):
        total += largest[i]
    return total * (1.0 + (m + 8) * UNIT)


@njit
def _value(data: SubtreeData, columns: IntArray, m: int, workspace: BoundedWorkspace) -> tuple[float, float, float]:
    """c - x'(v + A'y)/2, sum_j abs(x_j) ||a_j||, and what rounding x'v may have taken."""
    high, low, size, lost = data.constant, data.low_constant, 0.0, 0.0
    for i in range(m):
        j, x, x_low = columns[i], -0.5 * workspace.x[i], -0.5 * workspace.x_low[i]
        p, e = product(x, data.b[j])
        high, low = add(high, low, p, e + x * data.low_b[j] + x_low * data.b[j])
        slope = workspace.v[j] + workspace.v_low[j]
        high, low = add(high, low, x * slope, x_low * slope)
        size += 2.0 * (abs(x) + abs(x_low)) * data.lengths[j]
        lost += 4.0 * UNIT * abs(x * slope)
    return high + low, size * (1.0 + (m + 8) * UNIT), lost


@njit
def bounded_fit(
    data: SubtreeData, columns: IntArray, x: FloatArray, fixed: int, m: int, slots: int, skip: int, K: FloatArray,
    level: float, workspace: BoundedWorkspace,
) -> float:  # fmt: skip
    """The bound of a region for bounded models, refined until it reaches the level or cannot; see the module.

    Of the m columns the first ``fixed`` are inside; the one at position ``skip`` (-1: none), where x is 0, is not in
    the region. ``K`` is a guide to the inverse of H on all m.
    """
    best, length = -np.inf, np.sqrt(2.0 * data.constant)
    workspace.x[:m] = x[:m]
    workspace.x_low[:m] = 0.0
    unit = ((4 * m + 64) * UNIT) ** 2 + 4.0 * PRODUCT_ERROR
    workspace.v_low[:] = 0.0
    for _ in range(MOST_ROUGH):
        _rough_residual(data, columns, m, workspace)
        _refine(K, columns, m, skip, workspace)
    value, _, _ = _value(data, columns, m, workspace)
    if not value >= level - HOPELESS * data.constant:
        return -np.inf
    for attempt in range(MOST_REFINEMENTS):
        if attempt > 0:
            _refine(K, columns, m, skip, workspace)
        _residual(data, columns, m, workspace)
        value, size, lost = _value(data, columns, m, workspace)
        total = size + length
        hidden = _hidden(data, columns, fixed, m, slots, skip, unit * total, workspace)
        bound = value - hidden - 2.0 * lost - 2.0 * unit * total**2 - 8.0 * UNIT * (abs(value) + hidden)
        if bound > best:
            best = bound
        if best >= level or not value >= level:
            break
    return float(best)
