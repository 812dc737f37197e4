"""Implications of decisions for admissible sets of units under a constraint, for a search inside a kernel.

The slow twins are ``implied`` of :class:`exactsel.problem.hierarchy.Hierarchy`, of
:class:`exactsel.problem.limits.GroupLimits` and of :class:`exactsel.problem.not_both.NotBoth`, which say what the rules
are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exactsel._jit import njit
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.types import IntArray, StateArray

ALL_SETS, STRONG, WEAK, LIMITED, NOT_BOTH = 0, 1, 2, 3, 4
"""Kinds of restrictions: none, a hierarchy of either kind, limits on groups, pairs that exclude each other."""


class Sets(NamedTuple):
    """The admissible sets of units."""

    kind: int
    members: IntArray
    """With a hierarchy the parents of every unit, one unit after the other; with pairs those that each excludes;
    with limits the group of every unit, -1 for none."""
    first: IntArray
    """(d + 1,) with a hierarchy or pairs: those of unit j are members[first[j]:first[j + 1]]."""
    most: int
    """With limits: units of a group there may be."""


def all_sets() -> Sets:
    """Every set is admissible."""
    return Sets(ALL_SETS, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), 0)


@njit
def imply(sets: Sets, state: StateArray, k: int) -> bool:
    """Decide all that follows from the decisions of a region (d,); False where it holds no admissible set."""
    if sets.kind == ALL_SETS:
        return True
    if sets.kind == LIMITED:
        return bool(_imply_limits(sets, state, k))
    if sets.kind == NOT_BOTH:
        return bool(_imply_not_both(sets, state, k))
    included = 0
    while True:
        settled = _one_pass(sets, state)
        if settled < 0:
            return False
        if settled == 1:
            break
    for j in range(state.size):
        included += state[j] == IN
    return included < k or (included == k and not _has_orphans(sets, state))


@njit
def _one_pass(sets: Sets, state: StateArray) -> int:
    """What follows from each unit once: 1 where that is nothing new, -1 where it contradicts, else 0."""
    settled = 1
    for j in range(state.size):
        first, end = sets.first[j], sets.first[j + 1]
        if first == end:
            continue
        out, last = 0, -1
        for at in range(first, end):
            if state[sets.members[at]] == OUT:
                out += 1
            else:
                last = sets.members[at]
        without = out == end - first if sets.kind == WEAK else out > 0
        if without and state[j] == IN:
            return -1
        if without and state[j] == FREE:
            state[j] = OUT
            settled = 0
        if without or state[j] != IN:
            continue
        if sets.kind == STRONG:
            for at in range(first, end):
                if state[sets.members[at]] == FREE:
                    state[sets.members[at]] = IN
                    settled = 0
        elif out == end - first - 1 and state[last] == FREE:
            state[last] = IN
            settled = 0
    return settled


@njit
def _has_orphans(sets: Sets, state: StateArray) -> bool:
    """Whether a unit is in without the parents it needs."""
    for j in range(state.size):
        if state[j] != IN or sets.first[j] == sets.first[j + 1]:
            continue
        included, parents = 0, sets.first[j + 1] - sets.first[j]
        for at in range(sets.first[j], sets.first[j + 1]):
            included += state[sets.members[at]] == IN
        if included == 0 or (sets.kind == STRONG and included < parents):
            return True
    return False


@njit
def _imply_limits(sets: Sets, state: StateArray, k: int) -> bool:
    included, total = np.zeros(state.size, dtype=np.int64), 0
    for j in range(state.size):
        if state[j] == IN:
            total += 1
            if sets.members[j] >= 0:
                included[sets.members[j]] += 1
                if included[sets.members[j]] > sets.most:
                    return False
    if total > k:
        return False
    for j in range(state.size):
        if state[j] == FREE and sets.members[j] >= 0 and included[sets.members[j]] == sets.most:
            state[j] = OUT
    return True


@njit
def _imply_not_both(sets: Sets, state: StateArray, k: int) -> bool:
    included = 0
    for j in range(state.size):
        if state[j] != IN:
            continue
        included += 1
        for at in range(sets.first[j], sets.first[j + 1]):
            if state[sets.members[at]] == IN:
                return False
            state[sets.members[at]] = OUT
    return included <= k


@njit
def admits(sets: Sets, columns: IntArray, d: int, k: int) -> bool:
    """Whether these units, and no others of d, are an admissible set."""
    if sets.kind == ALL_SETS:
        return True
    state = np.full(d, OUT, dtype=np.int8)
    for i in range(columns.size):
        state[columns[i]] = IN
    return bool(imply(sets, state, k))
