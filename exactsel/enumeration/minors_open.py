"""The rest of a region after a count of minors (enumeration/minors.py), and its record in preorder."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np

from exactsel.enumeration.base import EnumerationResult
from exactsel.kernels.moves import BRANCHED
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.kernels.subtree_record import COUNTED, LEFT_OPEN
from exactsel.types import StateArray

Left: TypeAlias = "dict[int, Left | None]"
"""What a count leaves of a region. Its keys are columns to branch on, in this order; without them it is closed. The
values are what is left of the child with the column in, None where all of it is."""


def leave(left: Left, columns: list[int]) -> None:
    """Enter models that were not cleared: all that have these columns."""
    for column in columns[:-1]:
        below = left.setdefault(column, {})
        if below is None:
            return
        left = below
    left[columns[-1]] = None


class OpenAfterMinors(NamedTuple):
    """The rest of a region after a count, and the other outcomes of the count."""

    left: Left
    rest: int
    """Candidates that have not been counted."""
    threshold: float
    """What has been closed holds nothing below this."""
    upper: float
    """Objective of the best model known now."""
    best: tuple[int, ...] | None
    """Its support, if the count has found it."""


def with_equal(left: Left, equal: dict[int, list[int]]) -> Left:
    """The same, each column followed by those equal to it."""
    every: Left = {}
    for column, below in left.items():
        every[column] = below
        every |= {other: {} for other in equal.get(column, ())}
    return every


def walk_result(state: StateArray, found: OpenAfterMinors, work: float) -> EnumerationResult:
    """The decisions in preorder: each column in turn is branched on, first without it, then what is left with it."""
    left, state, moves, opened = found.left, state.copy(), list[int](), list[StateArray]()

    def leave_open() -> None:
        moves.append(LEFT_OPEN)
        opened.append(state.copy())

    def write(left: Left, ends_open: bool) -> None:
        for column in left:
            moves.append(8 * column + BRANCHED)
            state[column] = OUT
        if ends_open:
            leave_open()
        else:
            moves.append(COUNTED)
        for column in reversed(left):
            state[column] = IN
            below = left[column]
            if below is None:
                leave_open()
            else:
                write(below, False)
            state[column] = FREE

    write(left, found.rest > 0)
    return EnumerationResult(
        finished=not opened, nodes=len(left), work=work, min_pruned_bound=found.threshold, support=found.best,
        open_states=np.array(opened, dtype=np.int8).reshape(len(opened), state.size),
        open_bounds=np.zeros(len(opened)), moves=np.array(moves, dtype=np.int64),
    )  # fmt: skip
