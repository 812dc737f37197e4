"""The regions a round of searches inside the kernel left open: a table from the start, of which nodes are made later.

Most of them wait for long, and many are never read again, so storing one costs only a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import overload

import numpy as np

from exactsel.enumeration.native import NativeTree
from exactsel.nodes.node import Node
from exactsel.nodes.objects import NOTHING, MadeObjects, Numbering, Objects
from exactsel.nodes.points import Points
from exactsel.nodes.regions import Region
from exactsel.nodes.table import NodeTable, bits_of, empty_rows
from exactsel.types import BoolArray, IntArray


@dataclass(frozen=True)
class LeftBelow(Sequence[Region]):
    """What was left open below one node: some rows of a table, where ``id`` are the kernel's numbers of the regions."""

    table: NodeTable
    first: int
    end: int
    overtaken: BoolArray
    """(m,) those whose bound the best objective has reached meanwhile."""
    _objects: MadeObjects = field(repr=False)

    @property
    def numbers(self) -> tuple[int, ...]:
        """The kernel's numbers of the regions."""
        return tuple(self.table.rows["id"][self.first : self.end].tolist())

    def bounds(self) -> list[float]:
        """Those of the regions."""
        bounds: list[float] = self.table.rows["bound"][self.first : self.end].tolist()
        return bounds

    def opened(self, ids: Sequence[int]) -> NodeTable:
        """Those that are open, numbered like this."""
        rows = self.table.rows[self.first : self.end].copy()
        rows["id"] = ids
        return NodeTable(rows[~self.overtaken], self.table.objects, self.table.d)

    def __len__(self) -> int:
        return self.end - self.first

    @overload
    def __getitem__(self, at: int) -> Region: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Region]: ...
    def __getitem__(self, at: int | slice) -> Region | Sequence[Region]:
        if isinstance(at, slice):
            return [self[one] for one in range(len(self))[at]]
        at = range(len(self))[at]
        node, closed = self.table.node(self.first + at, self._objects), "incumbent" if self.overtaken[at] else None
        return Region(node.state, node.bound, node.proof, node.warm, closed=closed, estimate=node.estimate)


def left_below(nodes: Sequence[Node], searches: Sequence[NativeTree], overtaken: float | BoolArray) -> list[LeftBelow]:
    """What the searches below some nodes left open; ``overtaken``: from which bound on it is closed, or which.

    Regions are in the order of the nodes searched below, and of the kernel's numbers below each.
    """
    sizes = np.array([len(search.open_bounds) for search in searches])
    owner = np.repeat(np.arange(len(nodes)), sizes)
    labels = np.concatenate([search.open_labels for search in searches])
    order = np.lexsort((labels[:, 0], owner))
    labels, owner = labels[order], owner[order]
    rows = empty_rows(owner.size, nodes[0].state.size)
    rows["id"], rows["tight"] = labels[:, 0], False
    rows["bound"] = np.concatenate([search.open_bounds for search in searches])[order]
    rows["estimate"] = np.array([node.estimate for node in nodes])[owner]
    rows["parent"] = np.array([node.id for node in nodes])[owner]
    rows["depth"] = np.array([node.depth + 1 for node in nodes])[owner]
    rows["state"] = bits_of(np.concatenate([search.open_states for search in searches])[order])
    points, named = _points(searches, labels[:, 1:], owner)
    # What the kernel has not proved by a point of its own is proved by what the node came with.
    node_objects = [
        [getattr(nodes[at], name) for at in owner[named[:, column] < 0].tolist()]
        for column, name in enumerate(("proof", "warm"))
    ]
    numbering = Numbering(obj for those in node_objects for obj in those)
    objects, (_, numbers) = Objects.joined([Objects(points), numbering.objects])
    for column, (name, those) in enumerate(zip(("proof", "warm"), node_objects, strict=True)):
        without = named[:, column] < 0
        rows[name][~without] = named[~without, column]
        rows[name][without] = [NOTHING if at < 0 else numbers[at] for at in numbering.of(those)]
    table = NodeTable(rows, objects, nodes[0].state.size)
    closed = overtaken if isinstance(overtaken, np.ndarray) else rows["bound"] >= overtaken
    lazy_objects, ends = MadeObjects(objects), np.cumsum(sizes).tolist()
    firsts = [0, *ends[:-1]]
    return [
        LeftBelow(table, first, end, closed[first:end], lazy_objects) for first, end in zip(firsts, ends, strict=True)
    ]


def _points(searches: Sequence[NativeTree], numbers: IntArray, owner: IntArray) -> tuple[Points, IntArray]:
    """The points with these ``numbers`` below the node searched below, and the numbers they have here."""
    first = np.cumsum([0, *(len(search.scaled_points) for search in searches)])
    named = np.where(numbers >= 0, numbers + first[owner][:, None], NOTHING)
    used, places = np.unique(named, return_inverse=True)
    absent = int(used.size > 0 and used[0] < 0)
    points = np.concatenate([search.scaled_points for search in searches])[used[absent:]] / searches[0].scale
    rows, columns = points.nonzero()
    sizes, curvature = np.bincount(rows, minlength=len(points)), searches[0].curvature
    of = np.full(len(points), -1 if curvature is None else 0, dtype=np.int8)
    curvatures = () if curvature is None else (curvature,)
    packed_points = Points.held(points[rows, columns], sizes, columns.astype(np.int32), of, curvatures)
    return packed_points, places.reshape(named.shape) - absent
