"""Lower bounds of every set of a list by a quadratic minorant, in closed form."""

from __future__ import annotations

import numpy as np

from exactsel._jit import njit, prange
from exactsel.kernels.linalg import cholesky, cholesky_solve
from exactsel.kernels.listing import Quadratic, lowest
from exactsel.rounding import UNIT
from exactsel.types import BoolArray, FloatArray, IntArray


@njit(parallel=True)
def raise_bounds(
    q: Quadratic, scale: FloatArray, threshold: float, upper: float, sets: IntArray, first: int, stop: BoolArray,
    bounds: FloatArray, models: FloatArray,
) -> None:  # fmt: skip
    """Raise ``bounds`` to ``upper`` plus the least q of each set less ``threshold``.

    A model below its set's bound is above ``upper``.

    Rows of ``sets`` are padded with -1; columns from ``first`` on (an intercept) are in every model. Where the bound is
    raised a row of ``models`` receives the coefficients with the least q, times ``scale`` (m,), in the order of the
    set's columns, those of columns in every model at its end. A set on which there is no factorisation keeps what it
    has, like all that are left at a stop.
    """
    others = q.h.size - first
    for i in prange(sets.shape[0]):
        if not stop[0]:
            columns, count = np.empty(sets.shape[1] + others, dtype=np.int64), 0
            for a in range(sets.shape[1]):
                if sets[i, a] >= 0:
                    columns[count] = sets[i, a]
                    count += 1
            chosen = count
            for j in range(first, q.h.size):
                columns[count] = j
                count += 1
            H, x = np.empty((count, count)), np.empty(count)
            for a in range(count):
                x[a] = q.h[columns[a]]
                for b in range(a + 1):
                    H[a, b] = q.H[columns[a], columns[b]]
            if cholesky(H):
                cholesky_solve(H, x)
                above = lowest(q, columns, count, x) - threshold
                bound = upper + above - 4 * UNIT * (abs(upper) + abs(above))
                if bound > bounds[i]:
                    bounds[i] = bound
                    for a in range(chosen):
                        models[i, a] = x[a] * scale[columns[a]]
                    for a in range(chosen, count):
                        models[i, sets.shape[1] + a - chosen] = x[a] * scale[columns[a]]
