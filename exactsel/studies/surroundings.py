"""What lies around an answer: the models that differ from it in one column, and those that come close to it."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass

from exactsel.problem.interface import SubsetProblem
from exactsel.solving.result import Result
from exactsel.solving.small import begun_without_compiler
from exactsel.studies.close import Close, close_models
from exactsel.studies.exchange import NEAR, Neighbourhood, neighbourhood


@dataclass(frozen=True)
class Surroundings:
    """What a report says of the models around the answer."""

    exchanges: Neighbourhood | None
    """What hangs on each chosen column; None where looking would have taken long."""
    close: Close
    share: float = NEAR
    """How close a model must come, as a share of the objective, to count among those ``exchanges`` looked at."""


@begun_without_compiler
def surroundings(problem: SubsetProblem, result: Result, signals: Sequence[int] = (signal.SIGINT,)) -> Surroundings:
    """Look around the answer of a solve; some seconds at most, and one of the ``signals`` ends it."""
    met = [(incumbent.value, incumbent.support) for incumbent in result.history.incumbents] if result.history else []
    exchanges = neighbourhood(problem, result.support, result.upper, met)
    return Surroundings(exchanges, close_models(problem, result, signals))
