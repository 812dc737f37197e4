"""The pieces of a proof, written in the order of the search and arranged in preorder at the end."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from exactsel.errors import InputError
from exactsel.nodes.node import ROOT_ID
from exactsel_certificates import container as fmt

FLUSHED = 1 << 16
"""Words arranged before they are written."""

UNKNOWN = -2
"""In the place of the witness in force, after a piece that names several."""


MOST_AHEAD = 2**24
"""Numbers of nodes that may be skipped at a time: those a kernel sets aside for the nodes it searches."""

_LOST = "pieces of it are missing or name each other, as in a damaged checkpoint; start again."

_ROW = np.dtype([("node", "<i4"), ("words", "<i4"), ("mixed", "i1")])


class Records:
    """Which pieces of the spool belong to which node, in the order they were written."""

    def __init__(self) -> None:
        self._first, self._last = array("i"), array("i")
        self._start, self._next, self._mixed = array("q"), array("i"), array("b")
        self._words = 0
        self._owner = array("i")
        self._told = 0

    @property
    def words(self) -> int:
        """How many words all pieces have."""
        return self._words

    def add(self, node: int, words: int, mixed: bool = False) -> None:
        """Enter a piece of ``words`` words; a ``mixed`` one names a witness wherever it needs one."""
        if node > len(self._first) + MOST_AHEAD:
            raise InputError(f"the proof cannot continue at node {node}: the checkpoint is damaged; start again.")
        while len(self._first) <= node:
            self._first.append(-1)
            self._last.append(-1)
        record = len(self._start)
        self._start.append(self._words)
        self._owner.append(node)
        self._mixed.append(mixed)
        self._next.append(-1)
        self._words += words
        if self._last[node] >= 0:
            self._next[self._last[node]] = record
        else:
            self._first[node] = record
        self._last[node] = record

    def growth(self) -> bytes:
        """The entries since the last call."""
        first, end = self._told, len(self._owner)
        grown = np.empty(end - first, dtype=_ROW)
        grown["node"], grown["mixed"] = self._owner[first:], self._mixed[first:]
        grown["words"] = np.diff(np.array([*self._start[first:], self._words], dtype=np.int64))
        self._told = end
        return grown.tobytes()

    def replay(self, grown: bytes, words: int) -> None:
        """Enter again what :meth:`growth` returned for a spool of so many words; ValueError for invalid pieces."""
        rows = np.frombuffer(grown, dtype=_ROW)
        sizes = rows["words"].astype(np.int64)
        # Every node but the root is named by a word before it has a piece, or is one of the steps that words state.
        sound = np.all(rows["node"] >= 0) and np.all(rows["node"] <= words + MOST_AHEAD) and np.all(sizes > 0)
        if not (sound and self._words + sizes.sum() <= words):
            raise ValueError("pieces that the proof has no words for")
        for node, words, mixed in rows.tolist():
            self.add(node, words, bool(mixed))
        self._told = len(self._owner)

    def in_preorder(self, spool: memoryview) -> Iterator[array[int]]:
        """The words of the whole tree, in parts: every reference to a node is replaced by that node's pieces."""
        out, witness = array("i"), -1
        waiting, remaining = [self._piece(spool, self._first_of(ROOT_ID))], len(self._start)
        while waiting:
            piece = waiting[-1]
            start = piece.position
            end = piece.references.pop() if piece.references else len(piece.words)
            piece.position = end + 1
            if end > start:
                if piece.witness >= 0 and piece.witness != witness:
                    witness = piece.witness
                    out.append(witness)
                out.extend(piece.words[start:end])
                witness = UNKNOWN if piece.mixed else witness
            if end < len(piece.words):
                remaining = _one_less(remaining)
                waiting.append(self._piece(spool, self._first_of(~piece.words[end])))
            elif piece.following >= 0:
                remaining = _one_less(remaining)
                waiting[-1] = self._piece(spool, piece.following)
            else:
                waiting.pop()
            if len(out) > FLUSHED:
                yield out
                out = array("i")
        yield out

    def _first_of(self, node: int) -> int:
        """The first piece of a node."""
        record = self._first[node] if node < len(self._first) else -1
        if record < 0:
            raise InputError(f"the proof cannot be written: {_LOST}")
        return record

    def _piece(self, spool: memoryview, record: int) -> _Piece:
        start = self._start[record]
        end = self._start[record + 1] if record + 1 < len(self._start) else self._words
        words = array("i")
        words.frombytes(spool[4 * start : 4 * end])
        mixed = bool(self._mixed[record])
        named = not mixed and words[0] >= 0 and words[0] & 7 in (fmt.USE, fmt.SPLIT)
        if len(words) < 64:
            references = [i for i, word in enumerate(words) if word < 0]
        else:
            references = np.flatnonzero(np.frombuffer(words, dtype=np.int32) < 0).tolist()
        references.reverse()
        return _Piece(words, int(named), words[0] if named else -1, references, self._next[record], mixed)


def _one_less(remaining: int) -> int:
    """How many pieces are left after one more: in a proof of a whole search each comes once."""
    if remaining <= 1:
        raise InputError(f"the proof cannot be written: {_LOST}")
    return remaining - 1


@dataclass(slots=True)
class _Piece:
    """A piece on its way into the file: the position reached, the word that names its witness (or -1), the positions
    of its references, last first, and the node's next piece (or -1).
    """

    words: array[int]
    position: int
    witness: int
    references: list[int]
    following: int
    mixed: bool
