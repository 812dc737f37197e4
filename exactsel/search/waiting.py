"""An open node that has not been made yet, and how it is told apart from one that has."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from exactsel.search.node import Node

if TYPE_CHECKING:
    from exactsel.search.left_open import LeftOpen

Key: TypeAlias = tuple[float, int]
"""A node's place in best-first order: bound and number."""


class Waiting(NamedTuple):
    """An open node that has not been made yet."""

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


def made(one: Node | Waiting) -> Node:
    """The node itself."""
    return one.node() if isinstance(one, Waiting) else one
