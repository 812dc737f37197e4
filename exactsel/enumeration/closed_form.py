"""Walk whole subtrees in closed form (quadratic loss; see kernels/subtree.py)."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TypeGuard

import numpy as np

from exactsel._jit import available_threads, parallel_section
from exactsel.algebra.extended import extended_products
from exactsel.bounds.base import BoundOptions
from exactsel.bounds.fit import BOUNDED_MODELS
from exactsel.enumeration.base import EnumerationResult, SubtreeSolver
from exactsel.kernels.counting import SubtreeData
from exactsel.kernels.subtree import scratch_space, walk_subtrees
from exactsel.kernels.subtree_group_count import Grouping
from exactsel.kernels.subtree_record import NOT_TRUSTED, STOPPED, SubtreeLimits, Walk, empty_walk
from exactsel.problem.capabilities import CLOSED_FORM
from exactsel.problem.interface import SubsetProblem, is_regression
from exactsel.problem.kept import kept
from exactsel.problem.redundant_columns import only_bounded_models
from exactsel.problem.regression import BOUNDED_MODEL_RADIUS, Problem
from exactsel.rounding import UNIT
from exactsel.types import FloatArray, IntArray, StateArray

SMALLEST, LARGEST_NUMBER = 1e-100, 1e100
"""Lengths of columns and target between which no square underflows or overflows."""

FINEST = 1e-11
"""Part of the empty model's objective that a region is closed below the best model in any case."""

MOST_MEMORY = 1e8
"""Bytes of answers at a time."""

LARGEST, LARGEST_GROUPED = 1000, 400
"""With more columns than this a node takes too long for this method to pay, and of groups the first fit to be
interrupted."""


class ClosedFormEnumeration(SubtreeSolver):
    """Bound to one problem of columns or groups; a pure function of what :meth:`explore` is given."""

    def __init__(self, problem: Problem, curvature: FloatArray | None, options: BoundOptions) -> None:
        """``curvature`` (columns,) is known to be that of formula (3)."""
        columns, self._groups = problem.inner if problem.units.grouped else problem, grouping(problem)
        bounded = curvature is None and only_bounded_models(columns)
        self.valid_for = BOUNDED_MODELS if bounded else ""
        """The models its bounds hold for, where these are not all."""
        self.k = problem.k
        self.d = problem.d
        self.curvature = curvature
        self._options = options
        if self._groups is not None and curvature is None:
            curvature = np.full(columns.d, problem.lam)
        key = columns.lam, None if curvature is None else curvature.tobytes(), bounded
        self._data = kept(columns, "walk", key, lambda: walk_data(columns, curvature, bounded))
        lengths = np.append(columns.norms[columns.norms > 0], math.sqrt(2.0 * columns.gram.constant) or 1.0)
        smallest, largest = (SMALLEST**0.5, LARGEST_NUMBER**0.5) if bounded else (SMALLEST, LARGEST_NUMBER)
        self._safe = bool(lengths.min() > smallest and lengths.max() < largest)

    @cached_property
    def _scratch(self) -> FloatArray:
        return scratch_space(self._data.b.size, min(self._options.threads, available_threads()))

    @staticmethod
    def serves(problem: SubsetProblem) -> TypeGuard[Problem]:
        """Whether subtrees of this problem can be walked at all: columns or groups of quadratic loss, freely chosen."""
        units = problem.units
        if not is_regression(problem, CLOSED_FORM):
            return False
        if units.constraint is not None or problem.k == 0:
            return False
        if units.columns > (LARGEST if units.d == units.columns else LARGEST_GROUPED):
            return False
        # Where no column has an entry there is one model, of which a bound shows more than the cut-off.
        return units.grouped or bool(np.any(problem.norms > 0.0))

    def explore(
        self, states: StateArray, upper: float, tolerance: float, budget: int, work: float = math.inf,
        adopts: bool = True,
    ) -> list[EnumerationResult | None] | None:  # fmt: skip
        """As :meth:`exactsel.enumeration.base.SubtreeSolver.explore`."""
        if not self._safe:
            return [None] * len(states)
        size = max(self._options.threads, int(MOST_MEMORY / (9 * (self.d + 64) * self.d + 40 * budget)))
        limits, results = SubtreeLimits(upper, tolerance, budget, work, adopts), list[EnumerationResult | None]()
        for first in range(0, len(states), size):
            walked = self._explore(states[first : first + size], limits)
            if walked is None:
                return None
            results += walked
        return results

    def _explore(self, states: StateArray, limits: SubtreeLimits) -> list[EnumerationResult | None] | None:
        limits = limits._replace(tolerance=limits.tolerance or FINEST * self._data.constant)
        walk = empty_walk(len(states), self.d, self.k, limits.budget)
        stop = self._options.stop
        with parallel_section(self._options.threads):
            counter = np.zeros(1, dtype=np.int64)
            walk_subtrees(self._data, self._groups, self.k, states, limits, stop, walk, self._scratch, counter)
        if np.any(walk.status == STOPPED):
            return None
        return [None if walk.status[row] == NOT_TRUSTED else walk_result(walk, row) for row in range(len(states))]


def grouping(problem: Problem) -> Grouping | None:
    """The groups of a problem, as kernels take them; None where each has one column, and so stands for it."""
    units = problem.units
    if units.d == units.columns:
        return None
    largest = int(np.diff(units.spans.first).max(initial=1))
    return Grouping(units.spans.members, units.spans.first, units.unit_of.astype(np.int64), largest)


def walk_data(problem: Problem, curvature: FloatArray | None, bounded: bool = False) -> SubtreeData:
    """What the kernels know of a problem; ``curvature`` (d,) is known to be that of formula (3).

    ``bounded``: bounds speak of bounded models only, for lam = 0 and dependent columns.
    """
    gram, none = problem.gram, np.zeros(problem.d)
    floor = none + problem.lam if curvature is None else curvature
    H, b, constant = problem.hessian, gram.b, gram.constant
    low, low_b, low_constant, reach = np.zeros((0, 0)), none, 0.0, none
    if bounded:
        high, rest = extended_products(np.vstack([problem.AT, problem.y]))
        H, b, constant = high[:-1, :-1].copy(), high[:-1, -1].copy(), 0.5 * float(high[-1, -1])
        low, low_b, low_constant = rest[:-1, :-1].copy(), rest[:-1, -1].copy(), 0.5 * float(rest[-1, -1])
        # Lengths are computed ones, here and in the scope.
        radius = 1.001 * BOUNDED_MODEL_RADIUS * math.sqrt(2.0 * constant)
        reach = np.divide(radius, problem.norms, out=np.zeros(problem.d), where=problem.norms > 0.0)
    lengths = np.sqrt(np.diag(H)) * (1.0 + 8.0 * UNIT)
    return SubtreeData(
        H, b, constant, gram.roundings, lengths, none if curvature is None else curvature, floor, duplicates(problem),
        low, low_b, low_constant, reach,
    )  # fmt: skip


def duplicates(problem: Problem) -> IntArray:
    """The first column (d,) that brings the same models as each; -1 for columns of zeros that bring none.

    With a ridge every column is its own. Without one a column serves as well as its copy, or minus it, and two of them
    no better than one.
    """
    if problem.lam > 0:
        return np.arange(problem.d)
    first: dict[bytes, int] = {}
    originals = np.full(problem.d, -1, dtype=np.int64)
    for j, column in enumerate(problem.AT):
        used = np.flatnonzero(column)
        if used.size:
            # Zeros have a sign too, which an addition takes from them.
            same = column * np.sign(column[used[0]]) + 0.0
            originals[j] = first.setdefault(same.tobytes(), j)
    return originals


def walk_result(walk: Walk, row: int) -> EnumerationResult:
    """What one walk brought."""
    count, support = int(walk.open_count[row]), walk.support[row]
    has_model = np.isfinite(walk.value[row])
    return EnumerationResult(
        finished=count == 0,
        nodes=int(walk.nodes[row]),
        work=float(walk.work[row]),
        min_pruned_bound=float(walk.min_pruned_bound[row]),
        support=tuple(sorted(int(j) for j in support[support >= 0])) if has_model else None,
        open_states=walk.open_states[row, :count].copy(),
        open_bounds=walk.open_bounds[row, :count].copy(),
        moves=walk.moves[row, : walk.move_count[row]].copy(),
    )
