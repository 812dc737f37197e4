"""Starting models: run heuristics one after the other and keep the best refit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from exactsel import registry
from exactsel.arguments import whole_numbers
from exactsel.errors import InputError, UnsupportedError
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.problem.fit import Fit
from exactsel.problem.interface import SubsetProblem, is_regression
from exactsel.problem.regression import Problem
from exactsel.problem.units import Constraint
from exactsel.start.heuristic import Context, Heuristic
from exactsel.start.portfolio import AUTO, first_is_enough, first_work, portfolio_for, served_by_first

LOOKS = 8
"""Units tried for one place before it stays empty."""


def resolve(heuristics: Sequence[Any]) -> list[Heuristic]:
    """Names and objects to heuristics; :class:`InputError` for an unknown name."""
    return [registry.load("heuristics", h)() if isinstance(h, str) else h for h in heuristics]


def starting_models(
    problem: SubsetProblem, heuristics: Sequence[Any], best: Fit, context: Context
) -> Iterator[tuple[Fit, str]]:
    """Run the heuristics in turn; yield each model better than ``best`` and all before, with its finder's name.

    Every proposal is refitted from the data. Local searches start from the best model so far. Heuristics of the default
    portfolio (``"auto"``) that cannot serve the problem are skipped, and those that work in portions get a small
    one; one that the settings name is run to its end, and is an error where it cannot serve.
    """
    default = tuple(heuristics) == AUTO
    work = first_work(problem) if default else math.inf
    looks = default and served_by_first(problem)
    for number, heuristic in enumerate(resolve(portfolio_for(problem, heuristics)[0])):
        if context.should_stop() or (looks and number == 1 and first_is_enough(problem, best.value)):
            return
        try:
            proposal = heuristic.run(problem, replace(context, start=best.support or None, work=work))
        except UnsupportedError:
            if default:
                continue
            raise
        fit = problem.fit(admissible(checked_support(proposal.support, problem), problem))
        if fit.value < best.value:
            best = fit
            yield fit, heuristic.name


def admissible(support: Sequence[int], problem: SubsetProblem) -> tuple[int, ...]:
    """The support with what every model must hold and without what none may; of the rest the largest coefficients.

    The places of units that had to go are filled by others.
    """
    state = problem.root_state
    if problem.units.constraint is not None:
        selection = _restricted(support, problem, problem.units.constraint)
        return selection if {*selection} >= {*support} else _filled(selection, problem)
    forced = np.flatnonzero(state == IN)
    rest = np.array([j for j in support if state[j] == FREE], dtype=np.int64)
    if forced.size == 0 and rest.size == len(support):
        return tuple(support)
    room = problem.k - forced.size
    if rest.size > room:
        weight = np.abs(problem.fit(np.concatenate([forced, rest])).coef[rest])
        rest = rest[np.argsort(-weight, kind="stable")[:room]]
    selection = tuple(sorted([*forced.tolist(), *rest.tolist()]))
    return selection if {*selection} >= {*support} else _filled(selection, problem)


def _restricted(support: Sequence[int], problem: SubsetProblem, constraint: Constraint) -> tuple[int, ...]:
    """The support with what its units need, as far as there is room; the largest coefficients first."""
    state = problem.root_state
    allowed = np.array([j for j in support if state[j] != OUT], dtype=np.int64)
    weight = problem.units.sizes(problem.fit(allowed).coef)[allowed]
    return constraint.restricted(allowed[np.argsort(-weight, kind="stable")].tolist(), problem.k, state)


def _filled(support: tuple[int, ...], problem: SubsetProblem) -> tuple[int, ...]:
    """An admissible support, grown step by step by what lowers the objective most at first sight, while it does."""
    if not is_regression(problem):
        return support  # of selections nothing is demanded
    best = problem.fit(support)
    while len(support) < problem.k:
        looked_at = islice(_larger(support, best, problem), LOOKS)
        fits = ((problem.fit(larger), larger) for larger in looked_at)
        grown = next((pair for pair in fits if pair[0].value < best.value), None)
        if grown is None:
            break
        best, support = grown
    return support


def _larger(support: tuple[int, ...], fit: Fit, problem: Problem) -> Iterator[tuple[int, ...]]:
    """Admissible supports with another unit and what it needs, the steepest units for their length first."""
    objective = problem.objective
    slope, norms = objective.gradient(fit.coef), objective.norms
    state, steep = problem.root_state, problem.units.sizes(np.divide(slope, norms, out=0 * slope, where=norms > 0))
    for unit in np.argsort(-steep, kind="stable").tolist():
        if state[unit] == OUT or unit in support or steep[unit] == 0:
            continue
        larger = problem.units.completed((*support, unit), problem.k)
        if larger is not None:
            yield larger


def given_support(support: Sequence[int], problem: SubsetProblem) -> tuple[int, ...]:
    """A user's support, ascending; :class:`InputError` when it is not one of this problem, or not admissible."""
    columns, state = checked_support(support, problem), problem.root_state
    banned = next((j for j in columns if state[j] == OUT), None)
    if banned is not None:
        raise InputError(f"the support names feature {banned}, which force_out rules out; leave it out.")
    if len({*columns, *np.flatnonzero(state == IN).tolist()}) > problem.k:
        raise InputError(f"the support has no place for the features of force_in within k = {problem.k}; drop some.")
    if problem.units.completed(columns, problem.k) is None:
        raise InputError(
            f"no set of at most {problem.k} units with the support was found that the {problem.units.constraint} "
            f"allows; add what it needs, or drop some."
        )
    if problem.first_support is not None and not math.isfinite(problem.fit(columns).value):
        raise InputError(
            "no model on the support meets the equalities within the bounds of coefficients; add features to it."
        )
    return columns


def checked_support(support: Sequence[int], problem: SubsetProblem) -> tuple[int, ...]:
    """A proposed support, ascending; :class:`InputError` when it is not one of this problem."""
    features = whole_numbers("the support", support)
    columns = tuple(sorted({*features}))
    if len(columns) != len(features):
        raise InputError(f"the support {features} names a feature twice; give each feature once.")
    wrong = next((j for j in columns if not 0 <= j < problem.d), None)
    if wrong is not None:
        raise InputError(
            f"the support names feature {wrong}, but the features are numbered 0 to {problem.d - 1}; correct the "
            f"number."
        )
    if len(columns) > problem.k:
        raise InputError(
            f"the support has {len(columns)} features, but k is {problem.k}; give at most k features or raise k."
        )
    return columns
