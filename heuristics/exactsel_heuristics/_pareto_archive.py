"""The archive of Pareto optimisation: supports of which none is dominated, each with the factor of its fit.

A member has a value f, a size and a group, its value under the isolation function. Only members of one group are
compared: s dominates s' when f(s) <= f(s') and |s| <= |s'|, one of them strictly (weakly, when both are equal).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exactsel._jit import njit
from exactsel.types import FloatArray, IntArray
from exactsel_heuristics._pareto_layout import FIRST, GROUP, NO_LARGER, SIZE, SMALLER, Members, new_members
from exactsel_heuristics._pareto_objective import ParetoObjective, adopt


class Archive(NamedTuple):
    """``order`` lists all slots, the live ones first, oldest first; ``live`` (1,) is how many they are."""

    members: Members
    order: IntArray
    live: IntArray


def new_archive(slots: int, width: int, n: int, group: int, more: int = 0) -> Archive:
    """An archive whose first member, in slot 0, is the empty set with the value infinity, in ``group``.

    Its members stand before ``more`` slots that are not the archive's.
    """
    members = new_members(slots + more, width, n)
    members.supports[0, GROUP] = group
    return Archive(members, np.arange(slots), np.ones(1, dtype=np.int64))


def enlarged(archive: Archive) -> Archive:
    """The same archive with twice as many slots."""
    slots = archive.order.size
    members = Members(*(np.concatenate([part, np.zeros_like(part)]) for part in archive.members))
    return Archive(members, np.concatenate([archive.order, np.arange(slots, 2 * slots)]), archive.live)


@njit
def copy_member(source: Members, i: int, target: Members, j: int) -> None:
    """Copy slot i of ``source`` to slot j of ``target``."""
    m = source.supports[i, SIZE]
    target.values[j] = source.values[i]
    for a in range(FIRST + m):
        target.supports[j, a] = source.supports[i, a]
    coef = source.factors.shape[2]
    for a in range(m):
        target.factors[j, coef, a] = source.factors[i, coef, a]
        for b in range(m):
            target.factors[j, a, b] = source.factors[i, a, b]
    for a in range(source.rows.shape[1]):
        for b in range(source.rows.shape[2]):
            target.rows[j, a, b] = source.rows[i, a, b]


@njit
def same_support(first: Members, i: int, second: Members, j: int) -> bool:
    """Whether slot i of ``first`` and slot j of ``second`` hold the same columns."""
    for a in range(FIRST + first.supports[i, SIZE]):
        if a != GROUP and first.supports[i, a] != second.supports[j, a]:
            return False
    return True


@njit(inline=True)
def survey(archive: Archive, offspring: Members, p: int, limits: FloatArray) -> bool:
    """Look the archive through once for what decides about offspring p; True when it is there already.

    ``limits`` receives the smallest value of comparable members that are no larger, and of those that are
    smaller: the offspring is dominated when its value exceeds the first or reaches the second.
    """
    members, supports = archive.members, archive.members.supports
    size, group = offspring.supports[p, SIZE], offspring.supports[p, GROUP]
    no_larger, smaller = np.inf, np.inf
    for q in range(archive.live[0]):
        slot = archive.order[q]
        if supports[slot, GROUP] != group or supports[slot, SIZE] > size:
            continue
        if supports[slot, SIZE] < size:
            smaller = min(smaller, members.values[slot])
        elif same_support(members, slot, offspring, p):
            return True
        no_larger = min(no_larger, members.values[slot])
    limits[NO_LARGER], limits[SMALLER] = no_larger, smaller
    return False


@njit
def weakly_dominates(first: Members, i: int, second: Members, j: int) -> bool:
    """Whether slot i of ``first`` is as good as slot j of ``second`` in value and size, and comparable to it."""
    return bool(
        first.supports[i, GROUP] == second.supports[j, GROUP]
        and first.values[i] <= second.values[j]
        and first.supports[i, SIZE] <= second.supports[j, SIZE]
    )


@njit
def dominates(first: Members, i: int, second: Members, j: int) -> bool:
    """Whether it weakly dominates the other and is strictly better in value or size."""
    return weakly_dominates(first, i, second, j) and bool(
        first.values[i] < second.values[j] or first.supports[i, SIZE] < second.supports[j, SIZE]
    )


@njit
def keep_undominated(offspring: Members, kept: IntArray, candidates: int) -> int:
    """The largest undominated subset of the offspring 0, ..., candidates - 1 whose value is finite.

    What taking them one after the other leaves: of equally good ones the last, of equal supports the first.
    ``kept`` receives their numbers, ascending; their number is returned.
    """
    count = 0
    for p in range(candidates):
        if not offspring.values[p] < np.inf:
            continue
        wanted = True
        for q in range(count):
            if same_support(offspring, kept[q], offspring, p) or dominates(offspring, kept[q], offspring, p):
                wanted = False
        if not wanted:
            continue
        left = 0
        for q in range(count):
            if not weakly_dominates(offspring, p, offspring, kept[q]):
                kept[left] = kept[q]
                left += 1
        kept[left] = p
        count = left + 1
    return count


@njit
def remove_dominated(archive: Archive, offspring: Members, p: int) -> None:
    """Take out the members that offspring p weakly dominates; the others keep their order."""
    order, left = archive.order, 0
    for q in range(archive.live[0]):
        slot = order[q]
        if not weakly_dominates(offspring, p, archive.members, slot):
            # What stands between is to be removed, so exchanging keeps every slot in the list exactly once.
            order[q] = order[left]
            order[left] = slot
            left += 1
    archive.live[0] = left


@njit
def insert(objective: ParetoObjective, archive: Archive, offspring: Members, p: int) -> None:
    """Copy offspring p to a free slot, last in order; there must be one."""
    slot = archive.order[archive.live[0]]
    copy_member(offspring, p, archive.members, slot)
    adopt(objective, archive.members, slot)
    archive.live[0] += 1
