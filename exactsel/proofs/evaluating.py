"""Evaluate bounds again from what is said to prove them, by the formulas of the checker of proofs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exactsel.bounds.witness import (
    CurvedPoint,
    DualPoint,
    EigenvaluePoint,
    FitPoint,
    LeafFits,
    ModelPoint,
    Proof,
    SpectralPoint,
    SplitPoint,
    StrongPoint,
    shown,
)
from exactsel.problem.interface import SubsetProblem
from exactsel.problem.model import preparation_of
from exactsel.proofs.instance import searched_instance_of
from exactsel.rounding import UNIT
from exactsel.types import BoolArray, FloatArray, StateArray
from exactsel_certificates import container as fmt
from exactsel_certificates.checking import EXACT_LIMIT
from exactsel_certificates.formula import ColumnInstance, Instance
from exactsel_certificates.reduced_regions import AllRegions
from exactsel_certificates.rigorous import RigorousBounds
from exactsel_certificates.selection_counting import SelectionCounting
from exactsel_certificates.selections import SelectionBounds
from exactsel_certificates.walk import BY_COUNTING, FREE, IN, LEAF_CLOSED, Leaves

ANYTHING = 5e-324
"""A target that any bound reaches: the checker makes no bound larger than it comes out."""

ALIKE = 1e-6
"""Relative difference up to which bounds are evaluated together."""

UNTRUSTED = 1e-6
"""Part of a bound to which the rounding of a dual vector is limited where the witness comes from outside, with
coefficients of any size. Without a ridge honest searches need more."""

COUNTED = "counted"
"""Stands for a witness where every model of a region was evaluated."""


class Claim(NamedTuple):
    """A bound of a region, and what is said to prove it."""

    state: bytes
    """OUT, FREE or IN for every column, or group."""
    proof: Proof | str
    bound: float
    node: int
    round: int


class Evaluator:
    """Evaluates bounds for the numbers a search works on.

    Parameters
    ----------
    problem : SubsetProblem
        :class:`exactsel.errors.UnsupportedError` where the checker does not know it.
    trust : float
        Part of a bound that rounding may make of it at most, by what is worked out from its witness.
    """

    def __init__(self, problem: SubsetProblem, trust: float = math.inf) -> None:
        self._trust = trust
        self.instance: Instance | ColumnInstance = searched_instance_of(problem)
        preparation = preparation_of(problem)
        weights = None if preparation is None else preparation.weights
        # Dual vectors have an entry for every row, but Huber and logistic loss are left with those that count.
        fewer = weights is not None and self.instance.A.shape[0] < len(weights)
        self._used_rows = slice(None) if weights is None or not fewer else weights > 0
        self.closing: Proof = EigenvaluePoint() if isinstance(self.instance, ColumnInstance) else FitPoint()
        """What proves the bounds of regions that a walk closed, but for those it counted."""
        self.curvature = np.zeros(0)
        """The D of formula (3), which one search has one of."""

    def short(self, claims: Sequence[Claim], margins: Sequence[float], bounded: bool) -> tuple[Claim, float] | None:
        """A claim that does not hold up to its margin, with what was found instead; None where all hold.

        ``bounded`` says that they are about bounded models only (FORMAT.md, the scope). All means of the checker take
        long at a wrong claim, so the first wrong claim ends it: many wrong claims cost no hours.
        """
        if not claims:
            return None
        needed = [claim.bound - margin for claim, margin in zip(claims, margins, strict=True)]
        if isinstance(self.instance, ColumnInstance):
            bounds = [self._of_selection(claim, least, bounded) for claim, least in zip(claims, needed, strict=True)]
        else:
            bounds = self._bounds(claims, ANYTHING, bounded).tolist()
            # Once more with all the checker's means (exact arithmetic, better points, counting, splits): all that needs
            # about as much together, then what is left one by one.
            short = sorted(
                (row for row in range(len(claims)) if not bounds[row] >= needed[row]), key=needed.__getitem__
            )
            for rows in _alike(short, needed):
                if len(rows) > 1:
                    again = self._bounds([claims[row] for row in rows], needed[rows[-1]], bounded).tolist()
                    for row, value in zip(rows, again, strict=True):
                        bounds[row] = max(bounds[row], value)
                for row in [row for row in rows if not bounds[row] >= needed[row]]:
                    bounds[row] = max(bounds[row], float(self._bounds(claims[row : row + 1], needed[row], bounded)[0]))
                    if not bounds[row] >= needed[row] - self._allowed(claims[row]):
                        return claims[row], bounds[row]
            return None
        wrong = [row for row in range(len(claims)) if not bounds[row] >= needed[row]]
        return (claims[wrong[0]], bounds[wrong[0]]) if wrong else None

    def _bounds(self, claims: Sequence[Claim], target: float, bounded: bool) -> FloatArray:
        assert isinstance(self.instance, Instance)
        stored = _Stored(self.instance.A.shape[1])
        witnesses = np.array([stored.number(claim.proof, self._used_rows) for claim in claims], dtype=np.int64)
        states = np.frombuffer(b"".join(claim.state for claim in claims), np.uint8).reshape(len(claims), -1)
        return self._at(stored, states, witnesses, target, bounded)

    def at_points(
        self, states: StateArray, points: Sequence[ModelPoint], which: NDArray[np.int64], bounded: bool
    ) -> FloatArray:
        """Bounds of regions (m, d), each at one of some points; only in doubles, so they may fall short of a claim."""
        assert isinstance(self.instance, Instance)
        stored = _Stored(self.instance.A.shape[1])
        witnesses = np.array([stored.number(point, self._used_rows) for point in points], dtype=np.int64)
        return self._at(stored, states.view(np.uint8), witnesses[which], ANYTHING, bounded)

    def _at(
        self, stored: _Stored, states: NDArray[np.uint8], witnesses: NDArray[np.int64], target: float, bounded: bool
    ) -> FloatArray:
        assert isinstance(self.instance, Instance)
        if stored.curvature is not None:
            self.curvature = stored.curvature
        proof = stored.as_proof(self.instance, self.curvature, target, "bounded models" if bounded else "")
        return AllRegions(self.instance, proof, EXACT_LIMIT).bounds(Leaves(states, witnesses))

    def _allowed(self, claim: Claim) -> float:
        """What a bound may be above what its witness proves here."""
        rounding, most = self._rounding(claim), self._trust * abs(claim.bound)
        return rounding if rounding < most else most

    def _rounding(self, claim: Claim) -> float:
        """What the last bits of a dual vector can make of its bound, to first order: a point does not fix them.

        That is much where columns are long and the ridge is small.
        """
        instance = self.instance
        assert isinstance(instance, Instance)
        curvature = instance.lam + (self.curvature if isinstance(claim.proof, CurvedPoint) else 0.0)
        if not isinstance(claim.proof, ModelPoint) or not np.all(curvature > 0):
            return 0.0
        sizes, used = np.abs(instance.A), claim.proof.index
        z = instance.A[:, used] @ claim.proof.value
        beta = RigorousBounds(instance).gradients(claim.proof.dense(instance.A.shape[1])[None])[0]
        off_z = (len(used) + 4) * UNIT * (sizes[:, used] @ np.abs(claim.proof.value))
        weights = 1.0 if instance.weights is None else instance.weights
        steep = {"squared_hinge": 2.0 * weights, "poisson": np.abs(beta + weights * instance.y)}
        off_beta = steep.get(instance.loss, weights) * off_z + 4 * UNIT * np.abs(beta)
        off_slopes = sizes.T @ off_beta + len(z) * UNIT * (sizes.T @ np.abs(beta))
        slopes = np.abs(beta @ instance.A)
        of_columns = float(np.sum((slopes * off_slopes + 0.5 * off_slopes**2) / curvature))
        return of_columns + float((np.abs(z) + np.abs(instance.y)) @ off_beta + np.abs(beta) @ off_z)

    def _of_selection(self, claim: Claim, needed: float, bounded: bool) -> float:
        assert isinstance(self.instance, ColumnInstance)
        selections = SelectionBounds(self.instance, bounded, needed, EXACT_LIMIT)
        state = np.frombuffer(claim.state, np.uint8)
        region = np.flatnonzero(state == IN).tolist(), np.flatnonzero(state == FREE).tolist()
        if claim.proof == COUNTED:
            return needed if SelectionCounting(selections).counted(*region) else 0.0
        return selections.bound(*region) if isinstance(claim.proof, EigenvaluePoint) else 0.0


def _alike(rows: Sequence[int], needed: Sequence[float]) -> Iterator[list[int]]:
    """The rows, which are in the order of what they need, in groups that need about the same."""
    group: list[int] = []
    for row in rows:
        if group and needed[row] > needed[group[0]] * (1.0 + ALIKE):
            yield group
            group = []
        group.append(row)
    if group:
        yield group


class _Stored:
    """Points as the arrays of a proof file, each once."""

    def __init__(self, d: int) -> None:
        self._d = d
        self._models: list[ModelPoint] = []
        self._duals: list[FloatArray] = []
        self._splits: list[SplitPoint] = []
        self._known: dict[int, int] = {}
        self.curvature: FloatArray | None = None
        self._split = -1
        """The one that leaves the curvature, if any."""

    def number(self, point: Proof | str, rows: slice | BoolArray) -> int:
        """The witness as :class:`exactsel_certificates.walk.Leaves` name it; ``rows`` are those that count."""
        if point == COUNTED:
            return BY_COUNTING
        if isinstance(point, FitPoint):
            return fmt.FIT
        if isinstance(point, LeafFits):
            return LEAF_CLOSED
        if id(point) not in self._known:
            self._known[id(point)] = self._store(shown(point), rows)
        return self._known[id(point)]

    def _store(self, point: Proof | str, rows: slice | BoolArray) -> int:
        if isinstance(point, ModelPoint):
            if isinstance(point, CurvedPoint):
                self.curvature = point.curvature
            self._models.append(point)
            return fmt.FIRST_POINT + 2 * (len(self._models) - 1)
        if isinstance(point, DualPoint):
            self._duals.append(np.asarray(point.beta, dtype=np.float64)[rows])
            return fmt.FIRST_POINT + 2 * (len(self._duals) - 1) + 1
        if isinstance(point, SplitPoint):
            self._splits.append(point)
            return ~(len(self._splits) - 1)
        if isinstance(point, SpectralPoint):
            self.curvature, of = point.curvature, SplitPoint(point.columns, point.scale, point.entries)
            if self._split < 0:
                self._split = len(self._splits)
                self._splits.append(of)
            return self._store(ModelPoint(point.index, point.value), rows)
        if isinstance(point, StrongPoint):
            values = np.ones(len(point.columns)) * (point.threshold if point.threshold.size else 1.0)
            self._models.append(ModelPoint(point.columns, values))
            first = fmt.FIRST_LIKE if point.threshold.size else fmt.FIRST_STRONG
            return ~(first + len(self._models) - 1)
        return fmt.INFIMUM

    def as_proof(self, instance: Instance, curvature: FloatArray, target: float, valid_for: str) -> fmt.Proof:
        """The arrays in one object, without a tree."""
        n, d = instance.A.shape
        models, splits = self._models, self._splits
        return fmt.Proof(
            family="regression", loss=instance.loss, n=n, d=d, k=instance.k, groups=len(instance.groups) or None,
            problem_hash="", lower=target, upper=math.inf, weights=False, intercept=False, scale=False,
            valid_for=valid_for, curvature=curvature,
            curvature_split=np.array([self._split] if self._split >= 0 else [], dtype=np.int32),
            model_value=np.zeros(0), point_value=_joined((point.value for point in models), np.float64),
            dual_value=_joined(self._duals, np.float64), model_index=np.zeros(0, np.int32),
            point_size=np.array([len(point.index) for point in models], dtype=np.int32),
            tree=np.zeros(0, np.int32), point_index=_joined((point.index for point in models), np.int32),
            split_size=np.array([len(point.columns) for point in splits], dtype=np.int32),
            split_column=_joined((point.columns for point in splits), np.int32),
            split_scale=_joined((point.scale for point in splits), np.float64),
            split_value=_joined((point.entries for point in splits), np.float16),
        )  # fmt: skip


def _joined(arrays: Iterable[NDArray[Any]], kind: type[np.generic]) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype=kind), *(np.asarray(array, dtype=kind) for array in arrays)])
