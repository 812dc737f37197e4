"""The open nodes and the order in which the search takes them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from sortedcontainers import SortedKeyList

from exactsel.search.node import Node


class Frontier(Protocol):
    """Open nodes. Ties are broken by node number, so that the order is the same in every run."""

    name: str

    def push(self, node: Node) -> None:
        """Add an open node."""
        ...

    def take(self, count: int) -> list[Node]:
        """Remove and return the next ``count`` nodes (fewer when there are fewer)."""
        ...

    def lower(self) -> float:
        """The smallest bound of an open node; inf when there is none."""
        ...

    def prune(self, cutoff: float) -> list[Node]:
        """Remove and return, in a fixed order, every node whose bound is at least ``cutoff``."""
        ...

    def __len__(self) -> int:
        """How many nodes are open."""
        ...

    def __iter__(self) -> Iterator[Node]:
        """The open nodes, smallest bound first."""
        ...


def _by_bound(node: Node) -> tuple[float, int]:
    return node.bound, node.id


def _by_depth(node: Node) -> tuple[int, float, int]:
    return -node.depth, node.bound, node.id


class BestFirst:
    """Take the nodes of smallest bound: no node is ever opened that an optimal search could skip."""

    name = "best-first"

    def __init__(self) -> None:
        self._nodes: SortedKeyList = SortedKeyList(key=_by_bound)

    def push(self, node: Node) -> None:
        """Add an open node."""
        self._nodes.add(node)

    def take(self, count: int) -> list[Node]:
        """Remove and return the ``count`` nodes of smallest bound."""
        taken = list(self._nodes[:count])
        del self._nodes[:count]
        return taken

    def lower(self) -> float:
        """The smallest bound of an open node; inf when there is none."""
        return float(self._nodes[0].bound) if self._nodes else math.inf

    def bound_at(self, rank: int) -> float:
        """The bound of the node that ``rank`` others come before; inf when there are no more than that."""
        return float(self._nodes[rank].bound) if len(self._nodes) > rank else math.inf

    def prune(self, cutoff: float) -> list[Node]:
        """Remove and return every node whose bound is at least ``cutoff``, by (bound, number)."""
        first = self._nodes.bisect_key_left((cutoff, -1))
        removed = list(self._nodes[first:])
        del self._nodes[first:]
        return removed

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes)


class _InOrder:
    """Open nodes taken in an order of their own, while the smallest bound is kept track of."""

    def __init__(self, order: Callable[[Node], Any]) -> None:
        self._in_order: SortedKeyList = SortedKeyList(key=order)
        self._by_bound: SortedKeyList = SortedKeyList(key=_by_bound)

    def push(self, node: Node) -> None:
        """Add an open node."""
        self._in_order.add(node)
        self._by_bound.add(node)

    def take(self, count: int) -> list[Node]:
        """Remove and return the next ``count`` nodes."""
        taken = list(self._in_order[:count])
        del self._in_order[:count]
        for node in taken:
            self._by_bound.remove(node)
        return taken

    def lower(self) -> float:
        """The smallest bound of an open node; inf when there is none."""
        return float(self._by_bound[0].bound) if self._by_bound else math.inf

    def prune(self, cutoff: float) -> list[Node]:
        """Remove and return every node whose bound is at least ``cutoff``, by (bound, number)."""
        first = self._by_bound.bisect_key_left((cutoff, -1))
        removed = list(self._by_bound[first:])
        del self._by_bound[first:]
        for node in removed:
            self._in_order.remove(node)
        return removed

    def __len__(self) -> int:
        return len(self._by_bound)

    def __iter__(self) -> Iterator[Node]:
        return iter(self._by_bound)


class DepthFirst(_InOrder):
    """Take the deepest nodes, smaller bounds first: few open nodes and early incumbents, but more nodes."""

    name = "depth-first"

    def __init__(self) -> None:
        super().__init__(_by_depth)


class WeightedBestFirst(_InOrder):
    """Weighted A*: take the nodes of smallest bound + weight * estimate.

    The estimate is the objective of the model the node's relaxation was rounded to. Good models come earlier than in
    best-first order, the proof later (Arai, Maung, Xu and Schweitzer 2016 do so for column subset selection). The lower
    bound is that of any search: the smallest bound of an open node.
    """

    name = "weighted"

    def __init__(self, weight: float = 0.5) -> None:
        super().__init__(lambda node: (node.bound + weight * node.estimate, node.id))
