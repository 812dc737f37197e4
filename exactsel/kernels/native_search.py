"""A small best-first search inside the kernel, on the perspective relaxation: any loss, no Python between its nodes.

It does with one node what the search does with the whole problem: bound, fix, round, branch on the relaxed indicator
closest to 1/2. It takes the node of smallest bound next, or, when more than a few are open, the one of largest bound,
which is the most likely to be closed. After a budget of nodes it hands back what is still open. Every step is recorded,
so that the search's events can be reconstructed (enumeration/native.py).

Restrictions are the problem's own: limits on coefficients are part of the relaxation and of every refit, and what a
hierarchy or limits on groups imply is decided after each decision (kernels/admissible.py). Only closing at once knows
none of them: what it finds below the threshold leaves the region open, and is refitted before it counts as a model.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from exactsel._jit import atomic_add, choose_by_type, njit, prange
from exactsel.kernels.admissible import Sets, admits, imply
from exactsel.kernels.apg import Perspective, Rules, relax_node
from exactsel.kernels.box import newton_box_refit
from exactsel.kernels.boxed import Box, into_box, within
from exactsel.kernels.columns import columns_of
from exactsel.kernels.forms import GramData
from exactsel.kernels.leaf_closing import MOST_PAIRED, close_last_slots
from exactsel.kernels.moves import BRANCHED, LEFT_OUT, PUT_IN
from exactsel.kernels.native_record import (
    AT_ONCE,
    BOUNDED,
    DONE,
    NativeRecord,
    SearchLimits,
    close,
    note,
    push,
    put_aside,
    take_next,
)
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
from exactsel.types import BoolArray, FloatArray, IntArray, StateArray

REMEMBERED = 32
"""Supports last evaluated, which are not evaluated again."""


@choose_by_type("data")
def quick_objective(
    loss: Any, data: Any, lam: float, columns: IntArray, x: FloatArray, tolerance: float, stop_above: float
) -> float:
    """The minimal objective on ``columns``, from x on; something above it where it is not below ``stop_above``."""
    value, norm = newton_refit(
        loss, columns_of(data), data.y, lam, columns, tolerance, x, np.empty(data.y.size), stop_above
    )  # fmt: skip
    return value if norm < np.inf else np.inf


@quick_objective.register(GramData)
def _objective_from_gram(
    loss: Any, data: Any, lam: float, columns: IntArray, x: FloatArray, tolerance: float, stop_above: float
) -> float:
    return float(gram_refit(data.G, data.b, data.constant, lam, columns, x))


@choose_by_type("groups")
def restricted_objective(
    groups: Any, loss: Any, data: Any, lam: float, columns: IntArray, x: FloatArray, tolerance: float, stop_above: float
) -> float:
    """:func:`quick_objective` within the limits on coefficients, if any."""
    return float(quick_objective(loss, data, lam, columns, x, tolerance, stop_above))


@restricted_objective.register(Box)
def _objective_in_box(
    groups: Any, loss: Any, data: Any, lam: float, columns: IntArray, x: FloatArray, tolerance: float, stop_above: float
) -> float:
    low, high = groups.lower[columns], groups.upper[columns]
    value = quick_objective(loss, data, lam, columns, x, tolerance, stop_above)
    if not value < stop_above or within(x, low, high):
        return float(value)
    into_box(x, low, high)
    value = newton_box_refit(loss, columns_of(data), data.y, lam, groups.lower, groups.upper, columns, x)
    return float(value) if np.isfinite(value) else np.inf


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
    problem: Perspective, sets: Sets, support: IntArray, model: FloatArray, limits: SearchLimits, found: NativeRecord,
    row: int,
) -> bool:  # fmt: skip
    """Refit a support (padded with -1), beginning at a model (d,); keep it if it is better than anything known."""
    size = 0
    while size < support.size and support[size] >= 0:
        size += 1
    columns = support[:size].copy()
    if not admits(sets, columns, model.size, problem.k):
        return False
    best = min(limits.upper, found.value[row])
    value = restricted_objective(
        problem.groups, problem.loss, problem.data, problem.lam, columns, model[columns], limits.accuracy, best
    )  # fmt: skip
    if value < best:
        found.value[row] = value
        found.support[row, :] = -1
        found.support[row, :size] = columns
        return True
    return False


@njit
def _fix(
    state: StateArray, sets: Sets, k: int, answers: Answers, worker: int, cutoff: float, number: int, point: int,
    found: NativeRecord, row: int,
) -> bool:  # fmt: skip
    """Fix every column one of whose children would be closed at birth; exclusions first, as search/expand.py.

    Returns whether the region still holds an admissible set.
    """
    included = 0
    for j in range(state.size):
        included += state[j] == IN
        if state[j] == FREE and answers.bound_in[worker, j] >= cutoff:
            state[j] = OUT
            bound = answers.bound_in[worker, j]
            found.min_pruned_bound[row] = min(found.min_pruned_bound[row], bound)
            note(found, row, number, j, LEFT_OUT, bound, point)
    for j in range(state.size):
        if state[j] == FREE and included < k and answers.bound_out[worker, j] >= cutoff:
            state[j] = IN
            included += 1
            bound = answers.bound_out[worker, j]
            found.min_pruned_bound[row] = min(found.min_pruned_bound[row], bound)
            note(found, row, number, j, PUT_IN, bound, point)
    return bool(imply(sets, state, k))


@njit
def _is_convex(state: StateArray, k: int) -> bool:
    included, allowed = 0, 0
    for j in range(state.size):
        included += state[j] == IN
        allowed += state[j] != OUT
    return included >= k or allowed <= k


@njit
def _relax(
    problem: Perspective, state: StateArray, start: FloatArray, cutoff: float, bound: float, stop: BoolArray,
    answers: Answers, worker: int, found: NativeRecord, row: int, number: int,
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
    here: StateArray, sets: Sets, k: int, bound: float, proof: int, number: int, point: int, cutoff: float,
    horizon: float, answers: Answers, worker: int, found: NativeRecord, row: int, set_aside: int,
) -> int:  # fmt: skip
    """Split a node; return the number of open regions set aside then."""
    column = branching_column(here, answers, worker)
    note(found, row, number, column, BRANCHED, bound, proof)
    for outside in range(2):
        child = answers.bound_out[worker, column] if outside == 1 else answers.bound_in[worker, column]
        child_bound, child_proof = (child, point) if child > bound else (bound, proof)
        part = here.copy()
        part[column] = OUT if outside == 1 else IN
        if child_bound >= cutoff:
            close(found, row, found.numbers[row], child_bound, child_proof)
        elif not imply(sets, part, k):
            close(found, row, found.numbers[row], np.inf, child_proof)
        else:
            push(found, row, part, child_bound, found.numbers[row], child_proof, point)
            if child_bound > horizon:
                set_aside = put_aside(found, row, set_aside)
        found.numbers[row] += 1
    return set_aside


@njit
def _closed_at_once(
    problem: Perspective, sets: Sets, limits: SearchLimits, last: int, state: StateArray, start: FloatArray,
    stop: BoolArray, found: NativeRecord, row: int, number: int,
) -> tuple[bool, int]:  # fmt: skip
    """Close a node with at most ``last`` places left by all that they can hold, and write that down.

    Returns whether that was done, and with how many places it should be tried in future: where it fails with two, it
    will again, and the relaxation divides such nodes at less cost.
    """
    columns, fixed = node_columns(state)
    slots, candidates = problem.k - fixed, columns.size - fixed
    if not (0 < slots < candidates and slots <= last and (slots == 1 or candidates <= MOST_PAIRED)):
        return False, last
    while True:
        best = min(limits.upper, found.value[row])
        ending = close_last_slots(
            problem.loss, problem, columns[:fixed], columns[fixed:], slots, start, best, limits.tolerance,
            limits.accuracy, limits.adopts, stop,
        )  # fmt: skip
        found.iterations[row] += ending.iterations
        better = ending.value < best
        if better and limits.adopts:
            found.value[row] = ending.value
            found.support[row, :] = ending.support[: problem.k]
        elif better:
            better = _try_support(problem, sets, ending.support[: problem.k], start, limits, found, row)
        # A better model is a lower threshold, which may close what the last one has left open.
        if ending.closed or limits.adopts or not better:
            break
    if ending.closed:
        found.nodes[row] += 1
        note(found, row, number, ending.iterations, BOUNDED, ending.bound, AT_ONCE)
        close(found, row, number, ending.bound, AT_ONCE)
    return bool(ending.closed), (last if ending.closed else min(last, 1))


@njit
def _search_below(
    problem: Perspective, sets: Sets, limits: SearchLimits, state: StateArray, start: FloatArray, known: float,
    stop: BoolArray, answers: Answers, worker: int, found: NativeRecord, row: int,
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
        cutoff = min(limits.upper, found.value[row]) - limits.tolerance
        if bound >= cutoff:
            close(found, row, number, bound, proof)
            continue
        point = found.point_count[row]
        begin = start if warm < 0 else found.points[row, warm]
        closed, last = _closed_at_once(problem, sets, limits, last, here, begin, stop, found, row, number)
        if closed:
            continue
        cutoff = min(limits.upper, found.value[row]) - limits.tolerance
        _relax(problem, here, begin, cutoff, bound, stop, answers, worker, found, row, number)
        status = answers.status[worker]
        if status == UNFINISHED:
            return
        if answers.bound[worker] > bound:
            bound, proof = answers.bound[worker], point
        settled = status in (CUT, ILL_CONDITIONED) or bound >= cutoff
        if not settled and _is_new(supports, evaluated, answers.support[worker]):
            evaluated += 1
            _try_support(problem, sets, answers.support[worker], answers.x[worker], limits, found, row)
            cutoff = min(limits.upper, found.value[row]) - limits.tolerance
        if status == CUT or bound >= cutoff:
            close(found, row, number, bound, proof)
            continue
        if status in (SOLVED, ILL_CONDITIONED):
            # Not closed in spite of being solved: left to the slower path, which takes more care of rounding.
            push(found, row, here, bound, number, proof, point)
            set_aside = put_aside(found, row, set_aside)
            continue
        if not _fix(here, sets, k, answers, worker, cutoff, number, point, found, row):
            close(found, row, number, np.inf, point)
            continue
        if _is_convex(here, k):
            push(found, row, here, bound, number, proof, point)
            continue
        set_aside = _branch(
            here, sets, k, bound, proof, number, point, cutoff, limits.horizon, answers, worker, found, row, set_aside
        )
    found.status[row] = DONE


@njit(parallel=True)
def native_search(
    loss: Any, data: Any, groups: Any, lam: float, k: int, rules: Rules, sets: Sets, limits: SearchLimits,
    states: StateArray, starts: FloatArray, known: FloatArray, stop: BoolArray,
    answers: Answers, found: NativeRecord, counter: IntArray,
) -> None:  # fmt: skip
    """Search below every node (a row of ``states``) of the :class:`~exactsel.kernels.apg.Perspective` that comes first.

    ``sets`` are those that are admissible, ``known`` (B,) the bounds the nodes came with and ``starts`` (B, d) the
    points to start from. Each row of ``answers`` is a worker's; they share the nodes by ``counter``, a zero.
    """
    for worker in prange(answers.bound.size):
        # Put together here: numba hands threads no tuple that holds tuples.
        problem = Perspective(loss, data, groups, lam, k, rules)
        while not stop[0]:
            row = atomic_add(counter, 0, 1)
            if row >= states.shape[0]:
                break
            _search_below(
                problem, sets, limits, states[row], starts[row], known[row], stop, answers, worker, found, row
            )
