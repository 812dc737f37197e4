"""Regions closed by a minorant: no model of theirs has q below the level, so none has P (minorant.py).

With T = 2 (constant - L) > 0 no model on columns U, with any intercept, has q below L if and only if Q = K - h h' / T
is positive semidefinite on U and the intercept: the question semidefinite.py answers. The intercept is eliminated
first, once for all regions, with the shift of the largest set.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from exactsel_certificates.container import Proof
from exactsel_certificates.formula import FloatArray, Instance, may_choose
from exactsel_certificates.group_counting import GroupCounting
from exactsel_certificates.minorant import Minorant, minorant
from exactsel_certificates.points import Points, left_first
from exactsel_certificates.rigorous import U
from exactsel_certificates.semidefinite import TABLE_UP_TO, Semidefinite
from exactsel_certificates.walk import BY_COUNTING, IN, OUT, Leaves

THE_MINORANT = ~0
"""The witness of regions it closes."""


class BelowMinorant(Semidefinite):
    """Bound to one minorant and one level."""

    def __init__(self, q: Minorant, intercept: bool, level: float, most: float, first: NDArray[np.int64]) -> None:
        """At most ``most`` sets are counted; ``first`` are the columns that leave regions first, which saves copies."""
        self.most, self.counted_sets = most, 0
        d = len(q.linear) - intercept
        self._besides = int(intercept)
        T = 2.0 * (q.constant - level) * (1.0 - 8 * U)
        self.usable = T > 0.0 and d <= TABLE_UP_TO
        if not self.usable:
            return
        self.order = np.concatenate([first, np.setdiff1d(np.arange(d), first)])
        self.alike = np.arange(d)
        with np.errstate(all="ignore"):
            v = q.linear / np.sqrt(T)
            # Where the diagonal is positive entries of v are at most 1 but for roundings.
            off = 1.01 * float(np.max(q.off_linear, initial=0.0)) / np.sqrt(T) + 8 * U
            self.error = 1.01 * (q.off_square + 2.1 * off + off * off + 8 * U)
            Q = q.square - np.multiply.outer(v, v)
            if intercept:
                pivot = Q[d, d] - self.room(d)
                self.usable = bool(pivot > 0.0)
                Q = Q[:d, :d] - np.multiply.outer(Q[:d, d] / pivot, Q[d, :d])
            self.Q = np.zeros((d + 1, d + 1))
            self.Q[:d, :d] = Q[np.ix_(self.order, self.order)]
            # The last row is that of columns no model has.
            self.diagonal = np.append(np.diagonal(self.Q)[:d], 1.0)

    def room(self, m: int, more: float = 0.0) -> float:
        """As for all quadratic functions, with the intercept among the columns eliminated."""
        return super().room(m + self._besides, more)


class MinorantRegions:
    """Bound to the minorant of a proof."""

    def __init__(self, instance: Instance, proof: Proof, most: float) -> None:
        self.exact_regions = 0
        self._instance, self._proof, self._most = instance, proof, most

    @cached_property
    def _below(self) -> BelowMinorant | None:
        """What the minorant proves; None where it is not shown to hold."""
        proof, points = self._proof, Points(self._proof)
        touched = proof.minorant_point.astype(np.int64)
        if not np.all((touched >= 0) & (touched < len(points))):
            return None
        below, above = proof.minorant_width.astype(np.float64).reshape(2, proof.n)
        q = minorant(self._instance, points.models(touched), below, above, proof.lower)
        return (
            None
            if q is None
            else BelowMinorant(q, self._instance.intercept, proof.lower, self._most, left_first(proof))
        )

    def bounds(self, leaves: Leaves) -> FloatArray:
        """The level where a region is shown to hold nothing below it, else 0."""
        result, k = np.zeros(len(leaves.states)), self._instance.k
        named, counted = leaves.witness == THE_MINORANT, leaves.witness == BY_COUNTING
        if not np.any(named | counted) or self._below is None or not self._below.usable:
            return result
        groups, rows = self._instance.groups, np.flatnonzero(counted)
        counting = GroupCounting(self._below, groups) if groups else self._below
        is_closed = counting.counted(leaves.states[rows], k)
        if self._instance.hierarchy is not None and not groups:
            for row in np.flatnonzero(~is_closed).tolist():
                state = leaves.states[rows[row]]
                if self._below.may_count(state, k):
                    is_closed[row] = not any(may_choose(self._instance, T) for T in self._below.undecided(state, k))
        result[rows] = np.where(is_closed, self._proof.lower, 0.0)
        states = leaves.states[named]
        full = np.sum(states == IN, axis=1) >= k
        used = np.where(full[:, None], states == IN, states != OUT)
        result[named] = np.where(self._below.on_all(used[:, self._instance.unit_of]), self._proof.lower, 0.0)
        return result
