"""A checkpoint file from which a search resumes after any end: SQLite, one transaction for each saved state.

What a search is begun with (``about``) is written once. A state is some parts that replace those of the state before,
and what the spools of its proof have grown by, which is appended. Between states the file can take *chunks*, nodes that
memory has no room for (spilling.py): they count as soon as a state names them. Hashes over everything reveal damage,
and a mark of the process at work shows when another one has taken over.

All of it is the private state of one version of exactsel; what proves something is the proof file. A file may come from
anywhere all the same: what is read of one is bounded and checked before it is used (database.py, json_shapes.py).
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

from exactsel.errors import InputError, OutputError, option
from exactsel.files import check_target, is_file
from exactsel.search.checkpoint_parts import Lasting, StoredParts
from exactsel.search.checkpoint_reader import APPLICATION, TABLES, VERSION, CheckpointReader, hash_of, said_of
from exactsel.search.database import COMPANIONS, JOURNAL, Database

BLOB = 64 * 2**20
"""Bytes in one row of a spool, at most."""


class TakenOverError(OutputError):
    """Another process writes this checkpoint now."""


class Checkpoint(CheckpointReader):
    """An open checkpoint that can be written; made by :meth:`begin` and :meth:`open`."""

    def __init__(self, path: Path, database: Database) -> None:
        super().__init__(path, database)
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
        with said_of(file, "the checkpoint cannot be written"):
            checkpoint = cls(file, Database(file, "rwc"))
            try:
                checkpoint._database.allow_writing()
                checkpoint._make(json.dumps(about, allow_nan=False))
            except BaseException:
                checkpoint._connection.close()
                for ending in ("", *COMPANIONS, JOURNAL):
                    Path(f"{file}{ending}").unlink(missing_ok=True)
                raise
        return checkpoint

    def _make(self, about: str) -> None:
        run = self._connection.execute
        run(f"PRAGMA application_id = {APPLICATION}")
        run(f"PRAGMA user_version = {VERSION}")
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = NORMAL")
        with self._transaction():
            for statement in TABLES.split(";"):
                run(statement)
            run("INSERT INTO about VALUES (0, ?, ?)", (about, hash_of(about.encode())))
            self._take()

    @classmethod
    def open(cls, path: str | os.PathLike[str], writing: bool = True) -> Checkpoint:
        """An existing checkpoint, for reading or ``writing``.

        Writing begins with :meth:`go_on`, and no other process may be at work on it.

        Raises
        ------
        InputError
            Where it is no checkpoint, or one of a newer version, or damaged, or being written.
        """
        file = Path(path)
        if not is_file(file):
            raise InputError(f"there is no checkpoint {file}; give the file that {option('checkpoint')} named.")
        with said_of(file, "the checkpoint cannot be read", reading=True):
            checkpoint = cls(file, Database(file, "rw" if writing and os.access(file, os.W_OK) else "ro"))
        try:
            with said_of(file, "the checkpoint cannot be read", reading=True):
                checkpoint.check_kind()
                if writing:
                    checkpoint._check_nobody_writes()
                    checkpoint.check_lengths()
                    checkpoint._connection.execute("PRAGMA synchronous = NORMAL")
        except BaseException:
            checkpoint.close()
            raise
        return checkpoint

    def _check_nobody_writes(self) -> None:
        at_work = self.at_work()
        if at_work is not None:
            raise InputError(f"process {at_work} uses {self.path}; end it first, or wait until it has ended.")

    def _take(self) -> None:
        """Become the only writer of the file."""
        self._mark = uuid.uuid4().hex
        owner = {"process": os.getpid(), "host": socket.gethostname(), "since": time.time(), "done": False}
        self._connection.execute("INSERT OR REPLACE INTO owner VALUES (0, ?, ?)", (self._mark, json.dumps(owner)))

    def close(self) -> None:
        """Release the writer's lock; the file stays."""
        with contextlib.suppress(sqlite3.Error):
            if self._mark:
                done = json.dumps({"process": os.getpid(), "host": socket.gethostname(), "since": 0.0, "done": True})
                self._connection.execute("UPDATE owner SET text = ? WHERE mark = ?", (done, self._mark))
        with contextlib.suppress(sqlite3.Error):
            self._database.close()

    # --- write ---

    def save(
        self, parts: Iterable[bytes | Lasting], spooled: Mapping[str, bytes], about: Mapping[str, Any],
        chunks: Iterable[int] = (),
    ) -> None:  # fmt: skip
        """Replace the state by another one, in one transaction: after any failure the file holds all of it or nothing.

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
        run, numbers = self._connection.execute, [*chunks]
        with said_of(self.path, "the checkpoint cannot be written"):
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
                    self._connection.executemany("INSERT INTO kept VALUES (?)", ((number,) for number in numbers))
                    run("DELETE FROM chunk WHERE number NOT IN (SELECT number FROM kept)")
                    self._write_saved(about, stored, numbers)
            except BaseException:
                self._next_spool, self._spool_digest = spools
                raise
            finally:
                run("PRAGMA synchronous = NORMAL")
            self._parts = stored

    def _write_saved(self, about: Mapping[str, Any], parts: StoredParts, chunks: list[int]) -> None:
        entries = {**about, **parts.about(), "spools": self._spool_digest, "chunks": chunks}
        text = json.dumps(entries, allow_nan=False)
        self._connection.execute("INSERT OR REPLACE INTO saved VALUES (0, ?, ?)", (text, hash_of(text.encode())))

    def _append(self, name: str, data: bytes) -> None:
        self._connection.execute("INSERT INTO spool VALUES (?, ?, ?)", (self._next_spool, name, data))
        self._spool_digest = hash_of(self._spool_digest.encode() + name.encode() + hashlib.sha256(data).digest())
        self._next_spool += 1

    def add_chunk(self, data: bytes, keys: bytes) -> int:
        """Store nodes, and beside them what their order is; their number."""
        number, self._next_chunk = self._next_chunk, self._next_chunk + 1
        with said_of(self.path, "open nodes cannot be written"), self._transaction():
            row = (number, hash_of(keys + data), keys, data)
            self._connection.execute("INSERT INTO chunk VALUES (?, ?, ?, ?)", row)
        return number

    def note(self, progress: Mapping[str, Any]) -> None:
        """Write the progress of the search, for readers of its status."""
        text = json.dumps(progress, allow_nan=False)
        with said_of(self.path, "the checkpoint cannot be written"), self._transaction():
            self._connection.execute("INSERT OR REPLACE INTO progress VALUES (0, ?, ?)", (time.time(), text))

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        run = self._connection.execute
        run("BEGIN IMMEDIATE")
        try:
            if self._mark and run("SELECT mark FROM owner").fetchone() != (self._mark,):
                raise TakenOverError(f"another process uses {self.path}; what follows here is not saved there.")
            yield
            run("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                run("ROLLBACK")
            raise

    # --- read ---

    # --- go on ---

    def spooled(self) -> Generator[tuple[str, bytes], None, None]:
        """What the spools held when the state was saved, in the order in which they grew; to be read to the end."""
        self._spool_digest, self._next_spool = hashlib.sha256().hexdigest(), 0
        for at, name, data in self._each("SELECT number, name, data FROM spool ORDER BY number"):
            self._require(at == self._next_spool and isinstance(name, str) and isinstance(data, bytes))
            self._spool_digest = hash_of(self._spool_digest.encode() + name.encode() + hashlib.sha256(data).digest())
            self._next_spool += 1
            yield name, data
        saved = self.saved()
        self._require(saved is not None and self._spool_digest == saved["spools"])

    def go_on(self) -> None:
        """Become the only writer, and forget the chunks that no state names."""
        saved = self.saved() or {"chunks": [], "parts": []}
        chunks, self._parts = {*saved["chunks"]}, StoredParts.after(saved)
        self._database.allow_writing()
        with said_of(self.path, "the checkpoint cannot be written"), self._transaction():
            self._take()
            for (number,) in self._rows("SELECT number FROM chunk"):
                if number not in chunks:
                    self._connection.execute("DELETE FROM chunk WHERE number = ?", (number,))
        self._next_chunk = max(chunks, default=-1) + 1

    def drop_chunk(self, number: int) -> None:
        """Nothing: it belongs to the state saved last, and goes with the next one."""
