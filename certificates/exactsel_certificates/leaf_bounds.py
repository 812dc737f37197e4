"""The decrease of a logistic fit's bound by one or two more columns, without a sum over rows for each set.

The formulas and their names are those of :mod:`exactsel_certificates.leaf_regions`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exactsel_certificates.formula import FloatArray
from exactsel_certificates.rigorous import RigorousBounds, U, gamma

EXTREME = 1e-6
"""Rows whose probability is nearer to 0 or 1 than this are left as they are."""

STEEP = 2.0
"""A weight is lowered where its probability would leave [0, 1] at a change of the prediction of this size."""

SLACK = 1.0 + 2.0**-40
"""A factor that makes up for all roundings of a few hundred numbers that are not negative, and those of long sums."""


class FittedSets(NamedTuple):
    """About the best models on B sets of s columns, with what is made of each row there."""

    weights: FloatArray
    """(n,) of the rows."""
    included: NDArray[np.intp]
    """(B, s)"""
    level: FloatArray
    """(B,) the intercepts, or zeros."""
    p: FloatArray
    """(B, n)"""
    V: FloatArray
    """(B, d) products of all columns with b ..."""
    error: FloatArray
    """(B, d) ... and what these are off by."""
    base: FloatArray
    """(B,) -sum w (p log p + (1 - p) log (1 - p)), rounded downwards."""
    total: FloatArray
    """(B,) upper estimates of abs(1'b); zeros without an intercept."""


class Step(NamedTuple):
    """The costs of sets of columns, or of one column of each (see :meth:`LeafFit.cost_of`)."""

    Z: FloatArray
    squares: FloatArray
    """e'Ke and the sum of (v_j + (Ke)_j)^2 / lam_j."""
    third: FloatArray
    """The norm of the cubic term of X ..."""
    fourth: FloatArray
    """... and of the quartic one."""
    decrease: FloatArray
    """The largest part X takes off a probability."""


@dataclass
class LeafFit:
    """One fit, and what surrounds it; of rows (n,) that are not moved rho is zero."""

    ridge: FloatArray
    """(d,) lam_j"""
    included: NDArray[np.intp]
    p: FloatArray
    V: FloatArray
    error: FloatArray
    bound: float
    """B_S, less the price of the intercept."""
    rho: FloatArray
    sides: FloatArray
    """(u, n) the columns of S, and one of ones where there is an intercept, times rho."""
    reach: FloatArray
    """(u,) their lengths."""
    longest: FloatArray
    """(d,) upper estimates of the lengths of the rho a_j."""
    wrong: float
    """The length of rho u."""
    thirds: FloatArray
    """The cubic term of a row for X = 1, times six."""
    fourths: FloatArray
    """The quartic term for X = 1, without the factor."""
    lowers: FloatArray
    """What X = 1 takes off p, as a part of it, and off 1 - p."""
    raises: FloatArray
    tau: float
    """The length of the move that makes up for 1'b, or 0 without an intercept."""

    @property
    def s(self) -> int:
        """How many columns S has."""
        return len(self.included)

    @property
    def root(self) -> np.float64:
        """||rho|| where there is an intercept, or 1: tau and what it is part of are zero there."""
        return np.float64(self.reach[-1] if len(self.reach) > self.s else 1.0)

    @cached_property
    def spread(self) -> float:
        """The lengths of the rho a_j / sqrt(lam_j), j in S, in all."""
        return float(np.sqrt(np.sum(self.reach[: self.s] ** 2 / self.ridge[self.included]))) * SLACK

    @cached_property
    def _of_level(self) -> tuple[float, float]:
        """The norms of the cubic and the quartic term of a move of the intercept by 1."""
        third = np.cbrt(np.sum(self.thirds * self.rho**3))
        return float(third) * SLACK, float(np.sqrt(np.sqrt(np.sum(self.fourths * self.rho**4)))) * SLACK

    def costs_without_step(self, C: NDArray[np.intp], slots: int) -> FloatArray:
        """What the costliest set of one or two columns takes that holds each of C, where b is not moved (|C|,)."""
        terms = (np.abs(self.V[C]) + self.error[C] + self.longest[C] * self.tau) ** 2 / self.ridge[C]
        squares = terms + (float(np.max(terms)) if slots > 1 else 0.0)
        nothing = np.zeros(len(C))
        return self.cost_of(Step(nothing, squares, nothing, nothing, nothing), 0.0, 0.0)

    def cost_of(self, part: Step, along: float, eps: float) -> FloatArray:
        """What sets take off the bound.

        The move of the intercept is tau + ``along`` Z; e'Ke is right to ``eps`` Z^2.
        """
        tau, spread, wrong = self.tau, self.spread, self.wrong
        Z, squares, third, fourth, decrease = part
        if tau > 0.0 or along > 0.0:
            level = (tau + along * Z) / self.root
            third, fourth = third + level * self._of_level[0], fourth + level * self._of_level[1]
            decrease = decrease + level * SLACK
        once = wrong * (1.0 + along) + (1.0 + spread) * tau + (1.0 + spread**2) * tau * along
        twice = 0.5 * eps + (1.0 + spread) * along + 0.5 * (1.0 + spread**2) * along**2
        costs = wrong * tau + 0.5 * (1.0 + spread**2) * tau**2 + Z * (once + twice * Z) + 0.5 * squares
        fourth = fourth * fourth
        costs += third * third * third / 6.0 + fourth * fourth * (1.0 / 12.0 + decrease * (0.05 + 0.2 * decrease))
        return np.asarray(np.where(decrease * SLACK < 1.0, costs * SLACK, np.inf))


def leaf_fit(
    columns: FloatArray, plain: RigorousBounds, intercept: bool, ridge: FloatArray, fits: FittedSets, row: int
) -> LeafFit:
    """What surrounds one of some fits, on ``columns`` (s, n)."""
    weights, y, S, p = fits.weights, plain.y, fits.included[row], fits.p[row]
    level, total, base = float(fits.level[row]), fits.total[row], float(fits.base[row])
    V, error, q = fits.V[row], fits.error[row], 1.0 - p
    inner = np.minimum(p, q) > EXTREME
    part = np.where(inner, np.minimum(1.0, 1.0 / (STEEP * np.maximum(p, q))), 0.0)
    bend = weights * (p * q)
    rho = np.sqrt(bend * part)
    sides = rho * (np.vstack([columns, np.ones(plain.n)]) if intercept else columns)
    low, high = np.where(inner, np.log(p), 0.0), np.where(inner, np.log1p(-p), 0.0)
    x, off_x = V[S] / ridge[S], error[S] / ridge[S]
    u = x @ columns - y * (low - high) - level
    off = 24.0 * U * (np.abs(low) + np.abs(high) + abs(level)) + gamma(len(S) + 6) * (np.abs(x) @ np.abs(columns))
    reach = np.sqrt(np.sum(sides * sides, axis=1)) * SLACK
    wrong = np.sqrt(np.sum((rho * (np.abs(u) + off)) ** 2)) + float(reach[: len(S)] @ off_x)
    squares = 0.5 * float(np.sum((np.abs(V[S]) + error[S]) ** 2 / ridge[S])) * SLACK
    lost = abs(level) * total * SLACK + 8.0 * U * (abs(base) + squares)
    tau = float(total / reach[-1]) * SLACK if intercept else 0.0  # infinite where no row may be moved
    # X = 1 changes p by rho / w, and rho^2 is bend times part.
    cubes = np.where(inner, part * np.sqrt(part / bend), 0.0)
    fourths = np.where(inner, part * part / bend * (1.0 - 3.0 * p * q), 0.0)
    return LeafFit(
        ridge, S, p, V, error, base - squares - lost, rho, sides, reach,
        float(np.max(rho, initial=0.0)) * plain.norms * SLACK, float(wrong) * SLACK, cubes * (np.abs(p - q) + U),
        fourths,
        np.where(inner, y * rho / (weights * p), 0.0), np.where(inner, -y * rho / (weights * q), 0.0), tau,
    )  # fmt: skip


class Candidates:
    """Some columns (m) beside a fit."""

    def __init__(self, leaf: LeafFit, columns: FloatArray, numbers: NDArray[np.intp]) -> None:
        """``columns`` (m, n) are the columns of these numbers (m,)."""
        s, n, sides = leaf.s, len(leaf.rho), leaf.sides
        self._leaf, self._v, self._off = leaf, leaf.V[numbers], leaf.error[numbers]
        self._ridge, included = leaf.ridge[numbers], leaf.ridge[leaf.included]
        scaled = columns * leaf.rho
        moves = _solved(sides @ sides.T + np.diag(np.append(included, [0.0] * (len(sides) - s))), sides, scaled)
        self.X = scaled - moves.T @ sides
        M = sides[:s] @ self.X.T / np.sqrt(included)[:, None]
        joined = np.hstack([self.X, M.T])
        self._K = joined @ joined.T
        off, lengths = gamma(n + 8) * leaf.spread, _lengths(self.X)
        self._sizes = np.hypot(lengths, _lengths(M.T) + off * lengths) * SLACK
        """N_j"""
        self._eps = (gamma(n + s + 8) + 2.0 * off) * SLACK
        self._longest = _lengths(scaled)
        self._doubts = (
            _lengths((np.sqrt(included)[:, None] * moves[:s]).T - M.T) + 8.0 * U * _lengths(M.T) + off * lengths
        )
        self._doubts += gamma(len(sides) + 8) * (self._longest + np.abs(moves.T) @ leaf.reach) * SLACK
        self._along = 0.0
        """The largest 1'rho X_j / N_j, where there is an intercept."""
        if len(sides) > s:
            sums = np.abs(self.X @ leaf.rho) + gamma(n + 8) * leaf.root * lengths
            self._along = float(np.max(np.where(sums > 0.0, sums / self._sizes, 0.0))) * SLACK
            self._doubts += np.abs(moves[-1]) * self._along * SLACK
        tau, along = leaf.tau, self._along / leaf.root * SLACK
        self._along = along
        self._still = (self._off + 8.0 * U * np.abs(self._v) + self._longest * tau) * SLACK
        self._grows = ((self._eps + 8.0 * U) * self._sizes + self._doubts + self._longest * along) * SLACK
        """What v_i + (Ke)_i is off by at most: the first, and the other times Z."""
        self._third, self._fourth = self._norms(self.X)
        lowered, raised = self.X * leaf.lowers, self.X * leaf.raises
        self._decreases = np.max(np.maximum(lowered, raised), axis=1), -np.min(np.minimum(lowered, raised), axis=1)
        """What one unit, and minus one, takes off a probability at most."""

    def costs(self) -> FloatArray:
        """What each column on its own takes off the bound at most (m,)."""
        return self._total(self._one(np.arange(len(self._v))))

    def costs_of_pairs(self) -> FloatArray:
        """What each pair takes (m, m); the diagonal says nothing."""
        i = np.arange(len(self._v))[:, None]
        e = self._step(i, i.T)
        # The part of j in the pair (i, j) is that of i in (j, i).
        part = self._part(i, e, e.T, self._K, _both(np.abs(e) * self._sizes[i]))
        return self._total(Step(part.Z, *(_both(each) for each in part[1:])))

    def costs_by_rows(self, i: NDArray[np.intp], j: NDArray[np.intp] | None) -> tuple[FloatArray, FloatArray]:
        """X (q, n) of some columns, or pairs, and what they take by the norms of these (q,)."""
        if j is None:
            whole = self._one(i)
            X = self.X[i] * (-self._v[i] / (self._K[i, i] + self._ridge[i]))[:, None]
        else:
            e, f, K = self._step(i, j), self._step(j, i), self._K[i, j]
            Z = np.abs(e) * self._sizes[i] + np.abs(f) * self._sizes[j]
            halves = self._part(i, e, f, K, Z), self._part(j, f, e, K, Z)
            whole = Step(Z, *(half + other for half, other in zip(halves[0][1:], halves[1][1:], strict=True)))
            X = self.X[i] * e[:, None] + self.X[j] * f[:, None]
        third, fourth = self._norms(X)
        decrease = np.max(np.maximum(X * self._leaf.lowers, X * self._leaf.raises), axis=1)
        # X is rounded: by a few units of the size of its two parts.
        off = 16.0 * U
        return X, self._total(
            Step(
                whole.Z, whole.squares, third + off * whole.third, fourth + off * whole.fourth,
                decrease + 1e-9 * whole.decrease,
            )
        )  # fmt: skip

    def _step(self, i: NDArray[np.intp], j: NDArray[np.intp]) -> FloatArray:
        """About the best e of i beside j, for two arrays of numbers that broadcast."""
        v, bends, both = self._v, np.diagonal(self._K) + self._ridge, self._K[i, j]
        return np.asarray((both * v[j] - bends[j] * v[i]) / (bends[i] * bends[j] - both * both))

    def _one(self, i: NDArray[np.intp]) -> Step:
        """What single columns do."""
        squares = self._K[i, i]
        e = -self._v[i] / (squares + self._ridge[i])
        return self._part(i, e, np.zeros(len(i)), np.zeros(len(i)), np.abs(e) * self._sizes[i])

    def _part(self, i: NDArray[np.intp], e: FloatArray, f: FloatArray, both: FloatArray, Z: FloatArray) -> Step:
        """What i does of a set with the steps e, and f of another column, their entry of K being ``both``."""
        moved = e * np.diagonal(self._K)[i] + f * both
        residual = np.abs(self._v[i] + moved) + self._still[i] + Z * self._grows[i]
        up, down = self._decreases
        size = np.abs(e)
        return Step(
            Z, e * moved + residual * residual / self._ridge[i], size * self._third[i], size * self._fourth[i],
            np.maximum(e * up[i], -e * down[i]),
        )  # fmt: skip

    def _total(self, part: Step) -> FloatArray:
        return self._leaf.cost_of(part, self._along, self._eps + 64.0 * U)

    def _norms(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The norms of the cubic and the quartic term of rows (q, n)."""
        squares = X * X
        quartic = (squares * squares) @ self._leaf.fourths
        squares *= np.abs(X)
        room = SLACK * (1.0 + gamma(X.shape[1]))
        return np.cbrt(squares @ self._leaf.thirds) * room, np.sqrt(np.sqrt(quartic)) * room


def _both(part: FloatArray) -> FloatArray:
    """The sum for both columns of pairs (i, j), from the part of each i."""
    return np.asarray(part + part.T)


def _lengths(rows: FloatArray) -> FloatArray:
    """Upper estimates of the lengths of rows (m, n)."""
    return np.asarray(np.sqrt(np.sum(rows * rows, axis=1)) * SLACK)


def _solved(H: FloatArray, sides: FloatArray, scaled: FloatArray) -> FloatArray:
    """About H^-1 sides scaled' (u, m); any numbers do."""
    try:
        return np.asarray(np.linalg.solve(H, sides @ scaled.T), dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.zeros((len(sides), len(scaled)))
