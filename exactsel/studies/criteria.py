"""Criteria for the choice of a size: information criteria and held-out error beside every result of a path.

AIC, BIC and EBIC are those of ``exactsel best`` (:mod:`exactsel.studies.size_criterion`), of the likelihood that the
objective stands for: with lam > 0 the penalised one. Every column counts as one parameter; with groups of columns the
sets that EBIC counts are sets of groups. Losses that are no likelihood have no criteria.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from exactsel.problem.model import listed
from exactsel.solving.result import Result
from exactsel.to_plain import Json, finite, html_line, html_table, html_view

if TYPE_CHECKING:
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
        """The result each criterion prefers; among equals the first, which has the larger lam and the smaller size.

        With held-out errors ``one_standard_error`` is the smallest model that is as good as the best by these folds.
        """
        rows = [(self.row(result), result) for result in self.path.results]
        chosen = {}
        for name in NAMES:
            values = [(row[name], i) for i, (row, _) in enumerate(rows) if row[name] is not None]
            if values:
                chosen[name] = rows[min(values)[1]][1]
        if self.validation is not None:
            lam, k = self.validation.one_standard_error
            at = (result for result in self.path.results if (result.problem["lam"], result.problem["k"]) == (lam, k))
            chosen["one_standard_error"] = next(at)
        return chosen

    @property
    def chosen(self) -> tuple[Result, str]:
        """The result that a page shows, and the reason: one standard error, else BIC, else the last one."""
        if self.validation is not None:
            lam, k = self.validation.one_standard_error
            same = [r for r in self.path.results if (r.problem.get("lam"), r.problem["k"]) == (lam, k)]
            return same[0], "the smallest within one standard error of the smallest held-out loss"
        if "bic" in self.best:
            return self.best["bic"], "the one with the smallest BIC"
        return self.path.results[-1], "the last of the path"

    def _repr_html_(self) -> str:
        rows = [self.row(result) for result in self.path.results]
        criteria = [name for name in NAMES if any(row[name] is not None for row in rows)]
        lines = [
            (
                str(result.problem["k"]), f"{result.problem['lam']:.6g}" if "lam" in result.problem else "",
                *("" if row[name] is None else f"{row[name]:.6g}" for name in criteria),
                listed(result.support, result.problem["feature_names"]),
            )
            for result, row in zip(self.path.results, rows, strict=True)
        ]  # fmt: skip
        chosen, why = self.chosen
        heads = {"cv_error": "held-out loss"}
        head = ("k", "lam", *(heads.get(name, name.upper()) for name in criteria), "features")
        return html_view(html_line(f"k = {chosen.problem['k']}: {why}.", strong=True), html_table(lines, head))

    def line(self, result: Result) -> dict[str, Any]:
        """One result as a line of a table, with the criteria there are."""
        names = result.problem["feature_names"]
        criteria = {name: value for name, value in self.row(result).items() if value is not None}
        return {
            "k": result.problem["k"], "lam": result.problem.get("lam"), "objective": result.upper, "gap": result.gap,
            "claim": result.claim.value, **criteria, "columns": [names[j] if names else j for j in result.support],
        }  # fmt: skip

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
    bic, d, chosen = finite(result.bic), result.problem["d"], len(result.support)
    supports = math.lgamma(d + 1) - math.lgamma(chosen + 1) - math.lgamma(d - chosen + 1)
    return {"aic": finite(result.aic), "bic": bic, "ebic": None if bic is None else bic + 2 * supports}
