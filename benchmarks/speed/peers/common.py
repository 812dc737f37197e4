"""What is asked of a solver and what it answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Any

import numpy as np

DEPENDENT = 1e-11
"""Part of the trace that the smallest eigenvalue of H must be for its inverse to be used."""

ROOM = 1.001
"""For rounding."""


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
    abs_gap: float = 0.0
    """The difference between objective and bound at which a solver may stop as well."""
    stated: float = math.inf
    """Limit of all coefficients that is part of the problem."""

    @cached_property
    def limits(self) -> Any:
        """(d,) what no coefficient of an optimal model is larger than; inf where nothing is known.

        lam/2 x² <= P <= upper. With quadratic loss P is that of the fit x̂ to all columns plus (x - x̂)'H(x - x̂)/2, so x
        also lies within the root of 2 (upper - P(x̂)) times the inverse's diagonal of x̂.
        """
        d = self.A.shape[1]
        ridge = np.full(d, math.sqrt(2.0 * self.upper / self.lam) if self.lam > 0.0 else np.inf)
        H = self.A.T @ self.A + self.lam * np.eye(d)
        if self.loss != "quadratic" or np.linalg.eigvalsh(H)[0] <= DEPENDENT * np.trace(H):
            return ridge
        inverse, b = np.linalg.inv(H), self.A.T @ self.y
        fit = inverse @ b
        above = max(0.0, self.upper - 0.5 * float(self.y @ self.y - b @ fit))
        return np.minimum(ridge, ROOM * (np.abs(fit) + np.sqrt(2.0 * above * np.diagonal(inverse))))

    @property
    def largest(self) -> float:
        """The limit that is stated, or else the largest of those that are known to hold."""
        return self.stated if self.stated < math.inf else float(self.limits.max())


@dataclass(frozen=True)
class Answer:
    """What a solver found and proved; ``finished`` when it stopped by itself."""

    support: list[int]
    lower: float | None
    nodes: int
    finished: bool
    seconds: float | None = None
    """Seconds of processor time and ..."""
    clock: float | None = None
    """... on the clock, where the solver is a process of its own; None: to be measured around the call."""


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
    installed: Callable[[], bool] | None = None
    """Whether it is there, where that is not a matter of a Python module."""

    def present(self) -> bool:
        """Whether it can be run here."""
        return find_spec(self.module) is not None if self.installed is None else self.installed()


def nonzeros(coef: Any) -> list[int]:
    """The columns in use."""
    return [int(j) for j in np.flatnonzero(np.abs(coef) > 1e-9)]
