"""OKRidge."""

from __future__ import annotations

import sys
from types import SimpleNamespace

from benchmarks.speed.peers.common import Answer, Task, nonzeros


def switch_off_collections(task: Task) -> None:
    """OKRidge as released collects garbage about three times a node, which says nothing about its method."""
    import okridge.node
    import okridge.solvers
    import okridge.tree

    for module in (okridge.tree, okridge.node, okridge.solvers):
        module.gc = SimpleNamespace(collect=lambda: 0)


def okridge(task: Task) -> Answer:
    """Solve. Its objective is 2P - y'y, and so is what its gap is relative to; the demand is rescaled."""
    from okridge.tree import BNBTree

    constant = float(task.y @ task.y)
    gap = task.rel_gap * 2.0 * task.upper / abs(2.0 * task.upper - constant)
    tree = BNBTree(task.A, task.y, lambda2=task.lam)
    upper, coef, own_gap, lower, _ = tree.solve(k=task.k, gap_tol=gap, time_limit=task.time_limit)
    # When its queue is empty it gives the upper bound as the lower one, though it drops nodes within the gap asked for.
    finished = bool(own_gap <= gap)
    lower = min(lower, upper - gap * abs(upper)) if finished else lower
    known = lower > -sys.maxsize / 2
    shifted = float(lower + constant) / 2.0 if known else None
    return Answer(nonzeros(coef), shifted, int(tree.number_of_nodes), finished)
