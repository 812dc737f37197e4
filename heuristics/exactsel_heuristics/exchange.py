"""Exchange descent from many starts: random supports, and perturbations of the best ones met."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, cast

import numpy as np
from numpy.linalg import LinAlgError

from exactsel._jit import available_threads
from exactsel.algebra.threads import one_thread
from exactsel.errors import UnsupportedError
from exactsel.kernels.node import FREE
from exactsel.problem.capabilities import CLOSED_FORM, COEFFICIENTS
from exactsel.problem.interface import is_column_subset, is_regression
from exactsel.problem.rows import Rows, Unusable
from exactsel.types import IntArray
from exactsel_heuristics._exchange_objectives import (
    Descents,
    descents_on_form,
    least_squares_descents,
    padded_rows,
    reconstruction_descents,
)
from exactsel_heuristics._scoring import perturbed
from exactsel_heuristics._second_order import MOST_COLUMNS, second_order_form
from exactsel_heuristics.base import Context, Proposal, at_least, regression
from exactsel_heuristics.swap import SwapLocalSearch

if TYPE_CHECKING:
    from exactsel.problem.interface import SubsetProblem
    from exactsel.problem.regression import Problem

Support = tuple[int, ...]

BATCH_WORK = 5e7
"""Multiplications between two questions whether to stop (some 20 ms) ..."""

MOST_STARTS, FEWEST_STARTS = 256, 8
"""... within these limits, in descents."""

ON_A_MODEL = 16
"""Descents on one second-order model, at most."""

ELITE = 16
"""Supports that are kept to be perturbed."""

REFITTED = 4
"""Of them refitted from the data after each batch; under other losses than the quadratic one all are."""

FIT_WORK, MODEL_WORK = 10.0, 50.0
"""Newton steps of a refit under such a loss, and multiplications for each entry of a Hessian besides forming it."""

LIFTS = (0.0, 0.1, 0.0, 0.5)
"""How far the curvature of rows is lifted in one second-order model after the other."""

SHORTLIST = 3
"""Columns tried for each that leaves when the best model is improved by refits in the end."""

CALL_WORK = 3e5
"""As many multiplications as a refit takes time besides, and four times that a model."""

MOST_DESCENTS = 1_000_000
"""Of a portion, which ends with its work."""


@dataclass(frozen=True)
class ExchangeDescent:
    """Local search over single exchanges from many starts (multi-start and iterated local search).

    A descent removes each column of its support in turn and adds the one that lowers the objective most, round after
    round, until a round changes nothing; a round takes O(k² d). Half of the starts are random, the others perturb one
    of the best supports met: two of its columns or more are replaced by random ones. Other losses than the quadratic
    one are searched on second-order models, at the best model known and at perturbations of the best ones in turn, and
    what is best there is refitted; the best of all is improved by exchanges with refits in the end.

    Parameters
    ----------
    starts : int
        Descents.

    References
    ----------
    A. J. Miller, Subset Selection in Regression. Chapman and Hall/CRC, 2002, chapter 3 (replacing each variable in
    turn, from random starts).
    H. R. Lourenço, O. C. Martin and T. Stützle, Iterated local search. Handbook of Metaheuristics, 2003.
    """

    name: ClassVar[str] = "exchange"
    portions: ClassVar[bool] = True
    starts: int = 500

    def __post_init__(self) -> None:
        """Raise :class:`InputError` for an option out of range."""
        at_least(self.name, "starts", self.starts, 1)

    def run(self, problem: SubsetProblem, context: Context) -> Proposal:
        """Descend ``starts`` times, or until the work of ``context`` is done; never worse than its start.

        ``others`` are further supports that no exchange improves. :class:`UnsupportedError` for groups of columns;
        above 2,000 columns for losses other than the quadratic one, and above 4,000 in column subset selection.
        """
        if problem.has(COEFFICIENTS):
            problem = regression(problem, self.name)
        best, budget = _Best(problem, context), self.starts if math.isinf(context.work) else MOST_DESCENTS
        if problem.k == 0 or problem.d == 0 or context.should_stop():
            return best.proposal((), 0)
        with one_thread():
            if is_column_subset(problem):
                search = _Search(reconstruction_descents(problem), context, budget)
            elif is_regression(problem, CLOSED_FORM):
                search = _Search(least_squares_descents(problem), context, budget)
            else:
                return self._on_models(cast("Problem", problem), best, context, budget)
            while search.goes_on:
                best.offer(search.batch(BATCH_WORK)[:REFITTED], search.evaluations)
        return best.proposal(search.elite, search.evaluations)

    def _on_models(self, problem: Problem, best: _Best, context: Context, budget: int) -> Proposal:
        """The same on second-order models of the objective: at the best model, then at perturbed supports."""
        if problem.d > MOST_COLUMNS:
            raise UnsupportedError(
                f"{self.name} forms the Hessian of {MOST_COLUMNS} features at most, but there are {problem.d}; use "
                "swap."
            )
        best.offer(context.supports, 0)
        rng, work, evaluations = context.rng(), context.work, 0
        model_work = 4.0 * CALL_WORK + problem.n * problem.d**2 + MODEL_WORK * problem.d**2
        fit_work = CALL_WORK + FIT_WORK * problem.n * (problem.k + 1) ** 2
        models = -1
        try:
            with _rows(problem, context) as rows:
                while budget > 0 and work > 0.0 and not context.should_stop():
                    about = best.next_to_expand(rng)
                    work, models = work - model_work - fit_work, models + 1
                    try:
                        at = rows.model(problem.fit(about).coef, problem.objective)
                        lift = LIFTS[models % len(LIFTS)]
                        descents = descents_on_form(problem, *second_order_form(problem, rows, at, lift))
                    except (Unusable, LinAlgError):  # too few rows bend there
                        budget -= 1
                        continue
                    search = _Search(descents, replace(context, start=about, supports=tuple(best.elite)), budget, rng)
                    fits = best.fits
                    best.offer(search.batch(model_work, ON_A_MODEL), evaluations + search.evaluations)
                    budget, evaluations = search.left, evaluations + search.evaluations
                    work -= (context.work - search.work if search.work < math.inf else 0.0) + fit_work * (
                        best.fits - fits
                    )
        except Unusable:
            pass  # stopped before all rows had been evaluated
        if best.support and not context.should_stop():
            polish = SwapLocalSearch(shortlist=SHORTLIST, exhaustive=0)
            polished = polish.run(
                problem, Context(start=best.support, should_stop=context.should_stop, threads=context.threads)
            )
            best.offer([polished.support], evaluations + polished.evaluations)
        return best.proposal(best.elite, evaluations)


def _rows(problem: Problem, context: Context) -> Rows:
    threads = available_threads() if context.threads is None else context.threads
    return Rows(problem.objective, threads=threads, should_stop=context.should_stop)


class _Best:
    """The supports refitted so far."""

    def __init__(self, problem: SubsetProblem, context: Context) -> None:
        self._problem = problem
        self._values: dict[Support, float] = {}
        self._expanded: set[Support] = set()
        self.support: Support = ()
        self.value = math.inf
        self.curve: list[tuple[int, float]] = []
        if context.start is not None:
            self.offer([context.start], 0)

    @property
    def fits(self) -> int:
        """Supports refitted."""
        return len(self._values)

    @property
    def elite(self) -> list[Support]:
        """The best of them, best first."""
        return sorted(self._values, key=lambda support: (self._values[support], support))[:ELITE]

    def offer(self, supports: Iterable[Support], evaluated: int) -> None:
        """Refit the supports not seen before."""
        for support in (tuple(sorted(support)) for support in supports):
            if support not in self._values:
                value = self._values[support] = self._problem.fit(support).value
                if value < self.value:
                    self.support, self.value = support, value
                    self.curve.append((evaluated + self.fits, value))

    def next_to_expand(self, rng: np.random.Generator) -> Support:
        """The best support, the first time; afterwards one of the best with some of its columns replaced."""
        if self.support not in self._expanded:
            self._expanded.add(self.support)
            return self.support
        elite, units = self.elite, np.flatnonzero(self._problem.root_state == FREE)
        base = elite[int(rng.integers(len(elite)))] if elite else ()
        return perturbed(base, units, self._problem.k, rng)

    def proposal(self, others: Iterable[Support], evaluated: int) -> Proposal:
        """The answer of the heuristic."""
        others = [support for support in others if support != self.support]
        return Proposal.of(self.support, evaluated + self.fits, curve=self.curve, others=others)


class _Search:
    """Descents on one objective, batch after batch."""

    def __init__(
        self, descents: Descents, context: Context, budget: int, rng: np.random.Generator | None = None
    ) -> None:
        self._descents, self._context = descents, context
        self._rng = context.rng() if rng is None else rng
        self._given = [*([context.start] if context.start else []), *context.supports]
        self._explained: dict[Support, float] = {}
        self.left, self.work = budget, context.work
        self.evaluations = 0

    @property
    def goes_on(self) -> bool:
        """Whether there is work left to do."""
        return self.left > 0 and self.work > 0.0 and not self._context.should_stop()

    @property
    def elite(self) -> list[Support]:
        """The best supports met, best first."""
        return list(self._explained)

    def batch(self, work: float, most: int = MOST_STARTS) -> list[Support]:
        """Descend from some more starts, about so many multiplications; the elite."""
        count = int(np.clip(min(work, self.work) / self._descents.typical_work, FEWEST_STARTS, most))
        starts = self._starts(min(count, self.left))
        supports, explained, rounds = self._descents.run(starts, self._context.threads)
        self.left -= len(starts)
        self.work -= self._descents.work_of(rounds)
        self.evaluations += self._descents.evaluations_of(rounds)
        for row, value in zip(supports, explained.tolist(), strict=True):
            if math.isfinite(value):
                self._explained.setdefault(tuple(sorted(row[row >= 0].tolist())), value)
        ranked = sorted(self._explained.items(), key=lambda entry: (-entry[1], entry[0]))
        self._explained = dict(ranked[:ELITE])
        return self.elite

    def _starts(self, count: int) -> IntArray:
        """The supports given, as far as there are any left; then random ones and perturbed ones in turn."""
        starts, self._given = self._given[:count], self._given[count:]
        pool, k, rng, elite = np.flatnonzero(self._descents.allowed), self._descents.k, self._rng, self.elite
        supports: list[Support] = []
        for number in range(count - len(starts)):
            if elite and number % 2:
                supports.append(perturbed(elite[int(rng.integers(len(elite)))], pool, k, rng))
            else:
                supports.append(tuple(rng.choice(pool, min(k, pool.size), replace=False).tolist()))
        return padded_rows([*starts, *supports], k)
