"""The open nodes and the order in which the search takes them."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import Any, Protocol

import numpy as np
from sortedcontainers import SortedKeyList

from exactsel.nodes.left_open import compacted
from exactsel.nodes.node import Node
from exactsel.nodes.waiting import Key, Waiting, best_first_order, key_of, made
from exactsel.search.block_heap import BlockHeap
from exactsel.search.node_block import NodeBlock
from exactsel.search.open_nodes import OpenNodes, Source, merged
from exactsel.search.sizes import hot_bytes
from exactsel.types import FloatArray

MOST_HOT = 16384
"""Nodes that are kept as objects; with more, the half that comes last is packed."""


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


def open_nodes(frontier: Frontier, in_flight: Sequence[Node] = ()) -> Sequence[Node]:
    """What is open now, smallest bound first; nodes ``in_flight`` are, too."""
    if isinstance(frontier, BestFirst):
        return frontier.now(in_flight)
    return tuple(sorted((*in_flight, *frontier), key=_by_bound))


class BestFirst:
    """Take the nodes of smallest bound: no node is ever opened that an optimal search could skip.

    Where there are many, those that come last are packed (node_block.py): most of them wait for long, or for ever.
    """

    name = "best-first"

    def __init__(self) -> None:
        self._nodes: SortedKeyList = SortedKeyList(key=_by_bound)
        self._regions: list[Waiting] = []
        """A heap."""
        self._blocks = BlockHeap()
        self._hot_bytes = 0

    @property
    def size(self) -> int:
        """Estimated bytes of the nodes that are in memory."""
        return self._hot_bytes + self._blocks.nbytes

    def push(self, node: Node) -> None:
        """Add an open node."""
        self._nodes.add(node)
        self._hot_bytes += hot_bytes(node)
        self._pack_if_many()

    def push_region(self, region: Waiting) -> None:
        """Add an open node that is to be made when it is taken."""
        heappush(self._regions, region)
        self._hot_bytes += hot_bytes(region)
        self._pack_if_many()

    def push_block(self, block: NodeBlock) -> None:
        """Add open nodes that are packed already."""
        self._blocks.push(block)

    def _pack_if_many(self) -> None:
        if len(self._nodes) + len(self._regions) > MOST_HOT:
            self._pack(self._hot_in_order()[MOST_HOT // 2 :])

    def _pack(self, last: Sequence[Node | Waiting]) -> None:
        """Pack the nodes that come last of those that are not."""
        for first in range(0, len(last), MOST_HOT):
            self.push_block(NodeBlock.of([made(one) for one in last[first : first + MOST_HOT]]))
        self._remove_from(key_of(last[0]))

    def _remove_from(self, border: Key) -> None:
        """Forget the nodes from a place in the order on that are not packed."""
        del self._nodes[self._nodes.bisect_key_left(border) :]
        self._regions = compacted([one for one in self._regions if one < border])
        heapify(self._regions)
        self._hot_bytes = sum(map(hot_bytes, self._nodes)) + sum(map(hot_bytes, self._regions))

    def _hot_from(self, border: Key) -> list[Node | Waiting]:
        """The nodes from a place in the order on that are not packed, in order."""
        first = self._nodes.bisect_key_left(border)
        return best_first_order([*self._nodes[first:]], [one for one in self._regions if not one < border])

    def take(self, count: int) -> list[Node]:
        """Remove and return the ``count`` nodes of smallest bound."""
        return [self._take_first() for _ in range(min(count, len(self)))]

    def _take_first(self) -> Node:
        first, blocks = self._first(), self._blocks
        if blocks and blocks.first == first:
            return blocks.take()
        one = self._nodes.pop(0) if self._nodes and _by_bound(self._nodes[0]) == first else heappop(self._regions)
        self._hot_bytes -= hot_bytes(one)
        return made(one)

    def _first(self) -> Key:
        """The place in the order of the node in memory that comes first; of none, one after all."""
        nodes, regions, blocks = self._nodes, self._regions, self._blocks
        first = _by_bound(nodes[0]) if nodes else (math.inf, sys.maxsize)
        if regions:
            first = min(first, key_of(regions[0]))
        return min(first, blocks.first) if blocks else first

    def lower(self) -> float:
        """The smallest bound of an open node; inf when there is none."""
        return float(self._first()[0])

    def bound_at(self, rank: int) -> float:
        """The bound of the node that ``rank`` others come before; inf when there are no more than that."""
        if len(self) <= rank:
            return math.inf
        if len(self._nodes) == len(self):
            return float(self._nodes[rank].bound)
        return float(np.partition(np.concatenate(self._bounds()), rank)[rank])

    def _bounds(self) -> list[FloatArray]:
        """Those of all open nodes."""
        hot = np.array([one.bound for one in (*self._nodes, *self._regions)])
        return [hot, *(block.bounds() for block in self._blocks)]

    def prune(self, cutoff: float) -> Iterator[Node]:
        """Remove and return every node whose bound is at least ``cutoff``, by (bound, number)."""
        # Before anything is returned, so that nobody who stops in the middle finds nodes twice.
        return merged(*self._cut_off((cutoff, -1)))

    def _cut_off(self, border: Key) -> tuple[list[Node | Waiting], list[Source]]:
        """Take out what is in memory from a place in the order on."""
        nodes = self._hot_from(border)
        self._remove_from(border)
        return nodes, self._blocks.cut(border)

    def __len__(self) -> int:
        return len(self._nodes) + len(self._regions) + len(self._blocks)

    def __iter__(self) -> Iterator[Node]:
        return iter(self.now())

    def not_packed(self) -> Iterator[Node]:
        """The nodes in memory that are not packed, smallest bound first."""
        return map(made, self._hot_in_order())

    def _hot_in_order(self) -> list[Node | Waiting]:
        return best_first_order([*self._nodes], self._regions)

    def blocks(self) -> Iterator[tuple[NodeBlock, int]]:
        """The others in memory: blocks, and the row of each from which on they are."""
        return ((reader.block, reader.at) for reader in self._blocks)

    def now(self, also: Sequence[Node] = ()) -> OpenNodes:
        """What is open now, and ``also`` these, smallest bound first; nodes are made when they are asked for."""
        return OpenNodes([*also, *self._nodes, *self._regions], self._sources())

    def _sources(self) -> list[Source]:
        """What is not to be made before it is asked for."""
        return self._blocks.sources()


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
