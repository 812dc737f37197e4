"""Best-first search over more open nodes than memory has room for: the least urgent ones wait on a disk.

Nodes of large bounds are taken last, and many of them never, because a better model overtakes them. Above the memory
limit the half with the larger bounds is packed into chunks, each a piece of the order, and written away; a chunk comes
back as a whole when its first node is next. So nodes are taken in the order in which they would be without any limit,
and the tree is the same.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush, heapreplace
from itertools import islice
from typing import Protocol, overload

import numpy as np

from exactsel.errors import OutputError
from exactsel.problem.interface import SubsetProblem
from exactsel.search.frontier import BestFirst, Waiting
from exactsel.search.layout import require
from exactsel.search.left_open import compacted
from exactsel.search.node import Node
from exactsel.search.packed_bytes import from_bytes, to_bytes
from exactsel.search.packing import pack, unpack
from exactsel.search.sizes import node_bytes, waiting_bytes
from exactsel.types import FloatArray

CHUNK = 4096
"""Nodes in a chunk."""

FEWEST = 64
"""Nodes that stay in memory whatever the limit: the next rounds take them."""


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
        """Nobody will ask for them any more."""
        ...


class TemporaryRoom:
    """A database without a name, which is gone with the process."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode = OFF")
        self._connection.execute("CREATE TABLE chunk (number INTEGER PRIMARY KEY, data BLOB, keys BLOB)")

    def add_chunk(self, data: bytes, keys: bytes) -> int:
        """Store nodes."""
        try:
            row = self._connection.execute("INSERT INTO chunk (data, keys) VALUES (?, ?)", (data, keys))
        except sqlite3.Error as error:
            raise OutputError(
                f"open nodes cannot be written to the folder for temporary files ({error}); make room there, or let "
                f"TMPDIR name another one."
            ) from None
        return int(row.lastrowid or 0)

    def chunk(self, number: int) -> bytes:
        """Nodes stored before."""
        (data,) = self._connection.execute("SELECT data FROM chunk WHERE number = ?", (number,)).fetchone()
        return bytes(data)

    def keys(self, number: int) -> bytes:
        """What their order is."""
        (keys,) = self._connection.execute("SELECT keys FROM chunk WHERE number = ?", (number,)).fetchone()
        return bytes(keys)

    def drop_chunk(self, number: int) -> None:
        """Nobody will ask for them any more."""
        self._connection.execute("DELETE FROM chunk WHERE number = ?", (number,))


@dataclass(order=True)
class _Chunk:
    """Nodes on the disk, by what is known of them here."""

    first: tuple[float, int]
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
        self._back: list[tuple[tuple[float, int], list[Node]]] = []
        """A heap of what is left of chunks that came back: the next node's place in the order, and the nodes, last one
        first. Sorting them in with all others would take longer than reading them."""
        self._back_count = 0
        self._moved = 0

    @classmethod
    def of(cls, frontier: BestFirst, room: Room, problem: SubsetProblem) -> Spilling:
        """A frontier that can spill, in the place of one that cannot."""
        made = cls(room, problem)
        made._nodes, made._regions = frontier._nodes, frontier._regions
        return made

    @property
    def chunks(self) -> list[int]:
        """The chunks in use."""
        return [chunk.number for chunk in self._cold]

    def adopt(self, number: int) -> None:
        """Take over a chunk that is in the room already."""
        keys = np.frombuffer(self.room.keys(number), dtype=_KEYS)
        require(keys.size > 0, "an empty chunk of nodes")
        heappush(self._cold, _Chunk((float(keys["bound"][0]), int(keys["id"][0])), number, keys["bound"].copy()))
        self.cold += keys.size

    def move_to(self, room: Room, source: Room) -> None:
        """Keep in another room from now on what is on the disk; ``source`` is where it is, which may be open anew.

        Raises
        ------
        InputError
            Where other nodes are there now.
        """
        numbers = []
        for chunk in self._cold:
            keys = np.frombuffer(source.keys(chunk.number), dtype=_KEYS)
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
        hot = self._hot()
        keep = max(FEWEST, len(hot) // 2)
        last = iter(hot[keep:])
        left: list[Node | Waiting] = hot[:keep]
        try:
            while part := [_made(one) for one in islice(last, CHUNK)]:
                try:
                    self._write(part)
                except BaseException:  # rather twice than not at all
                    left += part
                    raise
        finally:
            left += last
            gone = sum(map(_bytes, hot)) - sum(map(_bytes, left))
            self._moved -= gone
            self._regions = compacted([one for one in left if isinstance(one, Waiting)])
            heapify(self._regions)
            self._nodes.clear()
            self._nodes.update(one for one in left if isinstance(one, Node))
            self._back, self._back_count = [], 0

    def _hot(self) -> list[Node | Waiting]:
        return sorted([*self._nodes, *self._regions, *self._returned()], key=_key)

    def _returned(self) -> Iterator[Node]:
        return (node for _, nodes in self._back for node in nodes)

    def _write(self, nodes: Sequence[Node]) -> None:
        keys = np.array([(node.bound, node.id) for node in nodes], dtype=_KEYS)
        number = self.room.add_chunk(to_bytes(pack(nodes)), keys.tobytes())
        heappush(self._cold, _Chunk(_key(nodes[0]), number, keys["bound"].copy()))
        self.cold += len(nodes)

    def _read(self, chunk: _Chunk) -> list[Node]:
        nodes = unpack(from_bytes(self.room.chunk(chunk.number)), self._problem)
        require(len(nodes) == len(chunk.bounds) and all(isinstance(node, Node) for node in nodes), "other nodes")
        return nodes

    def _bring_back(self) -> None:
        """Read the chunks whose first node is next."""
        while self._cold and ((hot := self._first_in_memory()) is None or self._cold[0].first < hot):
            self._take_in(self._cold[0])

    def _take_in(self, chunk: _Chunk) -> None:
        """Bring a chunk into memory; one that cannot be read counts as open still."""
        nodes = self._read(chunk)
        self._add_back(nodes[::-1])
        self._cold.remove(chunk)
        heapify(self._cold)
        self.cold -= len(nodes)
        self._moved += sum(map(node_bytes, nodes))
        self.room.drop_chunk(chunk.number)

    def _add_back(self, nodes: list[Node]) -> None:
        heappush(self._back, (_key(nodes[-1]), nodes))
        self._back_count += len(nodes)

    def bytes_moved(self) -> int:
        """Bytes that came into memory since this was last asked; negative where more have left."""
        moved, self._moved = self._moved, 0
        return moved

    # --- what a frontier is asked for ---

    def take(self, count: int) -> list[Node]:
        """Remove and return the ``count`` nodes of smallest bound."""
        taken: list[Node] = []
        while len(taken) < count and len(self):
            self._bring_back()
            if self._back and self._back[0][0] == self._first_in_memory():
                taken.append(self._take_back())
            else:
                taken += super().take(1)
        return taken

    def _take_back(self) -> Node:
        _, nodes = self._back[0]
        node = nodes.pop()
        if nodes:
            heapreplace(self._back, (_key(nodes[-1]), nodes))
        else:
            heappop(self._back)
        self._back_count -= 1
        return node

    def _first_in_memory(self) -> tuple[float, int] | None:
        nodes, regions = self._nodes, self._regions
        keys = [_key(nodes[0])] if nodes else []
        keys += [_key(regions[0])] if regions else []
        keys += [self._back[0][0]] if self._back else []
        return min(keys, default=None)

    def lower(self) -> float:
        """The smallest bound of an open node; inf when there is none."""
        elsewhere = [self._cold[0].first[0]] if self._cold else []
        elsewhere += [self._back[0][0][0]] if self._back else []
        return min([super().lower(), *elsewhere])

    def bound_at(self, rank: int) -> float:
        """The bound of the node that ``rank`` others come before; inf when there are no more than that."""
        if not (self._cold or self._back):
            return super().bound_at(rank)
        if len(self) <= rank:
            return float("inf")
        hot = [one.bound for one in (*self._nodes, *self._regions, *self._returned())]
        return float(np.partition(np.concatenate([hot, *(chunk.bounds for chunk in self._cold)]), rank)[rank])

    def prune(self, cutoff: float) -> Iterator[Node]:  # type: ignore[override]
        """Remove and return every node whose bound is at least ``cutoff``, by (bound, number)."""
        # Before anything is returned, so that nobody who stops in the middle finds nodes twice.
        for chunk in [chunk for chunk in self._cold if chunk.bounds[0] < cutoff <= chunk.bounds[-1]]:
            self._take_in(chunk)
        closed = [chunk for chunk in self._cold if chunk.bounds[0] >= cutoff]
        self._cold = [chunk for chunk in self._cold if chunk.bounds[0] < cutoff]
        heapify(self._cold)
        self.cold = sum(len(chunk.bounds) for chunk in self._cold)
        back, self._back, self._back_count = self._back, [], 0
        returned: list[Node] = []
        for _, nodes in back:
            returned += (node for node in nodes if node.bound >= cutoff)
            if left := [node for node in nodes if not node.bound >= cutoff]:
                self._add_back(left)
        return self._merged(sorted([*super().prune(cutoff), *returned], key=_key), closed, drop=True)

    def _merged(self, nodes: Sequence[Node | Waiting], chunks: list[_Chunk], drop: bool = False) -> Iterator[Node]:
        """Nodes in memory, in order, and those of some chunks; no chunk is read before its first node is next."""
        waiting = sorted(chunks)
        open_now: list[tuple[tuple[float, int], int, Iterator[Node | Waiting], Node | Waiting]] = []

        def enter(place: int, stream: Iterator[Node | Waiting]) -> None:
            one = next(stream, None)
            if one is not None:
                heappush(open_now, (_key(one), place, stream, one))

        enter(-1, iter(nodes))
        while open_now or waiting:
            while waiting and (not open_now or waiting[0].first < open_now[0][0]):
                chunk = waiting.pop(0)
                read = self._read(chunk)
                if drop:
                    self.room.drop_chunk(chunk.number)
                    self._moved += sum(map(node_bytes, read))  # which whoever takes them takes off
                enter(chunk.number, iter(read))
            _, place, stream, one = heappop(open_now)
            enter(place, stream)
            yield _made(one)

    def __len__(self) -> int:
        return super().__len__() + self.cold + self._back_count

    def __iter__(self) -> Iterator[Node]:
        return self._merged(self._hot(), list(self._cold))

    def in_memory(self) -> Iterator[Node]:
        """The nodes that are not on the disk, smallest bound first."""
        return map(_made, self._hot())

    def now(self, also: Sequence[Node] = ()) -> Sequence[Node]:  # type: ignore[override]
        """What is open now, and ``also`` these, smallest bound first; read and made when they are asked for."""
        return _OnDisk(self, sorted([*also, *self._hot()], key=_key), list(self._cold))


class _OnDisk(Sequence[Node]):
    """Open nodes, some of them on a disk, as long as nothing else is done with them."""

    def __init__(self, frontier: Spilling, hot: list[Node | Waiting], cold: list[_Chunk]) -> None:
        self._frontier, self._in_memory, self._cold = frontier, hot, cold

    def __len__(self) -> int:
        return len(self._in_memory) + sum(len(chunk.bounds) for chunk in self._cold)

    def __iter__(self) -> Iterator[Node]:
        return self._frontier._merged(self._in_memory, self._cold)

    @overload
    def __getitem__(self, at: int) -> Node: ...
    @overload
    def __getitem__(self, at: slice) -> list[Node]: ...
    def __getitem__(self, at: int | slice) -> Node | list[Node]:
        if isinstance(at, slice):
            wanted = range(len(self))[at]
            found = {i: node for i, node in enumerate(islice(self, max(wanted, default=-1) + 1)) if i in wanted}
            return [found[i] for i in wanted]
        return next(islice(self, range(len(self))[at], None))


_KEYS = np.dtype([("bound", "<f8"), ("id", "<i8")])


def _key(one: Node | Waiting) -> tuple[float, int]:
    return (one.bound, one.number) if isinstance(one, Waiting) else (one.bound, one.id)


def _made(one: Node | Waiting) -> Node:
    return one.node() if isinstance(one, Waiting) else one


def _bytes(one: Node | Waiting) -> int:
    return waiting_bytes(one) if isinstance(one, Waiting) else node_bytes(one)
