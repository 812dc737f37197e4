"""Leave the root to the lister, before it is bounded: the whole problem by listing, where that works.

Or leave the whole problem to the counter of cells, once the search has spent as much as that takes.

What it closes comes with a proof where the lister was asked for one. It cannot be told event by event, so it is for
searches that nobody wants to replay.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from exactsel.bounds.witness import InfimumPoint
from exactsel.search.node import ROOT_ID, Node
from exactsel.search.regions import NodeKept, Region, RoundWork, Visit, as_region
from exactsel.search.visit import Interrupted
from exactsel.walks.cell_counting import CellCounter
from exactsel.walks.effort import Effort
from exactsel.walks.listing import Listed, Lister


def root_listed(lister: Lister | None, nodes: Sequence[Node], work: RoundWork) -> dict[int, NodeKept]:
    """The outcome of a root that was solved by listing, by id; nothing where there is no such root.

    :class:`Interrupted` when told to stop midway.
    """
    root = next((node for node in nodes if node.id == ROOT_ID and not node.tight), None)
    if lister is None or root is None:
        return {}
    listed = _told(lister, lambda: lister.explore(root.state, work.upper), work)
    if listed is None:
        return {}
    visit = Visit(listed.bound, True, listed.nodes)
    region = Region(root.state, listed.bound, listed.points or InfimumPoint(), None, True, (visit,), closed="listed")
    return {root.id: NodeKept(root, region)}


def all_counted(
    counter: CellCounter | None, nodes: Sequence[Node], work: RoundWork, effort: Effort
) -> dict[int, NodeKept]:
    """The outcome of every node where the whole problem has been counted, by id; nothing where it has not.

    :class:`Interrupted` when told to stop midway.
    """
    if counter is None:
        return {}

    def explore() -> Listed | None:
        listed, work.counted = counter.explore(work.upper, effort.iterations, effort.counted)
        return listed

    listed = _told(counter, explore, work)
    if listed is None:
        return {}
    return {node.id: NodeKept(node, _closed(as_region(node), listed.bound)) for node in nodes}


def _told(by: Lister | CellCounter, explore: Callable[[], Listed | None], work: RoundWork) -> Listed | None:
    """What the lister or the counter says, None where it bounds nothing; a model it has met is offered."""
    began = time.perf_counter()
    listed = explore()
    work.seconds.subtrees += time.perf_counter() - began
    if by.stopped:
        raise Interrupted
    if listed is None:
        return None
    work.offer(listed.fit)
    return listed if math.isfinite(listed.bound) else None


def _closed(region: Region, bound: float) -> Region:
    """A region of a problem that nothing is below ``bound`` in."""
    if bound > region.bound:
        region = replace(region, bound=bound, proof=InfimumPoint())
    return replace(region, closed="listed")
