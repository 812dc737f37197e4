"""The parts of a state in a checkpoint, each in a row of its own: those that last from one state to the next stay."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

TABLE = "CREATE TABLE part (number INTEGER PRIMARY KEY, data BLOB NOT NULL);"


@runtime_checkable
class Lasting(Protocol):
    """A part of a state that is written once: the same serial number, the same bytes."""

    @property
    def serial(self) -> int:
        """Its number, in this process."""
        ...

    def __bytes__(self) -> bytes: ...


class _Stored(NamedTuple):
    """A part in the file."""

    number: int
    digest: bytes


class StoredParts(NamedTuple):
    """What a state is made of, once its parts are written."""

    parts: tuple[_Stored, ...]
    lasting: dict[int, _Stored]
    """Those that may be parts of the next state, by their serial numbers."""
    next_number: int

    @classmethod
    def after(cls, saved: Mapping[str, Any]) -> StoredParts:
        """Of a state that another process has saved: nothing is known to last."""
        return cls((), {}, max(saved["parts"], default=-1) + 1)

    def written(self, connection: sqlite3.Connection, parts: Iterable[bytes | Lasting]) -> StoredParts:
        """Write those parts of another state that are not there yet, and remove those that are not among them."""
        there = {number for (number,) in connection.execute("SELECT number FROM part")}
        stored, lasting, number = [], {}, max([self.next_number, *(n + 1 for n in there)])
        for part in parts:
            entry = self.lasting.get(part.serial) if isinstance(part, Lasting) else None
            if entry is None or entry.number not in there:
                data = bytes(part)
                entry = _Stored(number, hashlib.sha256(data).digest())
                connection.execute("INSERT INTO part VALUES (?, ?)", (number, data))
                number += 1
            stored.append(entry)
            if isinstance(part, Lasting):
                lasting[part.serial] = entry
        numbers = {part.number for part in stored}
        connection.executemany("DELETE FROM part WHERE number = ?", ((n,) for n in there - numbers))
        return StoredParts(tuple(stored), lasting, number)

    def about(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {"parts": [part.number for part in self.parts], "digest": _of_all(part.digest for part in self.parts)}


def intact(connection: sqlite3.Connection, saved: Mapping[str, Any]) -> bool:
    """Whether the parts of a state are those that were written."""
    query = "SELECT data FROM part WHERE number = ? AND typeof(data) = 'blob'"
    rows = (connection.execute(query, (n,)).fetchone() for n in saved["parts"])
    return _of_all(b"" if row is None else hashlib.sha256(row[0]).digest() for row in rows) == str(saved["digest"])


def read(connection: sqlite3.Connection, numbers: Sequence[int]) -> Iterator[bytes]:
    """Parts that are there."""
    for number in numbers:
        row = connection.execute("SELECT data FROM part WHERE number = ?", (number,)).fetchone()
        if row is None:
            raise sqlite3.DatabaseError("a part of the state has gone")
        yield bytes(row[0])


def _of_all(digests: Iterable[bytes]) -> str:
    """One digest, of parts in their order."""
    return hashlib.sha256(b"".join(digests)).hexdigest()
