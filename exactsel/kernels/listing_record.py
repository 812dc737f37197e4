"""The record of a listing's decisions in preorder, with countable subtrees in one word (kernels/listing.py).

Words are 8 * argument + kind, with the kinds of kernels/moves.py and COUNTED. The argument of CLOSED is 0 where the
quadratic function closes the region, or one more than the row of the set that was listed. A subtree that lists no set
holds nothing but sets that stay above the level; where they are few it becomes the one word COUNTED.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exactsel._jit import njit
from exactsel.kernels.moves import BRANCHED, CLOSED
from exactsel.kernels.subtree_record import COUNTED
from exactsel.types import FloatArray, IntArray

MOST_SETS = 40_000.0
"""Sets of a subtree that is counted at most: about what a few of its nodes take."""

WORDS, FRAMES, FULL = 0, 1, 2
"""Places in :attr:`Decisions.counts`."""


class Decisions(NamedTuple):
    """Words written so far, and the subtrees that are being divided."""

    words: IntArray
    """(capacity,); none where nothing is to be written down."""
    counts: IntArray
    """(3,): words, open frames, and 1 once there was no room for a word."""
    frames: IntArray
    """(m + 2, 3) for each: its first word, the sets listed before, parts still to come."""
    sets: FloatArray
    """(m + 2,) how many sets each holds."""
    most: float
    """Sets of a subtree that is counted, at most."""


def decisions(capacity: int, m: int, most: float = MOST_SETS) -> Decisions:
    """Room for so many words about m columns."""
    frames = np.empty((m + 2, 3), dtype=np.int64)
    return Decisions(np.empty(capacity, dtype=np.int64), np.zeros(3, dtype=np.int64), frames, np.empty(m + 2), most)


@njit
def note(made: Decisions, word: int) -> None:
    """Write down a word."""
    if made.counts[WORDS] < len(made.words):
        made.words[made.counts[WORDS]] = word
        made.counts[WORDS] += 1
    else:
        made.counts[FULL] = 1


@njit
def begin(made: Decisions, known: int, free: int, slots: int) -> None:
    """A region with so many candidates and places comes next; ``known`` sets are listed so far."""
    top = made.counts[FRAMES]
    made.counts[FRAMES] += 1
    made.frames[top, 0], made.frames[top, 1], made.frames[top, 2] = made.counts[WORDS], known, 1
    total, sets = 1.0, 1.0
    for taken in range(min(slots, free)):
        sets *= (free - taken) / (taken + 1.0)
        total += sets
    made.sets[top] = 1.0 if slots >= free else total


@njit
def divide(made: Decisions, column: int) -> None:
    """The region begun last is divided: two parts follow, first that without the column."""
    note(made, 8 * column + BRANCHED)
    made.frames[made.counts[FRAMES] - 1, 2] = 2


@njit
def end(made: Decisions, known: int) -> None:
    """The region begun last is closed, and with it those of which it was the last part."""
    while made.counts[FRAMES] > 0:
        top = made.counts[FRAMES] - 1
        made.frames[top, 2] -= 1
        if made.frames[top, 2] > 0:
            return
        first = made.frames[top, 0]
        if known == made.frames[top, 1] and made.counts[WORDS] > first + 1 and made.sets[top] <= made.most:
            made.counts[WORDS] = first
            note(made, COUNTED)
        made.counts[FRAMES] = top


@njit
def close(made: Decisions, row: int) -> None:
    """The region is closed: by the quadratic function (-1), or as the set in this row of the list."""
    note(made, 8 * (row + 1) + CLOSED)


@njit
def close_last_slot(made: Decisions, columns: IntArray, count: int, first: int, left: int) -> None:
    """A region with one place: the sets with one of ``columns[:count]`` are listed, in rows from ``first`` on.

    ``left`` others stay above the level. Where there are none, the region without candidates is a part of the last.
    """
    for i in range(count):
        note(made, 8 * columns[i] + BRANCHED)
    if left > 0:
        note(made, COUNTED)
    else:
        close(made, first + count - 1)
    for i in range(count - 1, -1, -1):
        close(made, first + i)
