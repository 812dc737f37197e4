"""Islands of POSS or PPOSS: several populations that exchange the best they have of each size."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from exactsel_heuristics._island_legs import Leg, LegProcesses, in_turn
from exactsel_heuristics._pareto_search import Curve, Outcome, Supports, best_feasible, check_options
from exactsel_heuristics._pareto_tasks import portion_of, regression_task
from exactsel_heuristics.base import Context, Proposal, regression

if TYPE_CHECKING:
    from exactsel.problem.regression import Problem

LEGS = 10
"""How often, by default, islands exchange what they have, the end included."""


@dataclass(frozen=True)
class IslandsOfParetoOptimization:
    """Pareto optimisation on islands that exchange what they find.

    Each island is a population of its own with random choices of its own: that of
    :class:`~exactsel_heuristics.poss.ParetoOptimization`, or with several ``processors`` that of
    :class:`~exactsel_heuristics.pposs.ParallelParetoOptimization`. Every ``exchange`` iterations each island is given
    what the one before it in a ring holds, which is the best it has met of each size; so a good support is on all
    islands after as many exchanges as there are islands, and until then they go different ways. The answer is the best
    member of any island.

    Parameters
    ----------
    islands : int
        Populations.
    exchange : int, optional
        Iterations of an island between exchanges; a tenth of all when None.
    iterations : int, optional
        Iterations of each island; floor(2 e k^2 d / (islands * processors)) when None, as many evaluations as POSS.
    processors : int
        Offspring of an iteration; 1 is POSS.
    batch : int, optional
        As for ``pposs``.
    workers : int, optional
        Processes that the islands are on; None: all take turns in this one. The answer does not depend on it.

    References
    ----------
    The populations are those of C. Qian, Y. Yu and Z.-H. Zhou (NeurIPS 2015) and C. Qian, J.-C. Shi, Y. Yu, K. Tang and
    Z.-H. Zhou (IJCAI 2016); islands of a ring those of D. Whitley, S. Rana and R. B. Heckendorn, The island model
    genetic algorithm: on separability, population size and convergence. J. Computing and Information Technology 1999.
    """

    name: ClassVar[str] = "islands"
    portions: ClassVar[bool] = True
    islands: int = 4
    exchange: int | None = None
    iterations: int | None = None
    processors: int = 1
    batch: int | None = None
    workers: int | None = None

    def __post_init__(self) -> None:
        check_options(
            self.name, self.iterations, islands=self.islands, exchange=self.exchange, processors=self.processors,
            batch=self.batch, workers=self.workers,
        )  # fmt: skip

    def run(self, problem: Problem, context: Context) -> Proposal:
        """Search for ``iterations`` iterations on every island; the curve is as if the islands took turns.

        Where the context's ``work`` is limited, iterations end with that, all islands begin with its supports, and
        nothing is left to other processes.
        """
        problem = regression(problem, self.name)
        if problem.k == 0:
            return Outcome().proposal(0)
        task = regression_task(problem)
        iterations, starts = portion_of(task, context, self.iterations, self.islands * self.processors)
        iterations = max(1, iterations)
        step = self.exchange or max(1, -(-iterations // LEGS))
        here = self.workers is None or not math.isinf(context.work)
        populations: list[Supports] = [tuple(starts)] * self.islands
        log, done, leg = _Log(), 0, 0
        with contextlib.ExitStack() as stack:
            away = None if here else stack.enter_context(
                LegProcesses(problem, task, min(self.workers or 1, self.islands))
            )  # fmt: skip
            while done < iterations and not context.should_stop():
                legs = self._legs(context.seed, leg, min(step, iterations - done), populations)
                outcomes = in_turn(task, legs, context) if away is None else away.run(legs, context)
                populations = log.noted(outcomes, populations)
                done, leg = done + step, leg + 1
        return log.proposal(problem.k)

    def _legs(self, seed: int, number: int, iterations: int, populations: list[Supports]) -> list[Leg]:
        """What each island does next: it begins with its own supports and those of the one before it."""
        legs = []
        for i, population in enumerate(populations):
            own_seed = int(np.random.SeedSequence([seed, number, i]).generate_state(1, np.uint64)[0] >> 1)
            supports = tuple(dict.fromkeys([*population, *populations[i - 1]]))
            legs.append(Leg(own_seed, iterations, self.processors, self.batch, supports))
        return legs


class _Log:
    """What has been found, and when, as if the islands took turns."""

    def __init__(self) -> None:
        self._evaluations, self._curve = 0, Curve()
        self._members: dict[tuple[int, ...], float] = {}

    def noted(self, outcomes: Iterable[Outcome], before: list[Supports]) -> list[Supports]:
        """The populations after a leg; an island whose leg brought nothing stays as it was."""
        after = list[Supports]()
        for population, outcome in zip(before, outcomes, strict=True):
            for count, value in outcome.curve:
                if value < self._curve.best:
                    self._curve.best = value
                    self._curve.points.append((self._evaluations + count, value))
            self._evaluations += outcome.evaluations
            members = {support: value for support, value in outcome.archive if support}
            self._members |= members
            after.append(tuple(members) or population)
        return after

    def proposal(self, k: int) -> Proposal:
        """The best of all; the last populations are handed on."""
        members: list[tuple[tuple[int, ...], float]] = [((), math.inf), *self._members.items()]
        support, value = best_feasible(members, k)
        best: dict[int, tuple[tuple[int, ...], float]] = {}
        for each in members[1:]:
            if each[1] < best.get(len(each[0]), each)[1] or len(each[0]) not in best:
                best[len(each[0])] = each
        outcome = Outcome(support, value, self._evaluations, tuple(self._curve.points), tuple(best.values()))
        return outcome.proposal(k)
