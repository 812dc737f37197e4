"""The columns of greedy selection in order, beside the best model of each size."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

from exactsel.problem.interface import SubsetProblem
from exactsel.solving.small import begun_without_compiler
from exactsel.studies.exchange import demands

MOST_SUPPORTS = 3000
"""The best model of every size is found by trying all supports, where there are no more than this."""


@dataclass(frozen=True)
class GreedyStep:
    """One model on greedy's path."""

    columns: tuple[int, ...]
    """In the order taken."""
    added: tuple[int, ...]
    """What is new: the last of the columns, or all that must be in."""
    value: float
    best: tuple[int, ...] | None
    """The best model of this size; None where there are too many to try ..."""
    best_value: float | None
    """... and its objective."""


@begun_without_compiler
def greedy_steps(problem: SubsetProblem) -> list[GreedyStep]:
    """Greedy's models from the columns that must be in to k columns; one of no column where k is 0."""
    path, forced = _path(problem), len(demands(problem)[0])
    steps = []
    for size in range(max(1, forced) if path else 0, len(path) + 1):
        columns, best = tuple(path[:size]), _best_of_size(problem, size)
        added = columns if size == forced else columns[-1:]
        best_value = None if best is None else problem.fit(best).value
        steps.append(GreedyStep(columns, added, problem.fit(columns).value, best, best_value))
    return steps


def _path(problem: SubsetProblem) -> list[int]:
    """Forward selection from the columns that must be in: always the column that lowers the objective most."""
    force_in, force_out = demands(problem)
    path = list(force_in)
    while len(path) < problem.k:
        others = [
            j for j in range(problem.d)
            if j not in path and j not in force_out and problem.units.completed((*path, j), len(path) + 1) is not None
        ]  # fmt: skip
        if not others:
            break
        path.append(min(others, key=lambda j: problem.fit([*path, j]).value))
    return path


def _best_of_size(problem: SubsetProblem, size: int) -> tuple[int, ...] | None:
    force_in, force_out = demands(problem)
    free = [j for j in range(problem.d) if j not in force_in and j not in force_out]
    if math.comb(len(free), size - len(force_in)) > MOST_SUPPORTS:
        return None
    supports = [(*force_in, *more) for more in combinations(free, size - len(force_in))]
    supports = [support for support in supports if problem.units.completed(support, size) is not None]
    return min(supports, key=lambda support: problem.fit(support).value) if supports else None
