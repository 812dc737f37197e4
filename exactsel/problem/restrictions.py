"""The problem without what only takes models away: signs, bounds of coefficients, and which units go together.

Every bound that holds for all models of a region holds for the admissible ones. Methods that close regions may
therefore work on the problem without its restrictions. What they propose is another matter: the search fits it under
all of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from exactsel.problem.fit import Fit
from exactsel.problem.interface import SubsetProblem


def without_restrictions(problem: SubsetProblem) -> SubsetProblem:
    """The same objective and regions, every coefficient and every set of units being admissible; mostly itself."""
    if problem.units.constraint is None:
        return problem.without_coefficient_bounds
    return problem.held(problem.objective.free, problem.units.under(None), problem.k)


def is_restricted(problem: SubsetProblem) -> bool:
    """Whether some model on at most k of its units is not admissible, but for what the root decides."""
    return problem.coefficient_bounds is not None or problem.units.constraint is not None


def proposed(problem: SubsetProblem, support: Iterable[int] | None) -> Fit | None:
    """The best admissible model on a support that is proposed, with what it needs besides; None where there is none."""
    completed = None if support is None else problem.units.completed(support, problem.k)
    return None if completed is None else problem.fit(completed)
