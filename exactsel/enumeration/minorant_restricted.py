"""Sets that a listing without restrictions leaves, closed by the problem that has them.

A minorant and its list are about all models, so they hold of those that signs, bounds, hierarchies and limits on groups
admit. A few sets remain below U; for each one the cost of its best admissible model is bounded. Where that cannot be
said of all of them the listing is given up: the search divides what it does not know.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from exactsel.bounds.base import PreparedBound
from exactsel.bounds.witness import ModelPoint
from exactsel.enumeration.minorant_cuts import fit_to_the_end
from exactsel.kernels.node import OUT, UNFINISHED
from exactsel.problem.capabilities import FREE_COEFFICIENTS
from exactsel.problem.fit import Fit
from exactsel.problem.interface import SubsetProblem, is_regression
from exactsel.problem.restrictions import proposed
from exactsel.types import IntArray, StateArray

MOST_CLOSED = 64
"""Sets whose admissible models are bounded; with more the restrictions bind, and the search knows them better."""

WORK = 6e8
"""Multiplications of a listing for a problem with restrictions, a tenth of what one without them may take."""

NEARLY = 1e-9
"""Part by which the bound of a set may be below what its best admissible model costs, or U."""


@dataclass(frozen=True)
class RestrictedSets:
    """The problem with its restrictions, and its bound."""

    problem: SubsetProblem
    bound: PreparedBound

    def closed(self, columns: IntArray, upper: float) -> tuple[float, ModelPoint | None, Fit | None] | None:
        """What no admissible model on a set is below, its proof and a model below ``upper``; None where not known.

        The bound is infinite, and has no proof, where the set holds no admissible model.
        """
        state = self._region(columns)
        if state is None:
            return math.inf, None, None
        if self.problem.units.to_divide(state, self.problem.k) is not None:
            return None
        allowed = np.flatnonzero(state != OUT)
        fit = proposed(self.problem, allowed.tolist())
        best_value = upper if fit is None else min(upper, fit.value)
        bound, proof = self._bound(state, allowed, best_value)
        if proof is None or not bound >= best_value - NEARLY * abs(best_value):
            return None
        return bound, proof, fit if fit is not None and fit.value < upper else None

    def _region(self, columns: IntArray) -> StateArray | None:
        """All admissible models on a set; None where there are none."""
        state = self.problem.root_state.copy()
        others = np.ones(len(state), dtype=bool)
        others[columns] = False
        state[others] = OUT
        return state if self.problem.units.constraint is None else self.problem.units.implied(state, self.problem.k)

    def _bound(self, state: StateArray, allowed: IntArray, upper: float) -> tuple[float, ModelPoint | None]:
        """Of a region that is one convex problem."""
        if is_regression(self.problem, FREE_COEFFICIENTS):
            fit, bound = fit_to_the_end(self.problem, allowed)
            return bound, ModelPoint.from_dense(fit.coef)
        relaxation = self.bound.tighten(state[None], [None], upper, upper)
        proof = relaxation.proofs[0]
        if relaxation.valid_for or relaxation.answers.status[0] == UNFINISHED or type(proof) is not ModelPoint:
            return -math.inf, None
        return float(relaxation.answers.bound[0]), proof
