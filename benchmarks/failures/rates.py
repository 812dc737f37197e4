"""How often a method misses a proven optimum."""

from __future__ import annotations

import exactsel
from benchmarks.paper.tables import Row
from exactsel import ColumnSubsetProblem, Problem
from exactsel.studies.compare import compare

CSS = ("diabetes", "hidden-span")
"""Instances whose columns are also chosen without their target."""

CLEARLY = 1e-6
"""A method fails where its model is worse than the optimum by this part of it."""


def failure_rates(problem: Problem | ColumnSubsetProblem, seeds: int) -> dict[str, float]:
    """Part of the seeds with which each method that serves the problem misses the optimum; 0 or 1 without seeds.

    Raises
    ------
    ValueError
        Where the search does not prove an optimum to compare with.
    """
    best = exactsel.solve(problem)
    if not best.reached:
        raise ValueError(f"the optimum of {problem} was not proven")
    enough = best.upper + CLEARLY * abs(best.upper)
    rows = compare(problem, methods="all", seeds=seeds, time_limit=None).rows
    return {row.method: sum(v > enough for v in row.values or (row.value,)) / len(row.values or (0,)) for row in rows}


def wording(name: str, rates: dict[str, float]) -> Row:
    """A row of the table."""
    some = sorted((rate, method) for method, rate in rates.items() if 0.0 < rate < 1.0)
    return {
        "instance": name,
        "always fail": ", ".join(sorted(method for method, rate in rates.items() if rate == 1.0)) or "–",
        "fail at times": ", ".join(f"{method} {100.0 * rate:.0f} %" for rate, method in some) or "–",
        "never fail": ", ".join(sorted(method for method, rate in rates.items() if rate == 0.0)) or "–",
    }
