"""Forward selection and swap local search by refits: where groups of columns are chosen, or coefficients have limits.

Every candidate is refitted; with limits and data from which refits take long only those that are sure to gain most by
themselves (:func:`~exactsel_heuristics._scoring.guaranteed_decrease`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from exactsel.errors import TimeLimitError
from exactsel.kernels.node import FREE
from exactsel.problem.boxed_fit import in_closed_form
from exactsel.problem.fit import Fit
from exactsel.types import FloatArray, IntArray
from exactsel_heuristics._scoring import IMPROVEMENT, guaranteed_decrease, largest, padded, perturbed, smallest_decrease
from exactsel_heuristics.base import Context, Proposal

if TYPE_CHECKING:
    from exactsel.problem.regression import Problem

REFITS_AT_ONCE = 64
"""Refits between two questions whether to stop; ..."""

QUICK_AT_ONCE = 4096
"""... where they are read off the Gram matrix."""

FIT_WORK, CALL_WORK = 10.0, 1e5
"""Newton steps of a refit, and as many multiplications as it takes time besides."""

QUICK_WORK, QUICK_CALL, NEWTON_WORK, EXACT_WORK = 4.0, 4e3, 3.0, 5e6
"""Multiplications within limits, about: of a refit on the Gram matrix, in (columns + 1)³, and what it takes besides; of
one by Newton's method, in rows (columns + 1)²; and of an exact one."""

ENOUGH = 1e-10
"""Times abs(P(0)): a decrease between quick objectives that is no more than this counts as rounding."""

KEPT = 8
"""Supports a portion hands on."""


@dataclass(frozen=True)
class Shortlist:
    """How many units are tried beside what stays."""

    count: int
    exhaustive: int
    """Refits up to which all are, for all that may stay together."""


def forward_by_refits(problem: Problem, context: Context, shortlist: Shortlist) -> Proposal:
    """Starting from the empty model, add the unit whose refit lowers the objective most, up to k times."""
    chosen: list[int] = []
    decrease, value, refits = smallest_decrease(problem), problem.fit(()).value, _Refits(problem, context.should_stop)
    with suppress(TimeLimitError):  # in the middle of a pass: the units so far are a model
        while len(chosen) < problem.k and not context.should_stop():
            candidates = _entering(problem, chosen, refits, shortlist, problem.d * problem.k)
            values = refits.values(_with_each(chosen, candidates, len(chosen) + 1))
            best = int(np.argmin(values))
            if not values[best] < value - decrease:
                break
            value = float(values[best])
            chosen.append(int(candidates[best]))
    return Proposal.of(chosen, refits.done)


def swap_by_refits(problem: Problem, context: Context, max_passes: int, shortlist: Shortlist) -> Proposal:
    """Exchange one unit for another, or add one while there is room, as long as a refit confirms a gain.

    With groups that refit is exact; within limits, where quick ones are as good, they are all there is.

    In a portion of work: from the start, then from perturbations of the current supports until the work is done.
    """
    if math.isinf(context.work):
        start = Proposal.of(context.start or (), 0)
        if context.start is None:
            start = forward_by_refits(problem, context, shortlist)
        refits = _Refits(problem, context.should_stop)
        support, _ = _local_optimum(problem, start.support, refits, max_passes, shortlist)
        return Proposal.of(support, start.evaluations + refits.done)
    rng, pool = context.rng(), np.flatnonzero(problem.root_state == FREE)
    refits = _Refits(problem, context.should_stop, context.work)
    supports = [*([context.start] if context.start else []), *context.supports]
    best: tuple[int, ...] = context.start or ()
    value, number = problem.fit(best).value, 0
    # From so many supports a small problem would be searched again and again.
    while number <= math.comb(pool.size, min(problem.k, pool.size)) and not refits.over():
        base = supports[int(rng.integers(len(supports)))] if supports else ()
        begin = best if number == 0 and best else perturbed(base, pool, problem.k, rng)
        support, new_value = _local_optimum(problem, begin, refits, max_passes, shortlist)
        number += 1
        supports.append(support)
        if new_value < value:
            best, value = support, new_value
    return Proposal.of(best, refits.done, others=[support for support in supports[-KEPT:] if support != best])


@dataclass
class _Refits:
    """Refits done, and how much work they may take."""

    problem: Problem
    should_stop: Callable[[], bool]
    limit: float = math.inf
    done: int = 0
    work: float = 0.0
    costs: tuple[float, float] = field(init=False)
    """Multiplications of a quick refit and of an exact one."""
    at_once: int = field(init=False)

    def __post_init__(self) -> None:
        self.costs = _costs(self.problem)
        self.at_once = QUICK_AT_ONCE if _quick(self.problem) else REFITS_AT_ONCE

    def over(self) -> bool:
        return self.work >= self.limit or self.should_stop()

    def values(self, supports: IntArray) -> FloatArray:
        """Objectives of sets of units (rows padded with -1); inf where columns are numerically dependent, and for what
        was not reached.
        """
        values = np.full(len(supports), np.inf)
        for first in range(0, len(supports), self.at_once):
            if first and self.over():
                break
            part = supports[first : first + self.at_once]
            self._count(len(part), self.costs[0])
            objectives = self.problem.objectives(part)
            values[first : first + len(part)] = np.where(np.isnan(objectives), np.inf, objectives)
        return values

    def value(self, support: Sequence[int]) -> float:
        """The objective on a set of units: quick within limits where that works, exact elsewhere."""
        if self.problem.coefficient_bounds is not None:
            value = float(self.values(padded([support], len(support)))[0])
            if value < math.inf:
                return value
        return self.fit(support).value

    def fit(self, support: Sequence[int]) -> Fit:
        self._count(1, self.costs[1])
        return self.problem.fit(support)

    def _count(self, number: int, cost: float) -> None:
        self.done += number
        self.work += number * cost


def _local_optimum(
    problem: Problem, chosen: tuple[int, ...], refits: _Refits, max_passes: int, shortlist: Shortlist
) -> tuple[tuple[int, ...], float]:
    """Where no single exchange or addition of a unit improves, or the refits are over, with its objective."""
    value, decrease = refits.value(chosen), smallest_decrease(problem)
    if problem.coefficient_bounds is not None:
        decrease *= ENOUGH / IMPROVEMENT
    with suppress(TimeLimitError):  # in the middle of a pass
        for _ in range(max_passes):
            if refits.over():
                break
            stays = [tuple(g for g in chosen if g != leaving) for leaving in chosen]
            if len(chosen) < problem.k:
                stays.append(chosen)
            moves = len(stays) * (problem.d - len(chosen))
            tables: list[IntArray] = []
            for stay in stays:
                if tables and refits.over():
                    break
                entering = _entering(problem, stay, refits, shortlist, moves)
                tables.append(_with_each(stay, entering[~np.isin(entering, chosen)], problem.k))
            neighbours = np.concatenate(tables) if tables else np.empty((0, problem.k), dtype=np.int64)
            if not len(neighbours):
                break
            best = tuple(sorted(int(g) for g in neighbours[int(np.argmin(refits.values(neighbours)))] if g >= 0))
            new_value = refits.value(best)
            if not new_value < value - decrease:
                break
            value, chosen = new_value, best
    return chosen, value


def _with_each(stay: Sequence[int], entering: IntArray, width: int) -> IntArray:
    """What stays with each of some units: (m, width), filled up with -1."""
    rows = np.full((entering.size, width), -1, dtype=np.int64)
    rows[:, : len(stay)], rows[:, len(stay)] = stay, entering
    return rows


def _entering(
    problem: Problem, stay: Sequence[int], refits: _Refits, shortlist: Shortlist, moves: int
) -> IntArray:  # fmt: skip
    """The units to try beside what stays: all, or those that are sure to gain most by themselves."""
    free = np.ones(problem.d, dtype=np.bool_)
    free[list(stay)] = False
    outside = np.flatnonzero(free)
    if problem.coefficient_bounds is None or _quick(problem) or moves <= shortlist.exhaustive:
        return outside
    objective = problem.objective
    refits.work += objective.n * objective.d
    gradient = objective.gradient(refits.fit(stay).coef)
    scores = np.zeros(problem.d)
    np.add.at(scores, problem.units.unit_of, guaranteed_decrease(problem, gradient))
    scores[list(stay)] = -np.inf
    return largest(scores, min(shortlist.count, len(outside)))


def _quick(problem: Problem) -> bool:
    """Whether refits are read off the Gram matrix, within limits."""
    return problem.coefficient_bounds is not None and in_closed_form(problem.objective)


def _costs(problem: Problem) -> tuple[float, float]:
    """Multiplications of a quick refit of k units and of an exact one, about."""
    columns = problem.k * max(1.0, problem.units.columns / problem.d)
    refit = FIT_WORK * problem.n * (columns + 1.0) ** 2 + CALL_WORK
    if problem.coefficient_bounds is not None:
        newton = NEWTON_WORK * problem.n * (columns + 1.0) ** 2
        quick = QUICK_WORK * (columns + 1.0) ** 3 if _quick(problem) else newton
        return quick + QUICK_CALL, EXACT_WORK + newton
    return refit, refit
