"""The open nodes and the order in which the search takes them."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from sortedcontainers import SortedKeyList

from exactsel.nodes.node import Key, Node, key_of
from exactsel.nodes.sizes import node_bytes
from exactsel.nodes.table import NodeTable
from exactsel.search.block_heap import BlockHeap
from exactsel.search.open_nodes import OpenNodes, Source, merged
from exactsel.types import FloatArray

MOST_OBJECTS = 4096
"""Nodes that are kept as objects; with more, the half that comes last is put into a table."""


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


def _by_depth(node: Node) -> tuple[int, float, int]:
    return -node.depth, node.bound, node.id


def open_nodes(frontier: Frontier, in_flight: Sequence[Node] = ()) -> Sequence[Node]:
    """What is open now, smallest bound first; nodes ``in_flight`` are, too."""
    if isinstance(frontier, BestFirst):
        return frontier.now(in_flight)
    return tuple(sorted((*in_flight, *frontier), key=key_of))


class BestFirst:
    """Take the nodes of smallest bound: no node is ever opened that an optimal search could skip.

    Where there are many, those that come last are kept as a table (nodes/table.py): most of them wait for long, or for
    ever. What comes as a table stays in it until it is taken.
    """

    name = "best-first"

    def __init__(self) -> None:
        self._nodes: SortedKeyList = SortedKeyList(key=key_of)
        self._blocks = BlockHeap()
        self._nodes_bytes = 0

    @property
    def size(self) -> int:
        """Estimated bytes of the nodes that are in memory."""
        return self._nodes_bytes + self._blocks.nbytes

    def push(self, node: Node) -> None:
        """Add an open node."""
        self._nodes.add(node)
        self._nodes_bytes += node_bytes(node)
        if len(self._nodes) > MOST_OBJECTS:
            self._put_away(self._nodes[MOST_OBJECTS // 2])

    def push_table(self, table: NodeTable) -> None:
        """Add open nodes, of which objects are made when they are taken."""
        self._blocks.push_new(table)

    def push_in_order(self, table: NodeTable) -> None:
        """Add open nodes that are in best-first order."""
        self._blocks.push(table)

    def _put_away(self, first: Node) -> None:
        """Keep a node, and those after it, in tables."""
        border = key_of(first)
        last = self._nodes_from(border)
        for at in range(0, len(last), MOST_OBJECTS):
            self.push_in_order(NodeTable.of(last[at : at + MOST_OBJECTS], first.state.size))
        self._remove_from(border)

    def _remove_from(self, border: Key) -> None:
        """Forget the nodes from a place in the order on that are kept as objects."""
        del self._nodes[self._nodes.bisect_key_left(border) :]
        self._nodes_bytes = sum(map(node_bytes, self._nodes))

    def _nodes_from(self, border: Key) -> list[Node]:
        """The nodes from a place in the order on that are kept as objects, in order."""
        return [*self._nodes[self._nodes.bisect_key_left(border) :]]

    def take(self, count: int) -> list[Node]:
        """Remove and return the ``count`` nodes of smallest bound."""
        return [self._take_first() for _ in range(min(count, len(self)))]

    def _take_first(self) -> Node:
        nodes, blocks = self._nodes, self._blocks
        if blocks and not (nodes and key_of(nodes[0]) < blocks.first):
            return blocks.take()
        node: Node = nodes.pop(0)
        self._nodes_bytes -= node_bytes(node)
        return node

    def _first(self) -> Key:
        """The place in the order of the node in memory that comes first; of none, one after all."""
        first = key_of(self._nodes[0]) if self._nodes else (math.inf, sys.maxsize)
        return min(first, self._blocks.first) if self._blocks else first

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
        return [np.array([node.bound for node in self._nodes]), *(reader.bounds() for reader in self._blocks)]

    def prune(self, cutoff: float) -> Iterator[Node]:
        """Remove and return every node whose bound is at least ``cutoff``, by (bound, number)."""
        # Before anything is returned, so that a caller that stops in the middle does not find nodes twice.
        return merged(*self._cut_off((cutoff, -1)))

    def _cut_off(self, border: Key) -> tuple[list[Node], list[Source]]:
        """Take out what is in memory from a place in the order on."""
        nodes = self._nodes_from(border)
        self._remove_from(border)
        return nodes, self._blocks.cut(border)

    def __len__(self) -> int:
        return len(self._nodes) + len(self._blocks)

    def __iter__(self) -> Iterator[Node]:
        return iter(self.now())

    def objects(self) -> Iterator[Node]:
        """The nodes in memory that are kept as objects, smallest bound first."""
        return iter(self._nodes)

    def blocks(self) -> Iterator[tuple[NodeTable, int]]:
        """The others in memory: tables, and the row of each from which on they are."""
        return ((reader.table, reader.at) for reader in self._blocks)

    def now(self, also: Sequence[Node] = ()) -> OpenNodes:
        """The open nodes and ``also`` these, smallest bound first; node objects are created on demand."""
        return OpenNodes([*also, *self._nodes], self._sources())

    def _sources(self) -> list[Source]:
        """The sources of nodes that are created on demand only."""
        return self._blocks.sources()


class _InOrder:
    """Open nodes taken in an order of their own, while the smallest bound is kept track of."""

    def __init__(self, order: Callable[[Node], Any]) -> None:
        self._in_order: SortedKeyList = SortedKeyList(key=order)
        self._by_bound: SortedKeyList = SortedKeyList(key=key_of)

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
