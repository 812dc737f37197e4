"""One method, or the search, on one problem for so many seconds."""

from __future__ import annotations

import time
from dataclasses import dataclass

import exactsel
from exactsel import ColumnSubsetProblem, Problem, registry
from exactsel.errors import UnsupportedError
from exactsel.start.heuristic import Context
from exactsel.start.models import admissible, checked_support
from exactsel.studies.compare import default_methods

RANDOM = ("exchange", "iterative-css", "pocss", "poss", "pposs", "two-stage")
"""Methods run again and again with other seeds until the time is up."""


SEARCH = "solve"
"""The name of the search among the methods."""


@dataclass(frozen=True)
class Found:
    """What a method found."""

    method: str
    upper: float
    seconds: float
    """Until it had found that."""
    lower: float | None = None
    """What the search has proven."""
    source: str = ""
    """Who found the search's model."""
    total: float = 0.0


def methods(problem: Problem | ColumnSubsetProblem, seconds: float, seed: int) -> list[Found]:
    """Every reproducible method that serves the problem, for so many seconds each."""
    found = [method_alone(name, problem, seconds, seed) for name in default_methods()]
    return [each for each in found if each is not None]


def method_alone(name: str, problem: Problem | ColumnSubsetProblem, seconds: float, seed: int) -> Found | None:
    """One method, a random one with as many seeds as there is time for; None where it does not serve the problem."""
    began, best, at = time.perf_counter(), problem.fit(()).value, 0.0
    method = registry.load("heuristics", name)()
    while True:
        context = Context(seed, should_stop=lambda: time.perf_counter() - began > seconds)
        try:
            proposal = method.run(problem, context)
        except UnsupportedError:
            return None
        value = problem.fit(admissible(checked_support(proposal.support, problem), problem)).value
        total = time.perf_counter() - began
        if value < best:
            best, at = value, total
        seed += 1
        if name not in RANDOM or total > seconds:
            return Found(name, best, at, total=total)


def until(problem: Problem, value: float, most: float = 60.0) -> float:
    """Seconds until ``exchange``, with one seed after the other, has a model that is as good; inf after so many."""
    began, method, seed = time.perf_counter(), registry.load("heuristics", "exchange")(starts=20), 0
    while (seconds := time.perf_counter() - began) < most:
        support = method.run(problem, Context(seed)).support
        if problem.fit(support).value <= value * (1.0 + 1e-9):
            return time.perf_counter() - began
        seed += 1
    return seconds if seconds < most else float("inf")


def search(problem: Problem | ColumnSubsetProblem, seconds: float, seed: int, threads: int | None) -> Found:
    """The search as it is by default."""
    result = exactsel.solve(problem, time_limit=seconds, seed=seed, threads=threads)
    at = result.history.incumbents[-1].seconds if result.history.incumbents else 0.0
    return Found(SEARCH, result.upper, at, result.lower, result.source, result.times["total"])
