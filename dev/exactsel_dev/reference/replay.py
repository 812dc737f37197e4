"""Replay a recorded search: does what it closed cover everything, and does every bound hold?

Nothing in the record (:mod:`exactsel_dev.reference.record`) is believed but the decisions themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from exactsel_certificates.boxes import outlier
from exactsel_certificates.formula import ColumnInstance, FloatArray, Instance, objective
from exactsel_dev.reference.bounds import (
    bound_at_model,
    curved_bound,
    dual_bound,
    fit_bound,
    leaf_bound,
    rounding_at_model,
)
from exactsel_dev.reference.columns import eigenvalue_bound, rounding_of_eigenvalues, selection_objective
from exactsel_dev.reference.hierarchy import completed, implied
from exactsel_dev.reference.record import (
    Curved,
    Discarded,
    Divided,
    Dual,
    Eigenvalues,
    Fit,
    Fixed,
    Infimum,
    LeafFits,
    Model,
    Open,
    Record,
    Split,
    Step,
    Strong,
    Walked,
    Witness,
)
from exactsel_dev.reference.semidefinite import split_bound, strong_bound
from exactsel_dev.reference.subtree import retrace

__all__ = [  # what a record is written in comes with what reads it
    "MOST_ROUNDING", "ROOT", "ROUNDING", "AnyInstance", "Curved", "Discarded", "Divided", "Dual", "Eigenvalues", "Fit",
    "Fixed", "Infimum", "LeafFits", "Model", "Open", "Record", "ReplayError", "Report", "Split", "Step", "Walked",
    "Witness", "recomputed_bound", "replay",
]  # fmt: skip

AnyInstance: TypeAlias = Instance | ColumnInstance

ROOT = 0
"""The number of the root region."""

ROUNDING = 1e-9
"""Times 1 + |claim|: by how much a recomputed number may fall short of the claimed one."""

MOST_ROUNDING = 1e-6
"""The same where rounding in the predictions Ax explains it (badly scaled columns, tiny lam); never more."""


class ReplayError(Exception):
    """The record does not prove what it claims; the text says in one sentence why not."""


class Report(NamedTuple):
    """What a replay has established."""

    closed: int
    """Regions closed, those of :class:`Fixed` included."""
    still_open: int
    lower: float
    """The smallest of ``upper`` and all bounds as claimed."""
    proven: float
    """The same with each bound replaced by its recomputed value where that is smaller: this one needs no trust."""
    excess: float
    """The most by which a claimed bound lay above its recomputed value, in units of 1 + |bound| (negative: never)."""


class _Region(NamedTuple):
    included: frozenset[int]
    candidates: frozenset[int]

    def put_in(self, column: int) -> _Region:
        return _Region(self.included | {column}, self.candidates - {column})

    def leave_out(self, column: int) -> _Region:
        return _Region(self.included, self.candidates - {column})


def replay(instance: AnyInstance, record: Record) -> Report:
    """Walk the record from the root; raise :class:`ReplayError` at the first thing that does not hold.

    Parameters
    ----------
    instance : Instance or ColumnInstance
        The problem as the caller knows it.
    record : Record

    Returns
    -------
    Report
        No model has an objective below its ``proven``, and ``lower``, the number claimed, is not far from it.
    """
    walk = _Walk(instance)
    for step in record.steps:
        walk.take(step)
    walk.finish(record.open_regions)
    coef = np.asarray(record.coef, dtype=np.float64)
    if coef.shape != (instance.A.shape[1],) or not np.all(np.isfinite(coef)):
        raise ReplayError(f"the model is no vector of {instance.A.shape[1]} finite coefficients.")
    used = np.flatnonzero(coef).tolist()
    size = len(used) if isinstance(instance, ColumnInstance) else len(instance.units_of(used))
    if size > instance.k:
        what = "groups" if getattr(instance, "groups", ()) else "non-zero coefficients"
        raise ReplayError(f"the model has {size} {what}, but k is {instance.k}.")
    reason = "" if isinstance(instance, ColumnInstance) else _out_of_hierarchy(instance, used)
    if reason:
        raise ReplayError(reason)
    if isinstance(instance, Instance) and instance.box is not None and outlier(instance.box, coef) is not None:
        raise ReplayError(str(outlier(instance.box, coef)))
    value = _objective(instance, coef)
    if not abs(value - record.upper) <= _slack(record.upper):
        raise ReplayError(f"the model's objective is {value!r}, not {record.upper!r} as claimed.")
    lower = min([record.upper, *walk.bounds])
    if not abs(lower - record.lower) <= _slack(lower):
        raise ReplayError(f"the bounds prove a lower bound of {lower!r}, but {record.lower!r} is claimed.")
    proven = min([record.upper, *walk.proven])
    return Report(walk.closed, len(record.open_regions), lower, proven, walk.excess)


def _out_of_hierarchy(instance: Instance, used: Sequence[int]) -> str:
    """Why no admissible set holds the columns of a model; empty where one does."""
    if instance.hierarchy is None:
        return ""
    included = frozenset(instance.units_of(used)) | {*instance.force_in}
    others = frozenset(range(instance.units)) - included - {*instance.force_out}
    fits = completed(instance.hierarchy, included, others, instance.k) is not None
    return "" if fits else f"the model's columns {list(used)} lie in no set the hierarchy allows."


def _objective(instance: AnyInstance, coef: FloatArray) -> float:
    if isinstance(instance, ColumnInstance):
        return selection_objective(instance, np.flatnonzero(coef).tolist())
    return objective(instance, coef)


def recomputed_bound(
    instance: AnyInstance, included: Iterable[int], candidates: Iterable[int], witness: Witness
) -> float:
    """The bound a witness proves for a region, from the data alone."""
    S, C = sorted(included), sorted(candidates)
    if isinstance(witness, Infimum):
        return 0.0
    if isinstance(instance, ColumnInstance):
        if not isinstance(witness, Eigenvalues):
            raise ReplayError(f"a witness {type(witness).__name__} says nothing about column subset selection.")
        return eigenvalue_bound(instance, S, C)
    if isinstance(witness, Eigenvalues):
        raise ReplayError("eigenvalues are offered as witness, which only column subset selection allows.")
    if isinstance(witness, Model):
        _check_vector(witness.x, instance.A.shape[1], "a witness model")
        return bound_at_model(instance, S, C, witness.x)
    if isinstance(witness, Curved):
        _check_vector(witness.x, instance.A.shape[1], "a witness model")
        _check_vector(witness.curvature, instance.A.shape[1], "a curvature")
        if instance.loss != "quadratic":
            raise ReplayError(f"curvature is offered as witness, which {instance.loss} loss does not allow.")
        return curved_bound(instance, S, C, witness.x, witness.curvature, witness.split)
    if isinstance(witness, Dual):
        _check_vector(witness.beta, instance.A.shape[0], "a witness dual vector")
        return dual_bound(instance, S, C, witness.beta)
    if isinstance(witness, Fit):
        if instance.loss != "quadratic":
            raise ReplayError(f"a fit is offered as witness, which {instance.loss} loss does not allow.")
        return fit_bound(instance, S, C)
    if isinstance(witness, LeafFits):
        if instance.loss != "logistic" or instance.groups:
            raise ReplayError(f"last columns are offered as witness, which {instance.loss} loss does not allow.")
        return leaf_bound(instance, S, C)
    if isinstance(witness, Split):
        return split_bound(instance, S, C, *witness)
    if isinstance(witness, Strong):
        return strong_bound(instance, S, C, *witness)
    raise ReplayError(f"a witness of type {type(witness).__name__} is not known.")


class _Walk:
    """The regions open so far, and every bound met."""

    def __init__(self, instance: AnyInstance) -> None:
        self.instance = instance
        included = frozenset(getattr(instance, "force_in", ()))
        units = instance.units if isinstance(instance, Instance) else instance.A.shape[1]
        candidates = frozenset(range(units)) - included - {*getattr(instance, "force_out", ())}
        self.hierarchy = getattr(instance, "hierarchy", None)
        # None: a region that holds no model at all, as a hierarchy can have it.
        self.regions = {ROOT: self._implied(_Region(included, candidates))}
        self.numbers = {ROOT}
        self.bounds: list[float] = []
        self.proven: list[float] = []
        self.closed = 0
        self.excess = -math.inf

    def take(self, step: Step) -> None:
        """Do what one step says."""
        if step.region not in self.regions:
            raise ReplayError(f"a step concerns region {step.region}, which is not open.")
        region = self.regions[step.region]
        if isinstance(step, Fixed):
            into, out_of = self._parts(step.region, region, step.column)
            self._close(step.region, out_of if step.included else into, step.bound, step.witness)
            self.regions[step.region] = into if step.included else out_of
        elif isinstance(step, Divided):
            del self.regions[step.region]
            self._divide(step, region)
        elif isinstance(step, Walked):
            self._check_shape(step, region)
            del self.regions[step.region]
            self._walk(step, region)
        else:
            self._check_shape(step, region)
            del self.regions[step.region]
            self._close(step.region, region, step.bound, step.witness)

    def finish(self, open_regions: Sequence[Open]) -> None:
        """Check the regions that are left against those the record lists."""
        listed = [entry.region for entry in open_regions]
        left = {number for number, region in self.regions.items() if region is not None}
        if not left <= {*listed} <= {*self.regions} or len({*listed}) < len(listed):
            raise ReplayError(f"regions {sorted(left)} are left open, but {sorted(listed)} are listed.")
        for entry in open_regions:
            self._check_shape(entry, self.regions[entry.region])
            self._check_bound(entry.region, self.regions[entry.region], entry.bound, entry.witness)

    def _divide(self, step: Divided, region: _Region | None) -> None:
        if len(step.columns) != len(step.children):
            raise ReplayError(
                f"region {step.region} has {len(step.columns)} columns to branch on but {len(step.children)} children."
            )
        for column, child in zip(step.columns, step.children, strict=True):
            within, region = self._parts(step.region, region, column)
            self._add(child, within)
        self._add(step.rest, region)

    def _implied(self, region: _Region) -> _Region | None:
        """The region with what a hierarchy makes of it."""
        if self.hierarchy is None:
            return region
        found = implied(self.hierarchy, *region, self.instance.k)
        return None if found is None else _Region(*found)

    def _parts(self, number: int, region: _Region | None, column: int) -> tuple[_Region | None, _Region | None]:
        """The region with a column put in, and with it left out; where that is decided already, itself and nothing."""
        if self.hierarchy is None and region is not None:
            self._check_column(number, region, column)
        if region is None or column not in region.candidates:
            return (region, None) if region is not None and column in region.included else (None, region)
        return self._implied(region.put_in(column)), self._implied(region.leave_out(column))

    def _walk(self, step: Walked, region: _Region | None) -> None:
        if region is None:
            raise ReplayError(f"region {step.region} was enumerated, but holds no model.")
        if isinstance(self.instance, Instance) and self.instance.loss != "quadratic":
            raise ReplayError(f"region {step.region} was enumerated, which {self.instance.loss} does not allow.")
        left, rounding = list(step.open_regions), 0.0
        if isinstance(self.instance, ColumnInstance):
            rounding = rounding_of_eigenvalues(self.instance)
        try:
            for piece in retrace(self.instance, *region, step.moves, step.curvature):
                part = self._implied(_Region(piece.included, piece.candidates))
                if piece.bound is None:
                    if not left:
                        raise ReplayError(f"the subtree of region {step.region} leaves more open than it lists.")
                    self._add(left.pop(0), part)
                elif part is not None and piece.bound != math.inf:
                    self._enter(step.region, step.min_pruned_bound, piece.bound, rounding)
        except ValueError as error:
            raise ReplayError(f"the subtree of region {step.region} cannot be followed: {error}") from None
        if left:
            raise ReplayError(f"the subtree of region {step.region} lists {len(left)} open regions it does not leave.")
        self.closed += 1

    def _add(self, number: int, region: _Region | None) -> None:
        if number in self.numbers:
            raise ReplayError(f"region {number} appears twice.")
        self.numbers.add(number)
        self.regions[number] = region

    def _check_column(self, number: int, region: _Region, column: int) -> None:
        if column not in region.candidates:
            raise ReplayError(f"column {column} is no candidate of region {number}.")
        if len(region.included) >= self.instance.k:
            raise ReplayError(f"region {number} has no place left for column {column}.")

    def _check_shape(self, entry: Discarded | Open | Walked, region: _Region | None) -> None:
        if region is None:
            return
        if frozenset(entry.included) != region.included or frozenset(entry.candidates) != region.candidates:
            raise ReplayError(f"region {entry.region} is not the one the record takes it for.")

    def _close(self, number: int, region: _Region | None, bound: float, witness: Witness) -> None:
        self._check_bound(number, region, bound, witness)
        self.closed += 1

    def _check_bound(self, number: int, region: _Region | None, bound: float, witness: Witness) -> None:
        if region is None:
            return
        proven = recomputed_bound(self.instance, region.included, region.candidates, witness)
        self._enter(number, bound, proven, self._rounding(region, bound, witness))

    def _enter(self, number: int, bound: float, proven: float, rounding: float) -> None:
        # Written so that a NaN on either side is a rejection.
        if not -math.inf < bound < math.inf:
            raise ReplayError(f"the bound of region {number} is {bound}.")
        if not (proven < math.inf and bound <= proven + max(_slack(bound), rounding)):
            raise ReplayError(
                f"region {number} is claimed to cost at least {bound!r}, but its witness proves {proven!r}."
            )
        self.excess = max(self.excess, (bound - proven) / (1.0 + abs(bound)))
        self.bounds.append(bound)
        self.proven.append(min(bound, proven))

    def _rounding(self, region: _Region, bound: float, witness: Witness) -> float:
        if isinstance(self.instance, ColumnInstance):
            return rounding_of_eigenvalues(self.instance)
        if not isinstance(witness, Model | Curved):
            return 0.0
        allowed = rounding_at_model(self.instance, sorted(region.included), sorted(region.candidates), witness.x)
        return min(allowed, MOST_ROUNDING * (1.0 + abs(bound)))


def _check_vector(values: FloatArray, length: int, what: str) -> None:
    vector = np.asarray(values)
    if vector.shape != (length,) or not np.all(np.isfinite(vector)):
        raise ReplayError(f"{what} is no vector of {length} finite numbers.")


def _slack(value: float) -> float:
    return ROUNDING * (1.0 + abs(value))
