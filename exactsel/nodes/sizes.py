"""The memory of open nodes, estimated from the nodes alone, so that it is the same on every machine."""

from __future__ import annotations

import numpy as np

from exactsel.bounds.witness import KINDS
from exactsel.nodes.node import Node

NODE_OVERHEAD = 700
"""Bytes of a node's Python objects and of its places in the frontier (measured, rounded up)."""

OBJECT_OVERHEAD = 250
"""The same for what a packed node refers to (table.py), where that is not packed itself."""

MADE_OVERHEAD = 600
"""The same for a point that has been made of packed ones, with its arrays: other nodes wait for it, too."""

HOLES = 1.3
"""Times what packed nodes hold, as arrays that come and go leave holes in memory (measured)."""


def node_bytes(node: Node) -> int:
    """Estimated memory of an open node; what siblings share is counted for each."""
    size = NODE_OVERHEAD + node.state.nbytes + _entry_bytes(node.proof)
    return size if node.warm is node.proof else size + _entry_bytes(node.warm)


def object_bytes(obj: object) -> int:
    """Estimated memory of what proves a bound, or of what to start from."""
    return OBJECT_OVERHEAD + _entry_bytes(obj)


def _entry_bytes(obj: object) -> int:
    if isinstance(obj, np.ndarray):
        return obj.nbytes
    kind = KINDS.get(type(obj))
    return (
        0 if kind is None else sum(getattr(obj, name).nbytes for name, field in kind.fields.items() if not field.shared)
    )
