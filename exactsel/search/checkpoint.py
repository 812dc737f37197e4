"""A file from which a search goes on after anything: SQLite, one transaction for each state that is saved.

What a search is begun with (``about``) is written once. A state is some parts that replace those of the state before,
and what the spools of its proof have grown by, which is appended. Between states the file can take *chunks*, nodes that
memory has no room for (spilling.py): they count as soon as a state names them. Hashes over everything tell damage, and
a mark of the process at work tells when another one has taken over.

All of it is the private state of one version of exactsel; what proves something is the proof file.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import socket
import sqlite3
import time
import uuid
from collections.abc import Generator, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from exactsel.errors import InputError, OutputError, escaped
from exactsel.files import check_target
from exactsel.search.checkpoint_parts import TABLE, Lasting, StoredParts, intact, read

APPLICATION = 0x45585345
"""Marks an SQLite file as ours ("EXSE")."""

VERSION = 2
"""Of the tables."""

BLOB = 64 * 2**20
"""Bytes in one row of a spool, at most."""

SILENT = 60.0
"""Seconds without a sign of life after which the process that writes a checkpoint is taken to be gone."""

_TABLES = f"""
    CREATE TABLE about (id INTEGER PRIMARY KEY CHECK (id = 0), text TEXT NOT NULL, digest TEXT NOT NULL);
    CREATE TABLE owner (id INTEGER PRIMARY KEY CHECK (id = 0), mark TEXT NOT NULL, text TEXT NOT NULL);
    CREATE TABLE saved (id INTEGER PRIMARY KEY CHECK (id = 0), text TEXT NOT NULL, digest TEXT NOT NULL);
    {TABLE}
    CREATE TABLE spool (number INTEGER PRIMARY KEY, name TEXT NOT NULL, data BLOB NOT NULL);
    CREATE TABLE chunk (number INTEGER PRIMARY KEY, digest TEXT NOT NULL, keys BLOB NOT NULL, data BLOB NOT NULL);
    CREATE TABLE progress (id INTEGER PRIMARY KEY CHECK (id = 0), time REAL NOT NULL, text TEXT NOT NULL);
"""


class TakenOverError(OutputError):
    """Another process writes this checkpoint now."""


class Checkpoint:
    """An open checkpoint; made by :meth:`begin` and :meth:`open`."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._mark = ""
        self._spool_digest = hashlib.sha256().hexdigest()
        self._next_spool = self._next_chunk = 0
        self._parts = StoredParts((), {}, 0)

    # --- begin, open, close ---

    @classmethod
    def begin(cls, path: str | os.PathLike[str], about: Mapping[str, Any]) -> Checkpoint:
        """A new file for a search that is begun with ``about``.

        Raises
        ------
        InputError
            Where there is such a file already, or none can be written there.
        """
        file = Path(path)
        check_target(file)
        if file.exists():
            raise InputError(
                f"{file} exists already; resume it, choose another name for the checkpoint, or remove the file first."
            )
        with _told(file, "the checkpoint cannot be written"):
            checkpoint = cls(file, _connected(file, "rwc"))
            try:
                checkpoint._make(json.dumps(about, allow_nan=False))
            except BaseException:
                checkpoint._connection.close()
                file.unlink(missing_ok=True)
                raise
        return checkpoint

    def _make(self, about: str) -> None:
        run = self._connection.execute
        run(f"PRAGMA application_id = {APPLICATION}")
        run(f"PRAGMA user_version = {VERSION}")
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = NORMAL")
        with self._transaction():
            for statement in _TABLES.split(";"):
                run(statement)
            run("INSERT INTO about VALUES (0, ?, ?)", (about, _hash(about.encode())))
            self._take()

    @classmethod
    def open(cls, path: str | os.PathLike[str], writing: bool = True) -> Checkpoint:
        """A file that is there; for ``writing``, which begins with :meth:`go_on`, nobody else may be at work on it.

        Raises
        ------
        InputError
            Where it is no checkpoint, or one of a newer version, or damaged, or being written.
        """
        file = Path(path)
        if not file.is_file():
            raise InputError(f"there is no checkpoint {file}; give the file that --checkpoint named.")
        with _told(file, "the checkpoint cannot be read"):
            checkpoint = cls(file, _connected(file, "rw" if os.access(file, os.W_OK) else "ro"))
        try:
            with _told(file, "the checkpoint cannot be read"):
                checkpoint._check_kind()
                if writing:
                    checkpoint._check_nobody_writes()
                    checkpoint._connection.execute("PRAGMA synchronous = NORMAL")
        except BaseException:
            checkpoint.close()
            raise
        return checkpoint

    def _check_kind(self) -> None:
        (application,) = self._connection.execute("PRAGMA application_id").fetchone()
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        if application != APPLICATION:
            raise InputError(f"{self.path} is a database, but no checkpoint of exactsel; give one that a search wrote.")
        if version != VERSION:
            raise InputError(
                f"{self.path} is a checkpoint of layout {version}, but this version of exactsel reads layout "
                f"{VERSION}; go on with the version that wrote it."
            )

    def _check_nobody_writes(self) -> None:
        at_work = self.at_work()
        if at_work is not None:
            raise InputError(f"process {at_work} is at work on {self.path}; end it first, or wait until it has ended.")

    def at_work(self) -> int | None:
        """The process that writes this file, if it lives on this machine and gave a sign of life lately."""
        (text,) = self._connection.execute("SELECT text FROM owner").fetchone()
        owner, noted = json.loads(text), self._connection.execute("SELECT max(time) FROM progress").fetchone()[0]
        here = owner["host"] == socket.gethostname() and owner["process"] != os.getpid() and not owner["done"]
        lately = time.time() - max(noted or 0.0, owner["since"]) < SILENT
        return int(owner["process"]) if here and lately and _lives(owner["process"]) else None

    def _take(self) -> None:
        """Become the one who writes."""
        self._mark = uuid.uuid4().hex
        owner = {"process": os.getpid(), "host": socket.gethostname(), "since": time.time(), "done": False}
        self._connection.execute("INSERT OR REPLACE INTO owner VALUES (0, ?, ?)", (self._mark, json.dumps(owner)))

    def close(self) -> None:
        """Nobody writes any more; the file stays."""
        with contextlib.suppress(sqlite3.Error):
            if self._mark:
                done = json.dumps({"process": os.getpid(), "host": socket.gethostname(), "since": 0.0, "done": True})
                self._connection.execute("UPDATE owner SET text = ? WHERE mark = ?", (done, self._mark))
        with contextlib.suppress(sqlite3.Error):
            self._connection.close()

    # --- write ---

    def save(
        self, parts: Iterable[bytes | Lasting], spooled: Mapping[str, bytes], about: Mapping[str, Any],
        chunks: Iterable[int] = (),
    ) -> None:  # fmt: skip
        """Replace the state by another one, in one transaction: all of it, or nothing, whatever happens meanwhile.

        Parameters
        ----------
        parts : iterable of bytes, or of what can be made bytes
            The state. A lasting part of the state saved before is not written again.
        spooled : mapping of str to bytes
            What the spools have grown by.
        about : mapping
            What else belongs to the state, as JSON holds it.
        chunks : iterable of int
            The chunks that belong to it; the others go.

        Raises
        ------
        OutputError
            On a full disk, say; the state of before is still there. :class:`TakenOverError` where another process
            writes the file.
        """
        run, kept = self._connection.execute, [*chunks]
        with _told(self.path, "the checkpoint cannot be written"):
            run("PRAGMA synchronous = FULL")
            spools = self._next_spool, self._spool_digest
            try:
                with self._transaction():
                    stored = self._parts.written(self._connection, parts)
                    for name, data in spooled.items():
                        for first in range(0, len(data), BLOB):
                            self._append(name, data[first : first + BLOB])
                    run("CREATE TEMP TABLE IF NOT EXISTS kept (number INTEGER PRIMARY KEY)")
                    run("DELETE FROM kept")
                    self._connection.executemany("INSERT INTO kept VALUES (?)", ((number,) for number in kept))
                    run("DELETE FROM chunk WHERE number NOT IN (SELECT number FROM kept)")
                    self._write_saved(about, stored, kept)
            except BaseException:
                self._next_spool, self._spool_digest = spools
                raise
            finally:
                run("PRAGMA synchronous = NORMAL")
            self._parts = stored

    def _write_saved(self, about: Mapping[str, Any], parts: StoredParts, chunks: list[int]) -> None:
        told = {**about, **parts.about(), "spools": self._spool_digest, "chunks": chunks}
        text = json.dumps(told, allow_nan=False)
        self._connection.execute("INSERT OR REPLACE INTO saved VALUES (0, ?, ?)", (text, _hash(text.encode())))

    def _append(self, name: str, data: bytes) -> None:
        self._connection.execute("INSERT INTO spool VALUES (?, ?, ?)", (self._next_spool, name, data))
        self._spool_digest = _hash(self._spool_digest.encode() + name.encode() + hashlib.sha256(data).digest())
        self._next_spool += 1

    def add_chunk(self, data: bytes, keys: bytes) -> int:
        """Store nodes, and beside them what their order is; their number."""
        number, self._next_chunk = self._next_chunk, self._next_chunk + 1
        with _told(self.path, "open nodes cannot be written"), self._transaction():
            row = (number, _hash(keys + data), keys, data)
            self._connection.execute("INSERT INTO chunk VALUES (?, ?, ?, ?)", row)
        return number

    def note(self, progress: Mapping[str, Any]) -> None:
        """Tell how far the search is, to whoever looks on."""
        text = json.dumps(progress, allow_nan=False)
        with _told(self.path, "the checkpoint cannot be written"), self._transaction():
            self._connection.execute("INSERT OR REPLACE INTO progress VALUES (0, ?, ?)", (time.time(), text))

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        run = self._connection.execute
        run("BEGIN IMMEDIATE")
        try:
            if self._mark and run("SELECT mark FROM owner").fetchone() != (self._mark,):
                raise TakenOverError(f"another process goes on with {self.path}; what follows here is not saved there.")
            yield
            run("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                run("ROLLBACK")
            raise

    # --- read ---

    def about(self) -> dict[str, Any]:
        """What the search was begun with."""
        return self._checked("about")

    def saved(self) -> dict[str, Any] | None:
        """What belongs to the state besides its parts; None where none has been saved."""
        return self._checked("saved") if self._rows("SELECT 1 FROM saved") else None

    def parts(self) -> Generator[bytes, None, None]:
        """The parts of the state, found to be intact; to be closed where it is not read to the end."""
        saved = self._checked("saved")
        with _told(self.path, "the checkpoint cannot be read"):
            self._require(intact(self._connection, saved))
            yield from read(self._connection, saved["parts"])

    def spooled(self) -> Generator[tuple[str, bytes], None, None]:
        """What the spools held when the state was saved, in the order in which they grew; to be read to the end."""
        self._spool_digest, self._next_spool = hashlib.sha256().hexdigest(), 0
        for number, name, data in self._each("SELECT number, name, data FROM spool ORDER BY number"):
            self._spool_digest = _hash(self._spool_digest.encode() + name.encode() + hashlib.sha256(data).digest())
            self._next_spool = number + 1
            yield name, data
        self._require(self._spool_digest == self._checked("saved")["spools"])

    def chunk(self, number: int) -> bytes:
        """Nodes stored before."""
        rows = self._rows("SELECT digest, keys, data FROM chunk WHERE number = ?", number)
        self._require(bool(rows) and _hash(rows[0][1] + rows[0][2]) == rows[0][0])
        return bytes(rows[0][2])

    def keys(self, number: int) -> bytes:
        """What their order is."""
        rows = self._rows("SELECT keys FROM chunk WHERE number = ?", number)
        self._require(bool(rows))
        return bytes(rows[0][0])

    def drop_chunk(self, number: int) -> None:
        """Nothing: it belongs to the state saved last, and goes with the next one."""

    def go_on(self) -> None:
        """Become the one who writes, and forget the chunks that no state names."""
        saved = self.saved() or {"chunks": [], "parts": []}
        chunks, self._parts = saved["chunks"], StoredParts.after(saved)
        with _told(self.path, "the checkpoint cannot be written"), self._transaction():
            self._take()
            for (number,) in self._rows("SELECT number FROM chunk"):
                if number not in chunks:
                    self._connection.execute("DELETE FROM chunk WHERE number = ?", (number,))
        self._next_chunk = max(chunks, default=-1) + 1

    def progress(self) -> tuple[float, dict[str, Any]] | None:
        """When it was last told how far the search is (seconds since the epoch), and what."""
        rows = self._rows("SELECT time, text FROM progress")
        return (rows[0][0], json.loads(rows[0][1])) if rows else None

    def _checked(self, table: str) -> dict[str, Any]:
        rows = self._rows(f"SELECT text, digest FROM {table}")
        self._require(bool(rows) and _hash(rows[0][0].encode()) == rows[0][1])
        found: dict[str, Any] = json.loads(rows[0][0])
        return found

    def _rows(self, statement: str, *values: Any) -> list[Any]:
        return list(self._each(statement, *values))

    def _each(self, statement: str, *values: Any) -> Iterator[Any]:
        with _told(self.path, "the checkpoint cannot be read"):
            yield from self._connection.execute(statement, values)

    def _require(self, sound: bool) -> None:
        if not sound:
            raise InputError(f"the checkpoint {self.path} is damaged; take an intact copy of it, or begin anew.")


def _connected(file: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{file.absolute().as_uri()}?mode={mode}", uri=True, timeout=30.0, isolation_level=None, check_same_thread=False
    )


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _lives(process: int) -> bool:
    """Whether there is such a process on this machine."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, AttributeError):  # somebody else's, or a system that cannot be asked
        return True
    return True


@contextlib.contextmanager
def _told(file: Path, what: str) -> Iterator[None]:
    """Errors of SQLite in one sentence: of damage, or of what the disk does not take."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise OutputError(
            f"{what} ({escaped(str(error))}): {file}; see whether the disk is full, and whether the folder is yours."
        ) from None
    except sqlite3.DatabaseError as error:
        raise InputError(
            f"{file} is no checkpoint, or a damaged one ({escaped(str(error))}); take an intact copy of it, or begin "
            f"anew."
        ) from None
