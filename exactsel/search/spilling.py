"""Best-first search over more open nodes than memory has room for: the least urgent ones wait on a disk.

Nodes of large bounds are taken last, and many of them never, because a better model overtakes them. Above the memory
limit the half with the larger bounds is divided into chunks, each a piece of the order, and written away as it is
packed (nodes/table.py); a chunk comes back as a whole when its first node is next. So nodes are taken in the order in
which they would be without any limit, and the tree is the same. Of a node on the disk memory holds its bound.
"""

from __future__ import annotations

import sqlite3
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappush
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from exactsel.errors import OutputError
from exactsel.nodes.node import Key, Node
from exactsel.nodes.table import KEYS, NodeTable, TableReader, in_order
from exactsel.problem.interface import SubsetProblem
from exactsel.search.frontier import BestFirst
from exactsel.search.layout import refusing_damage, require
from exactsel.search.open_nodes import Source, merged
from exactsel.search.packed_bytes import from_bytes, to_bytes
from exactsel.search.packed_nodes import nodes_from, packed_nodes
from exactsel.types import FloatArray, IntArray

CHUNK = 4096
"""Nodes in a chunk."""

FEWEST = 64
"""Nodes that stay in memory under any limit: the next rounds take them."""


class Room(Protocol):
    """Where chunks are kept."""

    def add_chunk(self, data: bytes, keys: bytes) -> int:
        """Store nodes, and beside them what their order is; :class:`exactsel.errors.OutputError` on a full disk."""
        ...

    def chunk(self, number: int) -> bytes:
        """Nodes stored before."""
        ...

    def keys(self, number: int) -> bytes:
        """What their order is."""
        ...

    def drop_chunk(self, number: int) -> None:
        """The chunk is not needed any more."""
        ...


class TemporaryNodeStore:
    """A database without a name, which is gone with the store."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        weakref.finalize(self, self._connection.close)
        # Kept in memory, where what is undone is small: without one a full disk would damage the chunks that are there.
        self._run("PRAGMA journal_mode = MEMORY")
        self._run("CREATE TABLE chunk (number INTEGER PRIMARY KEY, data BLOB, keys BLOB)")

    def _run(self, statement: str, *values: object) -> sqlite3.Cursor:
        try:
            return self._connection.execute(statement, values)
        except sqlite3.Error as error:
            raise OutputError(
                f"open nodes cannot be written to the folder for temporary files, or read from there ({error}); make "
                f"room there, or let TMPDIR name another one."
            ) from None

    def add_chunk(self, data: bytes, keys: bytes) -> int:
        """Store nodes."""
        row = self._run("INSERT INTO chunk (data, keys) VALUES (?, ?)", data, keys)
        return int(row.lastrowid or 0)

    def chunk(self, number: int) -> bytes:
        """Nodes stored before."""
        (data,) = self._run("SELECT data FROM chunk WHERE number = ?", number).fetchone()
        return bytes(data)

    def keys(self, number: int) -> bytes:
        """What their order is."""
        (keys,) = self._run("SELECT keys FROM chunk WHERE number = ?", number).fetchone()
        return bytes(keys)

    def drop_chunk(self, number: int) -> None:
        """The chunk is not needed any more."""
        self._run("DELETE FROM chunk WHERE number = ?", number)


@dataclass(order=True)
class _Chunk:
    """Nodes on the disk, by what is known of them here."""

    first: Key
    """Bound and number of the node that comes first."""
    number: int
    bounds: FloatArray = field(compare=False)
    """(m,) ascending."""


class Spilling(BestFirst):
    """The frontier of best-first search, some of whose nodes are on a disk.

    Parameters
    ----------
    room : Room
        Where they are kept.
    problem : SubsetProblem
        Whose regions they are.
    """

    def __init__(self, room: Room, problem: SubsetProblem) -> None:
        super().__init__()
        self.room, self._problem = room, problem
        self._cold: list[_Chunk] = []
        """A heap."""
        self.cold = 0
        """How many nodes are on the disk."""

    @classmethod
    def of(cls, frontier: BestFirst, room: Room, problem: SubsetProblem) -> Spilling:
        """A frontier that can spill, in the place of one that cannot."""
        spilling = cls(room, problem)
        spilling._nodes, spilling._blocks, spilling._nodes_bytes = (
            frontier._nodes,
            frontier._blocks,
            frontier._nodes_bytes,
        )
        return spilling

    @property
    def chunks(self) -> list[int]:
        """The chunks in use."""
        return [chunk.number for chunk in self._cold]

    def adopt(self, number: int, next_id: int) -> IntArray:
        """Take over a chunk that is in the room already; the numbers of its nodes, which are below ``next_id``."""
        with refusing_damage():
            keys = np.frombuffer(self.room.keys(number), dtype=KEYS)
            require(keys.size > 0, "an empty chunk of nodes")
            require(not np.any(np.isnan(keys["bound"])), "a bound that is nan")
            require(np.array_equal(in_order(keys["bound"], keys["id"]), np.arange(keys.size)), "nodes out of order")
            require(bool(np.all((keys["id"] >= 0) & (keys["id"] < next_id))), "nodes of impossible numbers")
        self._note_written(number, keys)
        numbers: IntArray = keys["id"]
        return numbers

    def _note_written(self, number: int, keys: NDArray[Any]) -> None:
        heappush(self._cold, _Chunk((float(keys["bound"][0]), int(keys["id"][0])), number, keys["bound"].copy()))
        self.cold += keys.size

    def move_to(self, room: Room, source: Room) -> None:
        """Keep in another room from now on what is on the disk; ``source`` is where it is, which may be open again.

        Raises
        ------
        InputError
            Where other nodes are there now.
        """
        numbers = []
        for chunk in self._cold:
            keys = np.frombuffer(source.keys(chunk.number), dtype=KEYS)
            require(np.array_equal(keys["bound"], chunk.bounds), "other nodes")
            require((float(keys["bound"][0]), int(keys["id"][0])) == chunk.first, "other nodes")
            numbers.append(room.add_chunk(source.chunk(chunk.number), keys.tobytes()))
        for chunk, number in zip(self._cold, numbers, strict=True):
            chunk.number = number
        self.room = room

    def spill(self) -> None:
        """Write away the half of the nodes in memory that comes last.

        Raises
        ------
        OutputError
            On a full disk; what could not be written is still in memory.
        """
        keep = max(FEWEST, (len(self) - self.cold) // 2)
        border = self._place(keep)
        if border is None:
            return
        if last := self._nodes_from(border):
            self._put_away(last[0])
        written = None
        try:
            for chunk in self._last_chunks(border):  # the last one first
                self._write(chunk)
                written = chunk.key(0)
        finally:
            if written is not None:
                self._blocks.drop(written)

    def _place(self, rank: int) -> Key | None:
        """The place in the order of the node that ``rank`` others in memory come before, if there is one."""
        bounds = np.concatenate(BestFirst._bounds(self))
        if len(bounds) <= rank:
            return None
        numbers = np.array([node.id for node in self._nodes], np.int64)
        ids = np.concatenate([numbers, *(block.table.rows["id"][block.at :] for block in self._blocks)])
        at = in_order(bounds, ids)[rank]
        return float(bounds[at]), int(ids[at])

    def _last_chunks(self, border: Key) -> Iterator[NodeTable]:
        """What is packed from a place in the order on, in pieces of the order, the last one first."""
        firsts = [max(reader.at, reader.table.rows_before(border)) for reader in self._blocks]
        tails = [(reader.table, first) for reader, first in zip(self._blocks, firsts, strict=True)]
        keys = np.concatenate([table.keys[first:] for table, first in tails])
        owner = np.repeat(np.arange(len(tails)), [len(table) - first for table, first in tails])
        owner = owner[in_order(keys["bound"], keys["id"])]
        ends = np.array([len(table) for table, _ in tails])
        for first in reversed(range(0, owner.size, CHUNK)):
            # A table is in order, so a chunk has what was its last part when the later ones were taken off.
            parts = np.bincount(owner[first : first + CHUNK], minlength=len(tails))
            ends -= parts
            yield NodeTable.joined(
                [tails[i][0].part(int(ends[i]), int(ends[i] + parts[i])) for i in np.flatnonzero(parts).tolist()]
            )

    def _write(self, chunk: NodeTable) -> None:
        keys = chunk.keys
        self._note_written(self.room.add_chunk(to_bytes(packed_nodes(chunk), level=0), keys.tobytes()), keys)

    def _read(self, chunk: _Chunk) -> NodeTable:
        table = nodes_from(from_bytes(self.room.chunk(chunk.number)), self._problem)
        require(np.array_equal(table.rows["bound"], chunk.bounds) and table.key(0) == chunk.first, "other nodes")
        require(np.array_equal(table.keys, np.frombuffer(self.room.keys(chunk.number), dtype=KEYS)), "other nodes")
        return table

    def _bring_back(self) -> None:
        """Read the chunks whose first node is next."""
        while self._cold and self._cold[0].first < self._first():
            self._take_in(self._cold[0])

    def _take_in(self, chunk: _Chunk) -> None:
        """Bring a chunk into memory; one that cannot be read counts as open still."""
        table = self._read(chunk)
        self.push_in_order(table)
        self._cold.remove(chunk)
        heapify(self._cold)
        self.cold -= len(table)
        self.room.drop_chunk(chunk.number)

    # --- the interface of a frontier ---

    def _take_first(self) -> Node:
        self._bring_back()
        return super()._take_first()

    def lower(self) -> float:
        """The smallest bound of an open node; inf when there is none."""
        return min([super().lower(), *(chunk.first[0] for chunk in self._cold[:1])])

    def _bounds(self) -> list[FloatArray]:
        return [*super()._bounds(), *(chunk.bounds for chunk in self._cold)]

    def prune(self, cutoff: float) -> Iterator[Node]:
        """Remove and return every node whose bound is at least ``cutoff``, by (bound, number)."""
        for chunk in [chunk for chunk in self._cold if chunk.bounds[0] < cutoff <= chunk.bounds[-1]]:
            self._take_in(chunk)
        closed = [chunk for chunk in self._cold if chunk.bounds[0] >= cutoff]
        self._cold = [chunk for chunk in self._cold if chunk.bounds[0] < cutoff]
        heapify(self._cold)
        self.cold = sum(len(chunk.bounds) for chunk in self._cold)
        nodes, sources = self._cut_off((cutoff, -1))
        return merged(nodes, [*sources, *(self._source(chunk, drop=True) for chunk in closed)])

    def __len__(self) -> int:
        return super().__len__() + self.cold

    def _sources(self) -> list[Source]:
        return [*super()._sources(), *map(self._source, self._cold)]

    def _source(self, chunk: _Chunk, drop: bool = False) -> Source:
        def read() -> Iterator[Node]:
            table = self._read(chunk)
            if drop:
                self.room.drop_chunk(chunk.number)
            return TableReader(table)

        return Source(chunk.first, len(chunk.bounds), read)
