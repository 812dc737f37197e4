"""Models no best coefficients belong to, where a search meets one: their columns separate the classes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from exactsel.errors import InputError
from exactsel.losses.logistic import Logistic
from exactsel.problem.capabilities import FREE_COEFFICIENTS
from exactsel.problem.fit import Fit
from exactsel.problem.interface import SubsetProblem, is_regression
from exactsel.problem.separation import sentence, separation

FINAL = ("tree_exhausted", "gap_closed")
"""How a search ends that is to have found the best model."""

_INFIMA: ContextVar[bool] = ContextVar("infima", default=False)


@contextmanager
def infima_will_do() -> Iterator[None]:
    """Searches inside bound a size or a part of the models, whose infimum is as good as a minimum.

    Only columns that separate the classes completely are refused. The interpretation of the result is then the
    caller's.
    """
    token = _INFIMA.set(True)
    try:
        yield
    finally:
        _INFIMA.reset(token)


def refuse_unattained(problem: SubsetProblem, fit: Fit, final: bool = True) -> None:
    """:class:`InputError` where the columns of a model separate the classes, so that no coefficients are the best.

    For logistic loss without a ridge, where the data do not limit coefficients. Of a model that is not ``final``, since
    a search continues or was cut short, only columns count that do so completely: nothing is below their infimum, 0.
    """
    if not is_regression(problem, FREE_COEFFICIENTS):
        return
    objective = problem.objective
    if not objective.valid_for or not isinstance(objective.loss, Logistic):
        return
    if not final and not np.all(objective.y * objective.predicted(fit.coef) > 0.0) and not objective.intercept:
        return
    final = final and not _INFIMA.get()
    columns = problem.units.columns_of(fit.support)
    witness = separation(objective.before or objective, columns)
    if witness is not None and (final or witness.complete):
        raise InputError(sentence(witness, objective.n, problem.units.column_names))
