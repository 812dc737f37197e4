"""The open nodes of a frontier that are kept as tables: whose next node comes first, how many they are, their memory.

What closers leave open comes in small tables, many of which share what they refer to. They are put together before the
next node is taken, and later with each other, as each table takes some memory of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush, heapreplace

from exactsel.nodes.node import Key, Node
from exactsel.nodes.objects import Objects
from exactsel.nodes.table import NodeTable, TableReader
from exactsel.search.open_nodes import Source

SMALL = 4096
"""Nodes below which a table may be put together with others, ..."""

MOST_SMALL = 64
"""... when there are more of them than this."""


class BlockHeap:
    """A heap of node tables, ordered only so far that the table whose next node is best comes first."""

    def __init__(self) -> None:
        self._in_order: list[TableReader] = []
        self._new: list[NodeTable] = []
        """In no order."""
        self._count = self._bytes = 0

    def __len__(self) -> int:
        """How many nodes there are."""
        return self._count

    @property
    def nbytes(self) -> int:
        """Memory they take."""
        self._readers()
        return self._bytes

    def __iter__(self) -> Iterator[TableReader]:
        return iter(self._readers())

    @property
    def first(self) -> Key:
        """The place in the order of the node that comes first; there must be one."""
        return self._readers()[0].first

    def push(self, table: NodeTable) -> None:
        """Add nodes, in best-first order."""
        reader = TableReader(table)
        heappush(self._in_order, reader)
        self._count, self._bytes = self._count + len(reader), self._bytes + reader.nbytes

    def push_new(self, table: NodeTable) -> None:
        """Add nodes in any order."""
        if len(table):
            self._new.append(table)
            self._count += len(table)

    def _readers(self) -> list[TableReader]:
        """All there are, as a heap."""
        if self._new:
            self._put_in_order()
        return self._in_order

    def _put_in_order(self) -> None:
        new, self._new = self._new, []
        by_objects: dict[int, list[NodeTable]] = {}
        for table in new:
            by_objects.setdefault(id(table.objects), []).append(table)
        self._in_order += [TableReader(NodeTable.joined(tables)) for tables in by_objects.values()]
        small = [reader for reader in self._in_order if len(reader) < SMALL]
        if len(small) > MOST_SMALL and Objects.can_be_joined([reader.table.objects for reader in small]):
            large = [reader for reader in self._in_order if len(reader) >= SMALL]
            self._in_order = [*large, TableReader(NodeTable.joined([reader.rest() for reader in small]))]
        self._changed()

    def _changed(self) -> None:
        heapify(self._in_order)
        self._count = sum(map(len, self._in_order)) + sum(map(len, self._new))
        self._bytes = sum(reader.nbytes for reader in self._in_order)

    def take(self) -> Node:
        """Remove and return the node that comes first."""
        readers = self._readers()
        reader = readers[0]
        before = reader.nbytes
        node = reader.take()
        self._count, self._bytes = self._count - 1, self._bytes + reader.nbytes - before
        if reader:
            heapreplace(readers, reader)
        else:
            heappop(readers)
        return node

    def cut(self, border: Key) -> list[Source]:
        """Take out what is there from a place in the order on."""
        places = [(reader.table, max(reader.at, reader.table.rows_before(border))) for reader in self._readers()]
        sources = [source(TableReader(table, row)) for table, row in places if row < len(table)]
        self.drop(border)
        return sources

    def drop(self, border: Key) -> None:
        """Forget what is there from a place in the order on; one table after the other, as memory may be short."""
        readers, survivors = self._readers()[::-1], []
        self._in_order = []
        try:
            while readers:
                reader = readers[-1]
                row = max(reader.at, reader.table.rows_before(border))
                some = row > reader.at
                if some and row < len(reader.table):
                    reader.cut(row)
                del readers[-1]
                survivors += [reader] if some else []
        finally:
            self._in_order = [*survivors, *readers]
            self._changed()

    def sources(self) -> list[Source]:
        """All nodes, which stay."""
        return [source(TableReader(reader.table, reader.at)) for reader in self._readers()]


def source(reader: TableReader) -> Source:
    """The nodes of a reader, created on demand."""
    return Source(reader.first, len(reader), lambda: TableReader(reader.table, reader.at))
