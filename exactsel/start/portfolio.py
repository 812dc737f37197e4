"""The heuristics a search begins with."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from exactsel.problem.interface import SubsetProblem
from exactsel.problem.rows import Unusable, known_fit

if TYPE_CHECKING:
    from exactsel.problem.regression import Problem

DEFAULT_HEURISTICS = ("newton-swap", "forward", "omp", "htp", "dual-iht", "swap", "greedy-css", "iterative-css")
"""Those that cannot serve a problem's family are passed over."""

MOST_COLUMNS = 250
"""With more columns than this nobody asks for the fit on all of them."""

CLOSE = 0.9
"""Part of the best objective known that the fit on all columns must come to for the first heuristic to do: the search
is short then, and what it may have missed is found on the way."""

MANY_ENTRIES, ROWS_PER_COLUMN = 5e6, 50
"""It also does where the data have so many entries, and so many rows for each column: each of the others would take
longer than the search."""


def served_by_first(problem: SubsetProblem) -> bool:
    """Whether the first heuristic is worth a look at what it found: for losses without a closed form."""
    objective = problem.objective
    return objective is not None and problem.family == "regression" and not objective.is_quadratic and objective.lam > 0


def first_is_enough(problem: SubsetProblem, best: float) -> bool:
    """Whether to go on to the search after the first heuristic, with a model of this objective."""
    objective = cast("Problem", problem).objective
    if objective.n * objective.d >= MANY_ENTRIES and objective.n >= ROWS_PER_COLUMN * objective.d:
        return True
    if objective.d > MOST_COLUMNS:
        return False
    try:
        return known_fit(objective)[1] >= CLOSE * best
    except Unusable:
        return False
