"""Admissible sets of so many units."""

from __future__ import annotations

from exactsel.problem.interface import SubsetProblem
from exactsel.problem.units import Units
from exactsel.solving.result import Result


def whole(problem: SubsetProblem, result: Result) -> tuple[int, ...]:
    """The columns of a result and, where these are fewer than k, others that may be in."""
    units, included = problem.units, {*result._shown}
    others = [j for j in range(units.d) if j not in included and j not in units.force_out]
    return tuple(sorted(included.union(others[: problem.k - len(included)])))


def first_support(problem: SubsetProblem) -> tuple[int, ...]:
    """An admissible set of k units, made of what must be in and others; of fewer where no such set is found."""
    units = problem.units
    support = problem.first_support or units.completed(units.force_in, problem.k) or ()
    for j in range(units.d):
        if len(support) == problem.k:
            break
        larger = None if j in units.force_out else units.completed({*support, j}, problem.k)
        if larger is not None and len(larger) <= problem.k:
            support = larger
    return support


def meets(units: Units, support: tuple[int, ...]) -> bool:
    """Whether a model may have just these columns under the constraint there is."""
    return units.constraint is None or units.completed(support, max(len(support), 1)) == support
