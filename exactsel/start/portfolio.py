"""The heuristics a search begins with, and those that get portions of work during the search."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from exactsel.problem.capabilities import COEFFICIENT_BOUNDS, COEFFICIENTS, QUADRATIC_LOSS
from exactsel.problem.interface import SubsetProblem
from exactsel.problem.rows import Unusable, known_fit

if TYPE_CHECKING:
    from exactsel.problem.regression import Problem

AUTO = ("auto",)
"""What stands for the portfolio that suits the problem."""


class Portfolio(NamedTuple):
    """Names of heuristics."""

    begin: tuple[str, ...]
    """In turn, before the first bound."""
    between: tuple[str, ...]
    """Between the rounds of a search that takes a while (:mod:`exactsel.start.primal_heuristics`)."""


CLOSED_FORM = Portfolio(("forward", "exchange"), ("exchange", "poss", "greedy-rls"))
CONSTRAINED = Portfolio(("forward", "exchange", "omp", "htp", "dual-iht", "swap"), ("exchange", "poss", "greedy-rls"))
"""Under a hierarchy what a heuristic proposes is made admissible afterwards, so that more of them have a chance."""
OTHER_LOSSES = Portfolio(("newton-swap", "exchange", "omp"), ("exchange", "swap", "poss", "greedy-rls"))
WIDE_LOSSES = Portfolio(("forward", "exchange", "omp", "swap"), OTHER_LOSSES.between)
"""Over so many columns ``newton-swap`` takes longer than all the others."""
SELECTIONS = Portfolio(("greedy-css", "exchange"), ("exchange", "pocss"))
WIDE_SELECTIONS = Portfolio(("greedy-css", "iterative-css"), ("pocss",))
GROUPS = Portfolio(("forward", "swap"), ("swap",))
LIMITS = Portfolio(("forward", "swap"), ("swap", "poss"))
"""With signs or bounds of coefficients."""

WIDE = 500
"""More columns than this, and fewer than ROWS_PER_COLUMN rows for each, are many for a loss without a closed form."""

MOST_SELECTED_FROM = 4000
"""With more columns than this their Gram matrix is not formed in column subset selection."""

MOST_COLUMNS = 250
"""With more columns than this no heuristic needs the fit on all of them."""

CLOSE = 0.9
"""Part of the best objective known that the fit on all columns must reach for the first heuristic to do: the search is
short then, and finds on the way the models that it may have missed."""

MANY_ENTRIES, ROWS_PER_COLUMN = 5e6, 50
"""It also does where the data have so many entries, and so many rows for each column: each of the others would take
longer than the search."""

FIRST_WORK, PART_OF_GRAM = 5e6, 0.1
"""Multiplications a heuristic that works in portions may take before the first bound (a few milliseconds), and this
part of what forming the Gram matrix takes besides; ..."""

MODELS_FIRST = 2.0
"""... and that of forming so many Hessians for other losses than the quadratic one."""

PASSES_FIRST = 10.0
"""... or, where they are not formed, of so many passes over the data; ..."""

LOSS_FIRST, LOSS_PASSES_FIRST = 5e8, 100.0
"""... but no more than this many, or so many passes, for other losses where columns outnumber the rows."""

NODES_FIRST = 4.0
"""So many times that within limits of coefficients, where a node takes a millisecond and more."""


def portfolio_for(problem: SubsetProblem, heuristics: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
    """Names or objects to begin with, and for between the rounds: those given, or what suits the problem."""
    if tuple(heuristics) != AUTO:
        return heuristics, heuristics
    chosen = _suitable(problem)
    return chosen.begin, chosen.between


def _suitable(problem: SubsetProblem) -> Portfolio:
    if not problem.has(COEFFICIENTS):
        return SELECTIONS if problem.d <= MOST_SELECTED_FROM else WIDE_SELECTIONS
    if problem.units.grouped:
        return GROUPS
    if problem.has(COEFFICIENT_BOUNDS):
        return LIMITS
    if not problem.has(QUADRATIC_LOSS):
        wide = problem.d > WIDE and problem.n < ROWS_PER_COLUMN * problem.d
        return WIDE_LOSSES if wide else OTHER_LOSSES
    return CLOSED_FORM if problem.units.constraint is None else CONSTRAINED


def first_work(problem: SubsetProblem) -> float:
    """Multiplications a heuristic that works in portions may take before the first bound."""
    n, d = float(problem.n), float(problem.d)
    work = FIRST_WORK + PART_OF_GRAM * n * d * min(n, d)
    if problem.coefficient_bounds is not None:
        if d > n:  # it is not formed then
            work = FIRST_WORK + PASSES_FIRST * n * d
        work *= NODES_FIRST
    if problem.has(COEFFICIENTS) and not problem.has(QUADRATIC_LOSS):
        most = max(LOSS_FIRST, LOSS_PASSES_FIRST * n * d) if d > n else math.inf
        work += min(MODELS_FIRST * n * d**2, most)
    return work


def served_by_first(problem: SubsetProblem) -> bool:
    """Whether the result of the first heuristic is worth checking: for losses without a closed form."""
    return _suitable(problem) is OTHER_LOSSES and problem.objective.lam > 0


def first_is_enough(problem: SubsetProblem, best: float) -> bool:
    """Whether to begin the search after the first heuristic, with a model of this objective."""
    objective = cast("Problem", problem).objective
    if objective.n * objective.d >= MANY_ENTRIES and objective.n >= ROWS_PER_COLUMN * objective.d:
        return True
    if objective.d > MOST_COLUMNS:
        return False
    try:
        return known_fit(objective)[1] >= CLOSE * best
    except Unusable:
        return False
