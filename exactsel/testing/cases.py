"""Problems to try a plug-in on, and the plain truth about their regions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np

from exactsel import registry
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.problem.boxed import with_bounds
from exactsel.problem.capabilities import PLAIN_REGRESSION, Capability
from exactsel.problem.column_subset import ColumnSubsetProblem
from exactsel.problem.grouped import GroupedProblem
from exactsel.problem.interface import SubsetProblem
from exactsel.problem.regression import Problem
from exactsel.types import StateArray

ROUNDING = 1e-9
"""Relative: how far an exact fit may be from the exact minimum."""


def awkward_problems() -> Iterator[tuple[str, SubsetProblem]]:
    """Small problems with everything real data have: copies, constants, zeros, scales, few rows; a label each."""
    rng = np.random.default_rng(20)
    limits = np.array([
        [0.0, 0.0, -0.1, 0.0, -np.inf, -1e-4, 0.0, 0.0], [np.inf, np.inf, 0.1, np.inf, 0.0, np.inf, 0.0, 1e9],
    ])  # fmt: skip
    for n, d, some in ((12, 7, 3), (5, 8, 2), (9, 1, 1)):
        A = rng.standard_normal((n, d)) + 0.5 * rng.standard_normal((n, 1))
        if d > 5:
            A[:, 1], A[:, 2], A[:, 3], A[:, 4] = A[:, 0], 1.0, 0.0, 1e3 * A[:, 4]
        y = A[:, 0] - 0.5 * A[:, -1] + 0.3 * rng.standard_normal(n)
        labels = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
        for k in sorted({0, 1, some, d}):
            size = f"{n} x {d}, k = {k}"
            yield f"quadratic loss, {size}", Problem(A, y, k, lam=0.1)
            yield f"quadratic loss, lam = 0, {size}", Problem(A, y, k, lam=0.0)
            yield f"huber loss, {size}", Problem(A, y, k, loss="huber", lam=0.1, delta=0.5)
            yield f"logistic loss, {size}", Problem(A, labels, k, loss="logistic", lam=0.1)
            yield f"column subset selection, {size}", ColumnSubsetProblem(A, k)
            for loss, target in (("quadratic", y), ("logistic", labels)):
                groups = [j // 2 for j in range(d)]
                plain = Problem(A, target, min(k, max(groups) + 1), loss=loss, lam=0.1)
                yield f"{loss} loss, columns in pairs, {size}", GroupedProblem(plain, groups)
                lower, upper = limits[:, :d]
                free = Problem(A, target, k, loss=loss, lam=0.1)
                yield f"{loss} loss, signs and bounds, {size}", with_bounds(free, lower, upper)
                paired = with_bounds(GroupedProblem(plain, groups), lower, upper)
                yield f"{loss} loss, columns in pairs, signs and bounds, {size}", paired


def small_problems(needs: Capability = PLAIN_REGRESSION) -> Iterator[tuple[str, SubsetProblem]]:
    """The awkward problems that have these properties and something to search; a label each."""
    for label, problem in awkward_problems():
        if problem.has(needs) and 0 < problem.k < problem.d:
            yield label, problem


def regions(problem: SubsetProblem, count: int, seed: int) -> list[StateArray]:
    """The root and random nodes: every column in, out or free, with at most k in."""
    rng = np.random.default_rng(seed)
    states = [np.full(problem.d, FREE, dtype=np.int8)]
    while len(states) < count:
        state = rng.choice(np.array([OUT, FREE, FREE, IN], dtype=np.int8), problem.d)
        if np.count_nonzero(state == IN) <= problem.k:
            states.append(state)
    return states


class Truth:
    """The best objective in any region of a problem, by refitting every support in it."""

    def __init__(self, problem: SubsetProblem) -> None:
        self._problem = problem
        self._value = cache(lambda support: problem.fit(support).value)

    def best(self, state: StateArray) -> float:
        """The smallest objective among the models of a region; inf when more than k columns are in."""
        included = tuple(np.flatnonzero(state == IN).tolist())
        free = np.flatnonzero(state == FREE).tolist()
        slots = self._problem.k - len(included)
        if slots < 0:
            return float("inf")
        return min(self._value(included + chosen) for chosen in combinations(free, min(slots, len(free))))


def loaded(kind: str, plugin: object) -> Any:
    """A plug-in by its registered name, or the object itself."""
    if not isinstance(plugin, str):
        return plugin
    component = registry.load(kind, plugin)()
    assert component.name == plugin, f"registered as '{plugin}', but its name is '{component.name}'"
    return component


def above(bound: float, value: float) -> bool:
    """Whether a lower bound is above a minimum by more than the rounding of the fit that found it."""
    return bool(bound > value + ROUNDING * (1.0 + abs(value)) or np.isnan(bound))
