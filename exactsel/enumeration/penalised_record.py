"""The tree over all sizes as it was made, for its display (studies/penalised_proofs.py)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from exactsel.bounds.witness import InfimumPoint, Proof

ROOT = 0
"""The number of the first region."""


@dataclass
class RecordedNode:
    """What became of a region."""

    witness: Proof
    """What proves its bound."""
    bound: float
    """(4)"""
    fixed: list[tuple[int, bool, float, Proof]] = field(default_factory=list)
    """Columns, whether each was fixed to 1, and the bound of the child that was closed, with its proof."""
    column: int = -1
    """The one it was divided by; -1 where it was not."""
    children: tuple[int, int] = (-1, -1)
    """With the column, and without."""


@dataclass
class TreeRecord:
    """All regions, by number, the root first."""

    nodes: list[RecordedNode] = field(default_factory=lambda: [RecordedNode(InfimumPoint(), -np.inf)])

    def add(self, witness: Proof, bound: float) -> int:
        """A new region's number."""
        self.nodes.append(RecordedNode(witness, bound))
        return len(self.nodes) - 1
