"""Leave the root to the lister, before it is bounded: the whole problem by listing, where that works.

What it closes comes with a proof where the lister was asked for one. It cannot be told event by event, so it is for
searches that nobody wants to replay.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from exactsel.bounds.witness import InfimumPoint
from exactsel.search.node import ROOT_ID, Node
from exactsel.search.regions import NodeKept, Region, RoundWork, Visit
from exactsel.search.visit import Interrupted
from exactsel.walks.listing import Lister


def root_listed(lister: Lister | None, nodes: Sequence[Node], work: RoundWork) -> dict[int, NodeKept]:
    """The outcome of a root that was solved by listing, by id; nothing where there is no such root.

    :class:`Interrupted` when told to stop midway.
    """
    root = next((node for node in nodes if node.id == ROOT_ID and not node.tight), None)
    if lister is None or root is None:
        return {}
    began = time.perf_counter()
    listed = lister.explore(root.state, work.upper)
    work.seconds.subtrees += time.perf_counter() - began
    if lister.stopped:
        raise Interrupted
    if listed is None:
        return {}
    work.offer(listed.fit)
    if not math.isfinite(listed.bound):
        return {}
    visit = Visit(listed.bound, True, listed.nodes)
    region = Region(root.state, listed.bound, listed.points or InfimumPoint(), None, True, (visit,), closed="listed")
    return {root.id: NodeKept(root, region)}
