"""Raise the bound of the whole problem by clusters of its columns, once the search has spent much
(enumeration/clusters.py).

It settles no node: the bound is one of all models, and the search takes it over as that (search/commit.py). No proof
has words for it, so it is for searches that write none.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from exactsel.closers.base import RegionSolver, Task
from exactsel.closers.visit import Interrupted
from exactsel.enumeration.clusters import ClusterBound
from exactsel.enumeration.work_budget import WorkBudget
from exactsel.nodes.regions import RoundWork


@dataclass(frozen=True)
class BoundByClusters(RegionSolver):
    """The whole problem by clusters."""

    enumeration: ClusterBound
    words = "bounds of clusters of like features where the gap stays"

    def close(self, tasks: Sequence[Task], work: RoundWork, work_budget: WorkBudget) -> None:
        """Settles nothing."""
        if work_budget.walks is None:
            return
        began = time.perf_counter()
        lower = min(task.region.bound for task in tasks)
        spent = work_budget.walks.useful + work_budget.walks.wasted
        counted = self.enumeration.explore(work.upper, lower, spent, work_budget.counted)
        work.seconds.subtrees += time.perf_counter() - began
        if self.enumeration.stopped:
            raise Interrupted
        if counted != work_budget.counted:
            work.counted = counted
            if counted.bound > work_budget.counted.bound:
                work.valid_for = self.enumeration.valid_for or work.valid_for
