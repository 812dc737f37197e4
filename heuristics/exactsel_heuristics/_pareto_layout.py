"""The memory layout of Pareto optimisation in kernels: few arrays with one slot per support or worker.

Compiled code carries every array through every call, so related numbers share an array. w is the largest size of a
support, n the number of rows of the data for objectives that need them, else 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exactsel.types import FloatArray, IntArray

SIZE, GROUP, FIRST = 0, 1, 2
"""Places in a row of ``Members.supports``: the size, the group, and the first of the columns, ascending."""

DROPS, ADDS, COLUMNS, COUNTS = 0, 1, 2, 3
"""Rows of ``Scratch.flips``: places in the parent to remove, columns to add, the columns after that in any order, and
the number of each."""

CACHE_LINES = 16
"""Numbers in two cache lines: what a thread writes for each offspring is as far from what the next one writes."""

NO_LARGER, SMALLER = 0, 1
"""Places in ``Scratch.limits``: the smallest value of comparable members that are no larger, and of smaller ones."""


class Members(NamedTuple):
    """Supports, one per slot, with what their objective remembers of their fits.

    ``supports`` (slots, 2 + w and more): see :data:`SIZE`; ``values`` (slots,); ``factors`` (slots, w + 1, w): an
    inverse matrix of the size of the support, and its coefficients in the last row; ``rows`` (slots, 3, n).
    """

    supports: IntArray
    values: FloatArray
    factors: FloatArray
    rows: FloatArray


class Scratch(NamedTuple):
    """What a worker needs for one offspring, one slot per worker.

    ``flips`` (workers, 4 and more, w + 2): see :data:`DROPS`; ``limits`` (workers, CACHE_LINES): see
    :data:`NO_LARGER`; ``vectors`` (workers, 2 and more, w), ``factors`` (workers, w + 1 and more, w) and ``rows``
    (workers, 3, n) are for the objective.
    """

    flips: IntArray
    limits: FloatArray
    vectors: FloatArray
    factors: FloatArray
    rows: FloatArray


def new_members(slots: int, width: int, n: int) -> Members:
    """Empty slots; supports are followed by :data:`CACHE_LINES` numbers that nothing uses."""
    return Members(
        np.zeros((slots, 2 + width + CACHE_LINES), dtype=np.int64),
        np.full(slots, np.inf),
        np.zeros((slots, width + 1, width)),
        np.zeros((slots, 3, n)),
    )


def new_scratch(workers: int, width: int, n: int) -> Scratch:
    """Workspace for ``workers`` workers, with rows that nothing uses between what two of them write."""
    unused = -(-CACHE_LINES // width)
    return Scratch(
        np.zeros((workers, 4 + unused, width + 2), dtype=np.int64),
        np.zeros((workers, CACHE_LINES)),
        np.zeros((workers, 2 + unused, width)),
        np.zeros((workers, width + 1 + unused, width)),
        np.zeros((workers, 3, n)),
    )
