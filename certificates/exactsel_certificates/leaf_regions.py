"""Regions of logistic loss with at most two places left: all that their last columns can hold (FORMAT.md, LEAF).

No model on S and more columns is better than one on S and r columns T of C, and those are near the fit on S. With p the
probability a row's wrong label gets there, b = -y w p, v = A'b and rho = roots of weights omega near w p (1 - p),
consider the dual vector b + rho X, where X = sum of e_j R_j over T and R_j = what the columns of S, and one of ones,
leave of rho a_j. By formula (2) it gives a bound of every model on S and T, for any e, rho and R. In terms
of

    z_i = -y_i (log p_i - log (1 - p_i)),   u = z + A_S v_S / lam - c,   M_j = A_S'(rho R_j),
    K_ij = R_i'R_j + M_i'M_j / lam,         B_S = -sum w (p log p + (1-p) log(1-p)) - ||v_S||^2 / (2 lam)

it is at least

    B_S - ||rho u|| Z - e'Ke / 2 - sum over T of (v_j + (Ke)_j)^2 / (2 lam)
        - cubic^3 / 6 - quartic^4 (1/12 + q/20 + q^2/5),

Z = sum |e_j| N_j with N_j^2 = K_jj, for -p log p follows its Taylor series: with s = the change of p over p, at least
-1, and q = the largest -s, the terms from the fourth on are s^4 (1/12 + q/20 + q^2/5) at most (s^m / (m (m - 1)), whose
sum from m = 6 on is s^6 / 5), and s^4 / 12 where s is positive; likewise for 1 - p.

Roundings: K is off by eps N_i N_j, and (Ke)_j stands for a_j'rho X, of which it is off by D_j Z, D_j the length of what
lam c_j and M_j, and rho a_j and R_j + sum of c_aj rho a_a, differ by. With an **intercept** the dual vector must sum to
zero: what is meant is b + rho (X + rho tau) with the exact number tau that makes it so, of which only the length
|tau| ||rho|| is needed; it is added to Z, and to what else depends on X. c can be any number, at the cost of |c 1'b|.

A set that is not closed by that is tested by itself: the same with the norms of its own X, then formula (2) at b + rho
X as it comes out, cut off where p would leave [0, 1], and at last a model of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from exactsel_certificates.fits import solve_each
from exactsel_certificates.formula import Box, FloatArray
from exactsel_certificates.leaf_bounds import SLACK, Candidates, FittedSets, LeafFit, leaf_fit
from exactsel_certificates.pattern_regions import FIT, fitted
from exactsel_certificates.regions import RegressionRegions
from exactsel_certificates.rigorous import LARGEST_CURVATURE, TINY, U, gamma
from exactsel_certificates.sums import blocked_roundings, blocked_sums
from exactsel_certificates.walk import FREE, IN, LEAF_CLOSED, OUT, Leaves
from exactsel_certificates.work import STEP, of_leaves, refuse, spend

MOST_PLACES = 2

MOST_PAIRED = 1000
"""Candidates all pairs of which are tested: there are tables of them. Searches stop at a third of that."""

STEPS, LONGEST, DONE = 60, 2.0, 1e-22
"""Newton steps of a fit at most, the largest change of a prediction in one, and the part of the objective by which the
last one lowers it."""

SHARE = 1e-11
"""Part of the level that a ridge may cost models of limited coefficients."""

MOST_WAITING = 4096
"""Sets that are fitted together."""

MOST_ENTRIES = 4_000_000
"""Numbers of columns, fits or sets that are kept at a time."""


class LeafRegions:
    """Bound to one problem of logistic loss, and one level."""

    def __init__(self, whole: RegressionRegions) -> None:
        """``whole`` bounds the regions of the same problem, and of the same level, at points."""
        self._whole, self._instance, self._plain = whole, whole.instance, whole.plain
        self._weights = np.ones(whole.plain.n) if whole.instance.weights is None else np.asarray(whole.instance.weights)
        self._ridge, cost = self._with_limits()
        self._level = whole.target + cost if whole.target <= whole.most else np.inf
        self._known: dict[tuple[int, ...], bool] = {}

    exact_regions = 0
    """Those that need exact arithmetic are counted by ``whole``."""

    def bounds(self, leaves: Leaves) -> FloatArray:
        """The level where a region is shown to hold nothing below it, else 0."""
        result = np.zeros(len(leaves.states))
        included, candidates = np.sum(leaves.states == IN, axis=1), np.sum(leaves.states == FREE, axis=1)
        slots = np.minimum(self._instance.k - included, candidates)
        named = (leaves.witness == LEAF_CLOSED) & (slots <= MOST_PLACES)
        with np.errstate(all="ignore"):
            for size in np.unique(included[named]).tolist():
                rows = np.flatnonzero(named & (included == size))
                most = max(1, MOST_ENTRIES // (self._plain.n * (size + 4) + self._plain.d))
                for first in range(0, len(rows), most):
                    some = rows[first : first + most]
                    result[some] = np.where(self._closed(leaves.states[some], size), self._whole.target, 0.0)
        return result

    def _with_limits(self) -> tuple[FloatArray, float]:
        """The ridge of every column (d,), and what it may cost models more than the one given.

        Where |x_j| <= R_j is known a ridge of lam + 2 c / (m R_j^2) costs a model of m columns c more at most.
        """
        lam, sizes, m = self._instance.lam, self._plain.sizes, self._instance.k
        if sizes is None or m == 0:
            return np.full(self._plain.d, lam), 0.0
        with np.errstate(all="ignore"):
            ridge = np.minimum(lam + 2.0 * SHARE * self._whole.target / (m * sizes * sizes), LARGEST_CURVATURE)
        costs = np.sort(0.5 * (ridge - lam) * sizes * sizes)[::-1]
        return ridge, float(np.sum(costs[:m])) * SLACK + 4.0 * U * self._whole.target

    def _closed(self, states: NDArray[np.uint8], size: int) -> NDArray[np.bool_]:
        """Whether each of some regions (B, d) of ``size`` columns in S holds no model below the level."""
        n, slots = self._plain.n, self._instance.k - size
        of_regions = of_leaves(n, size, np.sum(states == FREE, axis=1), min(slots, MOST_PLACES))
        spend(float(np.sum(of_regions + 4.0 * n * self._plain.d)))
        fits = self._fits(np.nonzero(states == IN)[1].reshape(len(states), size))
        closed, waiting = np.ones(len(states), dtype=np.bool_), list[tuple[int, tuple[int, ...]]]()
        for row, state in enumerate(states):
            S, C = np.flatnonzero(state == IN), np.flatnonzero(state == FREE)
            if slots == MOST_PLACES and len(C) > MOST_PAIRED:
                refuse()
                closed[row] = False
                continue
            sets: Iterable[list[int]] = [C.tolist() if slots else []]
            if 0 < slots < len(C):
                sets = self._undecided(self._leaf(fits, row), C, slots)
            for more in sets:
                waiting.append((row, tuple(sorted([*S.tolist(), *more]))))
                if len(waiting) == MOST_WAITING:
                    self._fit_sets(waiting, closed)
                    waiting.clear()
                if not closed[row]:
                    break
        self._fit_sets(waiting, closed)
        return closed

    def _fit_sets(self, waiting: list[tuple[int, tuple[int, ...]]], closed: NDArray[np.bool_]) -> None:
        """Fit sets of columns, and note which regions hold one whose models may be below the level."""
        unknown, closed_sets = {columns for _, columns in waiting} - self._known.keys(), set[tuple[int, ...]]()
        for size in sorted({len(columns) for columns in unknown}):
            sets = np.array(sorted(columns for columns in unknown if len(columns) == size), dtype=np.intp)
            for part in np.array_split(sets, 1 + len(sets) * self._plain.n * (size + 4) // MOST_ENTRIES):
                holds = self._reach_level(self._newton(part)[1], part)
                closed_sets.update(tuple(columns) for columns in part[holds].tolist())
        for row, columns in waiting:
            if closed[row] and columns not in self._known:
                self._known[columns] = columns in closed_sets or self._fit_closes(list(columns))
            closed[row] &= self._known.get(columns, False)

    def _newton(self, included: NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        """The intercepts (B,) and probabilities (B, n) of about the best models on sets of columns (B, s).

        They come from Newton's method; no bound relies on that.
        """
        plain, weights, y = self._plain, self._weights, self._plain.y
        (B, s), u = included.shape, included.shape[1] + self._instance.intercept
        sides = np.ones((B, u, plain.n))
        sides[:, :s] = self._columns(included)
        ridge, x = np.zeros((B, u)), np.zeros((B, u))
        ridge[:, :s] = self._ridge[included]
        moving = np.arange(B)
        for _ in range(STEPS if u else 0):
            spend(10.0 * STEP + 2.0 * len(moving) * u * (u + 6) * plain.n)
            design, at = sides[moving], x[moving]
            z = (at[:, None, :] @ design)[:, 0]
            p = 1.0 / (1.0 + np.exp(np.clip(y * z, -700.0, 700.0)))
            bends, least = weights * p * (1.0 - p), ridge[moving]
            gradient = least * at - (design @ (weights * y * p)[:, :, None])[:, :, 0]
            H = (design * bends[:, None, :]) @ design.transpose(0, 2, 1) + least[:, :, None] * np.eye(u)
            step = solve_each(H, gradient[:, :, None])[:, :, 0]
            change = np.max(np.abs((step[:, None, :] @ design)[:, 0]), axis=1)
            x[moving] = at - np.where(np.isfinite(step), step, 0.0) * np.minimum(1.0, LONGEST / change)[:, None]
            gained = np.sum(gradient * step, axis=1)
            moving = moving[gained > DONE * np.sum(weights)]
            if not moving.size:
                break
        z = (x[:, None, :] @ sides)[:, 0]
        p = 1.0 / (1.0 + np.exp(np.clip(y * z, -700.0, 700.0)))
        return x[:, s] if u > s else np.zeros(B), p

    def _fits(self, included: NDArray[np.intp]) -> FittedSets:
        """About the best models on sets of columns (B, s), with what is made of each row there."""
        plain, weights, (level, p) = self._plain, self._weights, self._newton(included)
        b = -plain.y * (weights * p)
        V = plain.products_of(b)
        sizes = np.sqrt(np.sum(b * b, axis=1)) * SLACK
        error = plain.norms * (gamma(plain.many + 4) * sizes + TINY)[:, None] + plain.n * TINY
        rows = weights * (np.where(p > 0, -p * np.log(p), 0.0) + np.where(p < 1, -(1.0 - p) * np.log1p(-p), 0.0))
        many = blocked_roundings(plain.n)
        total = np.abs(blocked_sums(b)) + gamma(many + 4) * blocked_sums(np.abs(b))
        total = total if self._instance.intercept else np.zeros(len(p))
        base = blocked_sums(rows) * (1.0 - gamma(many + 40))
        return FittedSets(weights, included, level, p, V, error, base, total)

    def _columns(self, numbers: NDArray[np.intp]) -> FloatArray:
        return np.asarray(self._instance.A.T[numbers], dtype=np.float64)

    def _leaf(self, fits: FittedSets, row: int) -> LeafFit:
        columns = self._columns(fits.included[row])
        return leaf_fit(columns, self._plain, self._instance.intercept, self._ridge, fits, row)

    def _undecided(self, leaf: LeafFit, C: NDArray[np.intp], slots: int) -> Iterator[list[int]]:
        """The sets of so many columns of C on which models are to be bounded by themselves, none first."""
        room = leaf.bound - self._level
        if not room >= 0.0:
            yield []
            for more in combinations(C.tolist(), slots):
                yield [*more]
            return
        # Where formula (2) at b itself does for all sets with a column there is no need to move.
        C = C[~(leaf.costs_without_step(C, slots) <= room)]
        if not len(C):
            return
        parts = 1 + len(C) * self._plain.n // MOST_ENTRIES if slots == 1 else 1
        for part in np.array_split(C, parts):
            yield from self._undecided_beside(leaf, part, slots, room)

    def _undecided_beside(self, leaf: LeafFit, C: NDArray[np.intp], slots: int, room: float) -> Iterator[list[int]]:
        """The same, from sums over the rows for each column."""
        candidates = Candidates(leaf, self._columns(C), C)
        if slots == 1:
            first, second = np.flatnonzero(~(candidates.costs() <= room)), None
        else:
            first, second = np.nonzero(np.triu(~(candidates.costs_of_pairs() <= room), 1))
        step = max(1, MOST_ENTRIES // (self._plain.n + self._plain.d))
        for begin in range(0, len(first), step):
            i, j = first[begin : begin + step], None if second is None else second[begin : begin + step]
            spend(STEP + 24.0 * len(i) * self._plain.n)
            X, costs = candidates.costs_by_rows(i, j)
            short = np.flatnonzero(~(costs <= room))
            if short.size:
                sets = np.stack([C[each[short]] for each in ((i,) if j is None else (i, j))], axis=1)
                yield from sets[~self._steps_close(leaf, X[short], sets)].tolist()

    def _steps_close(self, leaf: LeafFit, X: FloatArray, sets: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Whether formula (2) at b + rho X (m, n), cut off, closes each of some sets (m, r) beside S."""
        y = self._plain.y
        spend(4.0 * len(X) * self._plain.n * (self._plain.d + 40.0))
        p = np.clip(leaf.p - y * (leaf.rho * X) / self._weights, 0.0, 1.0)
        return self._reach_level(p, np.hstack([np.tile(leaf.included, (len(X), 1)), sets]))

    def _reach_level(self, p: FloatArray, sets: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Whether formula (2) at probabilities (m, n) closes each of some sets of columns (m, s)."""
        plain = self._plain
        states = np.full((len(p), plain.d), OUT, dtype=np.uint8)
        np.put_along_axis(states, sets, np.uint8(IN), axis=1)
        return plain.bounds(plain.at_duals(-plain.y * p), np.arange(len(p)), states) >= self._whole.target

    def _fit_closes(self, columns: list[int]) -> bool:
        """Whether no model on some columns is below the level, by a fit of their own within the limits."""
        plain, instance = self._plain, self._instance
        spend(FIT)
        x, state = np.zeros((1, plain.d)), np.full((1, plain.d), OUT, dtype=np.uint8)
        state[0, columns] = IN
        A = np.asarray(instance.A[:, columns]) if columns else np.zeros((plain.n, 1))
        about = replace(
            instance, A=A, k=A.shape[1], force_in=(), force_out=(), hierarchy=None, weights=self._weights,
            box=_of(instance.box, columns),
        )  # fmt: skip
        x[0, columns] = fitted(about)[: len(columns)]
        return bool(self._whole.at_models(x, np.zeros(1, dtype=np.intp), state)[0] >= self._whole.target)


def _of(box: Box | None, columns: list[int]) -> Box | None:
    """Limits on the coefficients of some columns, if any."""
    if box is None or not columns:
        return None
    part = Box(box.lower[columns], box.upper[columns])
    return part if np.any(np.isfinite(part.lower) | np.isfinite(part.upper)) else None
