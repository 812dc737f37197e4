"""Close a region of a walk over groups by counting, with the models met on the way (for kernels/subtree_groups.py).

The steps are those of kernels/subtree_count.py, which see; positions, places and suspects are of groups.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from exactsel._jit import njit
from exactsel.kernels.counting import MOST_SUSPECTS, SubtreeData, eliminate
from exactsel.kernels.group_counting import MOST_GROUPS, GroupWorkspace, count_groups, group_margin
from exactsel.kernels.subtree_count import CLEAR, NEAR, TOO_MANY, keep_best_suspect, keep_greedy, value_on
from exactsel.kernels.subtree_fit import value_of
from exactsel.kernels.subtree_record import SubtreeLimits, Walk, incumbent_value, room_below
from exactsel.types import IntArray


class Grouping(NamedTuple):
    """G groups of d columns: group g has members[first[g]:first[g + 1]]."""

    members: IntArray
    first: IntArray
    owner: IntArray
    """(d,) the group of each column."""
    largest: int
    """Columns of the largest group."""


class GroupData(NamedTuple):
    """What walks over groups know of the problem."""

    columns: SubtreeData
    """Of the columns one by one; ``floor`` is positive."""
    groups: Grouping


@njit
def count_groups_of(places: int, candidates: int) -> bool:
    """Whether to count so many places of groups rather than branch."""
    return places <= MOST_GROUPS or candidates <= places


@njit
def columns_of(data: GroupData, units: IntArray, count: int, into: IntArray, at: int) -> int:
    """Write the columns of the first ``count`` groups from position ``at`` on; where they end."""
    first, members = data.groups.first, data.groups.members
    for i in range(count):
        for j in range(first[units[i]], first[units[i] + 1]):
            into[at] = members[j]
            at += 1
    return at


@value_on.register(GroupData)
def _value_on_groups(data: Any, units: IntArray, count: int, room: Any) -> float:
    size = columns_of(data, units, count, room.columns, 0)
    return float(value_of(data.columns, room.columns, size, room.counts))


@njit
def _begin(data: GroupData, units: IntArray, inside: int, count: int, room: GroupWorkspace) -> tuple[int, int]:
    """Lay out the columns of S and C for an elimination: how many of S, and how many in all."""
    first = data.groups.first
    fixed = columns_of(data, units, inside, room.counts.order, 0)
    size = columns_of(data, units[inside:], count - inside, room.counts.order, fixed)
    room.first[0] = 0
    for i in range(inside, count):
        room.first[i - inside + 1] = room.first[i - inside] + first[units[i] + 1] - first[units[i]]
    return fixed, size


@njit
def widest(data: GroupData, units: IntArray, inside: int, count: int, places: int, room: GroupWorkspace) -> int:
    """The most columns ``places`` (at most three) of the groups behind the first ``inside`` can have."""
    first, total = data.groups.first, 0
    a, b, c = 0, 0, 0
    for i in range(inside, count):
        size = first[units[i] + 1] - first[units[i]]
        if size > a:
            a, b, c = size, a, b
        elif size > b:
            b, c = size, b
        elif size > c:
            c = size
    if places >= 1:
        total += a
    if places >= 2:
        total += b
    if places >= 3:
        total += c
    return total


@njit
def count_of_groups(
    data: GroupData, units: IntArray, inside: int, count: int, places: int, limits: SubtreeLimits, walk: Walk, row: int,
    room: GroupWorkspace,
) -> int:  # fmt: skip
    """Count the region of some groups, the first ``inside`` in, taking better models for the incumbent on the way.

    How many suspects are left, in ``room.counts.suspects``, :data:`CLEAR` or :data:`TOO_MANY`: as
    :func:`exactsel.kernels.subtree_count.count_of_columns` has it. All that is not suspect enters ``walk.dropped``.
    """
    near, whole = True, places == 0 or count - inside <= places
    kept = inside if places == 0 else count
    while True:
        best = incumbent_value(limits, walk, row)
        level = best - (NEAR if near else 1.0) * room_below(limits, best)
        fixed, size = _begin(data, units, inside, kept, room)
        fixed = size if whole else fixed
        chosen = 0 if whole else places
        most = fixed + widest(data, units, inside, kept, chosen, room)
        margin = group_margin(data.columns, level, most, data.groups.largest)
        walk.work[row] += 0.5 * fixed * size * (size + fixed) + size * size
        room.work[0] = 0.0
        if not eliminate(data.columns, fixed, size, level, margin, room.counts):
            if not near:
                # So near to the empty model's objective, or above it, any better model helps.
                begin = kept if whole else inside
                last = begin if margin < np.inf else kept
                if not keep_greedy(data, units, begin, last, chosen, limits, walk, row, room):
                    return TOO_MANY
            near = not near
            continue
        found = count_groups(kept - inside, chosen, room)
        walk.work[row] += room.work[0]
        if found == 0:
            walk.dropped[row] = min(walk.dropped[row], level)
            return CLEAR
        if near:
            near = False
        elif keep_best_suspect(
            data, units, inside, units[inside:], min(found, MOST_SUSPECTS), room.counts.undecided, limits, walk, row,
            room,
        ):  # fmt: skip
            near = True
        elif found > MOST_SUSPECTS:
            return TOO_MANY
        else:
            walk.dropped[row] = min(walk.dropped[row], level)
            return int(found)
    return TOO_MANY
