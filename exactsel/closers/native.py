"""Leave what is below nodes to the relaxation's own kernel, which searches by itself (kernels/native_search.py)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from exactsel.closers.base import Kernel, Task, settle
from exactsel.closers.visit import Interrupted
from exactsel.enumeration.native import NativeBranchAndBound
from exactsel.enumeration.work_budget import WorkBudget
from exactsel.nodes.left_open import left_below
from exactsel.nodes.node import Node, is_convex
from exactsel.nodes.regions import Outcome, RoundWork
from exactsel.nodes.subtree import searched
from exactsel.problem.restrictions import proposed


@dataclass(frozen=True)
class NativeSearch(Kernel):
    """Leave nodes to the relaxation's own kernel, but for convex ones, which are solved with more care."""

    native: NativeBranchAndBound
    name = "below"
    label = "searches inside the kernel"
    words = "subtrees searched inside the kernel"

    def close(self, tasks: Sequence[Task], work: RoundWork, work_budget: WorkBudget) -> None:
        """Settle the nodes that are searched."""
        wide = [task.node for task in tasks if not is_convex(task.node.state, self.problem.k)]
        settle(tasks, self._search(wide, work, work_budget))

    def _search(self, wide: list[Node], work: RoundWork, work_budget: WorkBudget) -> dict[int, Outcome]:
        budget = work_budget.subsearch_budget(self.native.iteration_cost, len(wide)) if wide else 0
        if budget == 0:
            return {}
        began, before = time.perf_counter(), work.upper
        trees = self.native.explore(
            np.stack([node.state for node in wide]), [node.warm for node in wide],
            np.array([node.bound for node in wide]), work.upper, self.tolerance.absolute(work.upper), budget,
            work_budget.horizon,
        )  # fmt: skip
        if trees is None:
            raise Interrupted
        for search in trees:
            work.offer(proposed(self.problem, search.support))
        work.seconds.subtrees += time.perf_counter() - began
        sound = [
            i for i, search in enumerate(trees) if not self.closed_too_soon(search.min_pruned_bound, before, work.upper)
        ]
        wide, searches = [wide[i] for i in sound], [trees[i] for i in sound]
        if not wide:
            return {}
        open_regions = left_below(wide, searches, self.cutoff(work.upper))
        return {
            node.id: searched(node, search, below, self.name)
            for node, search, below in zip(wide, searches, open_regions, strict=True)
        }
