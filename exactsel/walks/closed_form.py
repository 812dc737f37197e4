"""Walk whole subtrees in closed form (quadratic loss; see kernels/subtree.py)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeGuard

import numpy as np

from exactsel._jit import available_threads, parallel_section
from exactsel.bounds.base import BoundOptions
from exactsel.kernels.subtree import NOT_TRUSTED, STOPPED, Walk, WalkLimits, empty_walk, scratch_space, walk_subtrees
from exactsel.kernels.subtree_fit import QuadraticData
from exactsel.problem.interface import SubsetProblem
from exactsel.problem.regression import Problem
from exactsel.types import FloatArray, IntArray, StateArray

TRUSTED_CONDITION = 1e9
"""Largest trace(H) ||K||_F at which downdates are trusted ..."""

SHARE_OF_TOLERANCE = 0.25
"""... unless what is given up for rounding would then be more than this part of the tolerance ..."""

NULL_SHARE = 1e-2
"""Part of the empty model's objective on which rounding is judged where the incumbent's is smaller."""

ALWAYS_ALLOWED = 1e-10
"""... and more than this times max(1, |upper|)."""

ROUNDING = 2e-16
"""Times ||y||^2/2, the condition, and the columns plus the root of the rows: what a value is taken to be off by."""

MOST_MEMORY = 1e8
"""Bytes of answers at a time."""

LARGEST = 1000
"""With more columns than this a node takes too long for this method to pay."""


@dataclass(frozen=True)
class WalkResult:
    """What the walk of one node's subtree brought.

    ``open_states`` (m, d) are the regions left, with ``open_bounds`` (m,), in the order ``moves`` names them; all
    others are closed with a bound of at least ``dropped``. ``support`` is that of the best model met, None if none is
    better than the caller's.
    """

    finished: bool
    nodes: int
    dropped: float
    support: tuple[int, ...] | None
    open_states: StateArray
    open_bounds: FloatArray
    moves: IntArray


class SubtreeWalker:
    """Bound to one problem; a pure function of what :meth:`explore` is given."""

    def __init__(self, problem: Problem, curvature: FloatArray | None, options: BoundOptions) -> None:
        self.scope = ""
        """Its bounds hold for all models."""
        self.k = problem.k
        self.d = problem.d
        self.curvature = curvature
        self._options = options
        gram = problem.gram
        none = np.zeros(problem.d)
        self._data = QuadraticData(problem.hessian, gram.b, gram.constant, none if curvature is None else curvature)
        self._slack = ROUNDING * (problem.d + problem.n**0.5) * gram.constant

    @cached_property
    def _scratch(self) -> FloatArray:
        return scratch_space(self.d, min(self._options.threads, available_threads()))

    @staticmethod
    def serves(problem: SubsetProblem) -> TypeGuard[Problem]:
        """Whether subtrees of this problem can be walked at all: the columns of quadratic loss, one by one."""
        objective = problem.objective
        closed = objective is not None and objective.is_quadratic and problem.units.free_columns
        return closed and problem.d <= LARGEST and problem.k > 0

    def explore(
        self, states: StateArray, upper: float, tolerance: float, budget: int
    ) -> list[WalkResult | None] | None:
        """Walk the subtree of each node, up to ``budget`` nodes each.

        Parameters
        ----------
        states : int8 array (B, d)
        upper : float
            Objective of the incumbent.
        tolerance : float
            Regions are closed this much below the incumbent.
        budget : int
            Nodes of one walk.

        Returns
        -------
        list of B
            None where the node's columns are too nearly dependent. None instead of the list when told to stop.
        """
        size = max(self._options.threads, int(MOST_MEMORY / (9 * self.d**2 + 40 * budget)))
        results: list[WalkResult | None] = []
        for first in range(0, len(states), size):
            walked = self._explore(states[first : first + size], upper, tolerance, budget)
            if walked is None:
                return None
            results += walked
        return results

    def _explore(
        self, states: StateArray, upper: float, tolerance: float, budget: int
    ) -> list[WalkResult | None] | None:
        walk = empty_walk(len(states), self.d, self.k, budget)
        stop = self._options.stop
        scale = max(NULL_SHARE * self._data.constant, abs(upper) if np.isfinite(upper) else self._data.constant)
        allowed = max(SHARE_OF_TOLERANCE * tolerance, ALWAYS_ALLOWED * scale)
        trusted = min(TRUSTED_CONDITION, allowed / max(self._slack, 1e-300))
        with parallel_section(self._options.threads):
            walk_subtrees(
                self._data, self.k, states, WalkLimits(upper, tolerance, budget, trusted), self._slack, stop, walk,
                self._scratch, np.zeros(1, dtype=np.int64),
            )  # fmt: skip
        if np.any(walk.status == STOPPED):
            return None
        return [None if walk.status[row] == NOT_TRUSTED else walk_result(walk, row) for row in range(len(states))]


def walk_result(walk: Walk, row: int) -> WalkResult:
    """What one walk brought."""
    count, support = int(walk.open_count[row]), walk.support[row]
    found = np.isfinite(walk.value[row])
    return WalkResult(
        finished=count == 0,
        nodes=int(walk.nodes[row]),
        dropped=float(walk.dropped[row]),
        support=tuple(sorted(int(j) for j in support[support >= 0])) if found else None,
        open_states=walk.open_states[row, :count].copy(),
        open_bounds=walk.open_bounds[row, :count].copy(),
        moves=walk.moves[row, : walk.move_count[row]].copy(),
    )
