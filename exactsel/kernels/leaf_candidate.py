"""One candidate column beside a fit: its residual r_j, bend, cubic and quartic terms (kernels/leaf_fit.py)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exactsel._jit import in_numpy, njit
from exactsel.kernels.columns import PLACE, Columns, add_entries
from exactsel.kernels.leaf_fit import HEAVY, WRONG, SmallFit
from exactsel.kernels.linalg import cholesky_solve, correlate, dot
from exactsel.rounding import UNIT
from exactsel.types import FloatArray, IntArray


class Candidates(NamedTuple):
    """What is known about m candidates: rows of arrays."""

    columns: IntArray
    scaled: FloatArray
    """(m, n + k) r_j times the square roots of omega, and sqrt(lam) c_j: their products are the bends of pairs."""
    moves: FloatArray
    """(m, u) c_j."""
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
def empty_candidates(m: int, n: int, k: int, u: int) -> Candidates:
    """Room for m candidates beside k columns and u unknowns."""
    return Candidates(
        np.empty(m, dtype=np.int64), np.empty((m, n + k)), np.empty((m, u)), np.empty(m), np.empty(m), np.empty(m),
        np.empty(m), np.empty(m), np.empty(m), np.empty(m), np.empty(m), np.empty(m),
    )  # fmt: skip


@njit(sums=True, inline=True)
def _residual(fit: SmallFit, move: FloatArray, column: FloatArray, r: FloatArray) -> None:
    """r = column - A_S move, and less the intercept's move."""
    k, a = fit.columns.size, 0
    shift = move[k] if move.size > k else 0.0
    for i in range(r.size):
        r[i] = column[i] - shift
    while a + 3 < k:
        first, second, third, fourth = fit.included[a], fit.included[a + 1], fit.included[a + 2], fit.included[a + 3]
        for i in range(r.size):
            r[i] -= (move[a] * first[i] + move[a + 1] * second[i]) + (move[a + 2] * third[i] + move[a + 3] * fourth[i])
        a += 4
    while a < k:
        last = fit.included[a]
        for i in range(r.size):
            r[i] -= move[a] * last[i]
        a += 1


@in_numpy(_residual)
def _residual_of_arrays(fit: SmallFit, move: FloatArray, column: FloatArray, r: FloatArray) -> None:
    k = fit.columns.size
    r[:] = column[: r.size] - (move[k] if move.size > k else 0.0) - move[:k] @ fit.included[:k, : r.size]


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


@in_numpy(_moments)
def _moments_of_arrays(
    fit: SmallFit, r: FloatArray, scaled: FloatArray, up: FloatArray, down: FloatArray
) -> tuple[float, float, float]:
    two = r * r
    terms = fit.thirds * two * r
    scaled[: r.size] = fit.roots * r
    high, low = fit.upward * r, fit.downward * r
    up[:], down[:] = np.maximum(high, low), np.maximum(-high, -low)
    return float(terms.sum()), float(abs(terms).sum()), float(fit.fourths @ (two * two))


@njit(inline=True)
def largest(values: FloatArray) -> float:
    """The largest of numbers that are not negative, by the order of their bits, which the compiler vectorises."""
    bits = values.view(np.int64)
    largest = bits[0]
    at = 0
    for i in range(bits.size):
        largest = max(largest, bits[i])
    for i in range(bits.size):
        at = i if bits[i] == largest else at
    return float(values[at])


@in_numpy(largest)
def _largest_of_array(values: FloatArray) -> float:
    return float(values.max())


@njit(inline=True)
def add_candidate(
    AT: Columns, norms: FloatArray, lam: float, fit: SmallFit, column: int, slope: float, size_of_b: float,
    found: Candidates, at: int, room: FloatArray,
) -> None:  # fmt: skip
    """Fill row ``at`` of the candidates for a column with this slope; ``room`` (4, n) is to work in."""
    k, n, u = fit.columns.size, fit.z.size, fit.x.size
    move, r, place = found.moves[at], room[0], AT.where[column, PLACE]
    if place < 0:
        room[3, :] = 0.0
        add_entries(AT, column, 1.0, room[3])
    own = room[3] if place < 0 else AT.whole[place]
    correlate(fit.weighted, np.arange(u), own, move)
    cholesky_solve(fit.factor, move)
    _residual(fit, move, own, r)
    signed, cubic, quartic = _moments(fit, r, found.scaled[at], room[1], room[2])
    size, doubt = (
        fit.level[HEAVY] * norms[column] + np.sqrt(lam),
        2.0 * (n + 64) * UNIT * norms[column] * size_of_b,
    )
    for a in range(u):
        size += abs(move[a]) * fit.lengths[a]
        doubt += abs(move[a]) * fit.gradient[a]
    for a in range(k):
        found.scaled[at, n + a] = np.sqrt(lam) * move[a]
    found.columns[at] = column
    found.slopes[at] = slope
    found.bends[at] = dot(found.scaled[at], found.scaled[at]) + lam
    found.thirds[at] = signed
    found.third_sizes[at] = cubic ** (1.0 / 3.0)
    found.fourth_sizes[at] = np.sqrt(np.sqrt(quartic))
    found.reach_up[at] = largest(room[1])
    found.reach_down[at] = largest(room[2])
    found.sizes[at] = size
    found.doubts[at] = doubt + fit.level[WRONG] * size
