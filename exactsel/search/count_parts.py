"""Dispatch of parts of a count (enumeration/minors.py) as bytes, and the check of a share of their results.

The parts are those of one call of the walker, so the tree is the same for every executor. A part closes all sets that
its answer does not name as left over, and the only evidence for that is the count itself. So a share of it is counted
again here: one block of eight candidates in :data:`exactsel.search.pool.SHARE`, or one of the candidates that are fixed
to 1; workers cannot know which. More than is left over may be named, which costs time and closes nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exactsel.enumeration.minors import MinorTest
from exactsel.enumeration.minors_parts import ROOM, Again, Part, Piece, noted
from exactsel.errors import InputError
from exactsel.kernels.lanes import LANES
from exactsel.kernels.wide import OVERFLOW
from exactsel.problem.interface import SubsetProblem
from exactsel.search.layout import refusing_damage, require
from exactsel.search.packed_bytes import from_bytes, to_bytes
from exactsel.search.packing import Packed
from exactsel.search.pool import SHARE, Pool, first_sound
from exactsel.types import IntArray

COUNT = "count"
"""In a header: these are bytes of a part of a count."""


@dataclass(frozen=True)
class CountParts:
    """A :class:`exactsel.enumeration.minors_parts.Helpers`."""

    pool: Pool
    share: int = SHARE
    """One block, or candidate, in so many is counted again; 1: all."""

    def __call__(self, parts: Sequence[Part], again: Again) -> Iterator[list[Piece]]:
        """The outcome of each part, in their order."""
        jobs = [(part, self.pool.executor.submit(part_bytes(part))) for part in parts]

        for part, ticket in jobs:

            def look(data: bytes, part: Part = part) -> list[Piece]:
                pieces = pieces_from_bytes(data, part)
                if not all(self._sound(piece, part, again) for piece in pieces):
                    raise InputError("what was counted leaves out a set of features that is not cleared.")
                return pieces

            yield first_sound(self.pool, ticket, look)

    def _sound(self, piece: Piece, part: Part, again: Again) -> bool:
        """Whether the share of it that is counted again is as it says."""
        if piece.pivot >= 0:
            if secrets.randbelow(self.share):
                return True
            recount = list(again(replace(part, pivots=(piece.pivot,))))
            return all(piece.admits(mine, 0) for mine in recount)
        for block in range(len(piece.found)):
            if not secrets.randbelow(self.share):
                first = part.first + block
                if not all(piece.admits(mine, block) for mine in again(replace(part, first=first, last=first + 1))):
                    return False
        return True


def part_bytes(part: Part) -> bytes:
    """A part as a worker is given it."""
    header = {COUNT: [part.first, part.last, part.size], "level": float(part.threshold).hex()}
    arrays: dict[str, NDArray[Any]] = {
        "state": np.asarray(part.state, dtype=np.int8), "pivots": np.array(part.pivots, dtype=np.int64),
    }  # fmt: skip
    return to_bytes(Packed(header, arrays))


def counted_bytes(packed: Packed, problem: SubsetProblem, counter: MinorTest | None) -> bytes:
    """Count a part, given by what :func:`part_bytes` packed; the answer as a worker sends it.

    Raises
    ------
    InputError
        Where there is nothing to count, or it is damaged.
    """
    state = packed.arrays["state"]
    first, last, size = (int(number) for number in packed.header[COUNT])
    require(state.shape == (problem.d,) and state.dtype == np.int8, "a region of another problem")
    if counter is None:
        raise InputError("this search does not count; run the same exactsel everywhere.")
    pivots = tuple(int(pivot) for pivot in packed.arrays["pivots"])
    threshold = float.fromhex(packed.header["level"])
    return pieces_bytes(counter.count(Part(state, threshold, first, last, size, pivots)))


def pieces_bytes(pieces: Sequence[Piece]) -> bytes:
    """The outcome of a part as bytes."""
    heads = [[piece.pivot, piece.definite, len(piece.failing), len(piece.found), len(piece.rows)] for piece in pieces]
    arrays = {"heads": np.array(heads, dtype=np.int64).reshape(len(heads), 5)}
    for name in _HELD:
        held = [getattr(piece, name).ravel() for piece in pieces]
        arrays[name] = np.concatenate([*held, np.empty(0, dtype=np.int64)]).astype(np.int64)
    return to_bytes(Packed({COUNT: 1}, arrays))


def pieces_from_bytes(data: bytes, part: Part) -> list[Piece]:
    """The outcome that :func:`pieces_bytes` packed, if it is a possible outcome of this part.

    Raises
    ------
    InputError
        Where it cannot.
    """
    with refusing_damage():
        arrays = from_bytes(data).arrays
        require(all(array.dtype == np.int64 for array in arrays.values()), "numbers that are none")
        heads = arrays["heads"]
        require(heads.ndim == 2 and heads.shape[1] == 5 and not np.any(heads[:, 2:] < 0), "pieces that are none")
        ends = np.cumsum(heads[:, 2:] * [1, 1, 3], axis=0)
        require(
            all(
                arrays[name].shape == ((int(ends[-1, at]) if len(ends) else 0),) for at, name in enumerate(_HELD)
            ), "more of a count or less than it says",
        )  # fmt: skip
        pieces = []
        for row, head in enumerate(heads.tolist()):
            fields: dict[str, Any] = {
                name: arrays[name][(0 if row == 0 else ends[row - 1, at]) : ends[row, at]]
                for at, name in enumerate(_HELD)
            }
            fields["rows"] = fields["rows"].reshape(-1, 3)
            pieces.append(Piece(head[0], bool(head[1]), **fields))
        _check(pieces, part)
        return pieces


_HELD = ("failing", "found", "rows")


def _check(pieces: Sequence[Piece], part: Part) -> None:
    """Refuse pieces that are not those of a part, and suspects that are not in their block."""
    require(tuple(piece.pivot for piece in pieces) == part.pivots, "another part of a count")
    if part.pivots == (-1,):
        require(pieces[0].definite and len(pieces[0].found) == part.last - part.first, "another part of a count")
        require(not np.any(pieces[0].rows[:, 0] >= part.size), "candidates that are not there")
        _check_rows(pieces[0].found, pieces[0].rows, LANES * part.first)
        return
    for piece in pieces:
        blocks = -(-piece.pivot // LANES) if piece.definite else 0
        require(len(piece.found) == blocks, "another number of blocks")
        require(not np.any((piece.failing < 0) | (piece.failing >= piece.pivot)), "candidates that are not there")
        require(not np.any(piece.rows[:, 0] >= piece.pivot), "candidates that are not there")
        _check_rows(piece.found, piece.rows, 0)


def _check_rows(counts: IntArray, rows: IntArray, first: int) -> None:
    require(not np.any((counts < OVERFLOW) | (counts > ROOM)), "a number of suspects that cannot be")
    require(int(noted(counts).sum()) == len(rows), "more suspects or fewer than it says")
    block = np.repeat(np.arange(len(counts)), noted(counts))
    require(bool(np.all(rows[:, 0] // LANES == first // LANES + block)), "suspects of other blocks")
    require(bool(np.all((rows[:, 0] > rows[:, 1]) & (rows[:, 1] > rows[:, 2]) & (rows[:, 2] >= -1))), "no suspects")
