"""Raise the bound of the whole problem by clusters of its columns, once the search has spent much (walks/clusters.py).

It settles no node: the bound is one of all models, and the search takes it over as that (search/commit.py). No proof
has words for it, so it is for searches that write none.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from exactsel.closers.base import RegionSolver, Task
from exactsel.closers.visit import Interrupted
from exactsel.nodes.regions import RoundWork
from exactsel.walks.clusters import ClusterWalker
from exactsel.walks.effort import Effort


@dataclass(frozen=True)
class BoundByClusters(RegionSolver):
    """The whole problem by clusters."""

    walker: ClusterWalker
    words = "bounds of clusters of like columns where the gap stays"

    def close(self, tasks: Sequence[Task], work: RoundWork, effort: Effort) -> None:
        """Settles nothing."""
        if effort.walks is None:
            return
        began = time.perf_counter()
        lower = min(task.region.bound for task in tasks)
        spent = effort.walks.useful + effort.walks.wasted
        counted = self.walker.explore(work.upper, lower, spent, effort.counted)
        work.seconds.subtrees += time.perf_counter() - began
        if self.walker.stopped:
            raise Interrupted
        if counted != effort.counted:
            work.counted = counted
            if counted.bound > effort.counted.bound:
                work.scope = self.walker.scope or work.scope
