"""The steps of a search inside the kernel as the words of a proof file, in preorder (certificates/FORMAT.md)."""

from __future__ import annotations

import numpy as np

from exactsel._jit import njit
from exactsel.kernels.moves import BRANCHED, CLOSED, LEFT_OUT, PUT_IN
from exactsel.kernels.native_record import AT_ONCE
from exactsel.types import IntArray

SPLIT_IN_WORD, PUT_IN_WORD, LEAVE_OUT_WORD, CLOSE_WORD, LEAF_WORD = 0, 2, 3, 4, 15
"""Kinds of words (exactsel_certificates.container), repeated here because kernels import nothing from there."""


@njit
def _chains(notes: IntArray, numbers: int) -> tuple[IntArray, IntArray, IntArray]:
    """The first note of every node, the next note of the same node (-1: none), and the first child of a split."""
    count = notes.shape[0]
    first, last = np.full(numbers, -1, dtype=np.int64), np.full(numbers, -1, dtype=np.int64)
    following, child = np.full(count, -1, dtype=np.int64), np.full(count, -1, dtype=np.int64)
    children = 1
    for i in range(count):
        number = notes[i, 0]
        if last[number] < 0:
            first[number] = i
        else:
            following[last[number]] = i
        last[number] = i
        if notes[i, 1] % 8 == BRANCHED:
            child[i] = children
            children += 2
    return first, following, child


@njit
def preorder_words(notes: IntArray, numbers: int, uses: IntArray, own: int, first_id: int) -> IntArray:
    """The tree of all notes (m, 3) (kernels/native_search.py), in-child first.

    ``uses`` (points,) are the words that name the points, ``own`` the one that names what the search came with. A
    region left open becomes a reference ~(first_id + number); the node begun with needs none, since what is done to it
    later follows anyhow. After a reference it is unknown which witness is in force, so it is named anew.
    """
    first, following, child = _chains(notes, numbers)
    words = np.empty(2 * notes.shape[0] + numbers + 1, dtype=np.int64)
    count, in_force = 0, -1
    waiting = np.empty(numbers + 1, dtype=np.int64)
    waiting[0], depth = 0, 1
    while depth > 0:
        depth -= 1
        number = waiting[depth]
        i, settled = first[number], False
        while i >= 0:
            column, kind = notes[i, 1] // 8, notes[i, 1] % 8
            if kind == PUT_IN or kind == LEFT_OUT or kind == CLOSED:  # noqa: SIM109  (a tuple would be built)
                use = own if notes[i, 2] < 0 else uses[notes[i, 2]]
                if notes[i, 2] == AT_ONCE:
                    use = LEAF_WORD
                if use != in_force:
                    words[count] = in_force = use
                    count += 1
                word = PUT_IN_WORD if kind == PUT_IN else LEAVE_OUT_WORD
                words[count] = CLOSE_WORD if kind == CLOSED else 8 * column + word
                count += 1
                settled = kind == CLOSED
            elif kind == BRANCHED:
                words[count] = 8 * column + SPLIT_IN_WORD
                count += 1
                waiting[depth], waiting[depth + 1] = child[i] + 1, child[i]
                depth += 2
                settled = True
            i = following[i]
        if not settled and number > 0:
            words[count] = ~(first_id + number)
            count += 1
            in_force = -1
    return words[:count]
