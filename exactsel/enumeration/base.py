"""The interface of subtree enumeration, with one implementation for each kind of problem."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from exactsel.bounds.witness import FitPoint, Proof
from exactsel.enumeration.work_budget import bound_work
from exactsel.kernels.subtree_record import SubtreeLimits
from exactsel.types import FloatArray, IntArray, StateArray


@dataclass(frozen=True)
class EnumerationResult:
    """What the walk of one node's subtree brought.

    ``open_states`` (m, d) are the regions left, with ``open_bounds`` (m,), in the order ``moves`` names them; all
    others are closed with a bound of at least ``min_pruned_bound``. ``support`` is that of the best model met, None if
    none is better than the caller's. ``work`` are the multiplications done, roughly.
    """

    finished: bool
    nodes: int
    work: float
    min_pruned_bound: float
    support: tuple[int, ...] | None
    open_states: StateArray
    open_bounds: FloatArray
    moves: IntArray


class SubtreeSolver(Protocol):
    """Bound to one problem; a pure function of what :meth:`explore` is given. Derive from it."""

    valid_for: str
    """The models its bounds hold for, where these are not all."""
    curvature: FloatArray | None
    """The D of formula (3) it uses, (d,), if any."""
    fewest_slots: int = 0
    """Regions with fewer places left, or with no more candidates than places, are not for it, where this is not 0."""
    keeps: bool = False
    """Whether it divides regions by bounds no weaker than the search's: what it leaves open is then none the worse."""
    witness: Proof = FitPoint()
    """What proves the bounds of the regions it leaves open."""

    def explore(
        self, states: StateArray, upper: float, tolerance: float, budget: int, work: float = ..., adopts: bool = True
    ) -> list[EnumerationResult | None] | None:
        """Walk the subtree of each node.

        Parameters
        ----------
        states : int8 array (B, d)
            Of units, as is what is left open.
        upper : float
            Objective of the incumbent.
        tolerance : float
            Regions are closed this much below the incumbent.
        budget : int
            Nodes of one walk ...
        work : float
            ... and its multiplications, roughly.
        adopts : bool
            Whether regions are compared with models met on the way, too. Where not every model on a set of columns is
            admissible they must not: models met are proposals, and every support below ``upper - tolerance`` is left
            in an open region.

        Returns
        -------
        list of B
            None where a node cannot be walked. None instead of the list after a stop.
        """
        ...

    def bound_work(self, columns: int, rows: int, iterations: int) -> float:
        """Multiplications of a bound call of a region of so many columns, which walks are compared with."""
        return bound_work(columns, rows, iterations)


class CombinedEnumeration(SubtreeSolver):
    """One that explores node after node by others."""

    def explore(
        self, states: StateArray, upper: float, tolerance: float, budget: int, work: float = math.inf,
        adopts: bool = True,
    ) -> list[EnumerationResult | None] | None:  # fmt: skip
        """As :meth:`SubtreeSolver.explore`."""
        limits = SubtreeLimits(upper, tolerance, budget, work, adopts)
        try:
            return [self.explore_one(state, limits) for state in states]
        except _Stopped:
            return None

    def explore_one(self, state: StateArray, limits: SubtreeLimits) -> EnumerationResult | None:
        """The subtree of one node, which :meth:`of` explores."""
        raise NotImplementedError

    @staticmethod
    def of(solver: SubtreeSolver, state: StateArray, limits: SubtreeLimits) -> EnumerationResult | None:
        """What one of the others brings."""
        results = solver.explore(state[None], *limits)
        if results is None:
            raise _Stopped
        return results[0]


class _Stopped(Exception):
    """An enumeration was stopped."""
