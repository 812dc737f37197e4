"""Degrees of freedom of a model, and its criteria: said once for every page."""

from __future__ import annotations

from dataclasses import replace

from exactsel.solving.result import Result
from exactsel.studies.best_models import BestModels, RankedModel
from exactsel.studies.size_criterion import LINEAR, SizeCriterion

BESIDE = ("aic", "aicc", "bic", "ebic")
"""Criteria shown beside the one a list was made by."""


def degrees_of_freedom(model: RankedModel | Result) -> int:
    """Coefficients a model has beside the intercept: as many as it has columns."""
    return len(model.columns) if isinstance(model, Result) else model.df


def criteria_shown(best: BestModels) -> list[SizeCriterion]:
    """The criterion of the list first, then the usual ones."""
    if best.criterion.name in LINEAR:
        return [best.criterion]
    others = [replace(best.criterion, name=name, price=None) for name in BESIDE if name != best.criterion.name]
    return [best.criterion, *others]


def criterion_value(criterion: SizeCriterion, best: BestModels, model: RankedModel) -> float:
    """What a criterion says of a model of the list."""
    if criterion is best.criterion:
        return model.criterion
    # EBIC counts sets of terms, which may have several columns each.
    of_terms = replace(criterion, beyond=model.df - model.size)
    return model.deviance + of_terms.penalty(degrees_of_freedom(model))
