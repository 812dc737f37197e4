"""Walk the tree of a proof: every region it closes, and with what witness.

The tree is one sequence of words, in preorder. A word either splits the current region by a column (both children
follow), closes one child of such a split at once, closes the region, or names the witness used from here on. So the
closed regions cover the root for any words; all that can be wrong is that they end too early or too late, or speak of a
column that is decided already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from exactsel_certificates.container import (
    CLOSE,
    COUNTED,
    INFIMUM,
    PUT_IN,
    SPLIT,
    SPLIT_IN,
    SPLIT_OUT,
    USE,
    MalformedError,
)
from exactsel_certificates.work import STEP, spend

OUT, FREE, IN = 0, 1, 2

OTHER = {IN: OUT, OUT: IN}

BY_COUNTING = -(1 << 40)
"""The witness of a region closed by COUNTED."""

LEAF_CLOSED = ~1
"""The witness of a region closed by LEAF, where the loss is logistic."""

CHUNK = 1 << 12
"""Words turned into Python numbers at a time."""


Implied: TypeAlias = Callable[[bytes, Iterable[int]], bytes | None]
"""The state of every unit with what follows from the decisions on some; None where no model is left."""


class Leaves(NamedTuple):
    """Closed regions: for each the state of every column (OUT, FREE or IN) and the witness of its bound."""

    states: NDArray[np.uint8]
    """(B, d), or one for each group"""
    witness: NDArray[np.int64]
    """(B,) the argument of the last USE; ~p where SPLIT named split p after it; BY_COUNTING."""


def first_region(d: int, force_in: Sequence[int] = (), force_out: Sequence[int] = ()) -> bytes:
    """The state of every column where the tree begins."""
    state = bytearray([FREE]) * d
    for j in force_in:
        state[j] = IN
    for j in force_out:
        state[j] = OUT
    return bytes(state)


def closed_regions(
    tree: NDArray[np.int32], root: bytes, k: int, batch: int, implied: Implied | None = None
) -> Iterator[Leaves]:
    """The closed regions below the region ``root``, at most ``batch`` at a time.

    Where decisions have consequences, ``implied`` gives them, and regions without models are skipped.

    Raises
    ------
    MalformedError
        When the words are no tree over d columns with at most k of them inside.
    """
    states: list[bytes] = []
    witnesses: list[int] = []
    d = len(root)
    for state, witness in regions(tree, root, k, implied):
        if state is None:
            continue
        if witness == BY_COUNTING == (witnesses or [witness + 1])[-1]:
            both = _joined(states[-1], state, k)
            if both is not None:
                states[-1] = both
                continue
        states.append(state)
        witnesses.append(witness)
        if len(states) == batch:
            yield _leaves(states, witnesses, d)
            states, witnesses = [], []
    if states:
        yield _leaves(states, witnesses, d)


def region_sizes(
    tree: NDArray[np.int32], root: bytes, k: int, implied: Implied | None = None
) -> Iterator[tuple[int, int, int]]:
    """Of each region that is closed the witness, and how many units are in and free; raises as above."""
    for state, witness in regions(tree, root, k, implied):
        if state is not None:
            yield witness, state.count(IN), state.count(FREE)


def regions(
    tree: NDArray[np.int32], root: bytes, k: int, implied: Implied | None = None
) -> Iterator[tuple[bytes | None, int]]:
    """Each region that is closed, None where nothing is left of it, and its witness; raises as above."""
    return _regions(tree, root, k) if implied is None else _implied_regions(tree, root, implied)


def _joined(state: bytes, other: bytes, k: int) -> bytes | None:
    """Both regions in one, where one has three places and the other is that with one column more in S and less in C.

    To count triples once takes as long as to count all the pairs that they are with each column, and is said in less.
    """
    included = state.count(IN), other.count(IN)
    if included not in ((k - 3, k - 2), (k - 2, k - 3)):
        return None
    first, second = (np.frombuffer(each, dtype=np.uint8) for each in (state, other))
    (apart,) = np.nonzero(first != second)
    if len(apart) != 1 or FREE in (state[apart[0]], other[apart[0]]):
        return None
    at = int(apart[0])
    return state[:at] + bytes([FREE]) + state[at + 1 :]


def each_addition(state: NDArray[np.uint8], most: int) -> Iterator[NDArray[np.uint8]]:
    """The regions that fix one candidate to 1 and the others to 0, at most so many at a time."""
    candidates = np.flatnonzero(state == FREE)
    alone = np.where(state == FREE, np.uint8(OUT), state)
    for first in range(0, len(candidates), most):
        part = candidates[first : first + most]
        states = np.tile(alone, (len(part), 1))
        states[np.arange(len(part)), part] = IN
        yield states


def _leaves(states: list[bytes], witnesses: list[int], d: int) -> Leaves:
    spend(16.0 * len(states) * d)
    table = np.frombuffer(b"".join(states), dtype=np.uint8).reshape(len(states), d)
    return Leaves(table, np.array(witnesses, dtype=np.int64))


def _words(tree: NDArray[np.int32], units: int = 0) -> Iterator[int]:
    """The words one by one; each may evaluate so many ``units``."""
    for first in range(0, len(tree), CHUNK):
        spend(min(CHUNK, len(tree) - first) * (STEP + 16.0 * units))
        yield from tree[first : first + CHUNK].tolist()


def _regions(tree: NDArray[np.int32], root: bytes, k: int) -> Iterator[tuple[bytes, int]]:
    state, d = bytearray(root), len(root)
    witness, included = INFIMUM, root.count(IN)
    decided: list[int] = []
    # Children still to come: how many columns were decided when their parent was split, and their own decision.
    waiting: list[tuple[int, int, int]] = []
    finished = False
    for word in _words(tree):
        kind, column = word & 7, word >> 3
        if finished or column < 0:
            raise MalformedError(
                "the tree continues after its last region." if finished else "the tree holds no words."
            )
        if kind in (USE, SPLIT):
            witness = column if kind == USE else ~column
            continue
        if kind in (CLOSE, COUNTED):
            yield bytes(state), witness if kind == CLOSE else BY_COUNTING
            if not waiting:
                finished = True
                continue
            depth, column, decision = waiting.pop()
            while len(decided) > depth:
                last = decided.pop()
                included -= state[last] == IN
                state[last] = FREE
        else:
            if column >= d or state[column] != FREE or included >= k:
                raise MalformedError(f"the tree decides on column {column} where that is not possible.")
            if kind in (SPLIT_IN, SPLIT_OUT):
                decision = IN if kind == SPLIT_IN else OUT
                waiting.append((len(decided), column, OTHER[decision]))
            else:
                decision = IN if kind == PUT_IN else OUT
                state[column] = OTHER[decision]
                yield bytes(state), witness
        state[column] = decision
        included += decision == IN
        decided.append(column)
    if not finished:
        raise MalformedError("the tree ends before its last region is closed.")


def _implied_regions(tree: NDArray[np.int32], root: bytes, implied: Implied) -> Iterator[tuple[bytes | None, int]]:
    """The same with consequences; a word may then decide what is decided: one part is the region, the other empty."""

    def part(state: bytes | None, unit: int, decision: int) -> bytes | None:
        if state is None or state[unit] != FREE:
            return state if state is not None and state[unit] == decision else None
        return implied(state[:unit] + bytes([decision]) + state[unit + 1 :], [unit])

    waiting = [implied(root, range(len(root)))]
    witness = INFIMUM
    for word in _words(tree, len(root)):
        kind, unit = word & 7, word >> 3
        if not waiting or unit < 0:
            raise MalformedError("the tree holds no words." if waiting else "the tree continues after its last region.")
        if kind in (USE, SPLIT):
            witness = unit if kind == USE else ~unit
            continue
        state = waiting.pop()
        if kind in (CLOSE, COUNTED):
            yield state, witness if kind == CLOSE else BY_COUNTING
            continue
        if unit >= len(root):
            raise MalformedError(f"the tree decides on column {unit} where that is not possible.")
        later, sooner = part(state, unit, OUT), part(state, unit, IN)
        if kind in (SPLIT_OUT, PUT_IN):
            later, sooner = sooner, later
        if kind in (SPLIT_IN, SPLIT_OUT):
            waiting += [later, sooner]
            continue
        yield sooner, witness
        waiting.append(later)
    if waiting:
        raise MalformedError("the tree ends before its last region is closed.")
