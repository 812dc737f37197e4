"""Goodness of fit of a model on its own rows, in the terms of statistics."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactsel.losses.base import CLASSES
from exactsel.problem.interface import SubsetProblem, is_regression
from exactsel.problem.model import Model
from exactsel.problem.objective import ROWS_AT_ONCE, Objective
from exactsel.problem.reduction import Reduction
from exactsel.to_plain import finite
from exactsel.types import FloatArray

FAR_FROM_SINGULAR = 1e-8
"""Smallest eigenvalue of a Gram matrix, as a part of the largest, that is far more than rounding."""

ROUNDING = 1e-12
"""A share explained that is nothing but rounding."""


@dataclass(frozen=True)
class Quality:
    """Of a regression R² and the size of residuals, of a classification the deviance; nan where it is not defined."""

    explained: float
    """R² = 1 - (sum of squared residuals) / (the same of the mean alone; without an intercept of nothing), or the share
    of the deviance, or of the loss, explained. Rows count as often as their weights say."""
    adjusted: float
    """R² adjusted for the number of coefficients; of dependent columns, as of one category, those that count."""
    residual: float
    """Root of the mean squared residual; of a classification the share of rows on the right side."""
    classes: bool
    centred: bool
    """Whether R² compares with the mean, as it does where there is an intercept."""

    measure: str = "deviance"
    """What is explained of a classification: the deviance, or the loss where that is no likelihood."""

    counts: bool = False
    """Whether the deviance is that of counts, whose residuals are from their expected numbers."""

    def facts(self) -> list[tuple[str, str]]:
        """Names and values, for people."""
        against, share = "" if self.centred else " against 0", f"{self.explained:.4g}"
        if self.classes:
            return [(f"{self.measure} explained{against}", share), ("rows on the right side", f"{self.residual:.4g}")]
        if self.counts:
            return [(f"deviance explained{against}", share), ("root mean squared residual", f"{self.residual:.6g}")]
        if not math.isnan(self.adjusted):
            share += f" (adjusted {self.adjusted:.4g})"
        return [(f"R²{against}", share), ("root mean squared residual", f"{self.residual:.6g}")]

    def as_dict(self) -> dict[str, Any]:
        """Plain data; null where a number is not defined."""
        names = ("r2", "rms_residual")
        if self.classes or self.counts:
            names = (f"{self.measure}_explained", "share_right" if self.classes else "rms_residual")
        more = {} if self.classes or self.counts else {"r2_adjusted": finite(self.adjusted)}
        return {names[0]: finite(self.explained), **more, names[1]: finite(self.residual), "against_mean": self.centred}

    def __str__(self) -> str:
        against = "" if self.centred else " against 0, as there is no intercept"
        if self.classes:
            return (
                f"{self.measure} explained {self.explained:.4g}{against}   rows on the right side {self.residual:.4g}"
            )
        if self.counts:
            explained = f"deviance explained {self.explained:.4g}{against}"
            return f"{explained}   root of the mean squared residual {self.residual:.6g}"
        adjusted = "" if math.isnan(self.adjusted) else f" (adjusted {self.adjusted:.4g})"
        return f"R² {self.explained:.4g}{adjusted}{against}   root of the mean squared residual {self.residual:.6g}"


def quality_of(problem: SubsetProblem, model: Model | None) -> Quality | None:
    """How well a model fits; None for column subset selection, and for losses of other people's."""
    if not is_regression(problem) or model is None:
        return None
    objective = problem.objective
    if objective.loss.name not in ("quadratic", "huber", "poisson", *CLASSES):
        return None
    preparation, reduction = objective.preparation, objective.reduction
    if reduction is not None:
        return _of_all_rows(objective, reduction, model)
    AT, y = (objective.AT, objective.y) if preparation is None else (preparation.AT, preparation.y)
    weights = np.ones(y.size) if preparation is None or preparation.weights is None else preparation.weights
    chosen = np.flatnonzero(model.coef)
    parts = [slice(first, first + ROWS_AT_ONCE) for first in range(0, y.size, ROWS_AT_ONCE)]
    fitted = np.concatenate([model.coef[chosen] @ AT[chosen, rows] for rows in parts]) + (model.intercept or 0.0)
    centred = model.intercept is not None
    if objective.loss.name in CLASSES:
        return _of_classes(fitted, y, weights, centred, objective.loss.name == "logistic")
    if objective.loss.name == "poisson":
        exposure = np.ones(y.size) if preparation is None or preparation.exposure is None else preparation.exposure
        return _of_counts(fitted, y, weights, centred, exposure)
    middle = float(np.average(y, weights=weights)) if centred else 0.0
    squares = float(weights @ (y - fitted) ** 2)
    explained = _share(squares, float(weights @ (y - middle) ** 2))

    def weighted(rows: slice) -> FloatArray:
        """Some rows of the columns (m, rows), and of ones where there is an intercept, times roots of weights."""
        roots = np.sqrt(weights[rows])
        return np.vstack([AT[chosen, rows], np.ones((int(centred), roots.size))]) * roots

    rank = rank_of(weighted, parts) if chosen.size or centred else 0
    free = weights.sum() - rank
    adjusted = 1.0 - (1.0 - explained) * (weights.sum() - centred) / free if free > 0 else math.nan
    return Quality(explained, adjusted, math.sqrt(squares / weights.sum()), classes=False, centred=centred)


def rank_of(columns: Callable[[slice], FloatArray], parts: Sequence[slice]) -> int:
    """The rank of columns, which are read some rows (m, rows) at a time.

    Where their Gram matrix, which is quicker, is far from singular no factorisation of the rows would say otherwise.
    """
    gram = np.sum([(part := columns(rows)) @ part.T for rows in parts], axis=0)
    values = np.linalg.eigvalsh(gram) if np.all(np.isfinite(gram)) else np.zeros(1)
    if values[0] > FAR_FROM_SINGULAR * values[-1]:
        return len(gram)
    triangles = [np.linalg.qr(columns(rows).T, mode="r") for rows in parts]
    return int(np.linalg.matrix_rank(np.linalg.qr(np.vstack(triangles), mode="r")))


def _of_all_rows(objective: Objective, reduction: Reduction, model: Model) -> Quality:
    """How well it fits the rows that have been reduced; y has lost its mean where there is an intercept."""
    chosen = np.flatnonzero(model.coef)
    preparation, centred = objective.preparation, reduction.intercept
    columns = (objective.AT if preparation is None else preparation.AT)[chosen]
    squares = float(np.sum((objective.y - model.coef[chosen] @ columns) ** 2))
    explained = _share(squares, float(objective.y @ objective.y))
    free = reduction.weight - centred - (np.linalg.matrix_rank(columns) if chosen.size else 0)
    adjusted = 1.0 - (1.0 - explained) * (reduction.weight - centred) / free if free > 0 else math.nan
    return Quality(explained, adjusted, math.sqrt(squares / reduction.weight), classes=False, centred=centred)


def _of_classes(scores: FloatArray, y: FloatArray, weights: FloatArray, centred: bool, logistic: bool) -> Quality:
    total = weights.sum()
    positive = float(weights @ (y > 0)) / total
    alone = math.log(2.0)
    if centred:
        alone = -sum(part * math.log(part) for part in (positive, 1.0 - positive) if part > 0)
    deviance = float(weights @ np.logaddexp(0.0, -y * scores)) / total
    right = float(weights @ (y * scores > 0)) / total
    if not logistic:
        alone = 4.0 * positive * (1.0 - positive) if centred else 1.0  # at the score 2 positive - 1, or 0
        loss = float(weights @ np.maximum(0.0, 1.0 - y * scores) ** 2) / total
        return Quality(_share(loss, alone), math.nan, right, classes=True, centred=centred, measure="loss")
    return Quality(_share(deviance, alone), math.nan, right, classes=True, centred=centred)


def _of_counts(
    scores: FloatArray, y: FloatArray, weights: FloatArray, centred: bool, exposure: FloatArray
) -> Quality:  # fmt: skip
    """Of rates y and weights that are exposures times weights of rows; residuals are those of counts."""
    from scipy.special import xlogy

    expected = np.exp(np.minimum(scores, 700.0))
    alone = float(np.average(y, weights=weights)) if centred else 1.0

    def deviance(means: FloatArray, logarithms: FloatArray) -> float:
        return float(weights @ (means - y * logarithms + xlogy(y, y) - y))

    null = deviance(np.full(y.size, alone), np.full(y.size, math.log(alone)))
    times = weights / exposure
    squares = float(times @ (exposure * (y - expected)) ** 2)
    return Quality(
        _share(deviance(expected, scores), null), math.nan, math.sqrt(squares / times.sum()), classes=False,
        centred=centred, counts=True,
    )  # fmt: skip


def _share(residual: float, whole: float) -> float:
    """1 - residual / whole; nan where there is nothing to explain."""
    if whole <= 0:
        return math.nan
    share = 1.0 - residual / whole
    return share if abs(share) > ROUNDING else 0.0
