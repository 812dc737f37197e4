"""What open nodes take in memory, estimated from the nodes alone, so that it is the same on every machine."""

from __future__ import annotations

from exactsel.bounds.witness import DualPoint, ModelPoint, SplitPoint
from exactsel.search.frontier import Waiting
from exactsel.search.node import Node

NODE_OVERHEAD = 700
"""Bytes of a node's Python objects and of its places in the frontier (measured, rounded up)."""

WAITING_OVERHEAD = 340
"""The same for one that has not been made yet."""


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


def waiting_bytes(region: Waiting) -> int:
    """Estimated memory of one that waits in the arrays its round left: that of its node, but for what objects take."""
    return WAITING_OVERHEAD + int(region.left.states.shape[1]) + region.left.point_bytes(region.row)


def _split_bytes(point: SplitPoint) -> int:
    return point.columns.nbytes + point.scale.nbytes + point.entries.nbytes
