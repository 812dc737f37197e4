"""Everything that happens in a search, as plain records.

The search is a generator of these; log, trace, recorded tree and certificate are observers of them. Replayed in
order from the root, Fixed, Divided and Discarded describe a full proof: every region closed comes with what proves its
bound, and the nodes still open at the end are its remaining leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from exactsel.bounds.witness import Proof
from exactsel.nodes.node import Node
from exactsel.nodes.regions import Fixings, SubtreeResult
from exactsel.types import FloatArray, StateArray


@dataclass(frozen=True, slots=True)
class Started:
    """The search begins with these open nodes (the root, or those of an earlier run)."""

    open_nodes: Sequence[Node]


@dataclass(frozen=True, slots=True)
class IncumbentFound:
    """A better model was found."""

    upper: float
    support: tuple[int, ...]
    coef: FloatArray
    source: str


@dataclass(frozen=True, slots=True)
class Bounded:
    """A bound call on a node ended."""

    node: int
    bound: float
    solved: bool
    """Whether the node held one convex problem, solved here."""
    iterations: int


@dataclass(frozen=True, slots=True)
class Fixed:
    """Children of a node are closed, one a column, so the node continues with these columns in, or out, for good.

    Each one is a child of what those before it have left of the node.
    """

    node: int
    fixings: Fixings


@dataclass(frozen=True, slots=True)
class Divided:
    """A node was split: ``children`` one per column of the chain, then ``rest`` (see trees.Split)."""

    node: int
    columns: tuple[int, ...]
    children: tuple[int, ...]
    rest: int


@dataclass(frozen=True, slots=True)
class Discarded:
    """A node was closed: its bound reached the cut-off, or it was solved."""

    node: int
    state: StateArray
    reason: str
    """``inherited``: by what the parent's dual vector says. ``bound``: by its own bound call. ``solved``: it held one
    convex problem, whose minimum is known. ``contained``: its models are all in a sibling. ``incumbent``: an incumbent
    found later overtook its bound. ``listed``: solved by listing (enumeration/below_minorant.py); then ``proof`` is one
    only in a search with the option to show its proofs."""
    bound: float
    proof: Proof


@dataclass(frozen=True, slots=True)
class SubtreeClosed:
    """A closer dealt with the subtree of a node.

    A search with details reports the steps of a kernel's search one by one.
    """

    node: int
    open_ids: tuple[int, ...]
    """Nodes made of the children, in their order."""
    first_id: int
    """What the closer numbered i > 0 is node first_id + i."""
    result: SubtreeResult


@dataclass(frozen=True, slots=True)
class LowerBoundRaised:
    """The bound of the whole search rose."""

    lower: float


@dataclass(frozen=True, slots=True)
class RoundEnded:
    """All events of a round were reported: the state is complete, and can be saved for resuming."""

    round: int
    """How many have ended since the root."""


@dataclass(frozen=True, slots=True)
class Finished:
    """The search ended; these nodes are still open."""

    termination: str
    open_nodes: Sequence[Node]


Event: TypeAlias = (
    Started
    | IncumbentFound
    | Bounded
    | Fixed
    | Divided
    | Discarded
    | SubtreeClosed
    | LowerBoundRaised
    | RoundEnded
    | Finished
)
