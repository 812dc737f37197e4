"""What each generator of incumbents brings a search: with all of them, without one, and each by itself.

Work is counted in multiplications of the search, as its schedule counts them, and so is the end of a run: the same
models are found at the same work on every machine. CPU seconds are for orientation.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from exactsel import Search, Settings
from exactsel.problem.interface import SubsetProblem
from exactsel.search.events import IncumbentFound, RoundEnded
from exactsel.search.incumbents import work_done
from exactsel.start import portfolio
from exactsel.start.portfolio import AUTO

SAME = 1e-9
"""Relative: objectives that differ by no more count as the same."""

ALL, INSTEAD = "all", "pposs in place of poss"
"""The run with the whole portfolio, and one with a method that has no place in it."""


@dataclass(frozen=True)
class Run:
    """One search."""

    variant: str
    """``all``, ``without NAME``, ``only NAME`` (in place of the whole portfolio), or :data:`INSTEAD`."""
    best: float
    lower: float
    source: str
    """Who found the last model."""
    work: float
    """Multiplications of the search when it was found; 0 before the first bound."""
    seconds: float
    """CPU seconds until then, ..."""
    total_work: float
    total_seconds: float
    """... and of the whole run."""
    found: tuple[tuple[str, float, float, float], ...] = ()
    """All models in turn: source, objective, work, CPU seconds."""

    def reached(self, value: float) -> tuple[float, float]:
        """Work and CPU seconds until a model as good as this was there; inf where none was."""
        for _, best, work, seconds in self.found:
            if best <= value + SAME * abs(value):
                return work, seconds
        return math.inf, math.inf


def variants(problem: SubsetProblem) -> list[str]:
    """All that are run of a problem besides the whole portfolio: of those that get portions."""
    between = portfolio.portfolio_for(problem, AUTO)[1]
    instead = [INSTEAD] if "poss" in between else []
    return [*(f"without {name}" for name in between), *(f"only {name}" for name in between), *instead]


def run(problem: SubsetProblem, variant: str, work_limit: float, seconds: float, seed: int) -> Run:
    """A search until it has done so much work, is over, or has taken so many CPU seconds."""
    began, found, settings = time.process_time(), [], Settings(seed=seed, threads=1)
    with _portfolio(variant):
        search = Search(problem, settings, signals=())
        with closing(iter(search)) as events:  # type: ignore[type-var]
            for event in events:
                work, spent = work_done(search.state, problem), time.process_time() - began
                if isinstance(event, IncumbentFound):
                    found.append((search.state.source, float(search.state.value), work, spent))
                if isinstance(event, RoundEnded) and (work >= work_limit or spent >= seconds):
                    break
    state = search.state
    last = found[-1] if found else (state.source, float(state.value), 0.0, 0.0)
    return Run(
        variant, float(state.value), float(state.lower), state.source, last[2], last[3],
        work_done(state, problem), time.process_time() - began, tuple(found),
    )  # fmt: skip


@contextmanager
def _portfolio(variant: str) -> Iterator[None]:
    """The default portfolio, but for what the variant leaves out."""
    kept = portfolio.portfolio_for

    def chosen(problem: SubsetProblem, heuristics: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        begin, between = kept(problem, heuristics)
        how, _, which = variant.partition(" ")
        if how == "without":
            return [name for name in begin if name != which], [name for name in between if name != which]
        if variant == INSTEAD:
            return begin, ["pposs" if name == "poss" else name for name in between]
        return ([which], [which]) if how == "only" else (begin, between)

    with ExitStack() as stack:
        for module in ("exactsel.start.models", "exactsel.start.primal_heuristics", "exactsel.solving.solver"):
            stack.enter_context(patch(f"{module}.portfolio_for", chosen))
        yield
