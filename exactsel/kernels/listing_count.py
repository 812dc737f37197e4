"""Close the last places of a listing by counting: which sets of up to four columns more come down to the level.

For a level below zero q(x) = x'Hx/2 - h'x stays above it on columns U if and only if H - hh'/T is positive semidefinite
on U, T = -2 level: what kernels/counting.py compares for pairs, triples and quadruples once the columns fixed to 1 are
eliminated. H and h are what they are here, no sums over rows, so all that is off is the elimination.
"""

from __future__ import annotations

import numpy as np

from exactsel._jit import njit
from exactsel.kernels.counting import (
    MOST_PLACES,
    MOST_SUSPECTS,
    CountWorkspace,
    SubtreeData,
    count,
    count_one,
    eliminate,
    margin_for,
)
from exactsel.kernels.node import FREE, IN
from exactsel.types import FloatArray, StateArray

FEW_COLUMNS = 34
"""Up to so many candidates four places are counted; with more it is quicker to divide."""

NOT_COUNTED = -1


@njit
def count_data(H: FloatArray, h: FloatArray, lengths: FloatArray) -> SubtreeData:
    """The quadratic function x'Hx/2 - h'x, as counts take it."""
    d = h.size
    none = np.zeros(d)
    return SubtreeData(H, h, 0.0, 0, lengths, none, none, np.arange(d), np.empty((0, 0)), np.empty(0), 0.0, none)


@njit
def suspected_sets(
    data: SubtreeData, flags: StateArray, slots: int, threshold: float, workspace: CountWorkspace
) -> int:
    """How many sets of ``slots`` free columns, with those fixed to 1, are not shown to stay above the level.

    Their free columns are in ``workspace.suspects``, padded with -1. :data:`NOT_COUNTED` where smaller sets, or too
    many, are suspected, or nothing can be said.
    """
    fixed, m = 0, 0
    for j in range(flags.size):
        if flags[j] == IN:
            workspace.order[m] = j
            m += 1
    fixed = m
    for j in range(flags.size):
        if flags[j] == FREE:
            workspace.order[m] = j
            m += 1
    if slots > MOST_PLACES or (slots == MOST_PLACES and m - fixed > FEW_COLUMNS):
        return NOT_COUNTED
    if not eliminate(data, fixed, m, threshold, margin_for(data, threshold, fixed + slots), workspace):
        return NOT_COUNTED
    if slots == 1:
        workspace.undecided[:] = -1
        found = count_one(workspace.M, m - fixed, workspace, -1, 0)
    else:
        found = count(m - fixed, slots, workspace)
    if found > MOST_SUSPECTS:
        return NOT_COUNTED
    for s in range(found):
        for a in range(MOST_PLACES):
            at = workspace.undecided[s, a]
            if (at >= 0) != (a < slots):
                return NOT_COUNTED
            if at >= 0:
                workspace.undecided[s, a] = workspace.order[fixed + at]
    return int(found)
