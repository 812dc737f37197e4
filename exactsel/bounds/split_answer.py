"""The state of the split bound at a node, and its answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from exactsel.bounds.fit import FitTightened
from exactsel.bounds.witness import FitPoint, InfimumPoint, Proof, SplitPoint
from exactsel.kernels.node import Answers
from exactsel.types import BoolArray, FloatArray, IntArray


class Region(NamedTuple):
    """The numbers of one node."""

    columns: IntArray
    """S first, then C; without columns of zeros, which no model needs."""
    fixed: int
    slots: int
    H: FloatArray
    b: FloatArray

    @property
    def candidates(self) -> IntArray:
        """C."""
        return self.columns[self.fixed :]


class Attempt(NamedTuple):
    """The outcome of the ascent."""

    point: SplitPoint | None
    """The last N; None where there is none."""
    proven: bool
    steps: int
    """Eigendecompositions."""
    direction: FloatArray
    """(m,) how much each candidate has to do with what is missing; zeros where that is not known."""


class Value(NamedTuple):
    """A bound of a node that need not close it."""

    bound: float
    proof: Proof
    x: FloatArray | None
    """The minimiser of what is left of the objective, on the node's columns."""


NOTHING = Value(-math.inf, InfimumPoint(), None)


@dataclass(slots=True)
class Batch:
    """The answers of one call on their way."""

    answers: Answers
    proofs: list[Proof]
    of_children: list[Proof]
    warm: list[Any]
    out_by_fit: BoolArray
    valid_for: str = ""


@dataclass(frozen=True)
class SplitTightened(FitTightened):
    """The answer of a call in which nodes and their children may be bounded by different things."""

    of_children: Sequence[Proof]
    """What proves ``bound_in`` and ``bound_out`` of each node, but for drop costs."""

    def child_proof(self, row: int, column: int, included: bool) -> Proof:
        """As the bound beside the split has it, which is the only one that bounds children."""
        by_fit = not included and self.out_by_fit[row, column]
        return FitPoint() if by_fit else self.of_children[row]


def products(node: Region, attempt: Attempt) -> int:
    """What an attempt took, in products of the matrix and a vector: an eigendecomposition is one for each column."""
    return (attempt.steps + 1) * max(1, node.candidates.size)


def suggest(row: int, node: Region, direction: FloatArray, x: FloatArray | None, answers: Answers) -> None:
    """What the search may round, and branch on: the candidate that matters most gets the indicator 1/2."""
    fixed, candidates = node.fixed, node.candidates
    sizes = direction if x is None else np.abs(x[fixed:]) * np.sqrt(np.diagonal(node.H)[fixed:])
    weight = direction if direction.any() else sizes
    answers.x[row], answers.indicator[row], answers.support[row] = 0.0, 0.0, -1
    answers.x[row, candidates] = sizes
    answers.indicator[row, candidates] = 0.5 * weight / max(weight.max(initial=0.0), 1e-300)
    best = candidates[np.argsort(-sizes, kind="stable")[: node.slots]]
    support = np.concatenate([node.columns[:fixed], best])
    answers.support[row, : support.size] = support
