"""The lower bound of a search over its counted work."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from exactsel import Search, Settings
from exactsel.problem.interface import SubsetProblem
from exactsel.search.events import Finished, RoundEnded
from exactsel.search.incumbents import work_done


@dataclass
class ProblemSequence:
    """A search that was followed up to some amount of work."""

    work: list[float] = field(default_factory=lambda: [0.0])
    lower: list[float] = field(default_factory=lambda: [0.0])
    upper: float = float("inf")
    finished: bool = False
    wasted: float = 0.0
    """Part of its work that went into walks and trials whose results were not used."""

    def at(self, work: float) -> float:
        """The lower bound after so much work; after the end the last one, or all there is where nothing was open."""
        if self.finished and work >= self.work[-1]:
            return self.upper
        return self.lower[bisect.bisect_right(self.work, work) - 1]


def follow(problem: SubsetProblem, most: float, start: Sequence[int] | None = None, **settings: Any) -> ProblemSequence:
    """Search until ``most`` multiplications have been counted, or to the end.

    Parameters
    ----------
    problem : SubsetProblem
    most : float
        Counted multiplications.
    start : sequence of int, optional
        A model known from the beginning.
    **settings
        Of the search, such as ``bound="apg"``.
    """
    search, sequence = Search(problem, Settings(**settings), start=start, signals=()), ProblemSequence()
    for event in search:
        if isinstance(event, RoundEnded | Finished):
            sequence.work.append(work_done(search.state, problem))
            sequence.lower.append(max(sequence.lower[-1], search.state.lower))
            sequence.finished = isinstance(event, Finished) and event.termination in ("tree_exhausted", "gap_closed")
        if sequence.work[-1] >= most:
            break
    state = search.state
    sequence.upper = state.upper
    total = state.walks.useful + state.walks.wasted
    sequence.wasted = state.walks.wasted / total if total else 0.0
    return sequence
