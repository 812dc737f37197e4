"""Leave the root to the lister, before it is bounded: the whole problem by listing, where that works.

Or leave the whole problem to the counter of cells, once the search has spent as much as that takes.

The regions it closes come with a proof where the search requires one. It reports no single events, so it is for
searches that are not replayed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from exactsel.bounds.witness import CountedPatterns, InfimumPoint
from exactsel.closers.base import RegionSolver, Task
from exactsel.closers.visit import Interrupted
from exactsel.enumeration.below_minorant import Listed, MinorantEnumerator
from exactsel.enumeration.patterns import PatternEnumerator
from exactsel.enumeration.work_budget import WorkBudget
from exactsel.nodes.node import ROOT_ID
from exactsel.nodes.regions import NodeKept, Region, RoundWork, Visit


@dataclass(frozen=True)
class EnumerateRoot(RegionSolver):
    """The root by listing."""

    enumerator: MinorantEnumerator
    name = "listed"
    label = "listing all that may be as good"
    words = "or all sets of features listed that a quadratic minorant leaves, if these are few"

    def close(self, tasks: Sequence[Task], work: RoundWork, work_budget: WorkBudget) -> None:
        """Settle the root."""
        for task in tasks:
            root = task.node
            if root.id != ROOT_ID or root.tight:
                continue
            listing = _told(self.enumerator, partial(self.enumerator.explore, root.state, work.upper), work)
            if listing is not None:
                visit, proof = Visit(listing.bound, True, listing.nodes), listing.points or InfimumPoint()
                region = Region(root.state, listing.bound, proof, None, True, (visit,), closed="listed")
                task.outcome = NodeKept(root, region)


@dataclass(frozen=True)
class EnumeratePatterns(RegionSolver):
    """The whole problem by its cells."""

    counter: PatternEnumerator
    words = "or all sets of features counted by the cells they divide the rows into"

    def close(self, tasks: Sequence[Task], work: RoundWork, work_budget: WorkBudget) -> None:
        """Settle every node where the whole problem has been counted."""

        def explore() -> Listed | None:
            listing, work.counted = self.counter.explore(work.upper, work_budget.iterations, work_budget.counted)
            return listing

        listing = _told(self.counter, explore, work)
        if listing is None:
            return
        for task in tasks:
            task.outcome = NodeKept(task.node, _closed(task.region, listing.bound))


def _told(
    by: MinorantEnumerator | PatternEnumerator, explore: Callable[[], Listed | None], work: RoundWork
) -> Listed | None:
    """What the lister or the counter says, None where it bounds nothing; a model it has met is offered."""
    began = time.perf_counter()
    listing = explore()
    work.seconds.subtrees += time.perf_counter() - began
    if by.stopped:
        raise Interrupted
    if listing is None:
        return None
    work.offer(listing.fit)
    return listing if math.isfinite(listing.bound) else None


def _closed(region: Region, bound: float) -> Region:
    """A region of a problem that nothing is below ``bound`` in."""
    if bound > region.bound:
        region = replace(region, bound=bound, proof=CountedPatterns())
    return replace(region, closed="listed")
