"""The whole state of a search: open nodes, incumbent, and the smallest bound discarded below it."""

from __future__ import annotations

import hashlib
import math
import struct
from dataclasses import dataclass, field
from typing import Any

from exactsel.fit import Fit
from exactsel.search.frontier import Frontier
from exactsel.search.memory import node_bytes
from exactsel.search.node import Node
from exactsel.search.subtrees import Prospects, SubtreeRecord


@dataclass
class SearchState:
    """What must be kept to go on later; nothing else in a search outlives a round."""

    frontier: Frontier
    incumbent: Fit
    source: str
    """Who found the incumbent."""
    problem_hash: str
    """Of the problem these nodes are regions of."""
    dropped: float = math.inf
    """The smallest bound among everything discarded: it limits the lower bound where it lies below ``upper``."""
    next_id: int = 1
    nodes: int = 0
    bound_calls: int = 0
    iterations: int = 0
    depth: int = 0
    discarded: int = 0
    open_bytes: int = 0
    """Estimated memory of the open nodes (see memory.py)."""
    scope: str = ""
    """A restriction, in words, under which a bound met so far holds; it outlives the search that met it."""
    walks: SubtreeRecord = field(default_factory=SubtreeRecord)
    """What walking whole subtrees has brought (see subtrees.py)."""
    prospects: Prospects = field(default_factory=Prospects)
    """Whether the end is in sight (see subtrees.py)."""
    in_flight: list[Node] = field(default_factory=list)
    """Nodes taken from the frontier whose round is not committed yet, in the order in which that will be done."""
    _digest: Any = field(default_factory=hashlib.sha256, repr=False)

    def push(self, node: Node) -> None:
        """Open a node."""
        self.frontier.push(node)
        self.open_bytes += node_bytes(node)

    def take(self, count: int) -> list[Node]:
        """The next nodes of the frontier; they are in flight until their round is committed."""
        taken = self.frontier.take(count)
        self.in_flight = self.in_flight + taken
        self.open_bytes -= sum(map(node_bytes, taken))
        return taken

    def put_back(self) -> None:
        """Open the nodes in flight again: their round was not carried out."""
        for node in self.in_flight:
            self.push(node)
        self.in_flight = []

    def prune(self, cutoff: float) -> list[Node]:
        """Take out the open nodes whose bound reaches ``cutoff``."""
        pruned = self.frontier.prune(cutoff)
        self.open_bytes -= sum(map(node_bytes, pruned))
        return pruned

    @property
    def upper(self) -> float:
        """Objective of the incumbent."""
        return self.incumbent.value

    @property
    def lower(self) -> float:
        """A bound no model's objective is below; valid at any moment, also inside a round."""
        flying = min((node.bound for node in self.in_flight), default=math.inf)
        return min(self.upper, self.dropped, self.frontier.lower(), flying)

    @property
    def gap(self) -> float:
        """upper - lower."""
        return self.upper - self.lower

    @property
    def tree_hash(self) -> str:
        """sha256 over everything committed so far, in order."""
        return str(self._digest.hexdigest())

    def record(self, kind: bytes, *numbers: float) -> None:
        """Add one committed fact to the tree hash."""
        self._digest.update(kind + struct.pack(f"<{len(numbers)}d", *numbers))
