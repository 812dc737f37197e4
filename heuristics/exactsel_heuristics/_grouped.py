"""Forward selection and swap local search where groups of columns are chosen: every candidate is refitted."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from exactsel.kernels.node import FREE
from exactsel.problem.fit import Fit
from exactsel.types import FloatArray
from exactsel_heuristics._perturbing import perturbed
from exactsel_heuristics._scoring import IMPROVEMENT, padded
from exactsel_heuristics.base import Context, Proposal

if TYPE_CHECKING:
    from exactsel.problem.regression import Problem

REFITS_AT_ONCE = 64
"""Refits between two questions whether to stop."""

FIT_WORK, CALL_WORK = 10.0, 1e5
"""Newton steps of a refit, and as many multiplications as it takes time besides."""

KEPT = 8
"""Supports a portion hands on."""


def forward_groups(problem: Problem, context: Context) -> Proposal:
    """Starting from the empty model, add the group whose refit lowers the objective most, up to k times."""
    chosen: list[int] = []
    value = problem.objective(np.zeros(problem.units.columns))
    decrease, evaluations = IMPROVEMENT * abs(value), 0
    while len(chosen) < problem.k and not context.should_stop():
        candidates = [g for g in range(problem.d) if g not in chosen]
        values = _Refits(problem, context.should_stop).values([[*chosen, g] for g in candidates])
        evaluations += len(candidates)
        best = int(np.argmin(values))
        if not values[best] < value - decrease:
            break
        value = float(values[best])
        chosen.append(candidates[best])
    return Proposal.of(chosen, evaluations)


def swap_groups(problem: Problem, context: Context, max_passes: int) -> Proposal:
    """Exchange one group for another, or add one while there is room, as long as an exact refit confirms a gain.

    In a portion of work: from the start, then from perturbations of the supports at hand until the work is done.
    """
    if math.isinf(context.work):
        start = forward_groups(problem, context) if context.start is None else Proposal.of(context.start, 0)
        refits = _Refits(problem, context.should_stop)
        support, _ = _local_optimum(problem, start.support, refits, max_passes)
        return Proposal.of(support, start.evaluations + refits.done)
    rng, pool = context.rng(), np.flatnonzero(problem.root_state == FREE)
    refits = _Refits(problem, context.should_stop, context.work / _refit_work(problem))
    known = [*([context.start] if context.start else []), *context.supports]
    best: tuple[int, ...] = context.start or ()
    value, number = problem.fit(best).value, 0
    while not refits.over():
        base = known[int(rng.integers(len(known)))] if known else ()
        begin = best if number == 0 and best else perturbed(base, pool, problem.k, rng)
        support, found = _local_optimum(problem, begin, refits, max_passes)
        number += 1
        known.append(support)
        if found < value:
            best, value = support, found
    return Proposal.of(best, refits.done, others=[support for support in known[-KEPT:] if support != best])


@dataclass
class _Refits:
    """Refits done, and how many may be."""

    problem: Problem
    should_stop: Callable[[], bool]
    limit: float = math.inf
    done: int = 0

    def over(self) -> bool:
        return self.done >= self.limit or self.should_stop()

    def values(self, supports: Sequence[Sequence[int]]) -> FloatArray:
        """Objectives of sets of groups; inf where columns are numerically dependent, and for what was not reached."""
        values = np.full(len(supports), np.inf)
        for first in range(0, len(supports), REFITS_AT_ONCE):
            if first and self.over():
                break
            part = supports[first : first + REFITS_AT_ONCE]
            self.done += len(part)
            found = self.problem.objectives(padded(part, max(len(support) for support in part)))
            values[first : first + len(part)] = np.where(np.isnan(found), np.inf, found)
        return values

    def fit(self, support: Sequence[int]) -> Fit:
        self.done += 1
        return self.problem.fit(support)


def _local_optimum(
    problem: Problem, chosen: tuple[int, ...], refits: _Refits, max_passes: int
) -> tuple[tuple[int, ...], float]:
    """Where no single exchange or addition of a group improves, or the refits are over, with its objective."""
    value = refits.fit(chosen).value
    decrease = IMPROVEMENT * abs(problem.objective(np.zeros(problem.units.columns)))
    for _ in range(max_passes):
        if refits.over():
            break
        stays = [tuple(g for g in chosen if g != leaving) for leaving in chosen]
        if len(chosen) < problem.k:
            stays.append(chosen)
        near = [(*stay, g) for stay in stays for g in range(problem.d) if g not in chosen]
        if not near:
            break
        best = int(np.argmin(refits.values(near)))
        fit = refits.fit(near[best])
        if not fit.value < value - decrease:
            break
        value, chosen = fit.value, tuple(sorted(near[best]))
    return chosen, value


def _refit_work(problem: Problem) -> float:
    """Multiplications of a refit of k groups, about."""
    columns = problem.k * max(1.0, problem.units.columns / problem.d)
    return FIT_WORK * problem.n * (columns + 1.0) ** 2 + CALL_WORK
