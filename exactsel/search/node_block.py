"""Open nodes that wait, packed and in best-first order: a row of one array each, and the points they share once each.

A node with its objects takes three to four times as much memory. One is made when it is taken, and what it then holds
is what was packed, to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exactsel.bounds.witness import ModelPoint, holds_nothing, is_witness
from exactsel.kernels.node import IN
from exactsel.nodes.node import Node
from exactsel.nodes.points import Points, can_be_packed
from exactsel.nodes.waiting import Key
from exactsel.problem.interface import SubsetProblem
from exactsel.search.layout import refusing_damage, require
from exactsel.search.packed_points import points_from
from exactsel.search.packing import Packed, pack, unpack
from exactsel.search.sizes import HOLES, MADE_OVERHEAD, object_bytes
from exactsel.types import FloatArray, IntArray, StateArray

KEYS = np.dtype([("bound", "<f8"), ("id", "<i8")])
"""Places in best-first order."""

FIELDS = (
    ("bound", "<f8"), ("estimate", "<f8"), ("id", "<i8"), ("parent", "<i8"), ("depth", "<i4"), ("proof", "<i4"),
    ("warm", "<i4"), ("tight", "?"),
)  # fmt: skip
"""Of a row, beside its state. What a node refers to is a number: -1 for None, first the points, then the others."""


@dataclass(frozen=True, slots=True, eq=False)
class NodeBlock:
    """Nodes in the order of their bounds and numbers; :meth:`of` makes one, :class:`BlockReader` makes nodes again."""

    rows: NDArray[Any]
    """(m,) of :data:`FIELDS` and ``state``: (2, ·) bits, the lower and the higher ones of all columns' states."""
    points: Points
    others: tuple[Any, ...]
    """What else the nodes refer to, as it is."""
    d: int
    serial: int = field(default_factory=count().__next__)
    """Of the blocks of this process: one of the same number is the same."""

    @classmethod
    def of(cls, nodes: Sequence[Node]) -> NodeBlock:
        """Some nodes, at least one, in their order."""
        points: dict[int | type, ModelPoint] = {}
        others: dict[int | type, Any] = {}
        for node in nodes:
            for one in (node.proof, node.warm):
                if holds_nothing(one):
                    others.setdefault(type(one), one)
                elif isinstance(one, ModelPoint):
                    points[id(one)] = one
                elif one is not None:
                    others[id(one)] = one
        if not can_be_packed(tuple(points.values())):
            points, others = {}, {**points, **others}
        numbers = {key: number for number, key in enumerate((*points, *others))}

        def number(one: Any) -> int:
            return -1 if one is None else numbers[type(one) if holds_nothing(one) else id(one)]

        states = np.stack([node.state for node in nodes])
        rows = np.empty(len(nodes), _row_type(states.shape[1]))
        for name in ("bound", "estimate", "id", "parent", "depth", "tight"):
            rows[name] = [getattr(node, name) for node in nodes]
        rows["proof"] = [number(node.proof) for node in nodes]
        rows["warm"] = [number(node.warm) for node in nodes]
        rows["state"] = bits_of(states)
        return cls(rows, Points.of(tuple(points.values())), tuple(others.values()), states.shape[1])

    def part(self, first: int, end: int) -> NodeBlock:
        """The nodes in some rows, and nothing of the others'."""
        rows = self.rows[first:end].copy()
        used = np.unique(np.concatenate([rows["proof"], rows["warm"]]))
        used = used[used >= 0]
        for name in ("proof", "warm"):
            rows[name] = np.where(rows[name] < 0, -1, np.searchsorted(used, rows[name]))
        own = used < len(self.points)
        others = tuple(self.others[number] for number in (used[~own] - len(self.points)).tolist())
        return NodeBlock(rows, self.points.only(used[own]), others, self.d)

    @classmethod
    def joined(cls, parts: Sequence[NodeBlock]) -> NodeBlock:
        """All nodes of some, in order."""
        rows = np.concatenate([part.rows for part in parts])
        points, at, other, begin = sum(len(part.points) for part in parts), 0, 0, 0
        for part in parts:
            mine = rows[begin : begin + len(part)]
            for name in ("proof", "warm"):
                old, own = mine[name], len(part.points)
                mine[name] = np.where(old < 0, -1, np.where(old < own, old + at, old - own + points + other))
            at, other, begin = at + len(part.points), other + len(part.others), begin + len(part)
        rows = rows[in_order(rows["bound"], rows["id"])]
        others = tuple(one for part in parts for one in part.others)
        return cls(rows, Points.joined([part.points for part in parts]), others, parts[0].d)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def nbytes(self) -> int:
        """Memory it takes."""
        return self.rows.nbytes + self.points.nbytes + sum(map(object_bytes, self.others))

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
        """How many nodes come before a place in the order."""
        bounds, (bound, number) = self.rows["bound"], key
        first, end = np.searchsorted(bounds, bound, "left"), np.searchsorted(bounds, bound, "right")
        return int(first + np.searchsorted(self.rows["id"][first:end], number))

    def packed(self) -> Packed:
        """As plain data.

        Raises
        ------
        UnsupportedError
            Where a bound handed on objects other than arrays and points.
        """
        others = pack(self.others)
        arrays = {f"node.{name}": np.ascontiguousarray(self.rows[name]) for name in self.rows.dtype.names or ()}
        arrays |= {f"points.{name}": array for name, array in self.points.arrays().items()}
        arrays |= {f"others.{name}": array for name, array in others.arrays.items()}
        return Packed({"block": self.d, "others": others.header}, arrays)

    @classmethod
    def unpacked(cls, packed: Packed, problem: SubsetProblem) -> NodeBlock:
        """What :meth:`packed` made these of.

        Raises
        ------
        InputError
            Where the data are damaged, or of another version.
        """
        with refusing_damage():
            require(packed.header.get("block") == problem.d, "nodes of another problem")
            others = tuple(unpack(Packed(packed.header["others"], arrays_under("others", packed)), problem))
            points = points_from(arrays_under("points", packed), problem.units.columns)
            columns, kinds = arrays_under("node", packed), _row_type(problem.d)
            many = columns["id"].size
            require(set(columns) == set(kinds.names or ()) and many > 0, "other fields of nodes")
            rows = np.empty(many, kinds)
            for name, column in columns.items():
                kind = kinds[name]
                require(column.dtype == kind.base and column.shape == (many, *kind.shape), f"another '{name}' of nodes")
                rows[name] = column
            block = cls(rows, points, others, problem.d)
            block._check(problem.k)
            return block

    def _check(self, k: int) -> None:
        """Refuse nodes that no search could go on from."""
        rows, points = self.rows, len(self.points)
        require(not np.any(np.isnan(rows["bound"]) | np.isnan(rows["estimate"])), "a bound that is nan")
        require(np.all((rows["id"] >= 0) & (rows["parent"] >= -1) & (rows["depth"] >= 0)), "impossible nodes")
        order = in_order(rows["bound"], rows["id"])
        require(np.array_equal(order, np.arange(len(rows))), "nodes out of order")
        require(np.all(np.diff(np.sort(rows["id"])) > 0), "nodes that are there twice")
        proves = [*[True] * points, *map(is_witness, self.others), False]
        for name, least in (("proof", 0), ("warm", -1)):
            numbers = rows[name]
            require(np.all((numbers >= least) & (numbers < points + len(self.others))), f"no '{name}' of nodes")
        require(bool(np.all(np.array(proves)[rows["proof"]])), "objects of the wrong type as proofs")
        known = all(is_witness(one) or isinstance(one, np.ndarray) for one in self.others)
        require(known, "objects of the wrong type")
        for first in range(0, len(rows), 1024):
            states = self.states(first, first + 1024)
            require(np.all(states <= IN) and np.all(np.count_nonzero(states == IN, axis=1) <= k), "impossible states")

    def states(self, first: int, end: int) -> NDArray[np.int8]:
        """(m, d) those of the nodes in some rows."""
        return states_of(self.rows["state"][first:end], self.d)


class BlockReader:
    """The nodes of a block from some row on, one after the other; those that share a point have the same one."""

    __slots__ = ("_bytes", "_made", "_uses", "at", "block", "first")

    def __init__(self, block: NodeBlock, at: int = 0) -> None:
        self._begin(block, at)

    def _begin(self, block: NodeBlock, at: int) -> None:
        self.block, self.at, self.first, self._bytes = block, at, block.key(at), block.nbytes
        rows = block.rows[at:]
        used = np.concatenate([rows["proof"], rows["warm"]])
        self._uses = np.bincount(used[(used >= 0) & (used < len(block.points))], minlength=len(block.points))
        self._made: dict[int, ModelPoint] = {}

    def take(self) -> Node:
        """The next node; once half of a block's nodes have been taken it is replaced by one of the others."""
        node = self._next()
        if self and 2 * self.at > len(self.block):
            self._begin(self.rest(), 0)
        return node

    def _next(self) -> Node:
        block, row = self.block, self.block.rows[self.at]
        bound, estimate, number, parent, depth, proof, warm, tight, _ = row.item()
        (state,) = block.states(self.at, self.at + 1)
        node = Node(number, parent, depth, state, bound, self._object(proof), self._object(warm), tight, estimate)
        self.at += 1
        if self:
            self.first = block.key(self.at)
        return node

    def _object(self, number: int) -> Any:
        points = self.block.points
        if number < 0:
            return None
        if number >= len(points):
            return self.block.others[number - len(points)]
        point = self._made.get(number)
        if point is None:
            point = self._made[number] = points.point(number)
        self._uses[number] -= 1
        if self._uses[number] == 0:
            del self._made[number]
        return point

    def cut(self, row: int) -> None:
        """Keep nothing from a row of the block on; at least one before it is there."""
        self._begin(self.block.part(self.at, row), 0)

    def rest(self) -> NodeBlock:
        """What has not been taken."""
        return self.block.part(self.at, len(self.block)) if self.at else self.block

    def bounds(self) -> FloatArray:
        """Of what has not been taken, ascending."""
        bounds: FloatArray = self.block.rows["bound"][self.at :]
        return bounds

    @property
    def nbytes(self) -> int:
        """Memory: all of the block is kept, and points that have been made, until half of it has been taken."""
        if not self:
            return 0
        return int(HOLES * (self._bytes + self._uses.nbytes)) + MADE_OVERHEAD * len(self._made)

    def __len__(self) -> int:
        return len(self.block) - self.at

    def __lt__(self, other: BlockReader) -> bool:
        return self.first < other.first

    def __iter__(self) -> Iterator[Node]:
        """The nodes that have not been taken, which they are not hereby."""
        reader = BlockReader(self.block, self.at)
        while reader:
            yield reader._next()


def in_order(bounds: FloatArray, ids: IntArray) -> IntArray:
    """Best-first order."""
    order: IntArray = np.lexsort((ids, bounds))
    return order


def bits_of(states: StateArray) -> NDArray[np.uint8]:
    """States (m, d) as (m, 2, ·) bits, the lower and the higher ones of all columns'."""
    return np.packbits(np.stack([states & 1, states >> 1], axis=1), axis=2)


def states_of(bits: NDArray[np.uint8], d: int) -> StateArray:
    """What :func:`bits_of` was given; 3, which is no state, where whoever wrote the bits did not use it."""
    single = np.unpackbits(bits, axis=2, count=d).view(np.int8)
    states: StateArray = single[:, 0] + 2 * single[:, 1]
    return states


def arrays_under(name: str, packed: Packed) -> dict[str, NDArray[Any]]:
    """The arrays whose names begin with this one and a dot, without it."""
    return {key[len(name) + 1 :]: array for key, array in packed.arrays.items() if key.startswith(f"{name}.")}


def _row_type(d: int) -> np.dtype[Any]:
    return np.dtype([*FIELDS, ("state", "u1", (2, -(-d // 8)))])
