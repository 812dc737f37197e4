"""Branching rules: the choice of the column to branch on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from exactsel.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class BranchingView:
    """What a bound call says about the candidates of a node; every array has one entry per candidate."""

    candidates: IntArray
    x: FloatArray
    """Relaxed coefficients."""
    indicator: FloatArray
    """Relaxed indicators in [0, 1]."""
    bound_in: FloatArray
    """Bound of the child that fixes the column to 1."""
    bound_out: FloatArray
    """Bound of the child that fixes the column to 0."""


class Branching(Protocol):
    """A rule that picks the branching column, found by name among the entry points ``exactsel.branchings``."""

    name: str

    def select(self, view: BranchingView) -> int:
        """The position in ``view.candidates`` to branch on. Ties must be broken the same way every time."""
        ...


class ClosestToHalf:
    """The relaxed indicator closest to 1/2; among equally undecided columns the largest coefficient."""

    name = "half"

    def select(self, view: BranchingView) -> int:
        """See :class:`Branching`."""
        # A relaxation that has overflown says nothing of its indicators, and any column will do.
        distance = np.nan_to_num(np.abs(view.indicator - 0.5), nan=0.0)
        undecided = (distance == distance.min()).nonzero()[0]
        if undecided.size == 1:
            return int(undecided[0])
        return int(undecided[np.abs(view.x[undecided]).argmax()])


class LargestCoefficient:
    """The largest relaxed coefficient."""

    name = "largest"

    def select(self, view: BranchingView) -> int:
        """See :class:`Branching`."""
        return int(np.argmax(np.abs(view.x)))


class CostliestToLeaveOut:
    """The column whose absence lifts the bound most; among equals the largest coefficient."""

    name = "costliest"

    def select(self, view: BranchingView) -> int:
        """See :class:`Branching`."""
        costliest = view.bound_out == view.bound_out.max()
        return int(np.argmax(np.where(costliest, np.abs(view.x), -1.0)))
