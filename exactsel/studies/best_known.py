"""The models met in a search over all sizes: what they cost, exactly where that matters."""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from exactsel.kernels.node import IN, OUT
from exactsel.problem.fit import Fit
from exactsel.problem.interface import Statement
from exactsel.problem.regression import Problem
from exactsel.proofs.statement import statement_of
from exactsel.studies.best_models import RankedModel
from exactsel.studies.size_criterion import SizeCriterion

DOUBT = 1e-8
"""Part of a level by which a fit or its bound may be off without being doubted."""


@dataclass
class KnownModels:
    """Every model met, by its columns."""

    problem: Problem
    """Of the largest size."""
    criterion: SizeCriterion
    sizes: list[int]
    """Those that are compared; models of others are not kept."""
    is_over: Callable[[], bool] = field(repr=False)
    """Whether no time is left except for the steps that must be done."""
    models: dict[tuple[int, ...], float] = field(default_factory=dict)
    """What the best on each set costs: said of the data as given, and no less than that."""
    guesses: dict[tuple[int, ...], float] = field(default_factory=dict)
    """Approximate objectives of other models in the searched units; stated for the original data once needed."""
    fits: dict[tuple[int, ...], Fit] = field(default_factory=dict)
    """Best models on sets of columns, cached once computed."""
    elsewhere: dict[tuple[int, ...], float] = field(default_factory=dict)
    """Criteria of models that other searches met, by their columns; some of them may be met here as well."""

    @cached_property
    def statement(self) -> Statement:
        """How to speak about objectives."""
        return statement_of(self.problem)

    @property
    def best(self) -> float:
        """The smallest criterion of a model met."""
        return min([self.value(s) for s in self.models] + [*self.elsewhere.values()], default=math.inf)

    def value(self, support: tuple[int, ...]) -> float:
        """The criterion of a model met."""
        return self.criterion.value(self.models[support], len(support))

    def ranked(self) -> list[RankedModel]:
        """All models met whose size counts, best first."""
        likelihood, models = self.criterion.likelihood, []
        for support, objective in self.models.items():
            if len(support) in self.sizes:
                deviance = likelihood.deviance(objective)
                models.append(RankedModel(support, self.value(support), deviance, objective, len(support)))
        return sorted(models, key=lambda model: (model.criterion, model.size, model.support))

    def note(self, support: Iterable[int], objective: float) -> None:
        """A model that was met."""
        columns = tuple(sorted(int(j) for j in support))
        if len(columns) in self.sizes:
            self.criterion.check_fit(objective, columns, self.problem.null_objective)
            self.models[columns] = min(objective, self.models.get(columns, math.inf))
            self.guesses.pop(columns, None)

    def fitted(self, support: tuple[int, ...]) -> Fit:
        """The best model on some columns."""
        if support not in self.fits:
            self.fits[support] = self.problem.fit(support)
        return self.fits[support]

    def doubted(self, threshold: float) -> bool:
        """Whether a model that its fit puts beyond a criterion may lie within it: only a bound can say so of a fit."""
        for support, objective in self.models.items():
            level = self.criterion.level(threshold, len(support))
            if objective > (1.0 + DOUBT) * level and self._bound(support) < (1.0 - DOUBT) * level:
                return True
        return False

    def _bound(self, support: tuple[int, ...]) -> float:
        """What the models on some columns cost at least; inf without a ridge, where fits are compared with others."""
        problem, fit = self.problem, self.fitted(support)
        state = np.full(problem.d, OUT, dtype=np.int8)
        state[list(support)] = IN
        if problem.lam == 0.0:
            return math.inf
        return self.statement.lower(problem.bound_at(fit.coef, state), fit.value, "")

    def met(self, support: tuple[int, ...]) -> bool:
        """Whether something is known of a set of columns."""
        return support in self.models or support in self.guesses

    def guess(self, support: tuple[int, ...], objective: float) -> None:
        """A model that may be worth a closer look, and about what it costs."""
        if len(support) in self.sizes and support not in self.models:
            self.guesses[support] = objective

    def firm(
        self, count: int, sizes: Iterable[int] | None = None, below: float = -math.inf, *, to_the_end: bool = False
    ) -> None:
        """Fit guesses until none of the best ``count`` models (of these sizes), nor of those up to a criterion, is one.

        It stops when no time is left, unless it is to be done ``to_the_end``.
        """
        among = {*(self.sizes if sizes is None else sizes)}
        guessed = sorted((self.criterion.value(v, len(s)), s) for s, v in self.guesses.items() if len(s) in among)
        criteria = sorted(self.value(support) for support in self.models if len(support) in among)[:count]
        for value, support in guessed:
            done = len(criteria) == count and value > max(criteria[-1], below)
            if done or (not to_the_end and self.is_over()):
                return
            self.note(support, self.statement.upper(self.fitted(support)))
            insort(criteria, self.value(support))
            del criteria[count:]

    def nth_best(self, count: int) -> float:
        """The criterion of the n-th best model met; inf where there are fewer."""
        values = sorted((self.elsewhere | {support: self.value(support) for support in self.models}).values())
        return values[count - 1] if len(values) >= count else math.inf

    @property
    def about(self) -> dict[tuple[int, ...], float]:
        """What every model costs, or about that."""
        return {**self.guesses, **self.models}

    def best_within(self, size: int) -> tuple[int, ...]:
        """The best columns known, of at most this size."""
        return min((objective, s) for s, objective in self.about.items() if len(s) <= size)[1]
