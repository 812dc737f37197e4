"""Bound a whole problem by clusters of its columns (quadratic loss, nearly collinear features).

A support of k columns touches at most k clusters, so no model is better than the best fit on the union of k clusters:
a problem with groups, far smaller than the problem of columns, which the walk over groups searches in closed form
(kernels/subtree_groups.py). Few clusters are quick and weak, many are slow and strong. So the bound climbs: of the
clusterings of one dendrogram the coarsest is taken whose unions seem to be above the next level, and the walk proves
that level or does not. Any partition of the columns will do, so neither the dendrogram nor the greedy unions that
choose among its cuts have to be right.

Of dependent columns (lam = 0) some are removed, so that the others are independent. Each removed column has the columns
that make up for it (problem/redundant_columns.py) in its own cluster: a union holds what it would hold with it. Then
bounds are those of bounded models, less what the rounding of the dependences may cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TypeGuard

import numpy as np

from exactsel.bounds.base import BoundOptions
from exactsel.bounds.fit import BOUNDED_MODELS
from exactsel.enumeration.base import EnumerationResult
from exactsel.enumeration.closed_form import LARGEST_GROUPED, ClosedFormEnumeration
from exactsel.enumeration.work_budget import MOST_NODES, WholeProblemAttempt
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.problem.capabilities import CLOSED_FORM, SINGLE_COLUMNS
from exactsel.problem.grouped import GroupedProblem
from exactsel.problem.interface import SubsetProblem, is_regression
from exactsel.problem.redundant_columns import RedundantColumns
from exactsel.problem.regression import Problem
from exactsel.problem.units import Units
from exactsel.types import FloatArray, IntArray, StateArray

FIRST = 2e10
"""Multiplications that the search must have spent before clusters are tried (some seconds)."""

SHARE = 0.15
"""Part of what the search has spent that one try may take (more closes more of the gap of what stays open, and costs
what closes anyway: communities, k 10, a fifth of its time at .25, a thirtieth at .15) ..."""

AGAIN = 2.0
"""... and how many times as much it must have spent before the next."""

OF_GROUPS = 3.0
"""What a multiplication of a walk over groups takes, in those of the search (measured: .9 for .3 ns)."""

STEP = 0.25
"""Part of the gap that one level is to close."""

GROWTH = 4.0
"""A level takes about so many times the work of the one before (measured: 4 to 6); what would not end is not begun."""

SLACK = 0.1
"""Part of the gap above a level that greedy unions are to be above it, since they are not the best ones."""

FINER = 1.2
"""Where unions below a level are met, so many times the clusters are tried next."""

FEWEST_PLACES, NEARLY_CLOSED = 4, 0.02
"""With fewer places, or a relative gap below this, the search is left alone."""

USEFUL = 0.9
"""With more clusters than this part of the columns a walk over columns is as good."""

SHORT = 1e-7
"""Part of its objective by which the bound of a union is short of it."""

ALIKE, PART_ALIKE = 0.7, 0.5
"""At least this part of the columns must have a cosine as large as this with another one."""

RIDGE = 1e-10
"""Added to unit diagonals where unions are evaluated to choose a cut."""


class ClusterBound:
    """Bound to one problem; raises a bound of all of it."""

    def __init__(
        self, problem: Problem, curvature: FloatArray, options: BoundOptions,
        left_out: Mapping[int, Sequence[int]] | None = None, price: float = 0.0,
    ) -> None:  # fmt: skip
        """``curvature`` (d,) is known to be that of formula (3), without the removed columns.

        ``left_out`` says which columns make up for each of these, and ``price`` what that may cost bounded models.
        """
        self._problem, self._curvature, self._options = problem, curvature, options
        self._left_out, self._price = left_out or {}, price
        self.valid_for = BOUNDED_MODELS if left_out else ""
        """The models its bounds hold for, where these are not all."""

    @staticmethod
    def of(problem: Problem, curvature: FloatArray | None, options: BoundOptions) -> ClusterBound | None:
        """With this curvature; where there is none as columns are dependent, that of those that are independent."""
        if curvature is not None:
            return ClusterBound(problem, curvature, options)
        spans = RedundantColumns.of(problem)
        left_out = None if spans is None else spans.made_up_for(problem.k)
        if spans is None or left_out is None or spans.curvature is None:
            return None
        return ClusterBound(problem, spans.curvature, options, left_out, spans.price(problem.k))

    @staticmethod
    def serves(problem: SubsetProblem) -> TypeGuard[Problem]:
        """Whether this can be thought of: quadratic loss, columns one by one, all of them free."""
        units = problem.units
        if not is_regression(problem, CLOSED_FORM | SINGLE_COLUMNS):
            return False
        if units.grouped or units.constraint is not None or not FEWEST_PLACES <= problem.k < problem.d:
            return False
        return problem.d <= LARGEST_GROUPED and bool(np.all(problem.root_state == FREE) and np.all(problem.norms > 0))

    @property
    def stopped(self) -> bool:
        """Whether it was stopped: then its list is incomplete and proves nothing."""
        return bool(self._options.stop[0])

    def explore(self, upper: float, lower: float, spent: float, counted: WholeProblemAttempt) -> WholeProblemAttempt:
        """The outcome of clusters so far, with ``counted`` before.

        ``lower`` is the bound of the search, which has spent so many multiplications. A bound that has been raised is
        one of the whole problem.
        """
        few = self._problem.d - self._joined[1] <= self._problem.k
        if spent < max(FIRST, counted.after) or few or not self._alike:
            return counted
        lower, budget, clusters = max(0.0, lower, counted.bound), SHARE / OF_GROUPS * spent, 0
        if upper - lower <= NEARLY_CLOSED * abs(upper):
            return counted._replace(after=AGAIN * spent)
        bound = counted.bound
        while budget > 0.0:
            threshold = lower + STEP * (upper - lower)
            clusters = max(clusters, self._coarsest(threshold + SLACK * (upper - threshold)))
            if clusters > USEFUL * self._problem.d:
                break
            proven, work = self._prove(clusters, threshold, budget)
            if self.stopped:
                return counted
            budget -= work
            if proven is None:
                break
            if proven < threshold - 2.0 * self._price:  # the best union is no better: more clusters are needed
                clusters = int(FINER * clusters) + 1
            elif proven <= lower:  # what the rounding of dependences may cost is all that is left
                break
            lower = max(lower, proven)
            bound = max(bound, proven)
            if GROWTH * work > budget or upper - lower <= NEARLY_CLOSED * abs(upper):
                break
        return WholeProblemAttempt(AGAIN * spent, bound)

    def _prove(self, clusters: int, threshold: float, work: float) -> tuple[float | None, float]:
        """What is proven of all unions of k clusters, no more than the level, and the work it took.

        None where the walk did not end. A union below the level takes its place, so that the walk ends with the best.
        """
        grouped = self._grouped(self.labels(clusters))
        enumeration = ClosedFormEnumeration(grouped, self._curvature, self._options)
        state = grouped.root_state.copy()
        state[grouped.units.unit_of[list(self._left_out)]] = OUT
        walk = _walk(enumeration, state, threshold, work, adopts=True)
        if walk is None or not walk.finished:
            return None, work if walk is None else walk.work
        proven = min(walk.min_pruned_bound, threshold)
        if walk.support is not None:
            proven = min(proven, self._shown(grouped, enumeration, walk.support))
        return proven - self._price, walk.work

    def _grouped(self, labels: IntArray) -> GroupedProblem:
        """The problem of choosing k clusters."""
        objective, k = self._problem.objective, self._problem.k
        columns = Problem.held(objective, Units.of(self._problem.d, None, (), ()), k)
        names = [f"cluster {g}" for g in labels]
        for column in self._left_out:
            names[column] = f"left out {column}"
        return GroupedProblem(columns, names)

    @staticmethod
    def _shown(grouped: GroupedProblem, enumeration: ClosedFormEnumeration, support: tuple[int, ...]) -> float:
        """A bound of the one region of a union: an elimination proves it a little below its fit."""
        value = grouped.fit(support).value
        state = np.full(grouped.d, OUT, dtype=np.int8)
        state[list(support)] = IN
        walk = _walk(enumeration, state, value - SHORT * abs(value), np.inf, adopts=False)
        return walk.min_pruned_bound if walk is not None and walk.finished else -np.inf

    def labels(self, clusters: int) -> IntArray:
        """The cluster (d,) of each column where there are so many, numbered from 0 in the order of their columns.

        Or fewer, where removed columns would not be with those that make up for them.
        """
        of = np.arange(self._problem.d)
        for survivor, gone in self._merges[: max(self._problem.d - clusters, self._joined[1])]:
            of[of == gone] = survivor
        return np.unique(of, return_inverse=True)[1].reshape(-1)

    def _coarsest(self, threshold: float) -> int:
        """The fewest clusters whose greedy union of k is at the level at least, about."""
        low, high = self._problem.k, self._problem.d
        while low + 1 < high:
            middle = (low + high) // 2
            if self.greedy_union(middle) >= threshold:
                high = middle
            else:
                low = middle
        return high

    def greedy_union(self, clusters: int) -> float:
        """The objective on k of so many clusters, each the best there is beside those before it, about."""
        if clusters not in self._unions:
            labels, (matrix, b) = self.labels(clusters), self._scaled
            self._unions[clusters] = self._problem.gram.constant - greedy_gain(matrix, b, labels, self._problem.k)
        return self._unions[clusters]

    @cached_property
    def _alike(self) -> bool:
        """Whether most columns are like another one."""
        cosines = np.abs(self._scaled[0])
        np.fill_diagonal(cosines, 0.0)
        return bool(np.mean(cosines.max(axis=0) >= ALIKE) >= PART_ALIKE)

    @cached_property
    def _unions(self) -> dict[int, float]:
        return {}

    @cached_property
    def _scaled(self) -> tuple[FloatArray, FloatArray]:
        """H and b of columns of unit length, but for a little ridge."""
        H = self._problem.hessian
        lengths = np.sqrt(np.diag(H))
        return H / np.outer(lengths, lengths) + RIDGE * np.eye(lengths.size), self._problem.gram.b / lengths

    @cached_property
    def _merges(self) -> list[tuple[int, int]]:
        distances = 1.0 - np.abs(self._scaled[0])
        belongs, _ = self._joined
        distances[belongs[:, None] == belongs] = -1.0
        return merges(distances)

    @cached_property
    def _joined(self) -> tuple[IntArray, int]:
        """For each column (d,) the first of those that are to be in its cluster; how many merges that takes."""
        of = np.arange(self._problem.d)
        for column, others in self._left_out.items():
            together = np.isin(of, of[[column, *others]])
            of[together] = of[together].min()
        return of, int(np.sum(of != np.arange(of.size)))


def _walk(
    enumeration: ClosedFormEnumeration, state: StateArray, upper: float, work: float, *, adopts: bool
) -> EnumerationResult | None:  # fmt: skip
    walks = enumeration.explore(state[None].copy(), upper, 0.0, MOST_NODES, work, adopts)
    return None if walks is None else walks[0]


def merges(distances: FloatArray) -> list[tuple[int, int]]:
    """Average linkage: the pairs of clusters merged one after the other, each named by its first column."""
    D, d = 0.5 * (distances + distances.T), len(distances)
    np.fill_diagonal(D, np.inf)
    sizes, pairs = np.ones(d), list[tuple[int, int]]()
    for _ in range(d - 1):
        i, j = sorted(divmod(int(np.argmin(D)), d))
        row = (sizes[i] * D[i] + sizes[j] * D[j]) / (sizes[i] + sizes[j])
        row[[i, j]] = np.inf
        D[i], D[:, i], D[j], D[:, j] = row, row, np.inf, np.inf
        sizes[i] += sizes[j]
        pairs.append((i, j))
    return pairs


def greedy_gain(matrix: FloatArray, b: FloatArray, labels: IntArray, k: int) -> float:
    """What k clusters take off the objective of the empty model, the best one beside those before it each time."""
    matrix, b, gain = matrix.copy(), b.copy(), 0.0
    members = [np.flatnonzero(labels == g) for g in range(int(labels.max()) + 1)]
    for _ in range(k):
        best, chosen = -np.inf, -1
        for g, columns in enumerate(members):
            value = _fit_gain(matrix[np.ix_(columns, columns)], b[columns])
            if value > best:
                best, chosen = value, g
        if chosen < 0:
            break
        columns = members.pop(chosen)
        factor = np.linalg.solve(matrix[np.ix_(columns, columns)], np.column_stack([matrix[columns], b[columns]]))
        block = matrix[:, columns]
        matrix, b = matrix - block @ factor[:, :-1], b - block @ factor[:, -1]
        gain += 0.5 * max(0.0, best)
    return gain


def _fit_gain(matrix: FloatArray, b: FloatArray) -> float:
    """Twice what the fit on some columns takes off the objective; -inf where nothing is left of them."""
    try:
        return float(b @ np.linalg.solve(matrix, b))
    except np.linalg.LinAlgError:
        return -np.inf
