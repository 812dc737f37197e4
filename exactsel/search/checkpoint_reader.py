"""The contents of a checkpoint, read as an untrusted file.

Its tables must be those that a checkpoint is made with, all rows together no longer than the file, every row of the
type it is written as, all JSON of the shape it is written in, and everything under its hash. What the packed nodes mean
is checked where they are unpacked.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import sqlite3
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

from exactsel.errors import InputError, OutputError, escaped
from exactsel.search.checkpoint_parts import TABLE, intact, read
from exactsel.search.database import Database, statements_of
from exactsel.search.json_shapes import digest, entries, number, read_json, several, text, truth, whole

APPLICATION = 0x45585345
"""Marks an SQLite file as ours ("EXSE")."""

VERSION = 2
"""Of the tables."""

SILENT = 60.0
"""Seconds without a sign of life after which the process that writes a checkpoint is taken to be gone."""

TABLES = f"""
    CREATE TABLE about (id INTEGER PRIMARY KEY CHECK (id = 0), text TEXT NOT NULL, digest TEXT NOT NULL);
    CREATE TABLE owner (id INTEGER PRIMARY KEY CHECK (id = 0), mark TEXT NOT NULL, text TEXT NOT NULL);
    CREATE TABLE saved (id INTEGER PRIMARY KEY CHECK (id = 0), text TEXT NOT NULL, digest TEXT NOT NULL);
    {TABLE}
    CREATE TABLE spool (number INTEGER PRIMARY KEY, name TEXT NOT NULL, data BLOB NOT NULL);
    CREATE TABLE chunk (number INTEGER PRIMARY KEY, digest TEXT NOT NULL, keys BLOB NOT NULL, data BLOB NOT NULL);
    CREATE TABLE progress (id INTEGER PRIMARY KEY CHECK (id = 0), time REAL NOT NULL, text TEXT NOT NULL);
"""


_OWNER = entries({"process": whole(1, 2**31 - 1), "host": text, "since": number(), "done": truth})
_SAVED = {
    "parts": several(whole(), different=True), "digest": digest, "spools": digest,
    "chunks": several(whole(), different=True),
}  # fmt: skip
_LENGTHS = {
    "part": (("data", "blob"),),
    "spool": (("name", "text"), ("data", "blob")),
    "chunk": (("digest", "text"), ("keys", "blob"), ("data", "blob")),
}
"""Tables of many rows, with the columns that take room and their types."""


class CheckpointReader:
    """What an open file holds."""

    def __init__(self, path: Path, database: Database) -> None:
        self.path = path
        self._database, self._connection = database, database.connection

    def check_kind(self) -> None:
        """Refuse a file that is no checkpoint, or one of another layout."""
        (application,) = self._connection.execute("PRAGMA application_id").fetchone()
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        if application != APPLICATION:
            raise InputError(f"{self.path} is a database, but no checkpoint of exactsel; give one that a search wrote.")
        if version != VERSION:
            raise InputError(
                f"{self.path} is a checkpoint of layout {version}, but this version of exactsel reads layout "
                f"{VERSION}; use the version that wrote it."
            )
        self._database.check_tables(statements_of(TABLES))

    def check_lengths(self) -> None:
        """Refuse rows that come again and again, or hold together more than the file: then all of them can be read."""
        remaining = self._database.size
        for table, columns in _LENGTHS.items():
            fields = ", ".join(f"typeof({name}), length({name})" for name, _ in columns)
            before = -1
            for number_of_row, *cells in self._each(f"SELECT number, {fields} FROM {table} ORDER BY number"):
                remaining -= sum(length for length in cells[1::2] if isinstance(length, int))
                self._require(isinstance(number_of_row, int) and number_of_row > before and remaining >= 0)
                self._require(tuple(cells[::2]) == tuple(kind for _, kind in columns))
                before = number_of_row

    def at_work(self) -> int | None:
        """The process that writes this file, if it lives on this machine and gave a sign of life lately."""
        owner, progress = self._object("owner", "text"), self._row("progress", "time", "text")
        self._require(_OWNER(owner))
        noted = 0.0 if progress is None else progress[0]
        self._require(number()(noted))
        here = owner["host"] == socket.gethostname() and owner["process"] != os.getpid() and not owner["done"]
        lately = time.time() - max(noted, owner["since"]) < SILENT
        return int(owner["process"]) if here and lately and _lives(owner["process"]) else None

    def about(self) -> dict[str, Any]:
        """What the search was begun with."""
        about = self._checked("about")
        self._require(about is not None)
        return about or {}

    def saved(self) -> dict[str, Any] | None:
        """What belongs to the state besides its parts; None where none has been saved."""
        saved = self._checked("saved")
        if saved is not None:
            fields = {name: saved.get(name) for name in _SAVED}
            self._require(entries(_SAVED)(fields))
        return saved

    def parts(self) -> Generator[bytes, None, None]:
        """The parts of the state, found to be intact; to be closed where it is not read to the end."""
        saved = self.saved()
        self._require(saved is not None)
        assert saved is not None
        with said_of(self.path, "the checkpoint cannot be read", reading=True):
            self._require(intact(self._connection, saved))
            yield from read(self._connection, saved["parts"])

    def chunk(self, number: int) -> bytes:
        """Nodes stored before."""
        rows = self._rows("SELECT digest, keys, data FROM chunk WHERE number = ?", number)
        self._require(len(rows) == 1 and all(isinstance(part, bytes) for part in rows[0][1:]))
        self._require(hash_of(rows[0][1] + rows[0][2]) == rows[0][0])
        return bytes(rows[0][2])

    def keys(self, number: int) -> bytes:
        """What their order is."""
        rows = self._rows("SELECT keys FROM chunk WHERE number = ?", number)
        self._require(len(rows) == 1 and isinstance(rows[0][0], bytes))
        return bytes(rows[0][0])

    def progress(self) -> tuple[float, dict[str, Any]] | None:
        """The last progress report, and its time (seconds since the epoch)."""
        row = self._row("progress", "time", "text")
        if row is None:
            return None
        reported = self._object("progress", "text")
        self._require(number()(row[0]))
        return row[0], reported

    def _checked(self, table: str) -> dict[str, Any] | None:
        """The object in a table, found to be intact."""
        row = self._row(table, "text", "digest")
        if row is None:
            return None
        self._require(isinstance(row[0], str) and hash_of(row[0].encode()) == row[1])
        return self._object(table, "text")

    def _object(self, table: str, column: str) -> dict[str, Any]:
        row = self._row(table, column)
        self._require(row is not None and isinstance(row[0], str))
        assert row is not None
        try:
            return read_json(row[0])
        except (ValueError, MemoryError):
            self._require(False)
            raise

    def _row(self, table: str, *columns: str) -> tuple[Any, ...] | None:
        """What the only row of a table holds; None where there is none."""
        rows = self._rows(f"SELECT id, {', '.join(columns)} FROM {table} LIMIT 2")
        self._require(len(rows) < 2 and all(row[0] == 0 for row in rows))
        return rows[0][1:] if rows else None

    def _rows(self, statement: str, *values: object) -> list[Any]:
        return list(self._each(statement, *values))

    def _each(self, statement: str, *values: object) -> Iterator[Any]:
        with said_of(self.path, "the checkpoint cannot be read", reading=True):
            yield from self._database.rows(statement, *values)

    def _require(self, sound: bool) -> None:
        if not sound:
            raise InputError(f"the checkpoint {self.path} is damaged; take an intact copy of it, or start again.")


def hash_of(data: bytes) -> str:
    """sha256, in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def _lives(process: int) -> bool:
    """Whether there is such a process on this machine."""
    if os.name == "nt":
        return True  # there signal 0 is Ctrl-C
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, AttributeError):  # another user's process, or a system that does not answer
        return True
    return True


@contextlib.contextmanager
def said_of(file: Path, what: str, reading: bool = False) -> Iterator[None]:
    """Errors of SQLite in one sentence: of damage, or of what the disk does not take."""
    try:
        yield
    except sqlite3.OperationalError as error:
        why = escaped(str(error))
        if reading:
            raise InputError(
                f"{what} ({why}): {file}; see whether the file is yours, take an intact copy of it, or start again."
            ) from None
        raise OutputError(
            f"{what} ({why}): {file}; see whether the disk is full, and whether the folder is yours.", "readonly" in why
        ) from None
    except (sqlite3.DatabaseError, MemoryError, UnicodeError) as error:
        why = escaped(str(error)) or "more memory than there is"
        raise InputError(
            f"{file} is no checkpoint, or a damaged one ({why}); take an intact copy of it, or start again."
        ) from None
