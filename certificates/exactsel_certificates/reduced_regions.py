"""Bounds of all regions: as they are, below a minorant, or without the columns that others make up for (near.py)."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from exactsel_certificates.container import FIRST_POINT, Proof
from exactsel_certificates.formula import FloatArray, Instance
from exactsel_certificates.leaf_regions import LeafRegions
from exactsel_certificates.losses.base import LEAVES
from exactsel_certificates.minorant_regions import MinorantRegions
from exactsel_certificates.near import DISTANCES, NearColumns
from exactsel_certificates.pattern_regions import PatternRegions
from exactsel_certificates.patterns import by_patterns
from exactsel_certificates.points import Points
from exactsel_certificates.regions import COUNTED_FOR_ONE, RegressionRegions
from exactsel_certificates.scoped_fits import ScopedFits
from exactsel_certificates.walk import BY_COUNTING, IN, Leaves
from exactsel_certificates.work import refuse

MOST_SUSPECTS = 20_000
"""Sets of a region tested for columns that others of the set make up for."""

SHARE = 1 / 8
"""Part of the work in exact arithmetic that goes into either of :data:`DISTANCES`."""


class AllRegions:
    """Bounds of the regions of a regression problem, for claims about all models or bounded ones."""

    def __init__(self, instance: Instance, proof: Proof, exact_limit: float) -> None:
        self._as_they_are = RegressionRegions(instance, proof, exact_limit)
        self._target, self._ways = proof.lower, list[_Way]()
        if by_patterns(proof, instance):
            self._ways = [PatternRegions(instance, proof, self._as_they_are.work)]
        if proof.minorant_point.size and not instance.formulas.quadratic:
            self._ways = [MinorantRegions(instance, proof, COUNTED_FOR_ONE * exact_limit)]
        if LEAVES in instance.formulas.serves and not instance.groups:
            self._ways.append(LeafRegions(self._as_they_are))
        if proof.valid_for and instance.formulas.quadratic and instance.lam == 0 and not instance.groups:
            whole = self._as_they_are
            self._ways = [ReducedRegions(instance, proof, whole, SHARE * exact_limit, e) for e in DISTANCES]
            if instance.box is None:
                self._ways.insert(0, ScopedFits(whole))

    @property
    def exact_regions(self) -> int:
        """How many regions needed exact arithmetic so far."""
        return self._as_they_are.exact_regions + sum(way.exact_regions for way in self._ways)

    def bounds(self, leaves: Leaves) -> FloatArray:
        """A bound for each region; 0, which no objective is below, at the least."""
        result = np.zeros(len(leaves.states))
        for way in (*self._ways, self._as_they_are):
            short = np.flatnonzero(~(result >= self._target))
            if short.size:
                lower = way.bounds(Leaves(leaves.states[short], leaves.witness[short]))
                result[short] = np.maximum(result[short], lower)
        return result


class ReducedRegions:
    """Bounds of the same regions without the columns that others make up for (near.py)."""

    def __init__(
        self, instance: Instance, proof: Proof, whole: RegressionRegions, exact_limit: float, farthest: float
    ) -> None:
        self._whole = whole
        self._near = NearColumns(instance, whole.plain, np.array(proof.curvature, dtype=np.float64), farthest)
        # What a column leaves to others may take these beyond their limits, so of limits nothing is known any more.
        self._instance = replace(instance, force_in=(), force_out=(), box=None)
        self._level, self._points, self._exact_limit = proof.lower, Points(proof), exact_limit
        level = float(np.nextafter(proof.lower + self._near.price, np.inf))
        self._above = replace(proof, lower=level, valid_for="")
        self._known: dict[tuple[int, bool], RegressionRegions] = {}

    def bounds(self, leaves: Leaves) -> FloatArray:
        """The level where a region is shown to hold nothing below it, else 0."""
        states, fewer = self._near.without(leaves.states)
        points = (leaves.witness - FIRST_POINT) // 2
        at_points = (leaves.witness >= FIRST_POINT) & (points < len(self._points))
        nothing = np.zeros(states.shape[1])
        convex = np.array([
            self._near.convex(state, self._points.models(points[[row]])[0] if at_points[row] else nothing)
            for row, state in enumerate(states)
        ], dtype=np.bool_)  # fmt: skip
        result = np.zeros(len(states))
        for left_out in np.unique(fewer).tolist():
            for curved in (True, False):
                rows = np.flatnonzero((fewer == left_out) & (convex == curved))
                if rows.size:
                    regions = self._regions(left_out, curved)
                    lower = regions.bounds(Leaves(states[rows], leaves.witness[rows]))
                    result[rows] = np.where(lower >= regions.target, self._level, 0.0)
        for row in np.flatnonzero((result < self._level) & (leaves.witness == BY_COUNTING)).tolist():
            counted = self._counted(states[row], int(fewer[row]), leaves.states[row])
            result[row] = self._level if counted else 0.0
        return result

    @property
    def exact_regions(self) -> int:
        """How many regions needed exact arithmetic so far."""
        return sum(regions.exact_regions for regions in self._known.values())

    def _regions(self, fewer: int, curved: bool) -> RegressionRegions:
        """Bounds for models of so many columns less, with the file's curvature or without any."""
        if (fewer, curved) not in self._known:
            about = replace(self._instance, k=self._instance.k - fewer)
            proof = self._above if curved else replace(self._above, curvature=np.zeros(0))
            curvature = np.array(proof.curvature, dtype=np.float64) if curved else None
            self._known[fewer, curved] = RegressionRegions(about, proof, self._exact_limit, curvature)
        return self._known[fewer, curved]

    def _counted(self, state: NDArray[np.uint8], fewer: int, outer: NDArray[np.uint8]) -> bool:
        """Whether counting closes a region where sets that hold a column the others make up for go without it.

        ``outer`` is the region with the columns that were removed. Where there are some, those of S may have taken over
        their coefficients, which are then not bounded any more: none of S is removed from a set after that. A set that
        holds no such column, and leaves no place for one, stands for itself: it need not pay for any.
        """
        counts, sets, suspects = self._regions(fewer, curved=False).semidefinite, list[NDArray[np.bool_]](), 0
        k, included, alone = self._instance.k - fewer, np.flatnonzero(outer == IN), bool(np.all(state == outer))
        for columns in counts.undecided(state, k) if counts.usable and counts.may_count(state, k) else ():
            stay = () if alone else [j for j in columns if state[j] == IN]
            basis = self._near.independent(columns, stay)
            if len(basis) < len(columns):
                sets.append(np.isin(np.arange(len(state)), basis))
            else:
                itself = sorted({*columns, *included.tolist()})
                if not ((alone or len(columns) == k) and self._whole.value(itself) >= self._level):
                    return False
            suspects += 1
            if suspects > MOST_SUSPECTS:
                refuse()
                return False
        return suspects > 0 and (not sets or bool(np.all(counts.on_all(np.array(sets)))))


_Way: TypeAlias = ReducedRegions | MinorantRegions | PatternRegions | LeafRegions | ScopedFits
