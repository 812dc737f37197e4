"""A cache of refitted supports and their objectives.

Relaxations of neighbouring nodes are rounded to the same few supports again and again. What is remembered here is the
outcome of pure functions of the problem, so it changes no answer, only the time one takes.
"""

from __future__ import annotations

import numpy as np

from exactsel.kernels.node import OUT, Answers
from exactsel.problem.fit import Fit
from exactsel.problem.interface import SubsetProblem
from exactsel.types import FloatArray, IntArray

REMEMBERED = 200_000
"""Supports whose objectives are kept in mind."""


class Refits:
    """Objectives of supports of one problem; a support is a row of column numbers padded with -1."""

    def __init__(self, problem: SubsetProblem, threads: int) -> None:
        self._problem = problem
        self._threads = threads
        self._quick: dict[bytes, float] = {}
        self._exact: dict[bytes, float] = {}
        self._admissible: dict[bytes, tuple[int, ...]] = {}

    def admissible(self, answers: Answers) -> IntArray:
        """The supports relaxations were rounded to, made admissible where the problem has a constraint."""
        constraint = self._problem.units.constraint
        if constraint is None:
            return answers.support
        k, root = self._problem.k, self._problem.root_state
        supports = np.full_like(answers.support, -1)
        for row, support in enumerate(answers.support):
            wanted = support[support >= 0]
            wanted = wanted[root[wanted] != OUT]
            wanted = wanted[np.argsort(-np.abs(answers.x[row, wanted]), kind="stable")]
            key = wanted.tobytes()
            if key not in self._admissible:
                self._admissible[key] = constraint.restricted(wanted.tolist(), k, root)
            supports[row, : len(self._admissible[key])] = self._admissible[key]
        return supports

    def quick(self, supports: IntArray) -> FloatArray:
        """Quick objectives (see SubsetProblem.objectives), nan where that fails."""
        for remembered in (self._quick, self._exact, self._admissible):
            if len(remembered) >= REMEMBERED:
                remembered.clear()
        keys = [np.sort(support).tobytes() for support in supports]
        new = [row for row, key in enumerate(keys) if key not in self._quick]
        if new:
            values = self._problem.objectives(supports[new], self._threads)
            self._quick.update(zip((keys[row] for row in new), values.tolist(), strict=True))
        return np.array([self._quick[key] for key in keys])

    def better(self, support: IntArray, upper: float) -> Fit | None:
        """The best model on a support, computed from the data; None where it is not below ``upper``."""
        key = np.sort(support[support >= 0]).tobytes()
        if self._exact.get(key, -np.inf) >= upper:
            return None
        fit = self._problem.fit(support[support >= 0])
        self._exact[key] = fit.value
        return fit if fit.value < upper else None
