"""The packed blocks of a frontier: whose next node comes first, how many nodes they hold and what these take."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush, heapreplace

from exactsel.nodes.node import Node
from exactsel.nodes.waiting import Key
from exactsel.search.node_block import BlockReader, NodeBlock
from exactsel.search.open_nodes import Source


class BlockHeap:
    """Blocks, in no order but that the one whose next node comes first is at hand."""

    def __init__(self) -> None:
        self._readers: list[BlockReader] = []
        self._count = self._bytes = 0

    def __len__(self) -> int:
        """How many nodes there are."""
        return self._count

    @property
    def nbytes(self) -> int:
        """Memory they take."""
        return self._bytes

    def __iter__(self) -> Iterator[BlockReader]:
        return iter(self._readers)

    @property
    def first(self) -> Key:
        """The place in the order of the node that comes first; there must be one."""
        return self._readers[0].first

    def push(self, block: NodeBlock) -> None:
        """Add a block."""
        reader = BlockReader(block)
        heappush(self._readers, reader)
        self._count, self._bytes = self._count + len(reader), self._bytes + reader.nbytes

    def take(self) -> Node:
        """Remove and return the node that comes first."""
        reader = self._readers[0]
        before = reader.nbytes
        node = reader.take()
        self._count, self._bytes = self._count - 1, self._bytes + reader.nbytes - before
        if reader:
            heapreplace(self._readers, reader)
        else:
            heappop(self._readers)
        return node

    def cut(self, border: Key) -> list[Source]:
        """Take out what is there from a place in the order on."""
        rows = [max(reader.at, reader.block.rows_before(border)) for reader in self._readers]
        sources = [
            source(BlockReader(reader.block, row))
            for reader, row in zip(self._readers, rows, strict=True)
            if row < len(reader.block)
        ]
        self.drop(border)
        return sources

    def drop(self, border: Key) -> None:
        """Forget what is there from a place in the order on; one block after the other, as memory may be short."""
        readers, kept = self._readers[::-1], []
        self._readers = []
        try:
            while readers:
                reader = readers[-1]
                row = max(reader.at, reader.block.rows_before(border))
                some = row > reader.at
                if some and row < len(reader.block):
                    reader.cut(row)
                del readers[-1]
                kept += [reader] if some else []
        finally:
            self._readers = [*kept, *readers]
            heapify(self._readers)
            self._count, self._bytes = sum(map(len, self._readers)), sum(reader.nbytes for reader in self._readers)

    def sources(self) -> list[Source]:
        """All nodes, which stay."""
        return [source(BlockReader(reader.block, reader.at)) for reader in self._readers]


def source(reader: BlockReader) -> Source:
    """The nodes of a reader, to be made when they are asked for."""
    return Source(reader.first, len(reader), reader.__iter__)
