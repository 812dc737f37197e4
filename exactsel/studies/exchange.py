"""Exchanges: the models that differ from the answer in one column, as a measure of each column's importance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from exactsel.kernels.node import IN
from exactsel.problem.interface import SubsetProblem
from exactsel.solving.small import begun_without_compiler

MOST_MODELS = 20_000
"""Exchanges evaluated; with more columns than that there is no answer ..."""
MOST_WORK = 2e9
"""... as it is when rows times exchanges times columns exceed this: some seconds."""
NEAR = 0.01
"""A model is near-optimal when its objective exceeds the best by at most this share of it."""


@dataclass(frozen=True)
class Exchange:
    """What becomes of the objective without one chosen column."""

    column: int
    without: float
    """Objective of the best model on the other chosen columns."""
    replacement: int | None
    """The best single column to take its place, if there is another column at all ..."""
    replaced: float | None
    """... and the objective with it."""


@dataclass(frozen=True)
class Neighbourhood:
    """The answer's exchanges, and the columns of the near-optimal models among those evaluated."""

    exchanges: tuple[Exchange, ...]
    near_optimal: int
    """Number of near-optimal models, the answer included."""
    inclusion: dict[int, int]
    """Column to the number of near-optimal models that have it."""


def demands(problem: SubsetProblem) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Columns every model of the problem must hold, and columns none may hold."""
    return problem.units.force_in, problem.units.force_out


@begun_without_compiler
def neighbourhood(
    problem: SubsetProblem, support: tuple[int, ...], upper: float, met: Iterable[tuple[float, tuple[int, ...]]]
) -> Neighbourhood | None:
    """Exchange every chosen column for every other; ``met`` are (objective, support) of further models to count.

    None where that would take long, and for the empty model.
    """
    _, force_out = demands(problem)
    others = [j for j in range(problem.d) if j not in support and j not in force_out]
    count = len(support) * len(others)
    if not support or count > MOST_MODELS or float(count) * problem.n * len(support) > MOST_WORK:
        return None
    models: dict[tuple[int, ...], float] = {tuple(s): value for value, s in met}
    models[support] = upper
    exchanges = []
    forced = np.flatnonzero(problem.root_state == IN).tolist()
    for column in (j for j in support if j not in forced):
        rest = problem.units.remaining(support, column, problem.k)
        possible = [j for j in others if problem.units.stays_without(column, (*rest, j), problem.k)]
        candidates = [tuple(sorted((*rest, j))) for j in possible]
        replacement = replaced = None
        if candidates:
            values = problem.objectives(np.array(candidates, dtype=np.int64))
            models |= {s: float(v) for s, v in zip(candidates, values, strict=True) if np.isfinite(v)}
            if np.isfinite(values).any():
                replacement = possible[int(np.nanargmin(values))]
                replaced = problem.fit((*rest, replacement)).value
        exchanges.append(Exchange(column, problem.fit(rest).value, replacement, replaced))
    pool = [s for s, value in models.items() if value <= upper + NEAR * abs(upper)]
    inclusion = Counter(j for s in pool for j in s)
    return Neighbourhood(tuple(exchanges), len(pool), dict(inclusion))
