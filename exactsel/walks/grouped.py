"""Walk whole subtrees over groups of columns in closed form (quadratic loss; see kernels/subtree_groups.py)."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TypeGuard

import numpy as np

from exactsel._jit import available_threads, parallel_section
from exactsel.bounds.base import BoundOptions
from exactsel.kernels.subtree import scratch_space
from exactsel.kernels.subtree_group_count import GroupData
from exactsel.kernels.subtree_groups import walk_group_subtrees
from exactsel.kernels.subtree_record import NOT_TRUSTED, STOPPED, WalkLimits, empty_walk
from exactsel.problem.interface import SubsetProblem
from exactsel.problem.regression import Problem
from exactsel.types import FloatArray, StateArray
from exactsel.walks.closed_form import (
    FINEST,
    LARGEST_NUMBER,
    MOST_MEMORY,
    SMALLEST,
    WalkResult,
    walk_data,
    walk_result,
)

LARGEST = 400
"""With more columns than this a node takes too long for this method to pay, and the first fit to be interrupted."""


class GroupWalker:
    """Bound to one problem of groups; a pure function of what :meth:`explore` is given."""

    scope = ""
    """Its bounds hold for all models."""

    def __init__(self, problem: Problem, curvature: FloatArray | None, options: BoundOptions) -> None:
        """``curvature`` (columns,) is known to be that of formula (3); None only with lam > 0."""
        self.k = problem.k
        self.groups = problem.d
        self.columns = problem.units.columns
        self.curvature = curvature
        self._options = options
        inner, spans = problem.inner, problem.units.spans
        data = walk_data(inner, np.full(self.columns, problem.lam) if curvature is None else curvature)
        sizes = np.diff(spans.first)
        self._data = GroupData(data, spans, problem.units.unit_of.astype(np.int64), int(sizes.max(initial=1)))
        lengths = np.append(inner.norms[inner.norms > 0], math.sqrt(2.0 * inner.gram.constant) or 1.0)
        self._safe = bool(lengths.min() > SMALLEST and lengths.max() < LARGEST_NUMBER)

    @cached_property
    def _scratch(self) -> FloatArray:
        return scratch_space(self.columns, min(self._options.threads, available_threads()))

    @staticmethod
    def serves(problem: SubsetProblem) -> TypeGuard[Problem]:
        """Whether subtrees of this problem can be walked at all: groups of columns of quadratic loss, freely chosen."""
        objective, units = problem.objective, problem.units
        closed = objective is not None and objective.is_quadratic and units.grouped and units.constraint is None
        return closed and units.columns <= LARGEST and problem.k > 0

    def explore(
        self, states: StateArray, upper: float, tolerance: float, budget: int, work: float = math.inf,
        adopts: bool = True,
    ) -> list[WalkResult | None] | None:  # fmt: skip
        """Walk the subtree of each node; see :meth:`exactsel.walks.closed_form.SubtreeWalker.explore`.

        ``states`` (B, groups) are of groups, and so is what is left open.
        """
        if not self._safe:
            return [None] * len(states)
        size = max(self._options.threads, int(MOST_MEMORY / (9 * (self.groups + 64) * self.groups + 40 * budget)))
        limits, results = WalkLimits(upper, tolerance, budget, work, adopts), list[WalkResult | None]()
        for first in range(0, len(states), size):
            walked = self._explore(states[first : first + size], limits)
            if walked is None:
                return None
            results += walked
        return results

    def _explore(self, states: StateArray, limits: WalkLimits) -> list[WalkResult | None] | None:
        limits = limits._replace(tolerance=limits.tolerance or FINEST * self._data.columns.constant)
        walk, stop = empty_walk(len(states), self.groups, self.k, limits.budget), self._options.stop
        first = np.zeros(1, dtype=np.int64)
        with parallel_section(self._options.threads):
            walk_group_subtrees(*self._data, self.k, states, limits, stop, walk, self._scratch, first)
        if np.any(walk.status == STOPPED):
            return None
        return [None if walk.status[row] == NOT_TRUSTED else walk_result(walk, row) for row in range(len(states))]
