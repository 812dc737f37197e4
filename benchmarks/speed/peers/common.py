"""What is asked of a solver and what it answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Task:
    """One instance and what is asked of the solver."""

    A: Any
    y: Any
    k: int
    lam: float
    loss: str
    delta: float
    """Threshold of the Huber loss."""
    upper: float
    """Objective of some model with k columns."""
    start: tuple[int, ...]
    """That model's columns."""
    penalty: float
    """Price of a column, for solvers that know no size; nan where there is none."""
    time_limit: float
    rel_gap: float

    @property
    def largest(self) -> float:
        """No coefficient of an optimal model is larger: lam/2 x² <= P <= upper, column by column."""
        return math.sqrt(2.0 * self.upper / self.lam)


@dataclass(frozen=True)
class Answer:
    """What a solver found and proved; ``finished`` when it stopped by itself."""

    support: list[int]
    lower: float | None
    nodes: int
    finished: bool


class Unsuitable(Exception):
    """The solver cannot take this instance; the text says why."""


def nothing(task: Task) -> None:
    """Nothing need be done before the clock starts."""


@dataclass(frozen=True)
class Peer:
    """A solver: the module it needs, the losses it serves, how to run it and how to get it ready before that."""

    module: str
    losses: tuple[str, ...]
    solve: Callable[[Task], Answer]
    get_ready: Callable[[Task], None] = nothing
    penalised: bool = False
    """It minimises P(x) plus a price for each column; it cannot be told k."""


def nonzeros(coef: Any) -> list[int]:
    """The columns in use."""
    return [int(j) for j in np.flatnonzero(np.abs(coef) > 1e-9)]
