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
from exactsel.studies.best_models import BestModels, RankedModel, SizeReport, first_stop
from exactsel.studies.best_terms import AcrossTerms, Terms


def _ranked(across: AcrossTerms) -> Iterator[RankedModel]:
    """All models met, best first."""
    found = sorted((across.value(terms), across.df(terms), terms) for terms in across.models)
    for value, df, terms in found:
        objective = across.models[terms]
        yield RankedModel(terms, value, across.criterion.likelihood.deviance(objective), objective, df)


def _sizes(across: AcrossTerms) -> Iterator[SizeReport]:
    """What is known of models of so many columns, for each number of columns there is."""
    for size in sorted(across.reports):
        each = across.reports[size]
        best = min(each, key=lambda report: report.criterion)
        of_size = [(across.value(t), t) for t in across.models if across.df(t) == size]
        criterion, terms = min([*of_size, (best.criterion, best.support or ())])
        yield SizeReport(
            size, criterion, min(criterion, *(report.lower for report in each)),
            terms if criterion < math.inf else None, sum(report.nodes for report in each), None,
            all(report.settled for report in each), all(report.listed for report in each),
        )  # fmt: skip


def best_of_terms(across: AcrossTerms) -> BestModels:
    """The best models over all sets of terms."""
    ranked, reports = list(_ranked(across)), tuple(_sizes(across))
    if not ranked:
        raise InputError(
            f"no model of at most {across.problem.k} terms meets what is demanded, or has a {across.criterion.title}; "
            f"raise k_max, or demand less."
        )
    answer = across.request.answer(
        ranked, across.criterion, reports, threshold=across.threshold, complete=across.complete,
        stop=first_stop(across.terminations, Termination.PRECISION_LIMIT.value), result=_result(across, ranked[0]),
        valid_for=across.valid_for,
    )  # fmt: skip
    return replace(answer, time=clock.now() - across.began)


def _alone(across: AcrossTerms, terms: Terms) -> Problem:
    """The problem of the one model on the columns of some terms."""
    columns = tuple(across.units.columns_of(terms).tolist())
    made = Units(across.units.columns, across.units.column_names, columns, coding=across.units.coding)
    return across.problem.choosing(made, max(len(columns), 1))


def _result(across: AcrossTerms, best: RankedModel) -> Result:
    """The best model as a search for its number of terms gives it, with the bounds that are known."""
    problem = across.problem.replace(k=len(best.support))
    options = {**across.options, "node_limit": 0, "heuristics": ()}
    try:
        made = solve(problem, start=best.support or None, **options)
    except UnsupportedError:  # without a ridge groups of columns that depend on each other are not searched
        alone = _alone(across, best.support)
        made = replace(
            solve(alone, start=alone.force_in or None, **options), problem=problem.describe(), lower=-math.inf,
            _kept=None,
        )  # fmt: skip
    if made.support != best.support:
        fit = problem.fit(best.support)
        model = Model.of(problem, fit.coef)
        made = replace(
            made, upper=across.statement.upper(fit), support=fit.support, model=model, source="list",
            prepared=PreparedModel.of(problem, fit.coef), quality=quality_of(problem, model),
        )  # fmt: skip
    floor = min((lower for terms, lower in across.lowers if terms <= problem.k), default=-math.inf)
    claiming = made._claiming(min(max(made.lower, floor), made.upper))
    how = Termination.GAP_CLOSED if claiming.claim.reached else made.termination
    return replace(claiming, termination=how, valid_for=made.valid_for or across.valid_for)
