"""A small best-first search inside the kernel, on the perspective relaxation: any loss, no Python between its nodes.

It does with one node what the search does with the whole problem: bound, fix, round, branch on the relaxed indicator
closest to 1/2. It takes the node of smallest bound next, or, when more than a few are open, the one of largest bound,
which is the most likely to be closed. After a budget of nodes it hands back what is still open. Everything it
does is written down, so that the search's events can be told from it (walks/relaxation.py).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from exactsel._jit import atomic_add, choose_by_type, njit, prange
from exactsel.kernels.apg import Perspective, Rules, relax_node
from exactsel.kernels.columns import columns_of
from exactsel.kernels.forms import GramData
from exactsel.kernels.moves import BRANCHED, CLOSED, LEFT_OUT, PUT_IN
from exactsel.kernels.node import CUT, FREE, ILL_CONDITIONED, IN, OUT, SOLVED, UNFINISHED, Answers
from exactsel.kernels.refit import gram_refit, newton_refit
from exactsel.types import BoolArray, FloatArray, IntArray, StateArray

BOUNDED = 4
"""Written down about a node beside :mod:`exactsel.kernels.moves`: it is bounded, with the number of iterations in the
place of the column. The children of a node that is split get the next two numbers, first the one with the column."""

DONE, STOPPED = 0, 1

WIDTH = 32
"""Open nodes above which the search goes on with the one of largest bound."""

REMEMBERED = 32
"""Supports last evaluated, which are not evaluated again."""


class SearchLimits(NamedTuple):
    """When a search closes a region or leaves it open, and when it ends."""

    upper: float
    """Objective of the best model known to the caller."""
    tolerance: float
    """A region is closed where its bound reaches this much less than the best objective known."""
    budget: int
    """Nodes the search may bound."""
    horizon: float
    """Regions whose bound lies above are left open: others come first."""
    accuracy: float
    """Gradient norm at which a refitted model counts as solved."""


class Subsearch(NamedTuple):
    """What the searches below B nodes brought, one row each; nodes are numbered from 0, the one begun with."""

    status: StateArray
    nodes: IntArray
    """Nodes bounded."""
    numbers: IntArray
    """Nodes numbered."""
    iterations: IntArray
    dropped: FloatArray
    """The smallest bound of any region closed."""
    value: FloatArray
    """The best objective met; inf if none below the caller's upper."""
    support: IntArray
    """(B, k) the columns it was met on, padded with -1."""
    points: FloatArray
    """(B, budget, d) the model that proves the bound of every node bounded."""
    notes: IntArray
    """(B, capacity, 3) what was done, in order: number of the node, what (:mod:`exactsel.kernels.moves`), and the
    number of the point that proves it (-1: what the search came with)."""
    note_bounds: FloatArray
    """(B, capacity) the bound that goes with it."""
    note_count: IntArray
    open_count: IntArray
    open_states: StateArray
    """(B, budget + 2, d)"""
    open_bounds: FloatArray
    open_labels: IntArray
    """(B, budget + 2, 3) number, the point that proves the bound, the point to start from (-1: the caller's)."""


def empty_subsearch(searches: int, d: int, k: int, budget: int) -> Subsearch:
    """Room for the answers about ``searches`` nodes."""
    notes = 8 * budget + 4 * d + 16
    return Subsearch(
        status=np.full(searches, STOPPED, dtype=np.int8),
        nodes=np.zeros(searches, dtype=np.int64),
        numbers=np.ones(searches, dtype=np.int64),
        iterations=np.zeros(searches, dtype=np.int64),
        dropped=np.full(searches, np.inf),
        value=np.full(searches, np.inf),
        support=np.full((searches, k), -1, dtype=np.int64),
        points=np.empty((searches, budget, d)),
        notes=np.empty((searches, notes, 3), dtype=np.int64),
        note_bounds=np.empty((searches, notes)),
        note_count=np.zeros(searches, dtype=np.int64),
        open_count=np.zeros(searches, dtype=np.int64),
        open_states=np.empty((searches, budget + 2, d), dtype=np.int8),
        open_bounds=np.empty((searches, budget + 2)),
        open_labels=np.empty((searches, budget + 2, 3), dtype=np.int64),
    )


@choose_by_type("data")
def quick_objective(
    loss: Any, data: Any, lam: float, columns: IntArray, x: FloatArray, tolerance: float, hopeless: float
) -> float:
    """The minimal objective on ``columns``, from x on; something above it where it is not below ``hopeless``."""
    value, norm = newton_refit(
        loss, columns_of(data), data.y, lam, columns, tolerance, x, np.empty(data.y.size), hopeless
    )  # fmt: skip
    return value if norm < np.inf else np.inf


@quick_objective.register(GramData)
def _objective_from_gram(
    loss: Any, data: Any, lam: float, columns: IntArray, x: FloatArray, tolerance: float, hopeless: float
) -> float:
    return float(gram_refit(data.G, data.b, data.constant, lam, columns, x))


@njit
def _note(found: Subsearch, row: int, number: int, column: int, kind: int, bound: float, point: int) -> None:
    at = found.note_count[row]
    found.notes[row, at, 0] = number
    found.notes[row, at, 1] = 8 * column + kind
    found.notes[row, at, 2] = point
    found.note_bounds[row, at] = bound
    found.note_count[row] = at + 1


@njit
def _close(found: Subsearch, row: int, number: int, bound: float, point: int) -> None:
    found.dropped[row] = min(found.dropped[row], bound)
    _note(found, row, number, 0, CLOSED, bound, point)


@njit
def _push(found: Subsearch, row: int, state: StateArray, bound: float, number: int, proof: int, start: int) -> None:
    at = found.open_count[row]
    found.open_states[row, at] = state
    found.open_bounds[row, at] = bound
    found.open_labels[row, at, 0] = number
    found.open_labels[row, at, 1] = proof
    found.open_labels[row, at, 2] = start
    found.open_count[row] = at + 1


@njit
def _choose_next(bounds: FloatArray, first: int, count: int) -> int:
    """The position of the open node to go on with, among those from ``first`` on."""
    chosen = first
    widest = count - first > WIDTH
    for i in range(first + 1, count):
        if (bounds[i] > bounds[chosen]) if widest else (bounds[i] < bounds[chosen]):
            chosen = i
    return chosen


@njit
def _swap_open(found: Subsearch, row: int, i: int, j: int) -> None:
    if i == j:
        return
    for c in range(found.open_states.shape[2]):
        found.open_states[row, i, c], found.open_states[row, j, c] = (
            found.open_states[row, j, c], found.open_states[row, i, c]
        )  # fmt: skip
    found.open_bounds[row, i], found.open_bounds[row, j] = found.open_bounds[row, j], found.open_bounds[row, i]
    for c in range(3):
        found.open_labels[row, i, c], found.open_labels[row, j, c] = (
            found.open_labels[row, j, c], found.open_labels[row, i, c]
        )  # fmt: skip


@njit
def _set_aside(found: Subsearch, row: int, count: int) -> int:
    """Move the region pushed last to the ``count`` this search will not touch; return how many these are now."""
    _swap_open(found, row, count, found.open_count[row] - 1)
    return count + 1


@njit
def _is_new(supports: IntArray, evaluated: int, support: IntArray) -> bool:
    """Whether a support is none of the last ones, of which ``supports`` is a ring; it is entered there."""
    for i in range(min(evaluated, REMEMBERED)):
        same = True
        for c in range(support.size):
            if supports[i, c] != support[c]:
                same = False
                break
        if same:
            return False
    supports[evaluated % REMEMBERED] = support
    return True


@njit
def _try_support(
    problem: Perspective, answers: Answers, worker: int, upper: float, accuracy: float, found: Subsearch, row: int
) -> None:
    """Refit the support the relaxed model was rounded to, and keep it if it is better than anything known."""
    size = 0
    while size < answers.support.shape[1] and answers.support[worker, size] >= 0:
        size += 1
    columns = answers.support[worker, :size].copy()
    x = np.empty(size)
    for i in range(size):
        x[i] = answers.x[worker, columns[i]]
    best = min(upper, found.value[row])
    value = quick_objective(problem.loss, problem.data, problem.lam, columns, x, accuracy, best)
    if value < best:
        found.value[row] = value
        found.support[row, :] = -1
        found.support[row, :size] = columns


@njit
def _fix(
    state: StateArray, k: int, answers: Answers, worker: int, cutoff: float, number: int, point: int,
    found: Subsearch, row: int,
) -> None:  # fmt: skip
    """Fix every column one of whose children would be closed at birth; exclusions first, as search/expand.py."""
    inside = 0
    for j in range(state.size):
        inside += state[j] == IN
        if state[j] == FREE and answers.bound_in[worker, j] >= cutoff:
            state[j] = OUT
            bound = answers.bound_in[worker, j]
            found.dropped[row] = min(found.dropped[row], bound)
            _note(found, row, number, j, LEFT_OUT, bound, point)
    for j in range(state.size):
        if state[j] == FREE and inside < k and answers.bound_out[worker, j] >= cutoff:
            state[j] = IN
            inside += 1
            bound = answers.bound_out[worker, j]
            found.dropped[row] = min(found.dropped[row], bound)
            _note(found, row, number, j, PUT_IN, bound, point)


@njit
def _branching_column(state: StateArray, answers: Answers, worker: int) -> int:
    """The candidate whose relaxed indicator is closest to 1/2; among equals the largest coefficient."""
    chosen, nearest, largest = -1, np.inf, -1.0
    for j in range(state.size):
        if state[j] == FREE:
            distance, size = abs(answers.indicator[worker, j] - 0.5), abs(answers.x[worker, j])
            if distance < nearest or (distance == nearest and size > largest):
                chosen, nearest, largest = j, distance, size
    return chosen


@njit
def _is_convex(state: StateArray, k: int) -> bool:
    inside, allowed = 0, 0
    for j in range(state.size):
        inside += state[j] == IN
        allowed += state[j] != OUT
    return inside >= k or allowed <= k


@njit
def _take_next(found: Subsearch, row: int, set_aside: int) -> int:
    """Take a node off the open ones, the first ``set_aside`` excepted; where it lies until the next is pushed."""
    last = found.open_count[row] - 1
    _swap_open(found, row, _choose_next(found.open_bounds[row], set_aside, last + 1), last)
    found.open_count[row] = last
    return int(last)


@njit
def _relax(
    problem: Perspective, state: StateArray, start: FloatArray, cutoff: float, bound: float, stop: BoolArray,
    answers: Answers, worker: int, found: Subsearch, row: int, number: int,
) -> None:  # fmt: skip
    """Bound a node, and write down that it was."""
    answers.point[worker, :] = 0.0
    answers.x[worker, :] = 0.0
    answers.support[worker, :] = -1
    answers.iterations[worker] = 0
    relax_node(problem, state, start, cutoff, bound, stop, answers, answers.point, worker)
    if answers.status[worker] == UNFINISHED:
        return
    point = found.nodes[row]
    found.points[row, point] = answers.point[worker]
    found.nodes[row] += 1
    found.iterations[row] += answers.iterations[worker]
    _note(found, row, number, answers.iterations[worker], BOUNDED, answers.bound[worker], point)


@njit
def _branch(
    here: StateArray, bound: float, proof: int, number: int, point: int, cutoff: float, horizon: float,
    answers: Answers, worker: int, found: Subsearch, row: int, set_aside: int,
) -> int:  # fmt: skip
    """Split a node; return the number of open regions set aside then."""
    column = _branching_column(here, answers, worker)
    _note(found, row, number, column, BRANCHED, bound, proof)
    for outside in range(2):
        child = answers.bound_out[worker, column] if outside == 1 else answers.bound_in[worker, column]
        child_bound, child_proof = (child, point) if child > bound else (bound, proof)
        here[column] = OUT if outside == 1 else IN
        if child_bound >= cutoff:
            _close(found, row, found.numbers[row], child_bound, child_proof)
        else:
            _push(found, row, here, child_bound, found.numbers[row], child_proof, point)
            if child_bound > horizon:
                set_aside = _set_aside(found, row, set_aside)
        found.numbers[row] += 1
    return set_aside


@njit
def _search_below(
    problem: Perspective, limits: SearchLimits, state: StateArray, start: FloatArray, known: float,
    stop: BoolArray, answers: Answers, worker: int, found: Subsearch, row: int,
) -> None:  # fmt: skip
    d, k, upper = state.size, problem.k, limits.upper
    supports = np.full((REMEMBERED, k), -1, dtype=np.int64)
    evaluated, set_aside = 0, 0
    _push(found, row, state, known, 0, -1, -1)
    while found.open_count[row] > set_aside:
        if found.nodes[row] >= limits.budget or found.note_count[row] + d + 4 > found.notes.shape[1]:
            break
        taken = _take_next(found, row, set_aside)
        here = found.open_states[row, taken].copy()
        bound, proof = found.open_bounds[row, taken], found.open_labels[row, taken, 1]
        number, warm = found.open_labels[row, taken, 0], found.open_labels[row, taken, 2]
        cutoff = min(upper, found.value[row]) - limits.tolerance
        if bound >= cutoff:
            _close(found, row, number, bound, proof)
            continue
        point = found.nodes[row]
        begin = start if warm < 0 else found.points[row, warm]
        _relax(problem, here, begin, cutoff, bound, stop, answers, worker, found, row, number)
        status = answers.status[worker]
        if status == UNFINISHED:
            return
        if answers.bound[worker] > bound:
            bound, proof = answers.bound[worker], point
        settled = status in (CUT, ILL_CONDITIONED) or bound >= cutoff
        if not settled and _is_new(supports, evaluated, answers.support[worker]):
            evaluated += 1
            _try_support(problem, answers, worker, upper, limits.accuracy, found, row)
            cutoff = min(upper, found.value[row]) - limits.tolerance
        if status == CUT or bound >= cutoff:
            _close(found, row, number, bound, proof)
            continue
        if status in (SOLVED, ILL_CONDITIONED):
            # Not closed in spite of being solved: left to whoever takes more care of rounding.
            _push(found, row, here, bound, number, proof, point)
            set_aside = _set_aside(found, row, set_aside)
            continue
        _fix(here, k, answers, worker, cutoff, number, point, found, row)
        if _is_convex(here, k):
            _push(found, row, here, bound, number, proof, point)
            continue
        set_aside = _branch(
            here, bound, proof, number, point, cutoff, limits.horizon, answers, worker, found, row, set_aside
        )
    found.status[row] = DONE


@njit(parallel=True)
def search_below(
    loss: Any, data: Any, groups: Any, lam: float, k: int, rules: Rules, limits: SearchLimits,
    states: StateArray, starts: FloatArray, known: FloatArray, stop: BoolArray,
    answers: Answers, found: Subsearch, counter: IntArray,
) -> None:  # fmt: skip
    """Search below every node (a row of ``states``) of the :class:`~exactsel.kernels.apg.Perspective` that comes first.

    ``known`` (B,) are the bounds the nodes came with and ``starts`` (B, d) the points to start from. Each row of
    ``answers`` is a worker's; they share the nodes by ``counter``, a zero.
    """
    for worker in prange(answers.bound.size):
        # Put together here: numba hands threads no tuple that holds tuples.
        problem = Perspective(loss, data, groups, lam, k, rules)
        while not stop[0]:
            row = atomic_add(counter, 0, 1)
            if row >= states.shape[0]:
                break
            _search_below(problem, limits, states[row], starts[row], known[row], stop, answers, worker, found, row)
