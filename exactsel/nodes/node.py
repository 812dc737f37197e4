"""A node of the search tree: a region (S, C) with a proven bound."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from exactsel.bounds.witness import InfimumPoint, Proof
from exactsel.kernels.node import FREE, IN
from exactsel.types import IntArray, StateArray

ROOT_ID = 0

Key: TypeAlias = tuple[float, int]
"""A node's place in best-first order: bound and number."""


@dataclass(frozen=True, slots=True)
class Node:
    """All models whose support lies in S and C together, with at most k - |S| members in C.

    ``state`` (d,) says for every column whether it is in S (IN), in C (FREE) or excluded (OUT); it is never changed
    once the node exists, so nodes may be handed to any thread or process.
    """

    id: int
    parent: int
    depth: int
    state: StateArray
    bound: float
    proof: Proof
    """What proves ``bound`` for this node."""
    warm: object = None
    """What the bound solver left behind at the parent."""
    tight: bool = False
    """Whether ``bound`` comes from a bound call on this very node rather than from its parent."""
    estimate: float = math.inf
    """Objective of the model the nearest relaxation above was rounded to: a guess at what the node may hold."""

    @property
    def support(self) -> IntArray:
        """S, ascending."""
        return np.flatnonzero(self.state == IN)

    @property
    def candidates(self) -> IntArray:
        """C, ascending."""
        return np.flatnonzero(self.state == FREE)


def key_of(node: Node) -> Key:
    """Its place in best-first order."""
    return node.bound, node.id


def root_node(state: StateArray, infimum: float) -> Node:
    """The whole search space: ``state`` says what was decided before (as a rule nothing: every column a candidate)."""
    return Node(ROOT_ID, -1, 0, state, infimum, InfimumPoint())


def is_convex(state: StateArray, k: int) -> bool:
    """Whether the region holds one convex problem: no place left, or a place for every candidate."""
    fixed = int(np.count_nonzero(state == IN))
    return fixed >= k or fixed + int(np.count_nonzero(state == FREE)) <= k
