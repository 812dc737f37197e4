"""The open nodes at one moment, in best-first order; some node objects are created on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import islice
from typing import NamedTuple, overload

from exactsel.nodes.node import Key, Node, key_of


class Source(NamedTuple):
    """Nodes in order, of which nothing is made before it is their turn."""

    first: Key
    """The place of the first one."""
    nodes: int
    read: Callable[[], Iterator[Node]]


def merged(nodes: Sequence[Node], sources: Iterable[Source]) -> Iterator[Node]:
    """Nodes in order, and those of some sources; nothing of a source is read before its first node is next."""
    waiting = sorted(sources, key=lambda source: source.first, reverse=True)
    read: list[tuple[Key, int, Iterator[Node], Node]] = []

    def enter(place: int, stream: Iterator[Node]) -> None:
        node = next(stream, None)
        if node is not None:
            heappush(read, (key_of(node), place, stream, node))

    enter(0, iter(nodes))
    while read or waiting:
        while waiting and (not read or waiting[-1].first < read[0][0]):
            enter(len(waiting), waiting.pop().read())
        _, place, stream, node = heappop(read)
        enter(place, stream)
        yield node


class OpenNodes(Sequence[Node]):
    """Open nodes, smallest bound first; on a disk they are as long as nothing else is done with them."""

    def __init__(self, nodes: Sequence[Node], sources: Sequence[Source] = ()) -> None:
        self._nodes, self._sources = sorted(nodes, key=key_of), sources

    def __len__(self) -> int:
        return len(self._nodes) + sum(source.nodes for source in self._sources)

    def __iter__(self) -> Iterator[Node]:
        return merged(self._nodes, self._sources)

    @overload
    def __getitem__(self, at: int) -> Node: ...
    @overload
    def __getitem__(self, at: slice) -> list[Node]: ...
    def __getitem__(self, at: int | slice) -> Node | list[Node]:
        if isinstance(at, slice):
            wanted = range(len(self))[at]
            found = {i: node for i, node in enumerate(islice(self, max(wanted, default=-1) + 1)) if i in wanted}
            return [found[i] for i in wanted]
        place = range(len(self))[at]
        return self._nodes[place] if not self._sources else next(islice(self, place, None))
