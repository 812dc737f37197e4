"""Ways to split a node (S, C) into children that together cover it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from exactsel.kernels.node import FREE, IN, OUT
from exactsel.types import StateArray


@dataclass(frozen=True, slots=True)
class Split:
    """A chain of decisions: child t fixes columns[t] to 1 and columns[0..t-1] to 0; ``rest`` fixes all to 0.

    A binary split is a chain of one. Children and rest together cover the node by construction.
    """

    columns: tuple[int, ...]
    children: tuple[StateArray, ...]
    rest: StateArray
    rest_is_contained: bool
    """Whether ``rest`` holds only models that the last child holds too, so that it need not be searched."""


class Tree(Protocol):
    """A way to split, found by name among the entry points ``exactsel.trees``."""

    name: str
    eager: bool
    """Bound children when they are generated (as in the paper) rather than when they are taken."""
    fixes: bool
    """Fix columns by the bounds their children would inherit."""
    prunes_at_upper: bool
    """Discard at the incumbent itself (as in the paper) rather than a tolerance below it."""
    batch: int
    """Nodes taken in one round unless the settings say otherwise."""

    def split(self, state: StateArray, column: int, k: int) -> Split:
        """Split a node that is not convex; ``column`` is the branching rule's choice."""
        ...


class BinaryTree:
    """Fix one column to 1, or to 0: the bound decides which."""

    name = "binary"
    eager = False
    fixes = True
    prunes_at_upper = False
    batch = 64

    def split(self, state: StateArray, column: int, k: int) -> Split:
        """See :class:`Tree`."""
        included, outside = state.copy(), state.copy()
        included[column], outside[column] = IN, OUT
        return Split((column,), (included,), outside, rest_is_contained=False)


class StateSpaceTree:
    """The paper's tree (Sakaue, Marumo, section 2.1): child t is (S + c_t, the candidates after c_t).

    Children from which no support of size k can be reached are omitted: all their models are in an earlier sibling.
    """

    name = "state-space"
    eager = True
    fixes = False
    prunes_at_upper = True
    batch = 1

    def split(self, state: StateArray, column: int, k: int) -> Split:
        """See :class:`Tree`; the order of the columns decides, ``column`` is not used."""
        candidates = np.flatnonzero(state == FREE)
        places = k - int(np.count_nonzero(state == IN))
        rest = state.copy()
        children = []
        columns = candidates[: candidates.size - places + 1]
        for j in columns:
            rest[j] = OUT
            child = rest.copy()
            child[j] = IN
            children.append(child)
        return Split(tuple(int(j) for j in columns), tuple(children), rest, rest_is_contained=True)
