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


def leave(open_sets: Left, columns: list[int]) -> None:
    """Enter models that were not cleared: all that have these columns."""
    for column in columns[:-1]:
        below = open_sets.setdefault(column, {})
        if below is None:
            return
        open_sets = below
    open_sets[columns[-1]] = None


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


def with_equal(open_sets: Left, equal: dict[int, list[int]]) -> Left:
    """The same, each column followed by those equal to it."""
    every: Left = {}
    for column, below in open_sets.items():
        every[column] = below
        every |= {other: {} for other in equal.get(column, ())}
    return every


def walk_result(state: StateArray, outcome: OpenAfterMinors, work: float) -> EnumerationResult:
    """The decisions in preorder: each column in turn is branched on, first without it, then what is left with it."""
    open_sets, state, moves, opened = outcome.left, state.copy(), list[int](), list[StateArray]()

    def leave_open() -> None:
        moves.append(LEFT_OPEN)
        opened.append(state.copy())

    def write(open_sets: Left, ends_open: bool) -> None:
        for column in open_sets:
            moves.append(8 * column + BRANCHED)
            state[column] = OUT
        if ends_open:
            leave_open()
        else:
            moves.append(COUNTED)
        for column in reversed(open_sets):
            state[column] = IN
            below = open_sets[column]
            if below is None:
                leave_open()
            else:
                write(below, False)
            state[column] = FREE

    write(open_sets, outcome.rest > 0)
    return EnumerationResult(
        finished=not opened, nodes=len(open_sets), work=work, min_pruned_bound=outcome.threshold, support=outcome.best,
        open_states=np.array(opened, dtype=np.int8).reshape(len(opened), state.size),
        open_bounds=np.zeros(len(opened)), moves=np.array(moves, dtype=np.int64),
    )  # fmt: skip
