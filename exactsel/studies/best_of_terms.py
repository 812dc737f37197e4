"""The results and bounds of a search over all sets of terms (:mod:`exactsel.studies.best_terms`)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from exactsel import clock
from exactsel.errors import InputError, UnsupportedError
from exactsel.problem.model import Model, PreparedModel
from exactsel.problem.regression import Problem
from exactsel.problem.units import Units
from exactsel.solving.api import solve
from exactsel.solving.outcome import Termination
from exactsel.solving.quality import quality_of
from exactsel.solving.result import Result
from exactsel.studies.best_models import BestModels, RankedModel, first_stop
from exactsel.studies.best_terms import AcrossTerms, Terms
from exactsel.studies.size_report import SizeReport, SizeStatus
from exactsel.to_plain import counted


def _ranked(study: AcrossTerms) -> Iterator[RankedModel]:
    """All models met, best first."""
    ranking = sorted((study.value(terms), study.df(terms), terms) for terms in study.models)
    for value, df, terms in ranking:
        objective = study.models[terms]
        yield RankedModel(terms, value, study.criterion.likelihood.deviance(objective), objective, df)


def _sizes(study: AcrossTerms) -> Iterator[SizeReport]:
    """What is known of models of so many columns, for each number of columns there is."""
    for size in sorted(study.reports):
        each = study.reports[size]
        best = min(each, key=lambda report: report.criterion)
        of_size = [(study.value(t), t) for t in study.models if study.df(t) == size]
        criterion, terms = min([*of_size, (best.criterion, best.support or ())])
        yield SizeReport(
            size, criterion, min(criterion, *(report.lower for report in each)),
            terms if criterion < math.inf else None, sum(report.nodes for report in each), None,
            _status(study, criterion, each), all(report.listed for report in each),
        )  # fmt: skip


def _status(study: AcrossTerms, criterion: float, reports: list[SizeReport]) -> SizeStatus:
    """What is proven of one size, whose best known model has this criterion, by what is of each part."""
    if any(report.status is SizeStatus.OPEN for report in reports):
        return SizeStatus.OPEN
    reached = criterion - study.criterion.rounding(criterion)
    attained = all(report.status is SizeStatus.PROVEN or report.lower >= reached for report in reports)
    return SizeStatus.PROVEN if attained and criterion < math.inf else SizeStatus.CANNOT_WIN


def best_of_terms(study: AcrossTerms) -> BestModels:
    """The best models over all sets of terms."""
    ranked, reports = list(_ranked(study)), tuple(_sizes(study))
    if not ranked:
        raise InputError(
            f"no model of at most {counted(study.problem.k, 'term')} meets what is demanded, or has a "
            f"{study.criterion.title}; raise k_max, or demand less."
        )
    answer = study.request.answer(
        ranked, study.criterion, reports, threshold=study.threshold, complete=study.complete,
        stop=first_stop(study.terminations, Termination.PRECISION_LIMIT.value), result=_result(study, ranked[0]),
        valid_for=study.valid_for,
    )  # fmt: skip
    return replace(answer, time=clock.now() - study.began)


def _alone(study: AcrossTerms, terms: Terms) -> Problem:
    """The problem of the one model on the columns of some terms."""
    columns = tuple(study.units.columns_of(terms).tolist())
    units = Units(study.units.columns, study.units.column_names, columns, coding=study.units.coding)
    return study.problem.choosing(units, max(len(columns), 1))


def _result(study: AcrossTerms, best: RankedModel) -> Result:
    """The best model as a search for its number of terms gives it, with the bounds that are known."""
    problem = study.problem.replace(k=len(best.support))
    options = {**study.options, "node_limit": 0, "heuristics": ()}
    try:
        result = solve(problem, start=best.support or None, **options)
    except UnsupportedError:  # without a ridge groups of columns that depend on each other are not searched
        alone = _alone(study, best.support)
        result = replace(
            solve(alone, start=alone.force_in or None, **options), problem=problem.describe(), lower=-math.inf,
            _kept=None,
        )  # fmt: skip
    if result.support != best.support:
        fit = problem.fit(best.support)
        model = Model.of(problem, fit.coef)
        result = replace(
            result, upper=study.statement.upper(fit), support=fit.support, model=model, source="list",
            prepared=PreparedModel.of(problem, fit.coef), quality=quality_of(problem, model),
        )  # fmt: skip
    floor = min((lower for terms, lower in study.lowers if terms <= problem.k), default=-math.inf)
    claiming = result._claiming(min(max(result.lower, floor), result.upper))
    how = Termination.GAP_CLOSED if claiming.claim.reached else result.termination
    return replace(claiming, termination=how, valid_for=result.valid_for or study.valid_for)
