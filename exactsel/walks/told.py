"""Tell what a search inside the kernel closed at once, in ordinary steps (kernels/last_told.py)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from exactsel.kernels.apg import Perspective
from exactsel.kernels.last_told import STOPPED, TOLD, Told, empty_told, tell_region
from exactsel.kernels.moves import BRANCHED, CLOSED, LEFT_OUT, PUT_IN
from exactsel.kernels.node import FREE, IN, OUT, empty_answers
from exactsel.kernels.subsearch_record import AT_ONCE, BOUNDED, SKIPPED
from exactsel.types import BoolArray, FloatArray, IntArray, StateArray

if TYPE_CHECKING:
    from exactsel.walks.relaxation import KernelSearch

FIRST_POINTS = 64
"""Models there is room for at first."""


@dataclass
class _Steps:
    """Steps and points as they are put together."""

    steps: list[IntArray] = field(default_factory=list)
    bounds: list[FloatArray] = field(default_factory=list)
    points: list[FloatArray] = field(default_factory=list)
    count: int = 0
    """Points so far."""

    def add(self, steps: IntArray, bounds: FloatArray) -> None:
        """Take over steps as they are."""
        self.steps.append(steps)
        self.bounds.append(bounds)


def told_in_full(
    search: KernelSearch, state: StateArray, perspective: Perspective, stop: BoolArray,
    implied: Callable[[StateArray], StateArray | None],
) -> KernelSearch:  # fmt: skip
    """The same search, with the steps that prove what was closed at once; the search itself when told to stop.

    ``implied`` is what follows from the decisions of a region, None where no model is left in it.
    """
    d, nearest = state.size, {0: -1}
    states: dict[int, StateArray | None] = {0: state.copy()}
    full = _Steps(points=[search.scaled_points], count=len(search.scaled_points))
    answers, numbers, copied, room = empty_answers(1, d, perspective.k), 1, 0, FIRST_POINTS
    for at, (number, move, point) in enumerate(search.steps.tolist()):
        kind, column = move % 8, move // 8
        if kind == BRANCHED:
            states[numbers] = decided(states[number], column, IN, implied)
            states[numbers + 1] = decided(states[number], column, OUT, implied)
            nearest[numbers] = nearest[numbers + 1] = nearest[number]
            numbers += 2
        elif kind in (PUT_IN, LEFT_OUT):
            states[number] = decided(states[number], column, IN if kind == PUT_IN else OUT, implied)
        elif kind == BOUNDED and point >= 0:
            nearest[number] = point
        elif kind == CLOSED and point == AT_ONCE:
            bound, region = float(search.step_bounds[at]), states[number]
            assert region is not None
            begin = search.scaled_points[nearest[number]] if nearest[number] >= 0 else np.zeros(d)
            while True:
                told = empty_told(room, d)
                outcome = tell_region(*perspective, region, begin, bound, stop, answers, told)
                if outcome == STOPPED:
                    return search
                if outcome == TOLD:
                    break
                room *= 2
            full.add(search.steps[copied:at], search.step_bounds[copied:at])
            used = _take_over(full, told, number, numbers, bound)
            copied = at + 1
            if copied < len(search.steps) and search.steps[copied, 1] % 8 == SKIPPED:
                skipped = int(search.steps[copied, 1]) // 8
                full.add(np.array([[number, 8 * (skipped - used) + SKIPPED, -1]]), search.step_bounds[copied:][:1])
                numbers += skipped
                copied += 1
    full.add(search.steps[copied:], search.step_bounds[copied:])
    steps = np.concatenate(full.steps)
    steps[steps[:, 2] == AT_ONCE, 2] = -1
    return replace(
        search, steps=steps, step_bounds=np.concatenate(full.bounds), scaled_points=np.concatenate(full.points)
    )


def decided(
    state: StateArray | None, column: int, decision: int, implied: Callable[[StateArray], StateArray | None]
) -> StateArray | None:
    """A region with one more decision and what follows from it; None where no model is left."""
    if state is None or state[column] != FREE:
        return state if state is not None and state[column] == decision else None
    part = state.copy()
    part[column] = decision
    return implied(part)


def _take_over(full: _Steps, told: Told, number: int, numbers: int, bound: float) -> int:
    """Add what was told of a region under its own numbers and points; how many numbers that took.

    More may be proven than the ``bound`` the search claimed; it is not said, since the search did not know.
    """
    notes, points, used = (int(count) for count in told.counts)
    steps = told.notes[:notes].copy()
    steps[:, 0] = np.where(steps[:, 0] == 0, number, numbers - 1 + steps[:, 0])
    steps[:, 2] += full.count
    full.add(steps, np.minimum(told.bounds[:notes], bound))
    full.points.append(told.points[:points])
    full.count += points
    return used - 1
