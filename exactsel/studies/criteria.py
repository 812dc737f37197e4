"""How to choose a size: information criteria and held-out error beside every result of a path.

With the loss L of the model (without the ridge term), n rows (one of weight 2 counts twice) and s columns in the model,

    quadratic loss   deviance = n log(2L/n), the Gaussian likelihood with its variance estimated
    logistic loss    deviance = 2L, and for Poisson loss
    AIC  = deviance + 2s        BIC = deviance + s log n        EBIC = BIC + 2 log C(d, s)

(Akaike 1974; Schwarz 1978; Chen and Chen 2008 with gamma = 1). They are for comparing models on the same data. Every
column counts as one parameter, which for lam > 0 is somewhat too many; with groups of columns s counts columns and
C(d, s) sets of groups. Huber loss is no likelihood and has no criteria.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from exactsel.plain import Json, finite
from exactsel.solving.result import Result
from exactsel.studies.crossval import ValidationErrors
from exactsel.studies.path import SolutionPath

NAMES = ("aic", "bic", "ebic", "cv_error")
"""The criteria, all of them better when smaller."""


@dataclass(frozen=True)
class Compared(Json):
    """The results of a path with what speaks for and against each."""

    path: SolutionPath
    validation: ValidationErrors | None = None
    """Held-out errors for the same sizes and ridge weights, if they were computed."""

    def row(self, result: Result) -> dict[str, float | None]:
        """AIC, BIC, EBIC, mean held-out loss and its standard error of one result; None where there is none."""
        row: dict[str, float | None] = {**information(result), "cv_error": None, "cv_standard_error": None}
        if self.validation is not None:
            place = (
                self.validation.lams.index(result.problem["lam"]), self.validation.ks.index(result.problem["k"])
            )  # fmt: skip
            row["cv_error"] = float(self.validation.mean[place])
            row["cv_standard_error"] = float(self.validation.standard_error[place])
        return row

    @property
    def best(self) -> dict[str, Result]:
        """The result each criterion prefers; among equals the first, which has the larger lam and the smaller size."""
        rows = [(self.row(result), result) for result in self.path.results]
        chosen = {}
        for name in NAMES:
            values = [(row[name], i) for i, (row, _) in enumerate(rows) if row[name] is not None]
            if values:
                chosen[name] = rows[min(values)[1]][1]
        return chosen

    def as_dict(self) -> dict[str, Any]:
        """Plain data: the JSON object of the command line."""
        along = self.path.as_dict()
        results = [plain | self.row(result) for plain, result in zip(along["results"], self.path.results, strict=True)]
        best = {
            name: {"k": result.problem["k"], "lam": result.problem.get("lam"), "support": list(result.support)}
            for name, result in self.best.items()
        }
        return {**along, "results": results, "best": best}


def information(result: Result) -> dict[str, float | None]:
    """AIC, BIC and EBIC of a result's model; None for a loss that is no likelihood, or a perfect fit."""
    deviance = _deviance(result)
    if deviance is None:
        return {"aic": None, "bic": None, "ebic": None}
    n, d, chosen = _rows(result), result.problem["d"], len(result.support)
    size = len(result.columns)
    bic = deviance + size * math.log(n)
    supports = math.lgamma(d + 1) - math.lgamma(chosen + 1) - math.lgamma(d - chosen + 1)
    return {"aic": finite(deviance + 2 * size), "bic": finite(bic), "ebic": finite(bic + 2 * supports)}


def _rows(result: Result) -> float:
    """How many rows the model is about, each as often as its weight says; those behind data that have been reduced."""
    tall, made = result.problem.get("tall"), result.preparation
    if tall is not None:
        return float(tall["weight"])
    weights = None if made is None else made.row_weights
    return float(result.problem["n"] if weights is None else weights.sum())


def _deviance(result: Result) -> float | None:
    if result.problem["problem"] == "css":
        return None
    loss = result.upper - 0.5 * result.problem["lam"] * float(result.coef @ result.coef)
    n = _rows(result)
    if result.problem["loss"] in ("logistic", "poisson"):
        return float(2.0 * loss)
    if result.problem["loss"] == "quadratic" and loss > 0:
        return float(n * math.log(2.0 * loss / n))
    return None
