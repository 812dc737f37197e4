"""Walk the subtrees of nodes in closed form, where that promises to pay (enumeration/closed_form.py)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from exactsel.bounds.witness import SplitPoint
from exactsel.closers.base import Kernel, Task
from exactsel.closers.visit import Interrupted
from exactsel.enumeration.base import EnumerationResult, SubtreeSolver
from exactsel.enumeration.work_budget import (
    MOST_COLUMNS,
    WORTH_KEEPING,
    SubtreeRecord,
    WorkBudget,
    supports,
    walk_budget,
)
from exactsel.kernels.node import FREE, IN
from exactsel.nodes.node import Node
from exactsel.nodes.regions import Region, RoundWork, SubtreeResult, constrained, inherit
from exactsel.nodes.subtree import walked
from exactsel.problem.restrictions import proposed
from exactsel.types import FloatArray, StateArray


@dataclass(frozen=True)
class _Walk(Kernel):
    enumeration: SubtreeSolver
    name = "explored"
    label = "enumeration in closed form"

    def result(self, task: Task, walk: EnumerationResult, cutoff: float) -> SubtreeResult:
        """What a walk left open, with the better of the region's bound and the fit's."""
        region = task.region
        children = [
            constrained(inherit(region, state, float(bound), self.enumeration.witness, cutoff), self.problem)
            for state, bound in zip(walk.open_states, walk.open_bounds, strict=True)
        ]
        valid_for, curvature = self.enumeration.valid_for, self.enumeration.curvature
        return walked(task.node, region, walk, children, self.name, valid_for=valid_for, curvature=curvature)

    def expected(self, nodes: Sequence[Node], work_budget: WorkBudget) -> FloatArray:
        """About the work there is below each node (m,), where subtrees are walked; zero where they are not."""
        if work_budget.walks is None:
            return np.zeros(len(nodes))
        walks, iterations = work_budget.walks, _iterations(work_budget)
        states = np.stack([node.state for node in nodes])
        shapes = np.stack([self.problem.k - np.sum(states == IN, axis=1), np.count_nonzero(states, axis=1)], axis=1)
        kinds, which = np.unique(shapes, axis=0, return_inverse=True)
        each = np.array([walks.expected(slots, columns, iterations) for slots, columns in kinds.tolist()])
        return np.asarray(each[which.reshape(-1)], dtype=np.float64)

    def walk(self, tasks: Sequence[Task], work: RoundWork, work_budget: WorkBudget, *, bounded: bool) -> list[Task]:
        """Walk the subtrees of the open regions for which that promises to pay; those for which it did.

        ``bounded`` says whether the regions have been bounded: before, only those are walked that need no bound.
        """
        regions = [task.region for task in tasks]
        rows = self._worth_walking(regions, self.cutoff(work.upper), work_budget, bounded)
        if work_budget.walks is None or not rows:
            return []
        began, before = time.perf_counter(), work.upper
        states = np.stack([regions[row].state for row in rows])
        most = work_budget.walks.work
        nodes = walk_budget(int(np.count_nonzero(states, axis=1).max()), most)
        if work_budget.left is not None:
            nodes = min(nodes, work_budget.left // len(rows))
        if nodes == 0:
            return []
        walks = self.enumeration.explore(
            states, work.upper, self.tolerance.absolute(work.upper), nodes, most, self.adopts
        )
        if walks is None:
            raise Interrupted
        work.seconds.subtrees += time.perf_counter() - began
        for walk in walks:
            work.offer(None if walk is None else proposed(self.problem, walk.support))
        paid = []
        for row, walk in zip(rows, walks, strict=True):
            refused = walk is None or self.closed_too_soon(walk.min_pruned_bound, before, work.upper)
            task = tasks[row]
            task.walk_tried, task.walk, task.result_of = True, None if refused else walk, self.result
            if task.walk is not None and self.worth_keeping(task.region, task.walk):
                paid.append(task)
        return paid

    def _worth_walking(
        self, regions: Sequence[Region], cutoff: float, work_budget: WorkBudget, bounded: bool
    ) -> list[int]:
        walks, k, iterations = work_budget.walks, self.problem.k, _iterations(work_budget)
        if walks is None:
            return []

        # Over hundreds of columns a walk that has only the ridge to close regions with is for counting, where bounds
        # are costly.
        only_costly = self.problem.d > MOST_COLUMNS and self.enumeration.curvature is None

        def wanted(region: Region) -> bool:
            costly = isinstance(region.warm, SplitPoint)
            if only_costly and not costly:
                return False
            slots, columns = k - int(np.count_nonzero(region.state == IN)), int(np.count_nonzero(region.state))
            if self.enumeration.fewest_slots and not self._is_wide(region.state, slots):
                return False
            if bounded:
                short = walks.expected(slots, columns, iterations) < work_budget.divides_from
                return short and walks.wants(slots, columns)
            return walks.wants_unbounded(slots, columns, costly)

        worth = [
            row for row, region in enumerate(regions)
            if region.closed is None and region.bound < cutoff and wanted(region)
        ]  # fmt: skip
        return self._within_allowance(worth, regions, walks) if bounded else worth

    def _is_wide(self, state: StateArray, slots: int) -> bool:
        return slots >= self.enumeration.fewest_slots and int(np.count_nonzero(state == FREE)) > slots

    def _within_allowance(self, rows: Sequence[int], regions: Sequence[Region], walks: SubtreeRecord) -> list[int]:
        """Rows, in order, whose walks together may be expected to waste no more than is allowed; one in any case."""
        allowance, chosen = walks.allowance, list[int]()
        for row in rows:
            waste = walks.expected_waste(self.problem.k - int(np.count_nonzero(regions[row].state == IN)))
            if not chosen or waste <= allowance:
                chosen.append(row)
                allowance -= waste
        return chosen

    def worth_keeping(self, region: Region, walk: EnumerationResult) -> bool:
        """Whether a walk has dealt with so much of its region that its open part is a better start than the region."""
        if walk.finished:
            return True
        if self.enumeration.keeps:
            return not np.any(np.all(walk.open_states == region.state, axis=1))
        total = sum(self._supports(state) for state in walk.open_states)
        return total <= WORTH_KEEPING * self._supports(region.state)

    def _supports(self, state: StateArray) -> int:
        return supports(self.problem.k - int(np.count_nonzero(state == IN)), int(np.count_nonzero(state == FREE)))


@dataclass(frozen=True)
class EnumerateFirst(_Walk):
    """Walk what needs no bound before, as it is small."""

    words = "subtrees enumerated in closed form where that is quicker"

    def close(self, tasks: Sequence[Task], work: RoundWork, work_budget: WorkBudget) -> None:
        """Settles nothing yet; what a walk of the root leaves open would have to do without the root's bound."""
        for task in self.walk(tasks, work, work_budget, bounded=False):
            task.walk_used = task.node.parent >= 0 or cast(EnumerationResult, task.walk).finished


@dataclass(frozen=True)
class EnumerateLater(_Walk):
    """Walk what its bound has left open."""

    def close(self, tasks: Sequence[Task], work: RoundWork, work_budget: WorkBudget) -> None:
        """Settles nothing yet."""
        for task in tasks:
            walk, region = task.walk, task.region
            if walk is not None and region.closed is None and not region.fixings and not task.walk_used:
                task.walk_used = self.worth_keeping(region, walk)
        untried = [task for task in tasks if not task.walk_tried]
        for task in self.walk(untried, work, work_budget, bounded=True):
            task.walk_used = True

    def expected(self, nodes: Sequence[Node], work_budget: WorkBudget) -> FloatArray:
        """Zero: :class:`EnumerateFirst` says it."""
        return np.zeros(len(nodes))


def _iterations(work_budget: WorkBudget) -> float:
    """Those of a usual bound call."""
    return work_budget.iterations / max(1, work_budget.bound_calls)
