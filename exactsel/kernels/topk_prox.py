"""Prox of the squared top-k norm (Sakaue, Marumo: best-first search, appendix A, Algorithm 4).

With p = |u| sorted in descending order the minimiser of  ||w - u||^2/2 + (weight/2) * (sum of the r largest w_j^2)
keeps the order: its first entries are p_i / (1 + weight), then comes a plateau across position r, and the rest is
p_i. Finding the plateau is one pooling pass, so the cost is the O(d log d) of the sort.
"""

from __future__ import annotations

import numpy as np

from exactsel._jit import njit
from exactsel.types import FloatArray


@njit
def prox_top_k(u: FloatArray, slots: int, weight: float, out: FloatArray) -> None:
    """Write argmin_w ||w - u||^2/2 + (weight/2)(sum of the ``slots`` largest w_j^2) to ``out``; 1 <= places."""
    d = u.size
    if slots >= d:
        for j in range(d):
            out[j] = u[j] / (1.0 + weight)
        return
    order = np.argsort(-np.abs(u))
    shrink = 1.0 / (1.0 + weight)
    first, last = slots, slots - 1  # the plateau is order[first:last + 1], empty so far
    level = 0.0
    if abs(u[order[slots - 1]]) * shrink < abs(u[order[slots]]):
        first, last = slots - 1, slots
        total = abs(u[order[first]]) + abs(u[order[last]])
        while True:
            level = total / ((last - first + 1) + weight * (slots - first))
            if first > 0 and abs(u[order[first - 1]]) * shrink < level:
                first -= 1
                total += abs(u[order[first]])
            elif last + 1 < d and abs(u[order[last + 1]]) > level:
                last += 1
                total += abs(u[order[last]])
            else:
                break
    for position in range(d):
        j = order[position]
        if position < first:
            out[j] = u[j] * shrink
        elif position <= last:
            out[j] = level if u[j] >= 0.0 else -level
        else:
            out[j] = u[j]


@njit
def prox_conjugate(u: FloatArray, fixed: int, slots: int, step: float, lam: float, out: FloatArray) -> None:
    """Prox of step * h*, h(v) = (||v_S||^2 + top-r norm^2 of v_C) / (2 lam), by Moreau's identity.

    S are the first ``fixed`` entries. h* is lam/2 times (||x_S||^2 + squared k-support norm of x_C).
    """
    for j in range(fixed):
        out[j] = u[j] / (1.0 + step * lam)
    if u.size > fixed:
        scaled = u[fixed:] / step
        shrunk = np.empty_like(scaled)
        prox_top_k(scaled, slots, 1.0 / (step * lam), shrunk)
        out[fixed:] = u[fixed:] - step * shrunk
