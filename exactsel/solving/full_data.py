"""Bounds for all rows, from bounds for the few rows that stand for them (:mod:`exactsel.problem.reduction`)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactsel.bounds.fit import BOUNDED_MODELS
from exactsel.problem.interface import SubsetProblem, is_regression
from exactsel.problem.objective import Objective
from exactsel.problem.reduction import Reduction
from exactsel.problem.regression import BOUNDED_MODEL_RADIUS
from exactsel.to_plain import finite
from exactsel.types import FloatArray


@dataclass(frozen=True)
class FullDataBounds:
    """The objective over all rows."""

    upper: float
    """No smaller than that of the model that is shown."""
    lower: float
    """No model has a smaller one."""
    valid_for: str
    """A restriction of ``lower``, in words."""
    rows: int

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "upper": finite(self.upper),
            "lower": finite(self.lower),
            "valid_for": self.valid_for,
            "rows": self.rows,
        }

    def __str__(self) -> str:
        restricted = f"   for {self.valid_for}" if self.valid_for else ""
        return f"between {self.lower:.12g} and {self.upper:.12g} over {self.rows:,} rows{restricted}"


@dataclass(frozen=True)
class FullDataStatement:
    """How far a few rows can be off from those they stand for, for the models that matter."""

    reduction: Reduction
    off: float
    """sum_j e_j abs(x_j) + e_y of a model that is best over all rows, at most."""
    valid_for: str

    def full_data(self, upper: float, lower: float, coef: FloatArray, valid_for: str) -> FullDataBounds:
        """Bounds of the few rows, said of all; ``coef`` (d,) has the objective ``upper`` at most."""
        above = self.reduction.above(upper, coef)
        return FullDataBounds(
            above, self.reduction.below(lower, above, self.off), valid_for or self.valid_for, self.reduction.rows
        )


def full_data_of(problem: SubsetProblem, upper: float, coef: FloatArray, valid_for: str) -> FullDataStatement | None:
    """What the rows of a problem stand for; None where they are themselves.

    ``coef`` (d,) has the objective ``upper`` at most, and the lower bound holds in ``valid_for``.
    """
    reduction = problem.objective.reduction
    if not is_regression(problem) or reduction is None:
        return None
    objective = problem.objective
    # In the units of the columns as they are searched.
    scaled_reduction = reduction if objective.divisors is None else reduction.divided(objective.divisors)
    k = objective.d if problem.units.grouped else problem.k
    arguments: dict[str, Any] = {
        "A": objective.A, "y": objective.y, "lam": objective.lam, "k": k, "upper": scaled_reduction.above(upper, coef),
        "apart": _apart(objective),
    }  # fmt: skip
    off = scaled_reduction.farthest(**arguments, radius=BOUNDED_MODEL_RADIUS if valid_for else None)
    if math.isfinite(off):
        return FullDataStatement(reduction, off, "")
    # Columns depend on each other, and their coefficients may be as large as they like.
    return FullDataStatement(
        reduction, scaled_reduction.farthest(**arguments, radius=BOUNDED_MODEL_RADIUS), BOUNDED_MODELS
    )


def _apart(objective: Objective) -> float:
    """A little less than the smallest singular value of the columns that are not zero, each divided by its length."""
    if "apart" not in objective.shared:
        lengths = np.linalg.norm(objective.A, axis=0)
        scaled = objective.A[:, lengths > 0] / lengths[lengths > 0]
        values = np.linalg.svd(scaled, compute_uv=False) if 0 < scaled.shape[1] <= len(scaled) else np.zeros(1)
        objective.shared["apart"] = float(values[-1]) - 1e-14 * scaled.shape[1]
    return float(objective.shared["apart"])
