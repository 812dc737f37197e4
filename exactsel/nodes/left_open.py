"""The regions a round of searches inside the kernel left open, kept in arrays until one of them is taken.

Most of them wait for long, and many are never looked at again, so a node is made of one only then: what it costs to
keep it is a row of each array, and a few numbers in the frontier.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np

from exactsel.bounds.witness import ModelPoint, Proof
from exactsel.nodes.node import Node
from exactsel.nodes.points import Points
from exactsel.nodes.regions import Region
from exactsel.nodes.waiting import Waiting
from exactsel.types import BoolArray, IntArray, StateArray
from exactsel.walks.relaxation import KernelSearch


@dataclass(frozen=True, eq=False)
class LeftOpen:
    """Regions in the order of the nodes searched below, and of the kernel's numbers below each."""

    states: StateArray
    """(m, d)"""
    bounds: list[float]
    closed: BoolArray
    """(m,) those whose bound the best objective has reached meanwhile."""
    estimates: list[float]
    """What their relaxations above were rounded to (:attr:`exactsel.nodes.node.Node.estimate`)."""
    proofs: list[int]
    """The points that prove the bounds, -1 where that is done by what is ``given``; ..."""
    starts: list[int]
    """... and those to start from."""
    given: dict[int, tuple[Proof, Any]]
    """By row, where there is a -1: what proved the bound of the node searched below, and what that started from."""
    points: Points
    _made: dict[int, ModelPoint] = field(default_factory=dict)

    @classmethod
    def below(
        cls, nodes: Sequence[Node], searches: Sequence[KernelSearch], overtaken: float | BoolArray
    ) -> list[LeftBelow]:
        """What the searches below some nodes left open; ``overtaken``: from which bound on it is closed, or which."""
        sizes = np.array([len(search.open_bounds) for search in searches])
        owner = np.repeat(np.arange(len(nodes)), sizes)
        labels = np.concatenate([search.open_labels for search in searches])
        order = np.lexsort((labels[:, 0], owner))
        labels, owner = labels[order], owner[order]
        bounds = np.concatenate([search.open_bounds for search in searches])[order]
        points, named = _points(searches, labels[:, 1:], owner)
        without = np.flatnonzero(np.any(named < 0, axis=1)).tolist()
        left = cls(
            np.concatenate([search.open_states for search in searches])[order], bounds.tolist(),
            overtaken if isinstance(overtaken, np.ndarray) else bounds >= overtaken,
            np.repeat([node.estimate for node in nodes], sizes).tolist(), named[:, 0].tolist(), named[:, 1].tolist(),
            {row: (nodes[owner[row]].proof, nodes[owner[row]].warm) for row in without}, points,
        )  # fmt: skip
        numbers, ends = labels[:, 0].tolist(), np.cumsum(sizes).tolist()
        firsts = [0, *ends[:-1]]
        return [LeftBelow(left, first, tuple(numbers[first:end])) for first, end in zip(firsts, ends, strict=True)]

    def only(self, rows: Sequence[int]) -> LeftOpen:
        """The same with these rows alone, in this order."""
        named = np.array([[self.proofs[row], self.starts[row]] for row in rows]).reshape(-1, 2)
        used, places = np.unique(named, return_inverse=True)
        absent = int(used.size > 0 and used[0] < 0)
        places = places.reshape(named.shape) - absent
        return LeftOpen(
            self.states[rows], [self.bounds[row] for row in rows], self.closed[rows],
            [self.estimates[row] for row in rows], places[:, 0].tolist(), places[:, 1].tolist(),
            {at: self.given[row] for at, row in enumerate(rows) if row in self.given},
            self.points.only(used[absent:]),
        )  # fmt: skip

    def node(self, row: int, number: int, parent: int, depth: int) -> Node:
        """The node of a region."""
        proof, warm = self._proof_and_start(row)
        return Node(
            number, parent, depth, self.states[row], self.bounds[row], proof, warm, estimate=self.estimates[row]
        )

    def region(self, row: int) -> Region:
        """The region itself."""
        proof, warm = self._proof_and_start(row)
        closed = "incumbent" if self.closed[row] else None
        return Region(self.states[row], self.bounds[row], proof, warm, closed=closed, estimate=self.estimates[row])

    def point_bytes(self, row: int) -> int:
        """Memory of the point that proves the bound, if it is here: that of a usual one of those kept with it."""
        number, points = self.proofs[row], self.points
        return points.nbytes // len(points) if number >= 0 else 0

    def _proof_and_start(self, row: int) -> tuple[Proof, Any]:
        proof, start = self.proofs[row], self.starts[row]
        return (
            self._point(proof) if proof >= 0 else self.given[row][0],
            self._point(start) if start >= 0 else self.given[row][1],
        )

    def _point(self, number: int) -> ModelPoint:
        """The same object each time: what regions share is written into a proof once."""
        if number not in self._made:
            self._made[number] = self.points.point(number)
        return self._made[number]


def compacted(regions: Sequence[Waiting]) -> list[Waiting]:
    """The same open nodes, kept in arrays at least half of which are theirs now. What is held beside them takes memory
    that is not counted, as much again at most, of those nodes that are not packed (frontier.py).
    """
    by_left: dict[int, list[Waiting]] = {}
    for region in regions:
        by_left.setdefault(id(region.left), []).append(region)
    kept: list[Waiting] = []
    for group in by_left.values():
        left = group[0].left
        if 2 * len(group) >= len(left.bounds):
            kept += group
            continue
        only = left.only([region.row for region in group])
        kept += [region._replace(row=row, left=only) for row, region in enumerate(group)]
    return kept


@dataclass(frozen=True)
class LeftBelow(Sequence[Region]):
    """What was left open below one node."""

    left: LeftOpen
    first: int
    """Row of the first region."""
    numbers: tuple[int, ...]
    """The kernel's numbers of the regions."""

    def bounds(self) -> list[float]:
        """Those of the regions."""
        return self.left.bounds[self.first : self.first + len(self)]

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, at: int) -> Region: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Region]: ...
    def __getitem__(self, at: int | slice) -> Region | Sequence[Region]:
        if isinstance(at, slice):
            return [self.left.region(row) for row in range(self.first, self.first + len(self))[at]]
        return self.left.region(range(self.first, self.first + len(self))[at])


def _points(searches: Sequence[KernelSearch], asked: IntArray, owner: IntArray) -> tuple[Points, IntArray]:
    """The points that are ``asked`` for, by number below the node searched below, and the numbers they have here."""
    first = np.cumsum([0, *(len(search.scaled_points) for search in searches)])
    named = np.where(asked >= 0, asked + first[owner][:, None], -1)
    used, places = np.unique(named, return_inverse=True)
    absent = int(used.size > 0 and used[0] < 0)
    points = np.concatenate([search.scaled_points for search in searches])[used[absent:]] / searches[0].scale
    rows, columns = points.nonzero()
    sizes, curvature = np.bincount(rows, minlength=len(points)), searches[0].curvature
    of = np.full(len(points), -1 if curvature is None else 0, dtype=np.int8)
    curvatures = () if curvature is None else (curvature,)
    kept = Points.held(points[rows, columns], sizes, columns.astype(np.int32), of, curvatures)
    return kept, places.reshape(named.shape) - absent
