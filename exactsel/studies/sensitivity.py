"""Sensitivity of an answer: models that differ in one column, models that come close, and a plain search for it."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass

from exactsel.errors import UnsupportedError
from exactsel.problem.interface import SubsetProblem
from exactsel.solving.api import solve
from exactsel.solving.plain_search import plain_search
from exactsel.solving.result import Result
from exactsel.solving.small import begun_without_compiler
from exactsel.studies.close import Close, close_models
from exactsel.studies.exchange import NEAR, Neighbourhood, neighbourhood

MOST_ENTRIES, MOST_COLUMNS, MOST_NODES = 4000, 60, 400
"""Problems in which a plain search takes a second or so: entries of the data, columns, nodes."""


@dataclass(frozen=True)
class Sensitivity:
    """What a report says of the models around the answer."""

    exchanges: Neighbourhood | None
    """What hangs on each chosen column; None where looking would have taken long."""
    close: Close
    share: float = NEAR
    """How close a model must come, as a share of the objective, to count among the evaluated ``exchanges``."""
    plain: Result | None = None
    """A plain best-first search, where the problem is small and was solved in one pass."""


@begun_without_compiler
def surroundings(problem: SubsetProblem, result: Result, signals: Sequence[int] = (signal.SIGINT,)) -> Sensitivity:
    """Look around the answer of a solve; some seconds at most, and one of the ``signals`` ends it."""
    met = [(incumbent.value, incumbent.support) for incumbent in result.history.incumbents] if result.history else []
    exchanges = neighbourhood(problem, result.support, result.upper, met)
    return Sensitivity(exchanges, close_models(problem, result, signals), plain=_plain(problem, result, signals))


def _plain(problem: SubsetProblem, result: Result, signals: Sequence[int]) -> Result | None:
    """The plain search that shows how such a problem is solved, where the search made has no events to show."""
    small = problem.units.columns <= MOST_COLUMNS and problem.n * problem.units.columns <= MOST_ENTRIES
    if not small or not result.reached or result.history is None or not result.history.one_pass:
        return None
    try:
        plain = solve(problem, heuristics="none", node_limit=MOST_NODES, signals=signals, **plain_search(problem))
    except UnsupportedError:
        return None
    return plain if plain.reached and plain.nodes > 1 else None
