"""Regions that were closed within the tolerance: what a finer one opens again, instead of a search from the start.

A region whose bound reaches the cut-off is closed although a better model may be in it, by no more than the tolerance.
Such regions are kept here. Where a kernel closed parts of a region by itself, that region is kept as a whole: the parts
of it that are open elsewhere are then searched twice, and nothing is lost.
"""

from __future__ import annotations

import math
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from exactsel.nodes.node import Node

MOST = 20_000
"""Nodes that are kept, those of the smallest bounds."""


class Kept(NamedTuple):
    """A region, and the smallest bound of what was closed in it."""

    closed_at: float
    node: Node


class Reserve:
    """Regions closed within the tolerance, as far as there is room; ``outside`` is the smallest bound of the others."""

    def __init__(self, regions: tuple[Kept, ...] = (), outside: float = math.inf, most: int = MOST) -> None:
        self._heap = [(-region.closed_at, i, region.node) for i, region in enumerate(regions)]
        heapify(self._heap)
        self._count, self._most, self.outside = len(regions), most, outside

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def kept(self) -> tuple[Kept, ...]:
        """All of them, in the order of their bounds."""
        return tuple(Kept(-bound, node) for bound, _, node in sorted(self._heap, key=_order))

    def close(self, bound: float, node: Node | None) -> None:
        """Something was closed at a bound; None where it cannot be opened again."""
        if node is None:
            self.outside = min(self.outside, bound)
            return
        self._count += 1
        heappush(self._heap, (-bound, self._count, node))
        if len(self._heap) > self._most:
            self.outside = min(self.outside, -heappop(self._heap)[0])

    def forget_from(self, value: float) -> None:
        """A model of this objective is known, so that what was closed from there on is closed for good."""
        while self._heap and -self._heap[0][0] >= value:
            heappop(self._heap)

    def take_below(self, cutoff: float) -> list[Node]:
        """Take out all that was closed below a cut-off, smallest bounds first."""
        again = [region for region in self.kept if region.closed_at < cutoff]
        self._heap = [entry for entry in self._heap if -entry[0] >= cutoff]
        heapify(self._heap)
        return [region.node for region in again]

    def lower(self) -> float:
        """The smallest bound of anything closed within the tolerance."""
        return min([self.outside, *(-bound for bound, _, _ in self._heap)])


def _order(entry: tuple[float, int, Node]) -> tuple[float, int]:
    """By bound, and what was closed first comes first: so a saved reserve resumes as it was."""
    return -entry[0], entry[1]
