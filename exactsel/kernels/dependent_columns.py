"""Columns that bring nothing new to others, for bounded models (lam = 0, dependent columns).

Where a_n is within e ||a_n|| of the span of columns B, a model with abs(x_n) ||a_n|| <= R ||y|| on B and n is within
R ||y|| e of one on B alone, so that n need not be counted beside B. Elimination in doubles suggests such columns; how
far they are is computed to twice the digits (kernels/bounded.py), as z'Hz for z = 1 at n and minus the combination on
B.
"""

from __future__ import annotations

import numpy as np

from exactsel._jit import njit
from exactsel.kernels.bounded import PRODUCT_ERROR, add, product
from exactsel.kernels.counting import CountWorkspace, SubtreeData
from exactsel.rounding import UNIT
from exactsel.types import FloatArray, IntArray

NEARLY = 1e-9
"""Part of a column, squared, that is left where it may depend on others."""

FARTHEST = 1e-13
"""Distances above this, in lengths of the column, are not neglected."""

REFINEMENTS = 3


@njit
def _solve(L: FloatArray, size: int, x: FloatArray) -> None:
    """x becomes (L L')^-1 x, in place."""
    for i in range(size):
        total = x[i]
        for j in range(i):
            total -= L[i, j] * x[j]
        x[i] = total / L[i, i]
    for i in range(size - 1, -1, -1):
        total = x[i]
        for j in range(i + 1, size):
            total -= L[j, i] * x[j]
        x[i] = total / L[i, i]


@njit
def _apply(
    data: SubtreeData, column: int, order: IntArray, size: int, t: FloatArray, low: FloatArray
) -> tuple[float, float]:
    """sum_i t_i a_i'a for a column a."""
    high, rest = 0.0, 0.0
    for i in range(size):
        h, h_low = data.H[order[i], column], data.low[order[i], column]
        p, e = product(h, t[i])
        high, rest = add(high, rest, p, e + h * low[i] + h_low * t[i])
    return high, rest


@njit
def distance(data: SubtreeData, order: IntArray, size: int, column: int, workspace: CountWorkspace) -> float:
    """How far a column is from the span of the first ``size`` in ``order``, at most and in its lengths.

    The factor of these columns' H is in ``workspace.rows``.
    """
    t, low, r, r_low = workspace.long[0], workspace.long[1], workspace.long[2], workspace.long[3]
    t[:size] = 0.0
    low[:size] = 0.0
    for attempt in range(REFINEMENTS + 1):
        for i in range(size):
            p, e = _apply(data, order[i], order, size, t, low)
            high, rest = add(data.H[order[i], column], data.low[order[i], column], -p, -e)
            r[i] = high + rest
            r_low[i] = rest - (r[i] - high)
        if attempt < REFINEMENTS:
            workspace.long[4, :size] = r[:size]
            _solve(workspace.rows, size, workspace.long[4])
            for i in range(size):
                high, rest = add(t[i], low[i], workspace.long[4, i], 0.0)
                t[i] = high + rest
                low[i] = rest - (t[i] - high)
    high, rest = data.H[column, column], data.low[column, column]
    p, e = _apply(data, column, order, size, t, low)
    high, rest = add(high, rest, -p, -e)
    total = data.lengths[column]
    for i in range(size):
        p, e = product(t[i], r[i])
        high, rest = add(high, rest, -p, -(e + t[i] * r_low[i] + low[i] * r[i]))
        total += 1.001 * (abs(t[i]) + abs(low[i])) * data.lengths[order[i]]
    unit = ((4 * size + 16) * UNIT) ** 2 + 4.0 * PRODUCT_ERROR
    square = abs(high + rest) * (1.0 + 1e-6) + 1.01 * unit * total * total
    return float(1.001 * np.sqrt(square) / data.lengths[column])


@njit
def _eliminated(data: SubtreeData, order: IntArray, size: int, column: int, L: FloatArray, line: FloatArray) -> float:
    """The row of a column in the factor, in ``line``; what is left of its square."""
    left = data.H[column, column]
    for i in range(size):
        total = data.H[order[i], column]
        for j in range(i):
            total -= L[i, j] * line[j]
        line[i] = total / L[i, i]
        left -= line[i] * line[i]
    return float(left)


@njit
def independent(data: SubtreeData, included: int, m: int, workspace: CountWorkspace) -> tuple[int, int, int]:
    """Keep of ``workspace.order`` what brings something new: how many of the first ``included``, and how many in all.

    Of S, columns dependent on those before; of the others, columns dependent on S, or on S and one before, which
    ``workspace.stands_in`` receives. The third number is how many distances were written to ``workspace.distances``.
    """
    order, L, V, w, dropped = workspace.order, workspace.rows, workspace.V, workspace.w, 0
    workspace.stands_in[:] = False
    kept = 0
    for q in range(included):
        column = order[q]
        left = _eliminated(data, order, kept, column, L, L[kept])
        if not left > NEARLY * data.H[column, column]:
            e = distance(data, order, kept, column, workspace)
            if not e <= FARTHEST:
                return -1, m, 0
            workspace.distances[dropped] = e
            dropped += 1
            continue
        L[kept, kept] = np.sqrt(left)
        order[kept] = column
        kept += 1
    at = kept
    for q in range(included, m):
        column, line = order[q], V[at]
        left = _eliminated(data, order, kept, column, L, line)
        e = np.inf
        if not left > NEARLY * data.H[column, column]:
            e = distance(data, order, kept, column, workspace)
        elif kept + 1 < order.size:
            for l in range(kept, at):
                other = V[l]
                if not w[l] > 0.0:
                    continue
                total = data.H[column, order[l]]
                for i in range(kept):
                    total -= line[i] * other[i]
                if total * total >= (1.0 - NEARLY) * left * w[l]:
                    before = order[kept]
                    order[kept] = order[l]
                    L[kept, :kept] = other[:kept]
                    L[kept, kept] = np.sqrt(w[l])
                    # The column at ``kept`` is put back at once; the column itself is not in the basis.
                    e = min(e, distance(data, order, kept + 1, column, workspace))
                    order[kept] = before
                    if e <= FARTHEST:
                        workspace.stands_in[order[l]] = True
                        break
        if e <= FARTHEST:
            workspace.distances[dropped] = e
            dropped += 1
            continue
        order[at] = column
        w[at] = left if left > NEARLY * data.H[column, column] else 0.0
        at += 1
    return kept, at, dropped


@njit
def farthest(workspace: CountWorkspace, dropped: int, most: int) -> float:
    """The sum of the largest distances of as many columns as a model may hold."""
    total = 0.0
    for _ in range(min(most, dropped)):
        at = 0
        for i in range(dropped):
            if workspace.distances[i] > workspace.distances[at]:
                at = i
        total += workspace.distances[at]
        workspace.distances[at] = 0.0
    return total
