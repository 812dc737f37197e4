"""A small best-first search inside the kernel, on the perspective relaxation: any loss, no Python between its nodes.

It does with one node what the search does with the whole problem: bound, fix, round, branch on the relaxed indicator
closest to 1/2. It takes the node of smallest bound next, or, when more than a few are open, the one of largest bound,
which is the most likely to be closed. After a budget of nodes it hands back what is still open. Everything it
does is written down, so that the search's events can be told from it (walks/relaxation.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from exactsel._jit import atomic_add, choose_by_type, njit, prange
from exactsel.kernels.apg import Perspective, Rules, relax_node
from exactsel.kernels.columns import columns_of
from exactsel.kernels.forms import GramData
from exactsel.kernels.last_place import MOST_PAIRED, close_last_places
from exactsel.kernels.moves import BRANCHED, LEFT_OUT, PUT_IN
from exactsel.kernels.node import (
    CUT,
    FREE,
    ILL_CONDITIONED,
    IN,
    OUT,
    SOLVED,
    UNFINISHED,
    Answers,
    branching_column,
    node_columns,
)
from exactsel.kernels.refit import gram_refit, newton_refit
from exactsel.kernels.subsearch_record import (
    AT_ONCE,
    BOUNDED,
    DONE,
    SKIPPED,
    SearchLimits,
    Subsearch,
    close,
    note,
    push,
    put_aside,
    take_next,
)
from exactsel.types import BoolArray, FloatArray, IntArray, StateArray

REMEMBERED = 32
"""Supports last evaluated, which are not evaluated again."""


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
            note(found, row, number, j, LEFT_OUT, bound, point)
    for j in range(state.size):
        if state[j] == FREE and inside < k and answers.bound_out[worker, j] >= cutoff:
            state[j] = IN
            inside += 1
            bound = answers.bound_out[worker, j]
            found.dropped[row] = min(found.dropped[row], bound)
            note(found, row, number, j, PUT_IN, bound, point)


@njit
def _is_convex(state: StateArray, k: int) -> bool:
    inside, allowed = 0, 0
    for j in range(state.size):
        inside += state[j] == IN
        allowed += state[j] != OUT
    return inside >= k or allowed <= k


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
    point = found.point_count[row]
    found.points[row, point] = answers.point[worker]
    found.point_count[row] += 1
    found.nodes[row] += 1
    found.iterations[row] += answers.iterations[worker]
    note(found, row, number, answers.iterations[worker], BOUNDED, answers.bound[worker], point)


@njit
def _branch(
    here: StateArray, bound: float, proof: int, number: int, point: int, cutoff: float, horizon: float,
    answers: Answers, worker: int, found: Subsearch, row: int, set_aside: int,
) -> int:  # fmt: skip
    """Split a node; return the number of open regions set aside then."""
    column = branching_column(here, answers, worker)
    note(found, row, number, column, BRANCHED, bound, proof)
    for outside in range(2):
        child = answers.bound_out[worker, column] if outside == 1 else answers.bound_in[worker, column]
        child_bound, child_proof = (child, point) if child > bound else (bound, proof)
        here[column] = OUT if outside == 1 else IN
        if child_bound >= cutoff:
            close(found, row, found.numbers[row], child_bound, child_proof)
        else:
            push(found, row, here, child_bound, found.numbers[row], child_proof, point)
            if child_bound > horizon:
                set_aside = put_aside(found, row, set_aside)
        found.numbers[row] += 1
    return set_aside


@njit
def _closed_at_once(
    problem: Perspective, limits: SearchLimits, last: int, state: StateArray, start: FloatArray, stop: BoolArray,
    found: Subsearch, row: int, number: int,
) -> tuple[bool, int]:  # fmt: skip
    """Close a node with at most ``last`` places left by all that they can hold, and write that down.

    Returns whether that was done, and with how many places it should be tried in future: where it fails with two, it
    will again, and the relaxation divides such nodes at less cost.

    Numbers are set aside for the nodes it takes to tell how (kernels/last_told.py), so that these do not depend on
    whether somebody asks.
    """
    columns, fixed = node_columns(state)
    places, candidates = problem.k - fixed, columns.size - fixed
    if not (0 < places < candidates and places <= last and (places == 1 or candidates <= MOST_PAIRED)):
        return False, last
    best = min(limits.upper, found.value[row])
    ending = close_last_places(
        problem.loss, problem, columns[:fixed], columns[fixed:], places, start, best, limits.tolerance,
        limits.accuracy, stop,
    )  # fmt: skip
    found.iterations[row] += ending.iterations
    if ending.value < best:
        found.value[row] = ending.value
        found.support[row, :] = ending.support[: problem.k]
    if ending.closed:
        found.nodes[row] += 1
        note(found, row, number, ending.iterations, BOUNDED, ending.bound, AT_ONCE)
        close(found, row, number, ending.bound, AT_ONCE)
        if places > 1:
            note(found, row, number, 2 * candidates, SKIPPED, ending.bound, AT_ONCE)
            found.numbers[row] += 2 * candidates
    return bool(ending.closed), (last if ending.closed else min(last, 1))


@njit
def _incumbent(limits: SearchLimits, found: Subsearch, row: int) -> float:
    """The objective that regions are held against."""
    return min(limits.upper, found.value[row]) if limits.adopts else limits.upper


@njit
def _search_below(
    problem: Perspective, limits: SearchLimits, state: StateArray, start: FloatArray, known: float,
    stop: BoolArray, answers: Answers, worker: int, found: Subsearch, row: int,
) -> None:  # fmt: skip
    d, k = state.size, problem.k
    supports = np.full((REMEMBERED, k), -1, dtype=np.int64)
    evaluated, set_aside, last = 0, 0, limits.last
    push(found, row, state, known, 0, -1, -1)
    while found.open_count[row] > set_aside:
        if found.nodes[row] >= limits.budget or found.note_count[row] + d + 4 > found.notes.shape[1]:
            break
        taken = take_next(found, row, set_aside)
        here = found.open_states[row, taken].copy()
        bound, proof = found.open_bounds[row, taken], found.open_labels[row, taken, 1]
        number, warm = found.open_labels[row, taken, 0], found.open_labels[row, taken, 2]
        cutoff = _incumbent(limits, found, row) - limits.tolerance
        if bound >= cutoff:
            close(found, row, number, bound, proof)
            continue
        point = found.point_count[row]
        begin = start if warm < 0 else found.points[row, warm]
        closed, last = _closed_at_once(problem, limits, last, here, begin, stop, found, row, number)
        if closed:
            continue
        cutoff = _incumbent(limits, found, row) - limits.tolerance
        _relax(problem, here, begin, cutoff, bound, stop, answers, worker, found, row, number)
        status = answers.status[worker]
        if status == UNFINISHED:
            return
        if answers.bound[worker] > bound:
            bound, proof = answers.bound[worker], point
        settled = status in (CUT, ILL_CONDITIONED) or bound >= cutoff
        if not settled and _is_new(supports, evaluated, answers.support[worker]):
            evaluated += 1
            _try_support(problem, answers, worker, limits.upper, limits.accuracy, found, row)
            cutoff = _incumbent(limits, found, row) - limits.tolerance
        if status == CUT or bound >= cutoff:
            close(found, row, number, bound, proof)
            continue
        if status in (SOLVED, ILL_CONDITIONED):
            # Not closed in spite of being solved: left to whoever takes more care of rounding.
            push(found, row, here, bound, number, proof, point)
            set_aside = put_aside(found, row, set_aside)
            continue
        _fix(here, k, answers, worker, cutoff, number, point, found, row)
        if _is_convex(here, k):
            push(found, row, here, bound, number, proof, point)
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
