"""Search below nodes inside the kernel, with the perspective relaxation (any loss; see kernels/native_search.py)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from exactsel._jit import available_threads, parallel_section
from exactsel.bounds.base import BoundOptions, stack_points
from exactsel.bounds.kernel_form import Relaxation
from exactsel.bounds.newton_fit import beginning_at_fits
from exactsel.bounds.witness import CurvedPoint, LeafFits, ModelPoint
from exactsel.kernels.forms import GramData
from exactsel.kernels.moves import BRANCHED, CLOSED
from exactsel.kernels.native_record import AT_ONCE, BOUNDED, DONE, NativeRecord, SearchLimits, empty_subsearch
from exactsel.kernels.native_search import native_search
from exactsel.kernels.node import empty_answers
from exactsel.problem.restrictions import is_restricted
from exactsel.types import FloatArray, IntArray, StateArray

THOROUGH = 0.1
"""The ``polish`` of a long search (see bounds/apg.py): half the bound calls, and a lower gap when it is broken off."""


LAST_PLACES = 2
"""Regions with at most this many places left are closed at once where that can be done (kernels/leaf_closing.py)."""


class OpenRegion(NamedTuple):
    """A region left open, with the points that prove its bound and to start from (None: those of the node above)."""

    number: int
    state: StateArray
    bound: float
    proof: ModelPoint | None
    start: ModelPoint | None


class Step(NamedTuple):
    """One thing done: to which node, what (kernels/native_search.py), with which bound and what proves it."""

    number: int
    kind: int
    column: int
    bound: float
    proof: ModelPoint | LeafFits | None


@dataclass(frozen=True)
class NativeTree:
    """What the kernel's search below one node brought; nodes are numbered from 0, that one, to ``numbers`` - 1.

    Regions not among :meth:`open_regions` are closed with a bound of at least ``min_pruned_bound``. ``support`` is
    that of the best model met, None if none is better than the caller's. The arrays are as the kernel wrote them
    (:class:`exactsel.kernels.native_search.NativeRecord`).
    """

    nodes: int
    iterations: int
    numbers: int
    min_pruned_bound: float
    support: tuple[int, ...] | None
    steps: IntArray = field(repr=False)
    """(m, 3) number of the node, what was done, number of the point that proves it (-1: what the search came with; or
    ``AT_ONCE``, see kernels/native_record.py)."""
    step_bounds: FloatArray = field(repr=False)
    """(m,) the bound that goes with each."""
    open_states: StateArray = field(repr=False)
    """(l, d) the regions left open ..."""
    open_bounds: FloatArray = field(repr=False)
    open_labels: IntArray = field(repr=False)
    """(l, 3) ... their numbers, the points that prove their bounds, and those to start from (-1: the caller's)."""
    scaled_points: FloatArray = field(repr=False)
    """(points, d) the models that prove bounds, in the variables of the kernel."""
    scale: FloatArray = field(repr=False)
    """(d,) what a model is multiplied by to be in those variables."""
    curvature: FloatArray | None = field(repr=False)
    """The D of formula (3) the points are for, (d,); None where they are for formula (2)."""
    _points: dict[int, ModelPoint] = field(default_factory=dict, repr=False, compare=False)

    def open_regions(self) -> Iterator[OpenRegion]:
        """What is left open, in the order of the numbers."""
        for at in np.argsort(self.open_labels[:, 0]).tolist():
            number, proof, start = self.open_labels[at].tolist()
            state, bound = self.open_states[at].copy(), float(self.open_bounds[at])
            yield OpenRegion(number, state, bound, self._point(proof), self._point(start))

    def expanded_steps(self) -> Iterator[Step]:
        """Everything done, in order."""
        for (number, move, point), bound in zip(self.steps.tolist(), self.step_bounds.tolist(), strict=True):
            proof = LeafFits() if point == AT_ONCE else self._point(point)
            yield Step(number, move % 8, move // 8, bound, proof)

    def points_used(self) -> IntArray:
        """The points that prove something, ascending."""
        kind, point = self.steps[:, 1] % 8, self.steps[:, 2]
        proves = (kind < BOUNDED) & (kind != BRANCHED) & (point >= 0)
        used = np.zeros(len(self.scaled_points), dtype=np.bool_)
        used[point[proves]] = True
        return used.nonzero()[0]

    @property
    def uses_what_it_came_with(self) -> bool:
        """Whether some region is closed by what proved the bound of the node begun with."""
        return bool(np.any((self.steps[:, 1] % 8 == CLOSED) & (self.steps[:, 2] == -1)))

    def points(self, numbers: IntArray) -> FloatArray:
        """Some of the points, one model (d,) a row."""
        points: FloatArray = self.scaled_points[numbers] / self.scale
        return points

    def _point(self, number: int) -> ModelPoint | None:
        if number < 0:
            return None
        if number not in self._points:
            point = ModelPoint.from_dense(self.scaled_points[number] / self.scale)
            if self.curvature is not None:
                point = CurvedPoint(point.index, point.value, self.curvature)
            self._points[number] = point
        return self._points[number]


class NativeBranchAndBound:
    """Bound to one problem; a pure function of what :meth:`explore` is given."""

    def __init__(self, relaxation: Relaxation, options: BoundOptions) -> None:
        self.relaxation = relaxation
        self._options = options
        self._form = relaxation.kernel_form
        problem = relaxation.problem
        sample = relaxation.as_point(np.zeros(problem.d))
        self._curvature = sample.curvature if isinstance(sample, CurvedPoint) else None
        self._refit_tolerance = problem.objective.gradient_tolerance(1e-8)
        entries = problem.d if isinstance(self._form.perspective.data, GramData) else problem.n
        self.iteration_cost = float(entries * problem.d)
        """Multiplications of one iteration on all columns, roughly."""

    def explore(
        self, states: StateArray, warm: Sequence[object], inherited: FloatArray, upper: float,
        tolerance: float, budget: int, horizon: float = math.inf,
    ) -> list[NativeTree] | None:  # fmt: skip
        """Search below each node, up to ``budget`` nodes each.

        Parameters
        ----------
        states : int8 array (B, d)
        warm : sequence of B
            What the parent's bound call left behind, None at the root.
        inherited : float array (B,)
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
            None after a stop.
        """
        options, problem, (perspective, scale) = self._options, self.relaxation.problem, self._form
        if self.relaxation.begins_at_fits():
            perspective = beginning_at_fits(perspective, self.relaxation.second_order)
        if options.stop[0]:
            return None
        if horizon < math.inf:
            perspective = perspective._replace(rules=perspective.rules._replace(polish=THOROUGH))
        outputs = empty_subsearch(len(states), problem.d, problem.k, budget)
        workers = max(1, min(options.threads, available_threads(), len(states)))
        starts = stack_points(warm if options.warm_start else [None] * len(states), problem.d) * scale
        limits = SearchLimits(
            upper, tolerance, budget, horizon, self._refit_tolerance, LAST_PLACES, not is_restricted(problem)
        )  # fmt: skip
        with parallel_section(workers):
            native_search(
                *perspective, problem.units.sets, limits, states, starts,
                inherited, options.stop, empty_answers(workers, problem.d, problem.k), outputs, _new_counter(),
            )  # fmt: skip
        if np.any(outputs.status != DONE):
            return None
        return [_kernel_search(outputs, row, scale, self._curvature) for row in range(len(states))]


def _new_counter() -> IntArray:
    return np.zeros(1, dtype=np.int64)


def _kernel_search(outputs: NativeRecord, row: int, scale: FloatArray, curvature: FloatArray | None) -> NativeTree:
    """One row of what the kernel wrote down."""
    support, steps, open_count = outputs.support[row], int(outputs.note_count[row]), int(outputs.open_count[row])
    nodes = int(outputs.nodes[row])
    return NativeTree(
        nodes=nodes,
        iterations=int(outputs.iterations[row]),
        numbers=int(outputs.numbers[row]),
        min_pruned_bound=float(outputs.min_pruned_bound[row]),
        support=tuple(sorted(support[support >= 0].tolist())) if np.isfinite(outputs.value[row]) else None,
        steps=outputs.notes[row, :steps],
        step_bounds=outputs.note_bounds[row, :steps],
        open_states=outputs.open_states[row, :open_count],
        open_bounds=outputs.open_bounds[row, :open_count],
        open_labels=outputs.open_labels[row, :open_count],
        scaled_points=outputs.points[row, : outputs.point_count[row]],
        scale=scale,
        curvature=curvature,
    )
