"""The methods that are compared, and what one of them reaches on a problem."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

import numpy as np

from benchmarks.pocss.weighted import WeightedAStar
from exactsel import registry
from exactsel.errors import InputError
from exactsel.problem.column_subset import ColumnSubsetProblem
from exactsel_heuristics.base import Context

WEIGHTED = "WA*"

ALL = ("two-stage", "approx-svd", "greedy-css", WEIGHTED, "iterative-css", "pocss")
"""The columns of the paper's table 1, in its order."""

RANDOM = ("two-stage", "iterative-css", "pocss")


@dataclass(frozen=True)
class Reached:
    """Objectives of the runs of one method (one run where nothing is random) and the mean seconds of a run."""

    values: tuple[float, ...]
    seconds: float

    def over(self, reference: float) -> str:
        """Mean ± standard deviation of the objectives divided by ``reference``, to three decimals."""
        ratios = [value / reference for value in self.values]
        mean = f"{fmean(ratios):.3f}"
        return f"{mean} ± {stdev(ratios):.3f}" if len(ratios) > 1 else mean

    @property
    def mean(self) -> float:
        """Mean objective."""
        return fmean(self.values)


def available(names: Iterable[str], complaints: list[str]) -> Iterator[tuple[str, Any]]:
    """Names and classes of the methods that can be loaded; a sentence is added to ``complaints`` for each other."""
    for name in names:
        try:
            yield name, WeightedAStar if name == WEIGHTED else registry.load("heuristics", name)
        except (ImportError, InputError) as error:
            complaints.append(f"{name} is left out: {error}")


def reached(problem: ColumnSubsetProblem, name: str, method: Any, seeds: int) -> Reached:
    """Run a method, from the seeds 0, 1, 2, … where it is random; objectives come from an exact refit."""
    count = seeds if name in RANDOM else 1
    method().run(ColumnSubsetProblem(np.eye(3), 1), Context())  # compiled before the clock starts
    began = time.process_time()
    supports = [method().run(problem, Context(seed=seed)).support for seed in range(count)]
    seconds = (time.process_time() - began) / count
    return Reached(tuple(problem.fit(support).value for support in supports), seconds)
