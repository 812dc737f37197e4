"""Adapters for plug-in bounds: members missing from the protocol get their defaults, here and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from exactsel.bounds.base import BoundOptions, BoundSolver, PreparedBound, Tightened
from exactsel.problem.interface import SubsetProblem
from exactsel.types import FloatArray, StateArray


def bound_solver(solver: Any) -> BoundSolver:
    """A bound solver with all members of the protocol; of a class derived from it, the object itself."""
    return solver if BoundSolver in type(solver).__mro__ else _SolverFromElsewhere(solver)


class _SolverFromElsewhere(BoundSolver):
    def __init__(self, solver: Any) -> None:
        self._solver = solver
        self.name = solver.name
        self.needs = getattr(solver, "needs", BoundSolver.needs)
        self.adjusted_rows = getattr(solver, "adjusted_rows", BoundSolver.adjusted_rows)

    def prepare(self, problem: SubsetProblem, options: BoundOptions) -> PreparedBound:
        prepared = self._solver.prepare(problem, options)
        return prepared if PreparedBound in type(prepared).__mro__ else _PreparedElsewhere(prepared)


class _PreparedElsewhere(PreparedBound):
    def __init__(self, prepared: Any) -> None:
        self._prepared = prepared
        self.curvature = getattr(prepared, "curvature", None)

    @property
    def valid_for(self) -> str:
        """The restriction of the bounds so far, so read again each time."""
        return str(getattr(self._prepared, "valid_for", ""))

    def tighten(
        self, states: StateArray, warm: Sequence[Any], cutoff: float, upper: float, known: FloatArray | None = None
    ) -> Tightened:
        tightened: Tightened = self._prepared.tighten(states, warm, cutoff, upper, known)
        return tightened
