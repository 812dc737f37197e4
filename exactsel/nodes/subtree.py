"""Records of closed subtrees, and the assembly of closers' results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from exactsel.enumeration.base import EnumerationResult
from exactsel.enumeration.native import NativeTree
from exactsel.errors import InvariantError
from exactsel.kernels.moves import BRANCHED
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.kernels.subtree_record import LEFT_OPEN
from exactsel.nodes.left_open import LeftBelow
from exactsel.nodes.node import Node
from exactsel.nodes.regions import Region, SubtreeResult, as_region
from exactsel.types import FloatArray, IntArray, StateArray


@dataclass(frozen=True, slots=True)
class Moves:
    """The decisions of a walk in preorder; all it closed is closed by a fit, or by counting."""

    moves: IntArray = field(repr=False)
    """Each 8 * column + kind (kernels/subtree_record.py)."""
    curvature: FloatArray | None = field(default=None, repr=False)
    """The D of formula (3) it used, (d,), if any."""


def walked(
    node: Node, region: Region, walk: EnumerationResult, children: Sequence[Region], closer: str, *,
    valid_for: str = "",
    curvature: FloatArray | None = None, fraction: float | None = None,
) -> SubtreeResult:  # fmt: skip
    """What a walk brought; ``children`` are the regions it left open."""
    return SubtreeResult(
        node, region, closer, tuple(children), walk.min_pruned_bound, walk.nodes, work=walk.work,
        finished=walk.finished,
        bounds=tuple(walk.open_bounds.tolist()), support=walk.support, valid_for=valid_for, fraction=fraction,
        expansion=Moves(walk.moves, curvature),
    )  # fmt: skip


def searched(node: Node, search: NativeTree, below: LeftBelow, closer: str) -> SubtreeResult:
    """What a search inside the kernel brought; ``below`` are the regions it left open."""
    return SubtreeResult(
        node, as_region(node), closer, below, search.min_pruned_bound, search.nodes, search.nodes, search.iterations,
        closed=search.numbers // 2 + 1 - len(below), numbers=below.numbers, numbered=search.numbers - 1,
        bounds=tuple(below.bounds()), support=search.support, expansion=search,
    )  # fmt: skip


def count_open(children: Sequence[Region]) -> int:
    """How many of the regions a closer left open are open still, without making any of them."""
    if isinstance(children, LeftBelow):
        return len(children) - int(np.count_nonzero(children.overtaken))
    return sum(region.closed is None for region in children)


def moves_of(result: SubtreeResult) -> tuple[Moves, list[int]]:
    """How a subtree was divided, in preorder, and the children in the order in which that meets them.

    A closer without a record of its own has closed nothing but what its children say, so these are complete.

    Raises
    ------
    InvariantError
        Where the children do not divide the region.
    """
    if isinstance(result.expansion, Moves):
        return result.expansion, [*range(len(result.children))]
    states = np.array([child.state for child in result.children], dtype=np.int8)
    if result.expansion is not None or not len(states):
        raise InvariantError(f"nothing tells how the subtree of node {result.node.id} was closed.")
    divisions = _Divisions(states)
    divisions.divide(result.region.state.copy(), [*range(len(states))])
    if divisions.broken:
        raise InvariantError(f"what was left open below node {result.node.id} does not divide it.")
    return Moves(np.array(divisions.moves, dtype=np.int64)), divisions.order


class _Divisions:
    """A region divided column by column until each part is one of the ``states`` (m, d)."""

    def __init__(self, states: StateArray) -> None:
        self._states = states
        self.moves: list[int] = []
        self.order: list[int] = []
        self.broken = False

    def divide(self, state: StateArray, rows: list[int]) -> None:
        """Divide a region that these states are to be the parts of."""
        waiting = [(state, rows)]
        while waiting and not self.broken:
            state, rows = waiting.pop()
            parts = self._states[rows]
            if len(rows) == 1 and np.array_equal(parts[0], state):
                self.moves.append(LEFT_OPEN)
                self.order += rows
                continue
            common = np.flatnonzero((state == FREE) & np.all(parts != FREE, axis=0) & np.any(parts != parts[0], axis=0))
            if not common.size:
                self.broken = True
                continue
            column = int(common[0])
            self.moves.append(8 * column + BRANCHED)
            included, outside = state.copy(), state
            included[column], outside[column] = IN, OUT
            is_in = parts[:, column] == IN
            waiting.append((included, [row for row, there in zip(rows, is_in.tolist(), strict=True) if there]))
            waiting.append((outside, [row for row, there in zip(rows, is_in.tolist(), strict=True) if not there]))
