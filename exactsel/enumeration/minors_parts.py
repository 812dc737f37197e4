"""Parts of a count (enumeration/minors.py), the units of work of an executor, and their outcomes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from exactsel._jit import available_threads, parallel_section
from exactsel.bounds.base import BoundOptions
from exactsel.enumeration.minors_matrix import LevelMatrix
from exactsel.enumeration.minors_open import Left
from exactsel.kernels.lanes import LANES
from exactsel.kernels.wide import NOT_COUNTED, OVERFLOW, Columns, count_blocks
from exactsel.types import IntArray, StateArray

ROOM = 64
"""Suspects that are noted in each block of eight pivots."""


class Stopped(Exception):
    """The stop flag was raised."""


@dataclass(frozen=True)
class Part:
    """Candidates of a region that are counted together, with all those before them."""

    state: StateArray
    threshold: float
    first: int
    last: int
    """Blocks of LANES candidates from ``first`` up to the one before ``last``, or candidates with four places."""
    size: int
    """Candidates there are."""
    pivots: tuple[int, ...] = (-1,)
    """With four places the candidates that are fixed to 1 one by one, the last first; the others are left open."""


@dataclass(frozen=True)
class Piece:
    """The outcome of counting some blocks, or all of those before a candidate that is fixed to 1."""

    pivot: int
    """The candidate fixed to 1, with four places; -1 with fewer."""
    definite: bool
    """Whether its own diagonal is positive; if not, nothing has been counted."""
    failing: IntArray
    """Candidates before it whose own diagonal is not positive once it is in; they take part in nothing."""
    found: IntArray
    """(blocks,) how many suspects there are in each block, or OVERFLOW."""
    rows: IntArray
    """(suspects, 3) these, block after block: candidates in descending order, -1 for no third one."""

    @property
    def clear(self) -> bool:
        """Whether nothing is left, as with most candidates."""
        return self.definite and self.failing.size == 0 and not self.found.any()

    def rows_of(self, block: int) -> set[tuple[int, ...]]:
        """The suspects of one block."""
        ends = np.cumsum(noted(self.found))
        first = 0 if block == 0 else int(ends[block - 1])
        return {tuple(row) for row in self.rows[first : int(ends[block])].tolist()}

    def admits(self, mine: Piece, first: int) -> bool:
        """Whether what one has counted oneself, from block ``first`` of this one on, is among what this one names."""
        if not self.definite or not mine.definite:
            return not self.definite
        if not {*mine.failing.tolist()} <= {*self.failing.tolist()}:
            return False
        blocks = range(len(mine.found))
        named = (self.found[first + block] == OVERFLOW for block in blocks)
        return all(
            all_named or (mine.found[block] != OVERFLOW and mine.rows_of(block) <= self.rows_of(first + block))
            for block, all_named in zip(blocks, named, strict=True)
        )


@dataclass
class CountedRegion:
    """A region being counted at one level."""

    state: StateArray
    fixed: IntArray
    counted: IntArray
    """Candidates in the order of the matrix."""
    equal: dict[int, list[int]]
    """Candidates equal to one that is counted, by that one."""
    matrix: LevelMatrix
    threshold: float

    def opened(self, positions: list[int]) -> Left:
        """What is left where all models with one of these candidates are open."""
        return {int(self.counted[j]): None for j in positions}

    def joined(self, opened: Left, counted: Left) -> Left:
        """The columns left open come first, so that all other regions are without them."""
        return opened | {column: below for column, below in counted.items() if column not in opened}


Again = Callable[[Part], Iterable[Piece]]


class Helpers(Protocol):
    """The executors that count parts elsewhere."""

    def __call__(self, parts: Sequence[Part], again: Again) -> Iterator[list[Piece]]:
        """The outcome of each part, in their order; ``again`` counts one here, to check the outcomes of others."""
        ...


def noted(counts: IntArray) -> IntArray:
    """(blocks,) how many suspects of each block are noted."""
    return np.where(counts == OVERFLOW, ROOM, counts)


def count_part(matrix: LevelMatrix, slots: int, part: Part, options: BoundOptions) -> Iterator[Piece]:
    """Count a part on the matrix of its region, the last candidates first.

    Raises
    ------
    Stopped
    """
    if part.pivots == (-1,):
        counts, rows = _blocks(matrix, matrix.columns, part.size, slots, part.first, part.last, options)
        yield Piece(-1, True, _NONE, counts, rows)
        return
    for pivot in part.pivots:
        yield _piece(matrix, pivot, options)


def _piece(matrix: LevelMatrix, pivot: int, options: BoundOptions) -> Piece:
    """Count what there is with a candidate in."""
    with parallel_section(options.threads):
        included = matrix.eliminated(pivot) if pivot > 0 else None
    if included is None:
        return Piece(pivot, pivot == 0, _NONE, _NONE, _NO_ROWS)
    counts, rows = _blocks(matrix, included.columns, pivot, 3, 0, -(-pivot // LANES), options)
    return Piece(pivot, True, included.failing, counts, rows)


def _blocks(
    matrix: LevelMatrix, columns: Columns, size: int, slots: int, first: int, last: int, options: BoundOptions
) -> tuple[IntArray, IntArray]:
    """Count the blocks from ``first`` up to the one before ``last``; how many suspects each has, and these."""
    undecided = np.empty((last - first, ROOM, 3), dtype=np.int64)
    counts = np.full(last - first, NOT_COUNTED, dtype=np.int64)
    threads = min(options.threads, available_threads())
    with parallel_section(threads):
        count_blocks(
            matrix.q, matrix.low, matrix.high, columns, size, slots, first, undecided, counts, options.stop, threads,
            np.zeros(1, dtype=np.int64),
        )  # fmt: skip
    if options.stop[0] or np.any(counts == NOT_COUNTED):
        raise Stopped
    if not counts.any():
        return counts, _NO_ROWS
    return counts, undecided[np.arange(ROOM) < noted(counts)[:, None]]


_NONE = np.empty(0, dtype=np.int64)
_NO_ROWS = _NONE.reshape(0, 3)
