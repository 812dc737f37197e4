"""Close a region of a walk by counting, with the models met on the way (for kernels/subtree.py)."""

from __future__ import annotations

import numpy as np

from exactsel._jit import njit
from exactsel.kernels.counting import (
    MOST_PLACES,
    MOST_SUSPECTS,
    CountRoom,
    WalkData,
    count,
    distinct,
    eliminate,
    margin_for,
    sets_of,
)
from exactsel.kernels.subtree_fit import NONE, value_of
from exactsel.kernels.subtree_record import Walk, WalkLimits, keep_model, room_below
from exactsel.types import IntArray

FEW_COLUMNS = 34
"""Up to so many candidates four places are counted; with more it is quicker to branch."""

CLEAR, TOO_MANY = 0, -1
"""What a count comes to, besides how many suspects it leaves."""

NEAR = 2.0**-10
"""Part of the tolerance below the best model known at which a count is tried first: mostly nothing is in between."""


@njit
def countable(places: int, candidates: int) -> bool:
    """Whether to count so many places rather than branch."""
    return places < MOST_PLACES or candidates <= places or (places == MOST_PLACES and candidates <= FEW_COLUMNS)


@njit
def _keep_if_better(
    data: WalkData, columns: IntArray, size: int, limits: WalkLimits, walk: Walk, row: int, room: CountRoom
) -> bool:
    """Evaluate the model on the first ``size`` columns; whether it is the best so far."""
    value = value_of(data, columns, size, room)
    if not value < min(limits.upper, walk.value[row]):
        return False
    keep_model(walk, row, value, columns, size, NONE)
    return True


@njit
def _keep_best_suspect(
    data: WalkData, columns: IntArray, fixed: int, inside: int, found: int, limits: WalkLimits, walk: Walk, row: int,
    room: CountRoom,
) -> bool:  # fmt: skip
    """Turn positions into columns and evaluate the models; whether one is the best so far."""
    for s in range(found):
        for i in range(MOST_PLACES):
            if room.suspects[s, i] >= 0:
                room.suspects[s, i] = room.order[inside + room.suspects[s, i]]
    better = False
    for s in range(found):
        size = fixed
        for i in range(fixed):
            room.chosen[i] = columns[i]
        for i in range(MOST_PLACES):
            if room.suspects[s, i] >= 0:
                room.chosen[size] = room.suspects[s, i]
                size += 1
        better |= _keep_if_better(data, room.chosen, size, limits, walk, row, room)
    return bool(better)


@njit
def _keep_greedy(
    data: WalkData, columns: IntArray, fixed: int, m: int, places: int, limits: WalkLimits, walk: Walk, row: int,
    room: CountRoom,
) -> bool:  # fmt: skip
    """Evaluate S, and what comes of it by adding one column after the other; whether one is the best so far."""
    chosen = columns[:m].copy()
    better = _keep_if_better(data, chosen, fixed, limits, walk, row, room)
    for size in range(fixed, min(m, fixed + places)):
        best, at = np.inf, size
        for i in range(size, m):
            chosen[size], chosen[i] = chosen[i], chosen[size]
            value = value_of(data, chosen, size + 1, room)
            if value < best:
                best, at = value, i
            chosen[size], chosen[i] = chosen[i], chosen[size]
        chosen[size], chosen[at] = chosen[at], chosen[size]
        better |= _keep_if_better(data, chosen, size + 1, limits, walk, row, room)
    return bool(better)


@njit
def count_region(
    data: WalkData, columns: IntArray, fixed: int, m: int, places: int, limits: WalkLimits, walk: Walk, row: int,
    room: CountRoom,
) -> int:  # fmt: skip
    """Count the region of m columns, the first ``fixed`` inside, taking better models for the incumbent on the way.

    How many suspects are left, in ``room.suspects``: sets of columns that are no better than the incumbent as far as
    can be computed, but not proven to reach the cut-off. :data:`TOO_MANY` where nothing is known of the region. All
    that is not suspect enters ``walk.dropped``.
    """
    near = True
    while True:
        best = min(limits.upper, walk.value[row])
        level = best - (NEAR if near else 1.0) * room_below(limits, best)
        inside, size = distinct(data, columns, fixed, m if places > 0 else fixed, NONE, room)
        whole = size - inside <= places
        inside = size if whole else inside
        chosen = 0 if whole else places
        walk.work[row] += 0.5 * inside * size * (size + inside) + size * size + sets_of(chosen, size - inside)
        margin = margin_for(data, level, inside + chosen)
        if not eliminate(data, inside, size, level, margin, room):
            if not near:
                room.chosen[:size] = room.order[:size]
                # So near to the empty model's objective, or above it, any better model helps.
                first = inside if margin < np.inf else size
                if not _keep_greedy(data, room.chosen, inside, first, chosen, limits, walk, row, room):
                    return TOO_MANY
            near = not near
            continue
        found = count(size - inside, chosen, room)
        if found == 0:
            walk.dropped[row] = min(walk.dropped[row], level)
            return CLEAR
        if near:
            near = False
        elif _keep_best_suspect(data, columns, fixed, inside, min(found, MOST_SUSPECTS), limits, walk, row, room):
            near = True
        elif found > MOST_SUSPECTS:
            return TOO_MANY
        else:
            walk.dropped[row] = min(walk.dropped[row], level)
            return int(found)
    return TOO_MANY
