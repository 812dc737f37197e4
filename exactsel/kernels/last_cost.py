"""What adding one or two candidates takes off the bound of a fit (kernels/last_fit.py), without a sum over rows.

The errors: eps = (n + 8k + 64) units. With Z = the sum of |d_j| size_j, where size_j bounds the W-length of r_j and of
the numbers it is made of, A'(b + Wt) on S is off by a vector rho with |rho_a| <= eps length_a Z, on T by rho_j <=
(the residual of B d = -g) + (the doubt about g_j) + 4 eps size_j Z, and (2) changes by rho'd - ||rho||^2 / 2 lam -
rho'(gradient on S) / lam + (gradient on S)'d_S; d'Bd / 2 itself is off by eps Z^2, and as z is Ax rounded only, by
eps Z (sum of length_a |x_a|) more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exactsel._jit import njit
from exactsel.kernels.last_fit import Candidates, SmallFit
from exactsel.rounding import UNIT
from exactsel.types import FloatArray


class Margins(NamedTuple):
    """What rounding can do, the same for all sets beside one fit."""

    eps: float
    lam: float
    once: float
    """Goes with Z."""
    square: float
    """Goes with Z^2."""
    rows: float
    """Whatever the set."""


@njit
def margins_of(fit: SmallFit, n: int, lam: float) -> Margins:
    """The margins beside a fit on n rows."""
    k = fit.columns.size
    eps = 2.0 * (n + 8 * k + 64) * UNIT
    length, slope, trace = 0.0, 0.0, 0.0
    for a in range(k):
        length += fit.lengths[a] * abs(fit.x[a])
        slope += fit.lengths[a] * fit.gradient[a]
        trace += fit.lengths[a] * fit.lengths[a]
    return Margins(eps, lam, eps * (length + slope / lam), eps * (8.0 + eps * trace / (2.0 * lam)), 512.0 * n * UNIT)


@njit(inline=True)
def _cost(
    margins: Margins, d: float, e: float, half: float, cubic: float, reach: float, quartic: float, length: float,
    rest: float, other: float,
) -> float:  # fmt: skip
    """What comes off the fit's bound; inf where the step is too long."""
    last = quartic * quartic * (1.0 / 12.0 + reach * (0.05 + 0.2 * reach))
    wrong = length * (margins.once + margins.square * length)
    off = (rest * rest + other * other) / (2.0 * margins.lam)
    total = (half + cubic + last) * (1.0 + 64.0 * UNIT) + margins.rows + wrong + off + d * rest + e * other
    return total if reach < 1.0 - 2e-6 else np.inf


@njit(inline=True)
def cost_of_one(found: Candidates, margins: Margins, i: int) -> tuple[float, float]:
    """What adding candidate i takes off the fit's bound at most, and the step d_i."""
    bend, slope = found.bends[i], found.slopes[i]
    step = -slope / bend
    size = abs(step)
    length = size * found.sizes[i]
    rest = abs(slope + bend * step) + found.doubts[i] + 4.0 * margins.eps * found.sizes[i] * length
    reach = size * (found.reach_up[i] if step > 0.0 else found.reach_down[i])
    fourth = size * found.fourth_sizes[i]
    third = step * step * step * found.thirds[i]
    doubtful = 64.0 * margins.eps * (size * found.third_sizes[i]) ** 3
    cost = _cost(
        margins, size, 0.0, 0.5 * bend * step * step, third / 6.0 + doubtful, reach, fourth * fourth, length, rest,
        0.0,
    )  # fmt: skip
    return cost, step


@njit(inline=True)
def costs_of_pairs(found: Candidates, margins: Margins, products: FloatArray, i: int, costs: FloatArray) -> None:
    """What adding candidate i and each j before it takes off the fit's bound, with the steps of :func:`steps_of_pair`.

    ``products`` are r_i'Wr_j + lam c_i'c_j.
    """
    mine, slope, size = found.bends[i], found.slopes[i], found.sizes[i]
    for j in range(i):
        bend, other, both = found.bends[j], found.slopes[j], products[j]
        det = mine * bend - both * both
        d, e = (both * other - bend * slope) / det, (both * slope - mine * other) / det
        along, across = abs(d), abs(e)
        length = along * size + across * found.sizes[j]
        wide = 4.0 * margins.eps * length
        rest = abs(slope + mine * d + both * e) + found.doubts[i] + wide * size
        left = abs(other + both * d + bend * e) + found.doubts[j] + wide * found.sizes[j]
        half = 0.5 * (d * (mine * d + 2.0 * both * e) + bend * e * e)
        third = along * found.third_sizes[i] + across * found.third_sizes[j]
        fourth = along * found.fourth_sizes[i] + across * found.fourth_sizes[j]
        reach = max(d * found.reach_up[i], -d * found.reach_down[i])
        reach += max(e * found.reach_up[j], -e * found.reach_down[j])
        costs[j] = _cost(
            margins, along, across, half, third * third * third / 6.0, reach, fourth * fourth, length,
            rest, left,
        )  # fmt: skip


@njit(inline=True)
def steps_of_pair(found: Candidates, i: int, j: int, both: float) -> tuple[float, float]:
    """The steps d_i and d_j where ``both`` is r_i'Wr_j + lam c_i'c_j."""
    det = found.bends[i] * found.bends[j] - both * both
    d = (both * found.slopes[j] - found.bends[j] * found.slopes[i]) / det
    return d, (both * found.slopes[i] - found.bends[i] * found.slopes[j]) / det
