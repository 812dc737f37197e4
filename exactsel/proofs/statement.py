"""Bounds for the original data, derived from bounds for the numbers that were searched.

A search works on prepared numbers and compares objectives as doubles. What is *said* is more: ``lower`` is no larger
than the true optimum, ``upper`` no smaller than the objective of the coefficients that are shown, for the exact values
of the numbers in the file. Bounds come with an allowance for their own rounding; what is added here is what the
preparation did, and what rounding does to the objective of a model.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from exactsel.bounds.fit import BOUNDED_MODELS
from exactsel.errors import UnsupportedError
from exactsel.kernels.rows import loss_curvature, loss_gradient
from exactsel.problem.capabilities import QUADRATIC_LOSS
from exactsel.problem.fit import Fit
from exactsel.problem.interface import Statement, SubsetProblem, is_regression
from exactsel.problem.objective import Objective
from exactsel.proofs.instance import instance_of, take_prepared
from exactsel.rounding import UNIT
from exactsel.types import FloatArray
from exactsel_certificates.checking import SearchedInstance
from exactsel_certificates.formula import ColumnInstance, Instance
from exactsel_certificates.given import GivenInstance, objective_above
from exactsel_certificates.selections import selection_objective_above

KEPT = 64
"""Statements kept: observers need the same ones at every event."""

KEPT_UP_TO = 2000
"""Columns up to which what models cost is kept."""


def statement_of(problem: SubsetProblem) -> Statement:
    """How to speak about a problem; bounds of coefficients only take models away, which all that is said allows for."""
    # Without a ridge limits are what says how large models are where columns depend on each other.
    keeps_bounds = problem.has(QUADRATIC_LOSS) and problem.objective.lam == 0
    problem = problem if keeps_bounds else problem.without_coefficient_bounds
    if is_regression(problem) and problem.objective.on_demand:
        return _Design(problem.objective)
    instance: SearchedInstance | None
    try:
        instance = instance_of(problem)
    except UnsupportedError:
        instance = None
    if isinstance(instance, ColumnInstance):
        return _Selection(instance)
    assert is_regression(problem)
    return _Unchecked(problem.objective) if instance is None else _Regression(problem.objective, instance)


class _Regression:
    """A problem the checker knows: what is said is what the checker works out."""

    def __init__(self, objective: Objective, instance: Instance) -> None:
        self._objective, self._instance = objective, instance
        self._taken = 0.0
        self._lower: dict[tuple[float, float, bool], float] = {}
        # What models cost, and most of what preparing the data can do, does not depend on how large they may be.
        about = instance.formulas, instance.lam, instance.force_out
        alike: dict[str, Any] = {"about": about, "preparation": objective.preparation, "uppers": {}}
        if instance.box is None:
            last = objective.shared.get("said", alike)
            if last["about"] == about and last["preparation"] is objective.preparation:
                alike = last
            objective.shared["said"] = alike
        self._uppers: dict[bytes, float] = alike["uppers"]
        if isinstance(instance, GivenInstance):
            take_prepared(instance, objective)
            self._taken = 0.0 if objective.ridge_limits is None else objective.ridge_limits.taken
            if (before := alike.get("transfer")) is not None:
                instance.transfer.take_over(before)
            alike["transfer"] = instance.transfer

    def upper(self, fit: Fit) -> float:
        key = fit.coef.tobytes() if fit.coef.size <= KEPT_UP_TO else b""
        if (cached := self._uppers.get(key)) is not None:
            return cached
        upper = self.upper_of(self._objective.coef_as_given(fit.coef))
        if key:
            _keep(self._uppers, key, upper)
        return upper

    def upper_of(self, coef: FloatArray) -> float:
        return objective_above(self._instance, coef)

    def lower(self, bound: float, upper: float, valid_for: str) -> float:
        # No loss of the checker is below zero anywhere.
        bound = max(0.0, math.nextafter(bound - self._taken, 0.0) if self._taken else bound)
        if not isinstance(self._instance, GivenInstance):
            return min(bound, upper)
        key = bound, upper, valid_for != ""
        if (cached := self._lower.get(key)) is None:
            cached = self._instance.transfer.lower(*key)
            _keep(self._lower, key, cached)
        return cached

    def needed(self, value: float, valid_for: str) -> float:
        if isinstance(self._instance, GivenInstance):
            value = self._instance.transfer.needed(value, value, valid_for != "")
        return math.nextafter(value + self._taken, math.inf) if self._taken else value

    def taken(self, value: float) -> float:
        for valid_for in ("", BOUNDED_MODELS):
            needed = self.needed(value, valid_for)
            if math.isfinite(needed):
                return needed - value
        return 0.0


def _keep(said: dict[Any, float], key: object, value: float) -> None:
    if len(said) >= KEPT:
        said.clear()
    said[key] = value


class _Design:
    """Data that are not held as a table: bounds are worked out for them as given, models on their own columns."""

    def __init__(self, objective: Objective) -> None:
        self._objective = objective

    def upper(self, fit: Fit) -> float:
        return self.upper_of(self._objective.coef_as_given(fit.coef))

    def upper_of(self, coef: FloatArray) -> float:
        objective, used = self._objective, np.flatnonzero(coef)
        preparation = objective.preparation
        AT, y = (objective.AT, objective.y) if preparation is None else (preparation.AT, preparation.y)
        # A table of no columns would be none of rows either.
        columns = used if used.size else np.zeros(1, dtype=np.int64)
        instance = GivenInstance(
            AT[columns].T, y, columns.size, objective.loss.name, objective.asked_lam,
            objective.loss_parameters.get("delta", np.inf), intercept=preparation is not None and preparation.centred,
        )  # fmt: skip
        return objective_above(instance, coef[columns])

    def lower(self, bound: float, upper: float, valid_for: str) -> float:
        return min(max(0.0, bound), upper)

    def needed(self, value: float, valid_for: str) -> float:
        return value

    def taken(self, value: float) -> float:
        return 0.0


class _Selection:
    """Column subset selection."""

    def __init__(self, instance: ColumnInstance) -> None:
        self._instance = instance

    def upper(self, fit: Fit) -> float:
        return selection_objective_above(self._instance, list(fit.support))

    def upper_of(self, coef: FloatArray) -> float:
        return selection_objective_above(self._instance, np.flatnonzero(coef).tolist())

    def lower(self, bound: float, upper: float, valid_for: str) -> float:
        return min(bound, upper)

    def needed(self, value: float, valid_for: str) -> float:
        return value

    def taken(self, value: float) -> float:
        return 0.0


class _Unchecked:
    """A problem the checker does not know: the objective, and what sums of doubles are off by to first order.

    The statement is about the numbers searched: for a loss of one's own it does not cover the rounding of centring and
    scaling.
    """

    def __init__(self, objective: Objective) -> None:
        self._objective = objective

    def upper(self, fit: Fit) -> float:
        return self._enlarged(fit.value, fit.coef)

    def upper_of(self, coef: FloatArray) -> float:
        preparation = self._objective.preparation
        searched = coef if preparation is None else coef * preparation.scale
        return self._enlarged(self._objective(searched), searched)

    def lower(self, bound: float, upper: float, valid_for: str) -> float:
        return min(bound, upper)

    def needed(self, value: float, valid_for: str) -> float:
        return value

    def taken(self, value: float) -> float:
        return 0.0

    def _enlarged(self, value: float, coef: FloatArray) -> float:
        objective = self._objective
        if not math.isfinite(value):
            return value
        used = np.flatnonzero(coef)
        z, slopes = coef[used] @ objective.AT[used], np.empty(objective.n)
        loss_gradient(objective.row_loss, z, objective.y, slopes)
        off = (used.size + 4) * UNIT * (np.abs(coef[used]) @ np.abs(objective.AT[used]))
        off += 2 * UNIT * np.abs(objective.y) + 4 * UNIT * np.abs(z)  # z holds the intercept by now, if there is one
        weighted = off if objective.weights is None else objective.weights * off
        bend = float(objective.loss.smoothness)
        if not math.isfinite(bend):
            bends = np.empty(objective.n)
            loss_curvature(objective.loss, np.abs(z) + off, objective.y, bends)  # what is to first order needs no more
            bend = float(bends.max())
        rounding = float(np.abs(slopes) @ off + 0.5 * bend * (weighted @ off))
        return float(
            value + 1.01 * rounding + (objective.n + used.size + 32) * UNIT * (abs(value) + np.abs(slopes) @ np.abs(z))
        )
