"""The decrease of a fit's bound by one or two candidates (kernels/leaf_fit.py), without a sum over rows.

The errors: eps = (n + 8k + 64) units. With Z = the sum of |d_j| size_j, where size_j bounds the W-length of r_j and of
the numbers it is made of, A'(b + Wt) on S is off by a vector rho with |rho_a| <= eps length_a Z, on T by rho_j <=
(the residual of B d = -g) + (the doubt about g_j) + 4 eps size_j Z, and (2) changes by rho'd - ||rho||^2 / 2 lam -
rho'(gradient on S) / lam + (gradient on S)'d_S; d'Bd / 2 itself is off by eps Z^2, and as z is Ax rounded only, by
eps Z (sum of length_a |x_a|) more.

With an intercept tau is added to t, |tau| <= (sigma + eps Z) / root(1'W1), sigma what is left of 1'b. A'(b + Wt) is off
by that times a W-length more: sigma stands in the gradient on S and in the doubts, and eps is twice as large for the
other part. The norms of the cubic and the quartic term of tau 1 are at most |tau| (1'W1)^(1/3) and ^(1/4), and no
probability goes further than |tau| of what is allowed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exactsel._jit import in_numpy, njit
from exactsel.kernels.leaf_candidate import Candidates, largest
from exactsel.kernels.leaf_fit import LENGTH, TOTAL, WRONG, SmallFit
from exactsel.rounding import UNIT
from exactsel.types import FloatArray

MOST_APART = 1e6
"""Where two candidates' reaches add up to more than this, the sum of their steps in a row may have lost its digits."""


class Margins(NamedTuple):
    """What rounding can do, the same for all sets beside one fit."""

    eps: float
    lam: float
    once: float
    """Goes with Z."""
    square: float
    """Goes with Z^2."""
    rows: float
    """The same for every set."""
    tau: float
    """What tau is at most (0 without an intercept) ..."""
    stray: float
    """... and goes with Z in it."""
    third: float
    """The norm of the cubic term of a tau of 1 ..."""
    fourth: float
    """... and of the quartic one."""


@njit
def margins_of(fit: SmallFit, n: int, lam: float) -> Margins:
    """The margins beside a fit on n rows."""
    k, wrong, whole = fit.columns.size, fit.level[WRONG], fit.level[LENGTH]
    eps = (2.0 if whole == 0.0 else 4.0) * (n + 8 * k + 64) * UNIT
    length, slope, trace = 0.0, 0.0, 0.0
    for a in range(fit.x.size):
        length += fit.lengths[a] * abs(fit.x[a])
    for a in range(k):
        slope += fit.lengths[a] * fit.gradient[a]
        trace += fit.lengths[a] * fit.lengths[a]
    rows = 512.0 * fit.level[TOTAL] * UNIT + wrong * (wrong * (1.0 + trace / lam) + slope / lam + eps * length)
    return Margins(
        eps, lam, eps * (length + slope / lam + 2.0 * wrong), eps * (8.0 + eps * trace / (2.0 * lam)), rows,
        wrong / whole if whole > 0.0 else 0.0, eps / whole if whole > 0.0 else 0.0, whole ** (2.0 / 3.0),
        np.sqrt(whole),
    )  # fmt: skip


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
    tau = margins.tau + margins.stray * length
    rest = abs(slope + bend * step) + found.doubts[i] + 4.0 * margins.eps * found.sizes[i] * length
    reach = size * (found.reach_up[i] if step > 0.0 else found.reach_down[i]) + tau
    fourth = size * found.fourth_sizes[i] + tau * margins.fourth
    third = step * step * step * found.thirds[i]
    shift = tau * margins.third
    norm = size * found.third_sizes[i] + shift
    doubtful = 64.0 * margins.eps * norm**3 + shift * norm * norm
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
        tau = margins.tau + margins.stray * length
        third = along * found.third_sizes[i] + across * found.third_sizes[j] + tau * margins.third
        fourth = along * found.fourth_sizes[i] + across * found.fourth_sizes[j] + tau * margins.fourth
        reach = max(d * found.reach_up[i], -d * found.reach_down[i])
        reach += max(e * found.reach_up[j], -e * found.reach_down[j]) + tau
        costs[j] = _cost(
            margins, along, across, half, third * third * third / 6.0, reach, fourth * fourth, length,
            rest, left,
        )  # fmt: skip


@njit(sums=True)
def _write_reaches(
    fit: SmallFit, first: FloatArray, second: FloatArray, d: float, e: float, reaches: FloatArray
) -> None:
    """Write the part of what is allowed that d and e units of two candidates make of each row's probability.

    ``first`` and ``second`` are the candidates' residuals times the roots of omega.
    """
    for i in range(reaches.size):
        step = d * first[i] + e * second[i]
        reaches[i] = max(step * fit.scaled_upward[i], step * fit.scaled_downward[i])


@in_numpy(_write_reaches)
def _write_whole_reaches(
    fit: SmallFit, first: FloatArray, second: FloatArray, d: float, e: float, reaches: FloatArray
) -> None:
    step = d * first[: reaches.size] + e * second[: reaches.size]
    reaches[:] = np.maximum(step * fit.scaled_upward, step * fit.scaled_downward)


@njit
def cost_of_pair(
    fit: SmallFit, found: Candidates, margins: Margins, i: int, j: int, both: float, reaches: FloatArray
) -> float:
    """As :func:`costs_of_pairs` for one pair, by the largest reach of any row in place of the sum of two largest.

    The largest reaches of two candidates are seldom in the same row. ``reaches`` (n,) is to work in.
    """
    mine, bend, slope, other = found.bends[i], found.bends[j], found.slopes[i], found.slopes[j]
    d, e = steps_of_pair(found, i, j, both)
    along, across = abs(d), abs(e)
    length = along * found.sizes[i] + across * found.sizes[j]
    apart = max(d * found.reach_up[i], -d * found.reach_down[i])
    apart += max(e * found.reach_up[j], -e * found.reach_down[j])
    if not apart < MOST_APART:
        return np.inf
    wide = 4.0 * margins.eps * length
    rest = abs(slope + mine * d + both * e) + found.doubts[i] + wide * found.sizes[i]
    left = abs(other + both * d + bend * e) + found.doubts[j] + wide * found.sizes[j]
    half = 0.5 * (d * (mine * d + 2.0 * both * e) + bend * e * e)
    tau = margins.tau + margins.stray * length
    third = along * found.third_sizes[i] + across * found.third_sizes[j] + tau * margins.third
    fourth = along * found.fourth_sizes[i] + across * found.fourth_sizes[j] + tau * margins.fourth
    _write_reaches(fit, found.scaled[i], found.scaled[j], d, e, reaches)
    reach = max(0.0, largest(reaches)) + tau
    return float(
        _cost(margins, along, across, half, third * third * third / 6.0, reach, fourth * fourth, length, rest, left)
    )


@njit(inline=True)
def steps_of_pair(found: Candidates, i: int, j: int, both: float) -> tuple[float, float]:
    """The steps d_i and d_j where ``both`` is r_i'Wr_j + lam c_i'c_j."""
    det = found.bends[i] * found.bends[j] - both * both
    d = (both * found.slopes[j] - found.bends[j] * found.slopes[i]) / det
    return d, (both * found.slopes[i] - found.bends[i] * found.slopes[j]) / det
