"""Keep the open nodes within a memory limit by going depth-first for a while.

Best-first search keeps every open node, depth-first search only a path's worth. Above the limit the frontier is
exchanged for a depth-first one until enough has been closed; no node is ever dropped. Sizes are estimated from the
nodes alone, so that the tree stays the same on every machine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from exactsel.bounds.witness import DualPoint, ModelPoint, SplitPoint
from exactsel.search.frontier import DepthFirst, Frontier
from exactsel.search.node import Node

MEBIBYTE = 2**20
NODE_OVERHEAD = 700
"""Bytes of a node's Python objects and of its places in the frontier (measured, rounded up)."""

RELIEVED = 0.8
"""Part of the limit below which the search returns to its own order."""

HOPELESS = 1.5
"""Times the limit at which even depth-first search has not helped, and the search stops."""


def node_bytes(node: Node) -> int:
    """Estimated memory of an open node; what siblings share is counted for each."""
    size = NODE_OVERHEAD + node.state.nbytes
    if isinstance(node.proof, ModelPoint):
        size += node.proof.index.nbytes + node.proof.value.nbytes
    elif isinstance(node.proof, DualPoint):
        size += node.proof.beta.nbytes
    elif isinstance(node.proof, SplitPoint):
        size += _split_bytes(node.proof)
    if node.warm is not node.proof:
        size += _split_bytes(node.warm) if isinstance(node.warm, SplitPoint) else int(getattr(node.warm, "nbytes", 0))
    return size


def _split_bytes(point: SplitPoint) -> int:
    return point.columns.nbytes + point.scale.nbytes + point.entries.nbytes


@dataclass
class MemoryGuard:
    """Which frontier the search should use, given the bytes its open nodes take."""

    limit: float = math.inf
    """MiB of open nodes."""
    usual: Frontier | None = None
    """The frontier to come back to, while the search goes depth-first."""

    def choose(self, current: Frontier, size: int) -> Frontier:
        """The frontier to go on with; nodes are moved over when it changes."""
        if self.usual is None and size > self.limit * MEBIBYTE:
            self.usual = current
            return _moved(current, DepthFirst())
        if self.usual is not None and size < RELIEVED * self.limit * MEBIBYTE:
            return self.release(current)
        return current

    def release(self, current: Frontier) -> Frontier:
        """The frontier the search was given, holding what is open now."""
        if self.usual is None:
            return current
        usual, self.usual = self.usual, None
        return _moved(current, usual)

    def hopeless(self, size: int) -> bool:
        """Whether the open nodes have outgrown the limit all the same."""
        return size > HOPELESS * self.limit * MEBIBYTE


def _moved(source: Frontier, target: Frontier) -> Frontier:
    for node in source.take(len(source)):
        target.push(node)
    return target
