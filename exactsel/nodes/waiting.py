"""An open node that has not been made yet, and how it is told apart from one that has."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from exactsel.nodes.node import Node

if TYPE_CHECKING:
    from exactsel.nodes.left_open import LeftOpen

Key: TypeAlias = tuple[float, int]
"""A node's place in best-first order: bound and number."""


class Waiting(NamedTuple):
    """An open node that has not been made yet; two of them, and one and a :data:`Key`, compare by bound and number."""

    bound: float
    number: int
    row: int
    left: LeftOpen
    """What holds it, in that row."""
    parent: int
    depth: int

    def node(self) -> Node:
        """The node."""
        return self.left.node(self.row, self.number, self.parent, self.depth)


def key_of(one: Node | Waiting) -> Key:
    """Its place in best-first order."""
    return (one.bound, one.number) if isinstance(one, Waiting) else (one.bound, one.id)


def best_first_order(nodes: list[Node], regions: list[Waiting]) -> list[Node | Waiting]:
    """All of them in best-first order; where nothing else is there, without a key to be made for each."""
    if not nodes:
        return [*sorted(regions)]
    return sorted([*nodes, *regions], key=key_of)


def made(one: Node | Waiting) -> Node:
    """The node itself."""
    return one.node() if isinstance(one, Waiting) else one
