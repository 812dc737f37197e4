"""Keep the open nodes within a memory limit: those that come last wait on a disk.

Where the order is not best first, the search goes depth-first for a while instead: that keeps a path's worth of nodes
open. No node is ever dropped. Sizes are estimated (sizes.py), so that what is done is the same on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from exactsel.errors import OutputError, OutputWarning, warn
from exactsel.search.frontier import BestFirst, DepthFirst, Frontier
from exactsel.search.spilling import Spilling

MEBIBYTE = 2**20

RELIEVED = 0.8
"""Part of the limit below which the search returns to its own order."""

HOPELESS = 1.5
"""Times the limit at which nothing has helped, and the search stops."""


@dataclass
class MemoryGuard:
    """Which frontier the search should use, given the bytes its open nodes take."""

    limit: float = math.inf
    """MiB of open nodes."""
    usual: Frontier | None = None
    """The frontier to come back to, while the search goes depth-first."""
    spilling: Callable[[BestFirst], Spilling] | None = None
    """Makes a frontier that can put nodes on a disk; None where there is none to use."""

    def choose(self, current: Frontier, size: int) -> Frontier:
        """The frontier to use from now on; nodes are moved over when it changes."""
        if self.usual is None and size > self.limit * MEBIBYTE:
            if isinstance(current, BestFirst) and self.spilling is not None:
                return self._spilled(current)
            if isinstance(current, Spilling):
                return current
            self.usual = current
            return _moved(current, DepthFirst())
        if self.usual is not None and size < RELIEVED * self.limit * MEBIBYTE:
            return self.release(current)
        return current

    def _spilled(self, current: BestFirst) -> Frontier:
        """Put half of the nodes on the disk; where that takes none, they stay, and it is not tried again."""
        assert self.spilling is not None
        spilling = current if isinstance(current, Spilling) else self.spilling(current)
        try:
            spilling.spill()
        except OutputError as error:
            warn(f"{error} Open nodes stay in memory.", OutputWarning)
            self.spilling = None
        return spilling

    def release(self, current: Frontier) -> Frontier:
        """The frontier the search was given, holding what is open now."""
        if self.usual is None:
            return current
        usual, self.usual = self.usual, None
        return _moved(current, usual)

    def stop_above(self, current: Frontier, size: int) -> bool:
        """Whether the open nodes have outgrown the limit, and nothing can be done about it."""
        if isinstance(current, BestFirst) and self.spilling is not None:
            return False
        return size > HOPELESS * self.limit * MEBIBYTE


def _moved(source: Frontier, target: Frontier) -> Frontier:
    for node in source.take(len(source)):
        target.push(node)
    return target
