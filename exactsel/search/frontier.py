"""The open nodes and the order in which the search takes them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, overload

import numpy as np
from sortedcontainers import SortedKeyList

from exactsel.search.node import Node

if TYPE_CHECKING:
    from exactsel.search.left_open import LeftOpen


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

    def prune(self, cutoff: float) -> Iterable[Node]:
        """Remove and return, by bound and number, every node whose bound is at least ``cutoff``."""
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


class Waiting(NamedTuple):
    """An open node that has not been made yet."""

    bound: float
    number: int
    row: int
    left: LeftOpen
    """What holds it, in that row."""
    parent: int
    depth: int

    def node(self) -> Node:
        """The node."""
        return self.left.node(self.row, self.number, self.parent, self.depth)


class OpenNodes(Sequence[Node]):
    """Open nodes, smallest bound first, some of which are made when they are asked for."""

    def __init__(self, nodes: list[Node | Waiting]) -> None:
        self._nodes = nodes
        self._sorted = False

    def __len__(self) -> int:
        return len(self._nodes)

    @overload
    def __getitem__(self, at: int) -> Node: ...
    @overload
    def __getitem__(self, at: slice) -> list[Node]: ...
    def __getitem__(self, at: int | slice) -> Node | list[Node]:
        if not self._sorted:
            self._nodes.sort(key=lambda one: (one.bound, one.number if isinstance(one, Waiting) else one.id))
            self._sorted = True
        found = self._nodes[at]
        return [_made(one) for one in found] if isinstance(found, list) else _made(found)


def _made(one: Node | Waiting) -> Node:
    return one.node() if isinstance(one, Waiting) else one


def open_nodes(frontier: Frontier, in_flight: Sequence[Node] = ()) -> Sequence[Node]:
    """What is open now, smallest bound first; nodes ``in_flight`` are, too."""
    if isinstance(frontier, BestFirst):
        return frontier.now(in_flight)
    return tuple(sorted((*in_flight, *frontier), key=_by_bound))


class BestFirst:
    """Take the nodes of smallest bound: no node is ever opened that an optimal search could skip."""

    name = "best-first"

    def __init__(self) -> None:
        self._nodes: SortedKeyList = SortedKeyList(key=_by_bound)
        self._regions: list[Waiting] = []
        """A heap."""
        self.made = 0
        """Nodes that were made when they were taken out, since this was last set to 0."""

    def push(self, node: Node) -> None:
        """Add an open node."""
        self._nodes.add(node)

    def push_region(self, region: Waiting) -> None:
        """Add an open node that is to be made when it is taken."""
        heappush(self._regions, region)

    def take(self, count: int) -> list[Node]:
        """Remove and return the ``count`` nodes of smallest bound."""
        nodes, regions, taken = self._nodes, self._regions, []
        for _ in range(min(count, len(self))):
            if regions and not (nodes and _by_bound(nodes[0]) < (regions[0].bound, regions[0].number)):
                taken.append(heappop(regions).node())
                self.made += 1
            else:
                taken.append(nodes.pop(0))
        return taken

    def lower(self) -> float:
        """The smallest bound of an open node; inf when there is none."""
        lowest = self._regions[0].bound if self._regions else math.inf
        return min(lowest, float(self._nodes[0].bound)) if self._nodes else lowest

    def bound_at(self, rank: int) -> float:
        """The bound of the node that ``rank`` others come before; inf when there are no more than that."""
        if len(self) <= rank:
            return math.inf
        if not self._regions:
            return float(self._nodes[rank].bound)
        bounds = np.array([*(region.bound for region in self._regions), *(node.bound for node in self._nodes)])
        return float(np.partition(bounds, rank)[rank])

    def prune(self, cutoff: float) -> list[Node]:
        """Remove and return every node whose bound is at least ``cutoff``, by (bound, number)."""
        first = self._nodes.bisect_key_left((cutoff, -1))
        removed = list(self._nodes[first:])
        del self._nodes[first:]
        made = [region.node() for region in self._regions if region.bound >= cutoff]
        self.made += len(made)
        removed += made
        self._regions = [region for region in self._regions if not region.bound >= cutoff]
        heapify(self._regions)
        return sorted(removed, key=_by_bound)

    def __len__(self) -> int:
        return len(self._nodes) + len(self._regions)

    def __iter__(self) -> Iterator[Node]:
        return iter(self.now())

    def now(self, also: Sequence[Node] = ()) -> OpenNodes:
        """What is open now, and ``also`` these, smallest bound first; nodes are made when they are asked for."""
        return OpenNodes([*also, *self._nodes, *self._regions])


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
