"""Close a region of a walk by counting, with the models met on the way (for kernels/subtree_columns.py)."""

from __future__ import annotations

from typing import Any

import numpy as np

from exactsel._jit import choose_by_type, njit
from exactsel.kernels.bounded import BoundedWorkspace, bounded_fit
from exactsel.kernels.counting import (
    MOST_PLACES,
    MOST_SUSPECTS,
    CountWorkspace,
    SubtreeData,
    count,
    distinct,
    eliminate,
    margin_for,
    sets_of,
)
from exactsel.kernels.dependent_columns import farthest, independent
from exactsel.kernels.linalg import cholesky, inverse_from_cholesky
from exactsel.kernels.subtree_fit import BOUNDED_RIDGE, NONE, value_of
from exactsel.kernels.subtree_record import SubtreeLimits, Walk, incumbent_value, keep_if_better, room_below
from exactsel.types import IntArray

FEW_COLUMNS = 34
"""Up to so many candidates four places are counted; with more it is quicker to branch."""

CLEAR, TOO_MANY = 0, -1
"""The outcomes of a count, besides the number of suspects it leaves."""

NEGLECTED = 1 / 8
"""Part of the tolerance that columns nearly dependent on others may cost (bounded models)."""

NEAR = 2.0**-10
"""Part of the tolerance below the best model known at which a count is tried first: mostly nothing is in between."""


@njit
def count_columns(slots: int, candidates: int) -> bool:
    """Whether to count so many places of columns rather than branch."""
    return slots < MOST_PLACES or candidates <= slots or (slots == MOST_PLACES and candidates <= FEW_COLUMNS)


@choose_by_type("data")
def value_on(data: Any, units: IntArray, count: int, workspace: Any) -> float:
    """The smallest objective on the first ``count`` units; inf where they are too nearly dependent to say."""
    return float(value_of(data, units, count, workspace))


@njit
def _keep_on(
    data: Any, units: IntArray, count: int, limits: SubtreeLimits, walk: Walk, row: int, workspace: Any
) -> bool:
    """Evaluate the model on the first ``count`` units; whether it is adopted as the best so far."""
    return bool(keep_if_better(limits, walk, row, value_on(data, units, count, workspace), units, count, NONE))


@njit
def keep_best_suspect(
    data: Any, units: IntArray, included: int, counted: IntArray, found: int, undecided: IntArray,
    limits: SubtreeLimits,
    walk: Walk, row: int, workspace: Any,
) -> bool:  # fmt: skip
    """Turn positions in ``counted`` into units and evaluate the models; whether one is adopted as the best so far."""
    for s in range(found):
        for i in range(undecided.shape[1]):
            if undecided[s, i] >= 0:
                undecided[s, i] = counted[undecided[s, i]]
    better = False
    for s in range(found):
        count = included
        workspace.chosen[:included] = units[:included]
        for i in range(undecided.shape[1]):
            if undecided[s, i] >= 0:
                workspace.chosen[count] = undecided[s, i]
                count += 1
        better |= _keep_on(data, workspace.chosen, count, limits, walk, row, workspace)
    return bool(better)


@njit
def keep_greedy(
    data: Any, units: IntArray, included: int, count: int, slots: int, limits: SubtreeLimits, walk: Walk, row: int,
    workspace: Any,
) -> bool:  # fmt: skip
    """Evaluate S, and S with each unit added in turn; whether one is adopted."""
    chosen = units[:count].copy()
    better = _keep_on(data, chosen, included, limits, walk, row, workspace)
    for size in range(included, min(count, included + slots)):
        best, at = np.inf, size
        for i in range(size, count):
            chosen[size], chosen[i] = chosen[i], chosen[size]
            value = value_on(data, chosen, size + 1, workspace)
            if value < best:
                best, at = value, i
            chosen[size], chosen[i] = chosen[i], chosen[size]
        chosen[size], chosen[at] = chosen[at], chosen[size]
        better |= _keep_on(data, chosen, size + 1, limits, walk, row, workspace)
    return bool(better)


@njit
def _support_bound(
    data: SubtreeData, columns: IntArray, size: int, threshold: float, walk: Walk, row: int, workspace: BoundedWorkspace
) -> float:  # fmt: skip
    """A bound for bounded models on some columns; of use where it reaches the level."""
    H, x = np.empty((size, size)), np.zeros(size)
    for i in range(size):
        for j in range(size):
            H[i, j] = data.H[columns[i], columns[j]]
        H[i, i] = H[i, i] * (1.0 + BOUNDED_RIDGE) if H[i, i] > 0.0 else 1.0
    walk.work[row] += 10.0 * size * data.b.size
    if not cholesky(H):
        return -np.inf
    K = inverse_from_cholesky(H)
    return float(bounded_fit(data, columns, x, size, size, 0, NONE, K, threshold, workspace))


@njit
def _suspects_left(
    data: SubtreeData, columns: IntArray, fixed: int, slots: int, found: int, threshold: float, cost: float, walk: Walk,
    row: int, workspaces: tuple[CountWorkspace, BoundedWorkspace],
) -> int:  # fmt: skip
    """Take the suspects off the list whose columns are all there are places for and reach the level plus the cost.

    That is shown of bounded models. A column that others were removed for has their coefficients besides its own, which
    are not bounded: sets with such a column stay suspect.
    """
    workspace, left, lowest = workspaces[0], 0, np.inf
    for s in range(found):
        size, for_itself = fixed, True
        workspace.chosen[:fixed] = columns[:fixed]
        for i in range(MOST_PLACES):
            if workspace.undecided[s, i] >= 0:
                workspace.chosen[size] = workspace.undecided[s, i]
                for_itself &= not (cost > 0.0 and workspace.stands_in[workspace.chosen[size]])
                size += 1
        bound = -np.inf
        if size - fixed == slots and for_itself:
            bound = _support_bound(data, workspace.chosen, size, threshold + cost, walk, row, workspaces[1])
        if bound - cost >= threshold:
            lowest = min(lowest, bound - cost)
        else:
            workspace.undecided[left] = workspace.undecided[s]
            left += 1
    workspace.undecided[left:] = -1
    walk.min_pruned_bound[row] = min(walk.min_pruned_bound[row], lowest)
    return left


@njit
def _without_dependent(
    data: SubtreeData, included: int, size: int, threshold: float, most: float, k: int, workspace: CountWorkspace
) -> tuple[int, int, float]:
    """Keep of ``workspace.order`` what brings something new, and what that costs; an infinite cost where it is too
    much.
    """
    kept, left, dropped = independent(data, included, size, workspace)
    if kept < 0:
        return included, size, np.inf
    reach = 0.0
    for i in range(data.reach.size):
        reach = max(reach, data.reach[i] * data.lengths[i])
    cost = 1.001 * farthest(workspace, dropped, k) * reach * np.sqrt(2.0 * max(threshold, 0.0))
    return kept, left, cost if cost <= most else np.inf


@njit
def count_of_columns(
    data: SubtreeData, columns: IntArray, fixed: int, m: int, slots: int, limits: SubtreeLimits, walk: Walk, row: int,
    workspace: CountWorkspace, bounded: BoundedWorkspace,
) -> int:  # fmt: skip
    """Count the region of m columns, the first ``fixed`` inside, taking better models for the incumbent on the way.

    How many suspects are left, in ``workspace.suspects``: sets of columns that are no better than the incumbent as far
    as can be computed, but not proven to reach the cut-off. :data:`TOO_MANY` where nothing is known of the region. All
    that is not suspect enters ``walk.min_pruned_bound``.

    Of bounded models (kernels/bounded.py) a first failure removes the redundant columns. Sets with removed columns are
    closed with those they are as good as; where these stay suspect, and models are not adopted, nothing is known of
    them.
    """
    near, dependent = True, data.low.size > 0
    reduced, least = False, 1.0 - (NEGLECTED if dependent else 0.0)
    while True:
        best = incumbent_value(limits, walk, row)
        below = room_below(limits, best)
        threshold, cost = best - (NEAR if near else least) * below, 0.0
        included, size = distinct(data, columns, fixed, m if slots > 0 else fixed, NONE, workspace)
        if reduced:
            kept, left, cost = _without_dependent(
                data, included, size, threshold, NEGLECTED * below, fixed + slots, workspace
            )
            if not cost < np.inf:
                included, size = distinct(data, columns, fixed, m if slots > 0 else fixed, NONE, workspace)
                reduced, dependent, cost = False, False, 0.0
            else:
                included, size = kept, left
        whole = size - included <= slots
        included = size if whole else included
        chosen = 0 if whole else slots
        walk.work[row] += 0.5 * included * size * (size + included) + size * size + sets_of(chosen, size - included)
        margin = margin_for(data, threshold, included + chosen)
        if not eliminate(data, included, size, threshold, margin, workspace):
            if dependent and not reduced and margin < np.inf:
                reduced = True
                continue
            if not near:
                workspace.chosen[:size] = workspace.order[:size]
                # So near to the empty model's objective, or above it, any better model helps.
                first = included if margin < np.inf else size
                if not keep_greedy(data, workspace.chosen, included, first, chosen, limits, walk, row, workspace):
                    whole = data.low.size > 0 and (slots == 0 or m - fixed <= slots)
                    size = fixed if slots == 0 else m
                    bound = _support_bound(data, columns, size, best - below, walk, row, bounded) if whole else -np.inf
                    if not bound >= best - below:
                        return TOO_MANY
                    walk.min_pruned_bound[row] = min(walk.min_pruned_bound[row], bound)
                    return CLEAR
            near = not near
            continue
        found = count(size - included, chosen, workspace)
        if found == 0:
            walk.min_pruned_bound[row] = min(walk.min_pruned_bound[row], threshold - cost)
            return CLEAR
        if dependent and not reduced:
            reduced = True
        elif near:
            near = False
        elif keep_best_suspect(
            data,
            columns,
            fixed,
            workspace.order[included:],
            min(found, MOST_SUSPECTS),
            workspace.undecided,
            limits,
            walk,
            row,
            workspace,
        ):
            near = True
        elif found > MOST_SUSPECTS:
            return TOO_MANY
        else:
            if data.low.size > 0:
                found = _suspects_left(
                    data, columns, fixed, slots, found, best - below, cost, walk, row, (workspace, bounded)
                )
                # A suspect also stands for the sets whose columns were removed, which would be closed with it open.
                if found > 0 and cost > 0.0:
                    return TOO_MANY
            if found > 0 and not limits.adopts and size < m and slots > 0:
                return TOO_MANY
            walk.min_pruned_bound[row] = min(walk.min_pruned_bound[row], threshold - cost)
            return int(found)
    return TOO_MANY
