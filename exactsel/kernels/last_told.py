"""What proves a region that was closed at once (kernels/last_place.py), in the words everything else is told in.

Nothing is kept of such a region but its bound. Whoever wants to know is told another proof of the same bound, as the
search would have found it node by node: the relaxation, columns left out and put in by its dual vector, a split where
that does not do; and with one place left a model of its own in place of the split's child that holds the column.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from exactsel._jit import choose_by_type, njit
from exactsel.kernels.apg import Perspective, Rules, relax_node
from exactsel.kernels.columns import columns_of
from exactsel.kernels.dual import dual_at_point, node_bound
from exactsel.kernels.levels import LOGISTIC
from exactsel.kernels.moves import BRANCHED, CLOSED, LEFT_OUT, PUT_IN
from exactsel.kernels.node import FREE, IN, OUT, UNFINISHED, Answers, branching_column, node_columns
from exactsel.kernels.refit import SINGULAR, newton_refit
from exactsel.types import BoolArray, FloatArray, IntArray, StateArray

TOLD, TOO_LITTLE_ROOM, STOPPED = 0, 1, 2


class Told(NamedTuple):
    """Room for the proof of one region, whose number is 0; the children of a split get the next two numbers."""

    notes: IntArray
    """(p, 3) as in :class:`exactsel.kernels.subsearch_record.Subsearch`."""
    bounds: FloatArray
    """(p,)"""
    points: FloatArray
    """(q, d) models."""
    counts: IntArray
    """(3,) notes, points, numbers."""


def empty_told(points: int, d: int) -> Told:
    """Room for so many models."""
    notes = 2 * points + 8 * d
    return Told(
        np.empty((notes, 3), dtype=np.int64), np.empty(notes), np.zeros((points, d)), np.array([0, 0, 1])
    )  # fmt: skip


@njit
def _tell(told: Told, number: int, column: int, kind: int, bound: float, point: int) -> None:
    at = told.counts[0]
    told.notes[at, 0] = number
    told.notes[at, 1] = 8 * column + kind
    told.notes[at, 2] = point
    told.bounds[at] = bound
    told.counts[0] = at + 1


@njit
def _has_room(told: Told) -> bool:
    """Whether there is room for all that one relaxation can bring, and for one more model."""
    room = told.notes.shape[0] - told.counts[0] > told.points.shape[1] + 4
    return bool(room and told.points.shape[0] - told.counts[1] > 2)


@njit
def _add_point(told: Told, columns: IntArray, x: FloatArray) -> int:
    point = told.counts[1]
    for i in range(columns.size):
        told.points[point, columns[i]] = x[i]
    told.counts[1] = point + 1
    return int(point)


@njit
def _relaxed(
    problem: Perspective, state: StateArray, start: FloatArray, level: float, stop: BoolArray, answers: Answers,
    told: Told,
) -> int:  # fmt: skip
    """Bound a region by the relaxation; the number of its point, -1 when told to stop."""
    answers.point[0, :] = 0.0
    answers.x[0, :] = 0.0
    answers.support[0, :] = -1
    relax_node(problem, state, start, level, -np.inf, stop, answers, answers.point, 0)
    if answers.status[0] == UNFINISHED:
        return -1
    return int(_add_point(told, np.arange(state.size), answers.point[0]))


@njit
def _solved(problem: Any, columns: IntArray, start: FloatArray, level: float, told: Told) -> tuple[float, int]:
    """The bound of the models on ``columns`` alone, and the number of the model that proves it."""
    data = problem.data
    x, z, q, v = start[columns], np.empty(data.y.size), np.empty(columns.size), np.empty(columns.size)
    hopeless = level + 1e-12 * abs(level)
    newton_refit(problem.loss, columns_of(data), data.y, problem.lam, columns, 0.0, x, z, hopeless, SINGULAR)
    base = dual_at_point(problem.loss, columns_of(data), data.y, data.norms, columns, z, np.empty(data.y.size), q, v)
    bound = node_bound(base, q, columns.size, 0, problem.lam, np.empty(1))
    return bound, _add_point(told, columns, x)


@njit
def _decide(state: StateArray, k: int, answers: Answers, level: float, told: Told, number: int, point: int) -> None:
    """Leave out and put in what the relaxation's dual vector allows, as kernels/subsearch.py."""
    inside = 0
    for j in range(state.size):
        inside += state[j] == IN
        if state[j] == FREE and answers.bound_in[0, j] >= level:
            state[j] = OUT
            _tell(told, number, j, LEFT_OUT, answers.bound_in[0, j], point)
    for j in range(state.size):
        if state[j] == FREE and inside < k and answers.bound_out[0, j] >= level:
            state[j] = IN
            inside += 1
            _tell(told, number, j, PUT_IN, answers.bound_out[0, j], point)


@njit
def _tell_one_place(
    problem: Any, state: StateArray, start: FloatArray, level: float, stop: BoolArray, answers: Answers, told: Told,
    number: int,
) -> int:  # fmt: skip
    """Prove a region with one place left: the relaxation, and as long as that does not do, one column less."""
    here, begin, k = state.copy(), start, problem.k
    while True:
        if not _has_room(told):
            return TOO_LITTLE_ROOM
        columns, fixed = node_columns(here)
        if fixed >= k or columns.size <= k:
            bound, point = _solved(problem, columns[:fixed] if fixed >= k else columns, begin, level, told)
            _tell(told, number, 0, CLOSED, bound, point)
            return TOLD
        point = _relaxed(problem, here, begin, level, stop, answers, told)
        if point < 0:
            return STOPPED
        if answers.bound[0] >= level:
            _tell(told, number, 0, CLOSED, answers.bound[0], point)
            return TOLD
        begin = told.points[point]
        _decide(here, k, answers, level, told, number, point)
        columns, fixed = node_columns(here)
        if fixed >= k or columns.size <= k:
            continue
        column = branching_column(here, answers, 0)
        support = np.append(columns[:fixed], np.full(1, column))
        bound, model = _solved(problem, support, begin, level, told)
        _tell(told, number, column, LEFT_OUT, bound, model)
        here[column] = OUT


@choose_by_type("loss")
def tell_region(
    loss: Any, data: Any, groups: Any, lam: float, k: int, rules: Rules, state: StateArray, start: FloatArray,
    level: float, stop: BoolArray, answers: Answers, told: Told,
) -> int:  # fmt: skip
    """Write down a proof that no model of the region is below ``level``, from a region closed at once at that bound.

    Returns TOLD, TOO_LITTLE_ROOM or STOPPED.
    """
    return STOPPED


@tell_region.register(*LOGISTIC)
def _tell_logistic(
    loss: Any, data: Any, groups: Any, lam: float, k: int, rules: Rules, state: StateArray, start: FloatArray,
    level: float, stop: BoolArray, answers: Answers, told: Told,
) -> int:  # fmt: skip
    return int(tell_places(Perspective(loss, data, groups, lam, k, rules), state, start, level, stop, answers, told))


@njit
def tell_places(
    problem: Any, state: StateArray, start: FloatArray, level: float, stop: BoolArray, answers: Answers, told: Told
) -> int:
    """As :func:`tell_region`: a chain of splits, whose children with the column have one place left."""
    here, number, begin, k = state.copy(), 0, start, problem.k
    while True:
        if not _has_room(told):
            return TOO_LITTLE_ROOM
        columns, fixed = node_columns(here)
        if k - fixed <= 1 or columns.size <= k:
            return int(_tell_one_place(problem, here, begin, level, stop, answers, told, number))
        point = _relaxed(problem, here, begin, level, stop, answers, told)
        if point < 0:
            return STOPPED
        if answers.bound[0] >= level:
            _tell(told, number, 0, CLOSED, answers.bound[0], point)
            return TOLD
        begin = told.points[point]
        _decide(here, k, answers, level, told, number, point)
        columns, fixed = node_columns(here)
        if k - fixed <= 1 or columns.size <= k:
            continue
        column = branching_column(here, answers, 0)
        _tell(told, number, column, BRANCHED, answers.bound[0], point)
        inside = here.copy()
        inside[column], here[column] = IN, OUT
        number = told.counts[2]
        told.counts[2] = number + 2
        outcome = _tell_one_place(problem, inside, begin, level, stop, answers, told, number)
        if outcome != TOLD:
            return int(outcome)
        number += 1
