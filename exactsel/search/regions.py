"""Pieces of the search space on their way through a round, and what a round returns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from exactsel.bounds.base import Tightened
from exactsel.bounds.witness import Proof
from exactsel.kernels.node import FREE
from exactsel.problem.fit import Fit
from exactsel.search.branching import BranchingView
from exactsel.search.node import Node
from exactsel.search.trees import Split
from exactsel.types import StateArray
from exactsel.walks.closed_form import Subtree
from exactsel.walks.relaxation import Below


@dataclass(frozen=True, slots=True)
class Visit:
    """A bound call that was made."""

    bound: float
    solved: bool
    iterations: int


@dataclass(frozen=True, slots=True)
class Fixing:
    """A closed child, so the node continues as the other one (see events.Fixed)."""

    column: int
    inside: bool
    bound: float
    proof: Proof


@dataclass(frozen=True, slots=True)
class Region:
    """A piece of the search space with its best proven bound; ``closed`` says why it need not be searched."""

    state: StateArray
    bound: float
    proof: Proof
    warm: Any = None
    tight: bool = False
    visits: tuple[Visit, ...] = ()
    fixings: tuple[Fixing, ...] = ()
    closed: str | None = None
    estimate: float = math.inf
    """Objective of the model its relaxation, or the one it comes from, was rounded to."""


@dataclass(frozen=True, slots=True)
class Expansion:
    """What became of one node: ``region`` after its own bound calls and, when it was split, its pieces."""

    node: Node
    region: Region
    split: Split | None = None
    children: tuple[Region, ...] = ()
    rest: Region | None = None
    subtree: Subtree | None = None
    """The walk of the whole subtree, where there was one; ``children`` are then the regions it left open."""
    below: Below | None = None
    """The search inside the kernel, where there was one; ``children`` are the regions it left open ..."""
    numbers: tuple[int, ...] = ()
    """... and these its numbers for them."""
    vain_walk: int | None = None
    """Nodes of a walk whose outcome was not used, 0 where it was refused (nearly dependent columns)."""


@dataclass(frozen=True, slots=True)
class Round:
    """The outcome of a round: better models found, and one expansion per node, in node order."""

    found: tuple[Fit, ...]
    expansions: tuple[Expansion, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """One node's part of a bound call's result."""

    result: Tightened
    row: int

    def view(self, state: StateArray) -> BranchingView:
        """What the branching rule may see: the candidates left after fixing."""
        answers, candidates = self.result.answers, (state == FREE).nonzero()[0]
        return BranchingView(
            candidates,
            answers.x[self.row, candidates],
            answers.indicator[self.row, candidates],
            answers.bound_in[self.row, candidates],
            answers.bound_out[self.row, candidates],
        )

    def proof(self, column: int, inside: bool) -> Proof:
        """What proves the bound a child inherits."""
        return self.result.child_proof(self.row, column, inside)


def as_region(node: Node) -> Region:
    """The region of an open node, as the search left it."""
    return Region(node.state, node.bound, node.proof, node.warm, node.tight, estimate=node.estimate)


def inherit(region: Region, state: StateArray, bound: float, proof: Proof, cutoff: float) -> Region:
    """A child: its bound is the parent's, or the one the parent's last bound call gives it."""
    if not bound > region.bound:
        bound, proof = region.bound, region.proof
    closed = "inherited" if bound >= cutoff else None
    return Region(state, float(bound), proof, region.warm, closed=closed, estimate=region.estimate)
