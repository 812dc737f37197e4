"""A whole subtree at once where columns are linearly dependent (quadratic loss, lam = 0).

As kernels/subtree.py, but the inverse K = (A_B'A_B)^-1 is kept for a basis B of the columns of S and C only. Every
other column n is a combination of the basis, a_n = sum_i T_in a_i / D, in columns scaled so that T and D are whole
numbers. Then:

* fixing to 0 a column of B that some n contains (T_jn is not 0) costs nothing: n takes its place, by a rank-two change
  of K and an exact one of T and D;
* fixing to 0 a column that none contains costs exactly x_j^2 / (2 K_jj), a rank-one downdate as before.

Whole numbers decide without rounding which columns depend on which. Where they grow too large, or K does, the walk
ends early and hands back what is open.

No value is trusted that was not computed anew at its fit (dependent_value.py).
"""

from __future__ import annotations

import numpy as np

from exactsel._jit import njit
from exactsel.kernels.dependent_basis import (
    NOTHING,
    Levels,
    Start,
    exchange,
    first_level,
    leave_out,
    substitute,
    swap_in_basis,
)
from exactsel.kernels.dependent_value import QuadraticData, best_addition, certified, of_the_data
from exactsel.kernels.moves import BRANCHED, CLOSED, PUT_IN
from exactsel.kernels.node import FREE, IN
from exactsel.kernels.subtree_record import (
    EXPLORED,
    LEFT_OPEN,
    OUT_OF_BUDGET,
    STOPPED,
    SUSPECTED_OPEN,
    SubtreeLimits,
    Walk,
    close,
    incumbent_value,
    keep_if_better,
    note,
    room_below,
)
from exactsel.types import BoolArray, FloatArray, StateArray

SHAVE = 1e-5
"""Part of a drop cost given up for the rounding errors of K."""


@njit
def _leave_open(
    data: QuadraticData, walk: Walk, row: int, base: StateArray, stack: Levels, depth: int, unit: float, away: float
) -> None:
    """Hand back the region of a level."""
    count = walk.open_count[row]
    walk.open_states[row, count, :] = base
    for i in range(stack.size[depth] + stack.others[depth]):
        walk.open_states[row, count, stack.columns[depth, i]] = IN if i < stack.fixed[depth] else FREE
    fit = certified(data, stack.K[depth], stack.x[depth], stack.columns[depth], stack.size[depth], unit)
    walk.open_bounds[row, count] = of_the_data(fit, away)
    walk.open_count[row] += 1
    note(walk, row, 0, LEFT_OPEN)


@njit
def _choose(stack: Levels, depth: int, k: int, fit: float, away: float, cutoff: float, walk: Walk, row: int) -> int:
    """Fix to 1 the columns whose fixing to 0 costs too much; return the position of the costliest other."""
    K, T, x, columns = stack.K[depth], stack.T[depth], stack.x[depth], stack.columns[depth]
    highest, costliest = -1.0, stack.fixed[depth]
    i = stack.fixed[depth]
    while i < stack.size[depth] and stack.fixed[depth] < k:
        cost = (1.0 - SHAVE) * 0.5 * x[i] * x[i] / K[i, i]
        without = of_the_data(fit + cost, away)
        needed = without >= cutoff
        if needed:
            for a in range(stack.others[depth]):
                needed = needed and T[i, a] == 0
        if needed:
            note(walk, row, columns[i], PUT_IN)
            walk.min_pruned_bound[row] = min(walk.min_pruned_bound[row], without)
            swap_in_basis(stack, depth, i, stack.fixed[depth])
            stack.fixed[depth] += 1
        elif cost > highest:
            costliest, highest = i, cost
        i += 1
    return int(costliest)


@njit
def walk_dependent(
    data: QuadraticData, scale: FloatArray, k: int, start: Start, limits: SubtreeLimits, trusted: float, unit: float,
    away: float,
    stop: BoolArray, walk: Walk, row: int,
) -> None:  # fmt: skip
    """Walk the subtree of one region; see kernels/subtree.py for what is handed back.

    ``k`` counts the columns of the walk only, not those IN in ``start.base``. ``scale`` (d,) are the norms of the
    columns in which T is whole; ``data`` are of unit columns, ``unit`` is the rounding of a Gram entry, and the trace
    of K may grow to what is ``trusted``. For a model the walk is about, the residual of the data is within ``away`` of
    its own.
    """
    levels = start.basis.size + start.others.size + 1
    stack = first_level(start, levels)
    L, line, solution, x = np.zeros((k + 1, k + 1)), np.zeros(k + 1), np.zeros(k + 1), np.zeros(k + 1)
    turned = np.empty(start.basis.size)
    depth = 0
    walk.status[row] = EXPLORED
    while depth >= 0:
        known = incumbent_value(limits, walk, row)
        cutoff = known - room_below(limits, known)
        p, q, columns, fixed = stack.size[depth], stack.others[depth], stack.columns[depth], stack.fixed[depth]
        slots = k - fixed
        walk.nodes[row] += 1
        if walk.nodes[row] % 1024 == 0 and stop[0]:
            walk.status[row] = STOPPED
            return
        fit = certified(data, stack.K[depth], stack.x[depth], columns, p, unit)
        bound = of_the_data(fit, away)
        if bound >= cutoff:
            close(walk, row, bound, CLOSED)
            depth -= 1
            continue
        if p - fixed <= slots or slots <= 1:
            best, count, extra = stack.value[depth], p, -1
            if p - fixed > slots:
                more = p + q if slots == 1 else fixed
                best, extra, bound = best_addition(data, columns, fixed, more, unit, L, line, solution, x)
                bound, count = of_the_data(bound, away), fixed
            if keep_if_better(limits, walk, row, best, columns, count, extra):
                cutoff = best - room_below(limits, best)
            if bound >= cutoff:
                close(walk, row, bound, CLOSED)
            elif limits.adopts or walk.open_count[row] >= SUSPECTED_OPEN:
                walk.status[row] = OUT_OF_BUDGET
                break
            else:
                _leave_open(data, walk, row, start.base, stack, depth, unit, away)
            depth -= 1
            continue
        if walk.nodes[row] >= limits.budget or walk.move_count[row] + 2 * p + levels + 8 > walk.moves.shape[1]:
            walk.status[row] = OUT_OF_BUDGET
            break
        chosen = _choose(stack, depth, k, fit, away, cutoff, walk, row)
        if stack.fixed[depth] > fixed:
            continue
        swap_in_basis(stack, depth, chosen, p - 1)
        other = substitute(stack, depth, scale)
        if other == NOTHING:
            leave_out(stack, depth)
        elif not exchange(stack, depth, other, scale, turned) <= trusted:
            walk.status[row] = OUT_OF_BUDGET
            break
        note(walk, row, columns[p - 1], BRANCHED)
        # This level continues, once the child without the column is done, as the child with it.
        swap_in_basis(stack, depth, p - 1, fixed)
        stack.fixed[depth] = fixed + 1
        depth += 1
    while depth >= 0:  # deepest first, as the preorder has them
        _leave_open(data, walk, row, start.base, stack, depth, unit, away)
        depth -= 1
