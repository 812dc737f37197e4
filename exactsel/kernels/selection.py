"""Top-r sums, the prox of the squared k-support norm, and relaxed indicators.

The squared k-support norm with r places is min { sum_j x_j^2 / z_j : 0 <= z <= 1, sum z = r }; its dual is the sum
of the r largest squares (McDonald, Pontil, Stamos: New perspectives on k-support and cluster norms).
"""

from __future__ import annotations

import numpy as np

from exactsel._jit import njit
from exactsel.types import FloatArray


@njit
def top_sum(values: FloatArray, start: int, slots: int, ranked: FloatArray) -> float:
    """Sum of the ``slots`` largest of values[start:].

    ``ranked`` (places + 1 long) receives the largest values in descending order, -inf where there are fewer.
    """
    ranked[:] = -np.inf
    last = slots  # one more than the sum needs: callers read the first value outside it
    for i in range(start, values.size):
        value = values[i]
        if value > ranked[last]:
            slot = last
            while slot > 0 and ranked[slot - 1] < value:
                ranked[slot] = ranked[slot - 1]
                slot -= 1
            ranked[slot] = value
    total = 0.0
    for i in range(slots):
        if ranked[i] > -np.inf:
            total += ranked[i]
    return total


@njit
def water_level(u: FloatArray, start: int, slots: int, shift: float, guess: float) -> float:
    """The s with sum_j clip(s |u_j| - shift, 0, 1) = places, j >= start; inf when at most ``slots`` u_j are non-zero.

    The sum is piecewise linear and increasing in s: Newton from ``guess``, kept inside a bracket, ends at the exact
    root once no u_j changes its piece.
    """
    nonzero = 0
    for j in range(start, u.size):
        if u[j] != 0.0:
            nonzero += 1
    if nonzero <= slots:
        return np.inf
    low, high = 0.0, np.inf
    s = guess if 0.0 < guess < np.inf else 0.0
    if s == 0.0:
        largest = 0.0
        for j in range(start, u.size):
            largest = max(largest, abs(u[j]))
        s = (1.0 + shift) / largest
    for _ in range(200):
        ones, slope, linear, filled = 0, 0.0, 0, 0.0
        for j in range(start, u.size):
            level = s * abs(u[j]) - shift
            if level >= 1.0:
                ones += 1
            elif level > 0.0:
                linear += 1
                slope += abs(u[j])
                filled += level
        excess = ones + filled - slots
        if abs(excess) <= 1e-13 * slots:
            return s
        if excess > 0.0:
            high = s
        else:
            low = s
        new = s - excess / slope if linear > 0 else np.inf
        if not (low < new < high):
            new = 2.0 * s if high == np.inf else 0.5 * (low + high)
        if new == s:
            return s
        s = new
    return s


@njit
def prox_k_support(
    u: FloatArray, fixed: int, slots: int, weight: float, guess: float, x: FloatArray
) -> tuple[float, float]:
    """x = argmin_x  weight/2 * (||x_S||^2 + k-support norm^2 of x_C) + ||x - u||^2 / 2.

    S are the first ``fixed`` entries. Returns the value of (||x_S||^2 + k-support norm^2) at x and the water level,
    a good ``guess`` for the next, similar u.
    """
    norm = 0.0
    for j in range(fixed):
        x[j] = u[j] / (1.0 + weight)
        norm += x[j] * x[j]
    level = water_level(u, fixed, slots, weight, guess)
    for j in range(fixed, u.size):
        z = 1.0 if level == np.inf else min(1.0, level * abs(u[j]) - weight)
        if z > 0.0 and u[j] != 0.0:
            x[j] = u[j] * z / (z + weight)
            norm += x[j] * x[j] / z
        else:
            x[j] = 0.0
    return norm, level


@njit
def relaxed_indicators(x: FloatArray, fixed: int, slots: int, z: FloatArray) -> None:
    """The z that attains the squared k-support norm of x_C; ones on S."""
    z[:fixed] = 1.0
    level = water_level(x, fixed, slots, 0.0, 0.0)
    for j in range(fixed, x.size):
        if x[j] == 0.0:
            z[j] = 0.0
        elif level == np.inf:
            z[j] = 1.0
        else:
            z[j] = min(1.0, level * abs(x[j]))
