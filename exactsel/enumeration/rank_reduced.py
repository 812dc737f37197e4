"""Walk whole subtrees where lam = 0 and columns are dependent: without the columns that bring nothing new.

What is left of most nodes' columns is independent, and is walked as if nothing had been the matter. The others, where
larger sets of columns are dependent, are walked with bounds for bounded models (kernels/bounded.py), which are thirty
times as dear.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from exactsel.bounds.base import BoundOptions
from exactsel.enumeration.base import CombinedEnumeration, EnumerationResult
from exactsel.enumeration.closed_form import ClosedFormEnumeration
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.kernels.subtree_record import SubtreeLimits
from exactsel.problem.redundant_columns import RedundantColumns
from exactsel.problem.regression import Problem
from exactsel.types import StateArray


class RankReducedEnumeration(CombinedEnumeration):
    """Bound to one problem; a pure function of what :meth:`explore` is given."""

    def __init__(self, problem: Problem, spans: RedundantColumns, options: BoundOptions) -> None:
        self._spans, self.curvature = spans, spans.curvature
        self._plain = ClosedFormEnumeration(problem, spans.curvature, options)
        self._bounded = ClosedFormEnumeration(problem, None, options)
        self.valid_for = self._bounded.valid_for
        self.k = problem.k

    def explore_one(self, state: StateArray, limits: SubtreeLimits) -> EnumerationResult | None:
        """By the plain enumeration where what is left of the columns is independent."""
        included, candidates = np.flatnonzero(state == IN), np.flatnonzero(state == FREE)
        reduced = self._spans.reduce(included, candidates, self.k)
        price = self._spans.price(self.k)
        columns = np.concatenate([reduced.included, reduced.candidates])
        if (
            reduced.included.size < included.size
            or price > 0.25 * limits.tolerance
            or not self._spans.independent(columns)
        ):
            return self.of(self._bounded, state, limits)
        smaller = state.copy()
        left_out = np.setdiff1d(candidates, reduced.candidates)
        smaller[left_out] = OUT
        result = self.of(self._plain, smaller, limits._replace(tolerance=limits.tolerance - 2.0 * price))
        if result is None:
            return None
        result.open_states[:, left_out] = FREE
        return replace(result, min_pruned_bound=result.min_pruned_bound - price, open_bounds=result.open_bounds - price)
