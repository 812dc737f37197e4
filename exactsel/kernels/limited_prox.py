"""The prox of the perspective regulariser where coefficients have limits, columns one by one.

With r places among the candidates C and limits low_j <= x_j <= high_j the convex hull of what the search minimises
over is

    (lam/2) ||x_S||^2 + min { (lam/2) sum_C x_j^2 / z_j : low_j z_j <= x_j <= high_j z_j, 0 <= z <= 1, sum z <= r },

whose dual is formula (2) with the gains c_j of the box in place of q_j / (2 lam) (bounds/boxed.py). The sum of z is
kept by a price mu on each z_j. At a price everything is separate: with M the limit on the side of u_j, and
h = sqrt(2 mu / lam) the size from which z_j = 1 pays, x_j costs mu z_j + lam x_j^2 / (2 z_j), which is a slope times
x_j up to min(h, M). Without a ridge (lam = 0) and with equal limits this is an l1 norm of radius r M within the box:
the Lasso.
"""

from __future__ import annotations

import numpy as np

from exactsel._jit import njit
from exactsel.types import FloatArray

STEPS = 100
"""Halvings at most on the way to the price."""

EXACT = 1e-13
"""Part of the places the sum of indicators may be off."""


@njit
def at_price(size: float, limit: float, weight: float, price: float) -> tuple[float, float, float]:
    """argmin of (x - size)^2 / 2 + price z + weight x^2 / (2 z) over 0 <= x <= limit z, z <= 1: x, z, and -dz/dprice.

    ``weight`` is lam times the length of the step; size, limit > 0.
    """
    full = np.sqrt(2.0 * price / weight) if weight > 0.0 else np.inf
    if full >= limit:
        slope = (0.5 * weight * limit if weight > 0.0 else 0.0) + price / limit
        x = min(max(size - slope, 0.0), limit)
        inner = 0.0 < x < limit
        return x, x / limit, 1.0 / (limit * limit) if inner else 0.0
    x = size - np.sqrt(2.0 * price * weight)
    if x <= 0.0:
        return 0.0, 0.0, 0.0
    if x < full:
        return x, x / full, 0.5 * size / (price * full)
    return min(max(size / (1.0 + weight), full), limit), 1.0, 0.0


@njit
def limit_of(u: float, low: float, high: float) -> float:
    """How far a coefficient may go on the side of u."""
    return high if u > 0.0 else -low


@njit
def _indicators(
    u: FloatArray, low: FloatArray, high: FloatArray, fixed: int, weight: float, price: float
) -> tuple[float, float]:
    """The sum of z over the candidates at a price, and how fast it falls."""
    total, fall = 0.0, 0.0
    for j in range(fixed, u.size):
        limit = limit_of(u[j], low[j], high[j])
        if u[j] != 0.0 and limit > 0.0:
            _, z, less = at_price(abs(u[j]), limit, weight, price)
            total += z
            fall += less
    return total, fall


@njit
def price_of_slots(
    u: FloatArray, low: FloatArray, high: FloatArray, fixed: int, slots: int, weight: float, guess: float
) -> float:
    """The price at which the indicators sum up to ``slots``; 0 where they do not reach that for nothing.

    The sum falls with the price: Newton from ``guess``, kept inside a bracket.
    """
    total, _ = _indicators(u, low, high, fixed, weight, 0.0)
    if total <= slots:
        return 0.0
    below, above, price = 0.0, np.inf, guess if 0.0 < guess < np.inf else 1.0
    for _ in range(STEPS):
        total, fall = _indicators(u, low, high, fixed, weight, price)
        excess = total - slots
        if abs(excess) <= EXACT * slots:
            break
        if excess > 0.0:
            below = price
        else:
            above = price
        new = price + excess / fall if fall > 0.0 else np.inf
        if not (below < new < above):
            new = 4.0 * price if above == np.inf else 0.5 * (below + above)
        if new == price:
            break
        price = new
    return price


@njit
def prox_limited(
    u: FloatArray, low: FloatArray, high: FloatArray, fixed: int, slots: int, weight: float, guess: float,
    x: FloatArray,
) -> tuple[float, float]:  # fmt: skip
    """x = argmin of ||x - u||^2 / 2 + the regulariser above with lam = ``weight``.

    S are the first ``fixed`` entries. Returns ||x_S||^2 + sum x_j^2 / z_j, and the price as a good ``guess`` for the
    next, similar u.
    """
    norm = 0.0
    for j in range(fixed):
        x[j] = min(max(u[j] / (1.0 + weight), low[j]), high[j])
        norm += x[j] * x[j]
    price = price_of_slots(u, low, high, fixed, slots, weight, guess)
    for j in range(fixed, u.size):
        limit = limit_of(u[j], low[j], high[j])
        x[j] = 0.0
        if u[j] != 0.0 and limit > 0.0:
            size, z, _ = at_price(abs(u[j]), limit, weight, price)
            if z > 0.0:
                x[j] = size if u[j] > 0.0 else -size
                norm += size * size / z
    return norm, price
