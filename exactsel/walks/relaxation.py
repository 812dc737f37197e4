"""Search below nodes inside the kernel, with the perspective relaxation (any loss; see kernels/subsearch.py)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from exactsel._jit import available_threads, loss_session, parallel_section
from exactsel.bounds.base import BoundOptions, stack_points
from exactsel.bounds.kernel_form import Relaxation
from exactsel.bounds.witness import ModelPoint
from exactsel.kernels.apg import GramData
from exactsel.kernels.moves import BRANCHED, CLOSED
from exactsel.kernels.node import empty_answers
from exactsel.kernels.subsearch import BOUNDED, DONE, Subsearch, empty_subsearch, search_below
from exactsel.types import FloatArray, IntArray, StateArray

THOROUGH = 0.1
"""The ``polish`` of a long search (see bounds/apg.py): half the bound calls, and a lower gap when it is broken off."""


class OpenRegion(NamedTuple):
    """A region left open, with the points that prove its bound and to start from (None: those of the node above)."""

    number: int
    state: StateArray
    bound: float
    proof: ModelPoint | None
    start: ModelPoint | None


class Note(NamedTuple):
    """One thing done: to which node, what (kernels/subsearch.py), with which bound and what proves it."""

    number: int
    kind: int
    column: int
    bound: float
    proof: ModelPoint | None


@dataclass(frozen=True)
class Below:
    """What the search below one node brought; nodes are numbered from 0, that one, to ``numbers`` - 1.

    Regions not among :meth:`open_regions` are closed with a bound of at least ``dropped``. ``support`` is that of the
    best model met, None if none is better than the caller's.
    """

    nodes: int
    iterations: int
    numbers: int
    dropped: float
    support: tuple[int, ...] | None
    found: Subsearch = field(repr=False)
    row: int
    scale: FloatArray = field(repr=False)
    relaxation: Relaxation = field(repr=False)
    _points: dict[int, ModelPoint] = field(default_factory=dict, repr=False)

    def open_regions(self) -> Iterator[OpenRegion]:
        """What is left open, in the order of the numbers."""
        found, row = self.found, self.row
        labels = found.open_labels[row, : found.open_count[row]]
        for at in np.argsort(labels[:, 0]).tolist():
            number, proof, start = labels[at].tolist()
            state, bound = found.open_states[row, at].copy(), float(found.open_bounds[row, at])
            yield OpenRegion(number, state, bound, self._point(proof), self._point(start))

    def notes(self) -> Iterator[Note]:
        """Everything done, in order."""
        found, row = self.found, self.row
        count = found.note_count[row]
        what, bounds = found.notes[row, :count].tolist(), found.note_bounds[row, :count].tolist()
        for (number, move, point), bound in zip(what, bounds, strict=True):
            yield Note(number, move % 8, move // 8, bound, self._point(point))

    def raw_notes(self) -> IntArray:
        """The notes (m, 3) as the kernel wrote them: number of the node, what was done, number of the point."""
        notes: IntArray = self.found.notes[self.row, : self.found.note_count[self.row]]
        return notes

    def points_used(self) -> IntArray:
        """The points that prove something, ascending."""
        notes = self.raw_notes()
        proves = (notes[:, 1] % 8 != BOUNDED) & (notes[:, 1] % 8 != BRANCHED) & (notes[:, 2] >= 0)
        used = np.zeros(self.nodes, dtype=np.bool_)
        used[notes[proves, 2]] = True
        return used.nonzero()[0]

    @property
    def uses_what_it_came_with(self) -> bool:
        """Whether some region is closed by what proved the bound of the node begun with."""
        notes = self.raw_notes()
        return bool(np.any((notes[:, 1] % 8 == CLOSED) & (notes[:, 2] < 0)))

    def points(self, numbers: IntArray) -> FloatArray:
        """Some of the points, one model (d,) a row."""
        points: FloatArray = self.found.points[self.row, numbers] / self.scale
        return points

    def sample_point(self) -> ModelPoint:
        """A point of the kind that proves the bounds here."""
        return self.relaxation.as_point(np.zeros(self.scale.size))

    def _point(self, index: int) -> ModelPoint | None:
        if index < 0:
            return None
        if index not in self._points:
            self._points[index] = self.relaxation.as_point(self.found.points[self.row, index] / self.scale)
        return self._points[index]


class Subsearcher:
    """Bound to one problem; a pure function of what :meth:`explore` is given."""

    def __init__(self, relaxation: Relaxation, options: BoundOptions) -> None:
        self._relaxation = relaxation
        self._options = options
        self._form = relaxation.kernel_form
        problem = relaxation.problem
        self._refit_tolerance = 1e-8 * problem.gradient_scale
        entries = problem.d if isinstance(self._form.data, GramData) else problem.n
        self.iteration_cost = float(entries * problem.d)
        """Multiplications of one iteration on all columns, roughly."""

    def explore(
        self, states: StateArray, warm: Sequence[ModelPoint | None], known: FloatArray, upper: float,
        tolerance: float, budget: int, horizon: float = math.inf,
    ) -> list[Below] | None:  # fmt: skip
        """Search below each node, up to ``budget`` nodes each.

        Parameters
        ----------
        states : int8 array (B, d)
        warm : sequence of B
            What the parent's bound call left behind, None at the root.
        known : float array (B,)
            Bounds the nodes came with.
        upper : float
            Objective of the incumbent.
        tolerance : float
            Regions are closed this much below the incumbent.
        budget : int
            Nodes each search may bound.
        horizon : float
            Regions whose bound lies above are left open: others, elsewhere, come first. Where there is one, the order
            is what counts, and so the bounds are made tighter.

        Returns
        -------
        list of B
            None when told to stop.
        """
        options, (loss, data, lam, rules, scale) = self._options, self._form
        if horizon < math.inf:
            rules = rules._replace(polish=THOROUGH)
        problem = self._relaxation.problem
        found = empty_subsearch(len(states), problem.d, problem.k, budget)
        workers = max(1, min(options.threads, available_threads(), len(states)))
        starts = stack_points(warm if options.warm_start else [None] * len(states), problem.d) * scale
        with loss_session(problem.loss), parallel_section(workers):
            search_below(
                loss, data, lam, problem.k, rules, states, starts, known, upper, tolerance, self._refit_tolerance,
                budget, horizon, options.stop, empty_answers(workers, problem.d, problem.k), found, _new_counter(),
            )  # fmt: skip
        if np.any(found.status != DONE):
            return None
        return [_below(found, row, scale, self._relaxation) for row in range(len(states))]


def _new_counter() -> IntArray:
    return np.zeros(1, dtype=np.int64)


def _below(found: Subsearch, row: int, scale: FloatArray, relaxation: Relaxation) -> Below:
    support = found.support[row]
    return Below(
        nodes=int(found.nodes[row]),
        iterations=int(found.iterations[row]),
        numbers=int(found.numbers[row]),
        dropped=float(found.dropped[row]),
        support=tuple(sorted(support[support >= 0].tolist())) if np.isfinite(found.value[row]) else None,
        found=found,
        row=row,
        scale=scale,
        relaxation=relaxation,
    )
