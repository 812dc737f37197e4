"""Portions of work for heuristics during a search.

A search that takes a while gives a small part of its work to heuristics that can work in portions, so that a better
model than its roundings find is not missed. Pruning needs good models early, and a stopped search should return the
best model there is. A portion is counted, never timed, and begins at what is known: the incumbent, what relaxations
were rounded to, and what earlier portions handed on. A method's share grows with what it brings and dies out otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from exactsel._jit import interprets
from exactsel.errors import UnsupportedError
from exactsel.problem.fit import Fit
from exactsel.problem.interface import SubsetProblem
from exactsel.start.heuristic import Context, Heuristic
from exactsel.start.models import admissible, checked_support, resolve, starting_models
from exactsel.start.portfolio import portfolio_for
from exactsel.types import IntArray

WIDE_GAP, WIDE_TIMES = 0.1, 3.0
"""Where the bound is farther from the incumbent than this part of it (it will take long, and there is room for better
models), every portion is so many times as large, ..."""

LATER_IF_WIDE = 2e9
"""... and the methods after the first have theirs from here on."""

FIRST_DUE = 1e9
"""Multiplications of the search (half a second) before the first portions: what is over sooner goes without."""

AGAIN = 2.0
"""The next portions are due when the search has done so many times the work it had done at the last ones."""

FIRST_SHARE = 0.02
"""Part of the search's work a method's first portions may take unless its ``first_share`` says another, ..."""

GROWTH, DECAY = 2.0, 0.7
"""... what that is multiplied by after a portion that brought a better model, and after one that did not, ..."""

MOST_SHARE, LEAST_SHARE = 0.1, 1e-3
"""... its limit, and the share at which a method is given up."""

LATER = 4e9
"""Multiplications of the search (two seconds) before the portions of all methods but the first."""

KEPT, RELAXED = 32, 4
"""Supports to begin from, and relaxations."""


@dataclass
class Portions:
    """How far they have come; part of the state of a search."""

    number: int = 0
    """Number of portions so far; each has a seed of its own."""
    due: float = FIRST_DUE
    """Multiplications of the search at which the next ones are."""
    shares: dict[int, float] = field(default_factory=dict)
    """Of the search's work, by a method's place among the methods; the first ones where nothing is said."""
    supports: tuple[IntArray, ...] = ()
    """To begin from, the latest first."""
    relaxed: tuple[IntArray, ...] = ()
    """Units of largest relaxed coefficients, the largest first, of relaxations that were rounded; the latest first."""

    def hand_on(self, supports: Sequence[Sequence[int]], relaxed: Sequence[int] = ()) -> None:
        """Enter supports to begin from, and the units of largest coefficients of a relaxation."""
        if relaxed:
            latest = np.array(relaxed, dtype=np.int64)
            earlier = [units for units in self.relaxed if not np.array_equal(units, latest)]
            self.relaxed = (latest, *earlier[: RELAXED - 1])
        pool: dict[tuple[int, ...], None] = dict.fromkeys(tuple(sorted(map(int, support))) for support in supports)
        pool |= dict.fromkeys(tuple(support.tolist()) for support in self.supports)
        self.supports = tuple(np.array(support, dtype=np.int64) for support in list(pool)[:KEPT] if support)


class PrimalHeuristics:
    """The methods that get portions, bound to a problem.

    Parameters
    ----------
    problem : SubsetProblem
    heuristics : sequence of str or Heuristic
        As the settings have them; of these, those with a truthy attribute ``portions``.
    seed : int
    threads : int
    should_stop : callable
    postponed : bool
        Whether the starting models were cut short, because kernels were interpreted.
    """

    def __init__(
        self, problem: SubsetProblem, heuristics: Sequence[Any], seed: int, threads: int,
        should_stop: Callable[[], bool], postponed: bool = False,
    ) -> None:  # fmt: skip
        self._problem, self._seed, self._threads, self._should_stop = problem, seed, threads, should_stop
        self._heuristics, self._postponed = heuristics, postponed
        methods = resolve(portfolio_for(problem, heuristics)[1])
        self._methods: list[Heuristic] = [method for method in methods if getattr(method, "portions", False)]

    def postponed(self, best: Fit) -> Iterator[tuple[Fit, str]]:
        """The starting models that were postponed, as soon as kernels are compiled, as :func:`starting_models` has
        them; nothing where there are none.
        """
        if not self._postponed or interprets():
            return
        self._postponed = False
        context = Context(self._seed, should_stop=self._should_stop, threads=self._threads)
        yield from starting_models(self._problem, self._heuristics, best, context)

    def is_due(self, portions: Portions, work: float) -> bool:
        """Whether the search has done enough work for the next portions."""
        return bool(self._methods) and work >= portions.due

    def improve(self, portions: Portions, work: float, best: Fit, lower: float) -> Iterator[tuple[Fit, str]]:
        """Give each method its portion; yield each model better than ``best`` and all before, with its source.

        ``lower`` is the search's bound: portions are larger where it leaves room for better models. Where the search is
        stopped meanwhile they are due again, so that a resumed search has portions of full length.
        """
        before = replace(portions, shares=dict(portions.shares))
        portions.number += 1
        portions.due = AGAIN * work
        wide = not best.value - lower <= WIDE_GAP * abs(best.value)
        later, times = (LATER_IF_WIDE, WIDE_TIMES) if wide else (LATER, 1.0)
        seed = int(np.random.SeedSequence([self._seed, portions.number]).generate_state(1)[0])
        for place, method in enumerate(self._methods):
            share = portions.shares.get(place, getattr(method, "first_share", FIRST_SHARE))
            if (place > 0 and work < later) or share < LEAST_SHARE:
                continue
            context = Context(
                seed=seed, start=best.support or None, should_stop=self._should_stop,
                supports=tuple(tuple(support.tolist()) for support in portions.supports),
                work=min(MOST_SHARE, times * share) * work, threads=self._threads,
                relaxed=tuple(tuple(units.tolist()) for units in portions.relaxed),
            )  # fmt: skip
            try:
                proposal = method.run(self._problem, context)
            except UnsupportedError:
                portions.shares[place] = 0.0
                continue
            portions.hand_on(proposal.others)
            fit = self._problem.fit(admissible(checked_support(proposal.support, self._problem), self._problem))
            better = fit.value < best.value
            portions.shares[place] = min(MOST_SHARE, GROWTH * share) if better else DECAY * share
            if better:
                best = fit
                yield fit, method.name
            if self._should_stop():
                vars(portions).update(vars(before))
                return
