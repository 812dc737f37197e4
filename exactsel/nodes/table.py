"""Nodes as arrays, a row for each, and what they refer to once each: so they wait, travel and lie in files.

A node with its objects takes three to four times as much memory. One is made when it is taken, and what it then holds
is what was written down, to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exactsel.nodes.node import Key, Node
from exactsel.nodes.objects import MadeObjects, Numbering, Objects
from exactsel.nodes.sizes import HOLES, MADE_OVERHEAD
from exactsel.types import FloatArray, IntArray, StateArray

KEYS = np.dtype([("bound", "<f8"), ("id", "<i8")])
"""Places in best-first order."""

REFERENCES = ("proof", "warm")
"""Fields that are numbers of objects."""

FIELDS = (
    ("bound", "<f8"), ("estimate", "<f8"), ("id", "<i8"), ("parent", "<i8"), ("depth", "<i4"), ("proof", "<i4"),
    ("warm", "<i4"), ("tight", "?"),
)  # fmt: skip
"""Of a row, beside its state."""

PROOF, WARM = (next(at for at, (field, _) in enumerate(FIELDS) if field == name) for name in REFERENCES)
"""Their places."""

TOGETHER = 64
"""Rows that a reader unpacks at once."""


@dataclass(frozen=True, slots=True, eq=False)
class NodeTable:
    """Some nodes; :meth:`of` makes one of them, and :class:`TableReader` makes them again."""

    rows: NDArray[Any]
    """(m,) of :data:`FIELDS` and ``state``: (2, ·) bits, the lower and the higher ones of all columns' states."""
    objects: Objects
    d: int
    serial: int = field(default_factory=count().__next__)
    """Of the tables of this process: one of the same number is the same."""

    @classmethod
    def of(cls, nodes: Sequence[Node], d: int) -> NodeTable:
        """Some nodes, in their order."""
        return cls.with_more(nodes, d, (), ())[0]

    @classmethod
    def with_more(
        cls, nodes: Sequence[Node], d: int, more: Sequence[Any], known_objects: Sequence[Any]
    ) -> tuple[NodeTable, list[int]]:
        """The same with ``more`` objects, and the numbers of these; those among ``known_objects`` are not kept."""
        numbers = Numbering(chain((obj for node in nodes for obj in (node.proof, node.warm)), more), known_objects)
        rows = empty_rows(len(nodes), d)
        for name in ("bound", "estimate", "id", "parent", "depth", "tight"):
            rows[name] = [getattr(node, name) for node in nodes]
        rows["proof"] = numbers.of(node.proof for node in nodes)
        rows["warm"] = numbers.of(node.warm for node in nodes)
        rows["state"] = bits_of(np.array([node.state for node in nodes], dtype=np.int8).reshape(len(nodes), d))
        return cls(rows, numbers.objects, d), numbers.of(more)

    def part(self, first: int, end: int) -> NodeTable:
        """The nodes in some rows, and nothing of the others'."""
        return NodeTable(self.rows[first:end].copy(), self.objects, self.d).tidy()

    def tidy(self) -> NodeTable:
        """The same without what no row refers to; its rows are changed."""
        used = np.unique(np.concatenate([self.rows[name] for name in REFERENCES]))
        used = used[used >= 0]
        if used.size == len(self.objects):
            return self
        for name in REFERENCES:
            numbers = self.rows[name]
            self.rows[name] = np.where(numbers < 0, numbers, np.searchsorted(used, numbers))
        return NodeTable(self.rows, self.objects.only(used), self.d)

    @classmethod
    def joined(cls, parts: Sequence[NodeTable]) -> NodeTable:
        """All nodes of some, in best-first order."""
        rows = np.concatenate([part.rows for part in parts])
        several = {id(part.objects): part.objects for part in parts}
        objects = parts[0].objects
        if len(several) > 1:
            objects, numbers = Objects.joined([*several.values()])
            places, begin = dict(zip(several, numbers, strict=True)), 0
            for part in parts:
                mine, new = rows[begin : begin + len(part)], places[id(part.objects)]
                for name in REFERENCES:
                    mine[name] = _renumbered(mine[name], new)
                begin += len(part)
        return cls(rows[in_order(rows["bound"], rows["id"])], objects, parts[0].d).tidy()

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Node]:
        """The nodes; those that share a point have the same one."""
        return iter(TableReader(self))

    @property
    def nbytes(self) -> int:
        """Memory it takes."""
        return self.rows.nbytes + self.objects.nbytes

    @property
    def keys(self) -> NDArray[Any]:
        """(m,) of ``bound`` and ``id``."""
        keys = np.empty(len(self), KEYS)
        keys["bound"], keys["id"] = self.rows["bound"], self.rows["id"]
        return keys

    def key(self, row: int) -> Key:
        """The place of a node in best-first order."""
        return float(self.rows["bound"][row]), int(self.rows["id"][row])

    def rows_before(self, key: Key) -> int:
        """How many nodes come before a place in the order, which they are in."""
        bounds, (bound, number) = self.rows["bound"], key
        first, end = np.searchsorted(bounds, bound, "left"), np.searchsorted(bounds, bound, "right")
        return int(first + np.searchsorted(self.rows["id"][first:end], number))

    def states(self, first: int = 0, end: int | None = None) -> StateArray:
        """(m, d) those of the nodes in some rows."""
        return states_of(self.rows["state"][first:end], self.d)

    def node(self, row: int, objects: MadeObjects) -> Node:
        """One of the nodes, of which ``objects`` hold what it refers to."""
        (values,), (state,) = self.values(row, row + 1), self.states(row, row + 1)
        return node_of(values, state, objects)

    def values(self, first: int, end: int) -> list[tuple[Any, ...]]:
        """What is in :data:`FIELDS` of some rows."""
        return [*zip(*(self.rows[name][first:end].tolist() for name, _ in FIELDS), strict=True)]


class TableReader:
    """The nodes of a table from some row on, one after the other; those that share a point have the same one."""

    __slots__ = ("_bytes", "_made", "_read", "_uses", "at", "first", "table")

    def __init__(self, table: NodeTable, at: int = 0) -> None:
        self._begin(table, at)

    def _begin(self, table: NodeTable, at: int) -> None:
        self.table, self.at, self._bytes = table, at, table.nbytes
        rows, points = table.rows[at:], len(table.objects.points)
        if self:
            self.first = table.key(at)
        used = np.concatenate([rows[name] for name in REFERENCES])
        self._uses = np.bincount(used[(used >= 0) & (used < points)], minlength=points)
        self._made = MadeObjects(table.objects)
        self._read: list[tuple[tuple[Any, ...], StateArray]] = []
        """The next rows, the first one last."""

    def take(self) -> Node:
        """The next node; once half of a table's nodes have been taken it is replaced by one of the others."""
        node = next(self)
        if self and 2 * self.at > len(self.table):
            self._begin(self.rest(), 0)
        return node

    def __iter__(self) -> TableReader:
        return self

    def __next__(self) -> Node:
        if not self:
            raise StopIteration
        if not self._read:
            rows = self.at, min(self.at + TOGETHER, len(self.table))
            self._read = [*zip(self.table.values(*rows), self.table.states(*rows), strict=True)][::-1]
        values, state = self._read.pop()
        node = node_of(values, state.copy(), self._made)
        for number in values[PROOF : WARM + 1]:
            if 0 <= number < self._uses.size:
                self._uses[number] -= 1
                if self._uses[number] == 0:
                    self._made.forget(number)
        self.at += 1
        if self:
            self.first = self.table.key(self.at)
        return node

    def cut(self, row: int) -> None:
        """Keep nothing from a row of the table on; at least one before it is there."""
        self._begin(self.table.part(self.at, row), 0)

    def rest(self) -> NodeTable:
        """What has not been taken."""
        return self.table.part(self.at, len(self.table)) if self.at else self.table

    def bounds(self) -> FloatArray:
        """Of what has not been taken, ascending."""
        bounds: FloatArray = self.table.rows["bound"][self.at :]
        return bounds

    @property
    def nbytes(self) -> int:
        """Memory: all of the table is kept, and points that have been made, until half of it has been taken."""
        return int(HOLES * (self._bytes + self._uses.nbytes)) + MADE_OVERHEAD * len(self._made) if self else 0

    def __len__(self) -> int:
        return len(self.table) - self.at

    def __lt__(self, other: TableReader) -> bool:
        return self.first < other.first


def node_of(values: tuple[Any, ...], state: StateArray, objects: MadeObjects) -> Node:
    """A node of a row's values, in the order of :data:`FIELDS`."""
    bound, estimate, number, parent, depth, proof, warm, tight = values
    return Node(number, parent, depth, state, bound, objects[proof], objects[warm], tight, estimate)


def empty_rows(count: int, d: int) -> NDArray[Any]:
    """Rows to be filled, of nodes over so many columns."""
    return np.empty(count, np.dtype([*FIELDS, ("state", "u1", (2, -(-d // 8)))]))


def in_order(bounds: FloatArray, ids: IntArray) -> IntArray:
    """Best-first order."""
    order: IntArray = np.lexsort((ids, bounds))
    return order


def bits_of(states: StateArray) -> NDArray[np.uint8]:
    """States (m, d) as (m, 2, ·) bits, the lower and the higher ones of all columns'."""
    return np.packbits(np.stack([states & 1, states >> 1], axis=1), axis=2)


def states_of(bits: NDArray[np.uint8], d: int) -> StateArray:
    """What :func:`bits_of` was given; an entry of 3 is no state, and comes of damaged bits only."""
    single = np.unpackbits(bits, axis=2, count=d).view(np.int8)
    states: StateArray = single[:, 0] + 2 * single[:, 1]
    return states


def _renumbered(numbers: IntArray, new: IntArray) -> IntArray:
    """The numbers objects have now; those below 0 stay."""
    return np.where(numbers < 0, numbers, new[numbers]) if new.size else numbers
