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
def count_groups_of(slots: int, candidates: int) -> bool:
    """Whether to count so many places of groups rather than branch."""
    return slots <= MOST_GROUPS or candidates <= slots


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
def _value_on_groups(data: Any, units: IntArray, count: int, workspace: Any) -> float:
    size = columns_of(data, units, count, workspace.columns, 0)
    return float(value_of(data.columns, workspace.columns, size, workspace.counts))


@njit
def _begin(data: GroupData, units: IntArray, included: int, count: int, workspace: GroupWorkspace) -> tuple[int, int]:
    """Lay out the columns of S and C for an elimination: how many of S, and how many in all."""
    first = data.groups.first
    fixed = columns_of(data, units, included, workspace.counts.order, 0)
    size = columns_of(data, units[included:], count - included, workspace.counts.order, fixed)
    workspace.first[0] = 0
    for i in range(included, count):
        workspace.first[i - included + 1] = workspace.first[i - included] + first[units[i] + 1] - first[units[i]]
    return fixed, size


@njit
def widest(data: GroupData, units: IntArray, included: int, count: int, slots: int, workspace: GroupWorkspace) -> int:
    """The most columns ``slots`` (at most three) of the groups behind the first ``included`` can have."""
    first, total = data.groups.first, 0
    a, b, c = 0, 0, 0
    for i in range(included, count):
        size = first[units[i] + 1] - first[units[i]]
        if size > a:
            a, b, c = size, a, b
        elif size > b:
            b, c = size, b
        elif size > c:
            c = size
    if slots >= 1:
        total += a
    if slots >= 2:
        total += b
    if slots >= 3:
        total += c
    return total


@njit
def count_of_groups(
    data: GroupData, units: IntArray, included: int, count: int, slots: int, limits: SubtreeLimits, walk: Walk,
    row: int,
    workspace: GroupWorkspace,
) -> int:  # fmt: skip
    """Count the region of some groups, the first ``included`` in, taking better models for the incumbent on the way.

    How many suspects are left, in ``workspace.counts.suspects``, :data:`CLEAR` or :data:`TOO_MANY`: as
    :func:`exactsel.kernels.subtree_count.count_of_columns` has it. All that is not suspect enters
    ``walk.min_pruned_bound``.
    """
    near, whole = True, slots == 0 or count - included <= slots
    kept = included if slots == 0 else count
    while True:
        best = incumbent_value(limits, walk, row)
        threshold = best - (NEAR if near else 1.0) * room_below(limits, best)
        fixed, size = _begin(data, units, included, kept, workspace)
        fixed = size if whole else fixed
        chosen = 0 if whole else slots
        most = fixed + widest(data, units, included, kept, chosen, workspace)
        margin = group_margin(data.columns, threshold, most, data.groups.largest)
        walk.work[row] += 0.5 * fixed * size * (size + fixed) + size * size
        workspace.work[0] = 0.0
        if not eliminate(data.columns, fixed, size, threshold, margin, workspace.counts):
            if not near:
                # So near to the empty model's objective, or above it, any better model helps.
                begin = kept if whole else included
                last = begin if margin < np.inf else kept
                if not keep_greedy(data, units, begin, last, chosen, limits, walk, row, workspace):
                    return TOO_MANY
            near = not near
            continue
        found = count_groups(kept - included, chosen, workspace)
        walk.work[row] += workspace.work[0]
        if found == 0:
            walk.min_pruned_bound[row] = min(walk.min_pruned_bound[row], threshold)
            return CLEAR
        if near:
            near = False
        elif keep_best_suspect(
            data, units, included, units[included:], min(found, MOST_SUSPECTS), workspace.counts.undecided, limits,
            walk, row,
            workspace,
        ):  # fmt: skip
            near = True
        elif found > MOST_SUSPECTS:
            return TOO_MANY
        else:
            walk.min_pruned_bound[row] = min(walk.min_pruned_bound[row], threshold)
            return int(found)
    return TOO_MANY
