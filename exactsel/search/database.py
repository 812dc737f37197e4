"""An SQLite file that may come from anywhere: nothing in it is run, and reading it takes no more than its size allows.

A file of this format can hold views and triggers that run for ever, and pages that belong to two tables or lead back to
themselves. So SQLite gets limits and a number of steps before it reads anything, and a file that holds something else
than the tables it should, as they were made, is not read further.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from exactsel.errors import InputError

STEPS = 2_000_000
"""Steps of SQLite's machine that a statement may take (about a tenth of a second), ..."""

STEPS_A_BYTE = 1
"""... and how many more for each byte of the file; reading a row takes fewer than it has bytes."""

LOOK = 1000
"""Steps between two checks of how many are left."""

FIRST_STEPS = 10_000
"""Steps until it is known that the tables are the ones expected: those of ours take a hundred."""

FIRST_LENGTH = 2**16
"""Bytes of a text until then."""

LONGEST = 10**9
"""Bytes of a row that is written; SQLite takes no more by default."""

COMPANIONS = ("-wal", "-shm")
"""Files that SQLite keeps beside one that is, or was, open."""

JOURNAL = "-journal"
"""One that it would play back into the file; a file in WAL mode has none."""

LIMITS = {
    "SQL_LENGTH": FIRST_LENGTH, "COLUMN": 32, "EXPR_DEPTH": 32, "COMPOUND_SELECT": 2, "VDBE_OP": 5000,
    "FUNCTION_ARG": 8, "ATTACHED": 0, "VARIABLE_NUMBER": 16, "TRIGGER_DEPTH": 1, "WORKER_THREADS": 0,
}  # fmt: skip
"""Of SQLite, for a file and for our own statements."""

CONFIGURATION = {
    "ENABLE_TRIGGER": False, "ENABLE_VIEW": False, "DEFENSIVE": True, "TRUSTED_SCHEMA": False,
    "ENABLE_LOAD_EXTENSION": False,
}  # fmt: skip
"""Switches of a connection, where Python knows them (from 3.12 on)."""


class Steps:
    """How long a statement may take, counted by SQLite and not by a clock."""

    def __init__(self, budget: int) -> None:
        self.left = budget

    def __call__(self) -> bool:
        """Whether the statement is to end now."""
        self.left -= LOOK
        return self.left < 0


class Database:
    """A connection to a file of tables that are known by name, made by their statements.

    Parameters
    ----------
    file : Path
        The file.
    mode : str
        ``rwc`` for one that is made here, ``rw``, or ``ro`` to change nothing.
    """

    def __init__(self, file: Path, mode: str) -> None:
        self.file = file
        if mode != "rwc":
            _check_companions(file)
        self.size = _size(file)
        """Bytes of the file and what SQLite keeps beside it: no row is longer, and all of them together are not."""
        name = f"{file.absolute().as_uri()}?mode={mode}"
        if mode == "ro" and not os.path.exists(f"{os.path.realpath(file)}-wal"):
            name += "&immutable=1"  # no process writes it, and nothing is written beside it
        self.connection = sqlite3.connect(name, uri=True, timeout=30.0, isolation_level=None, check_same_thread=False)
        self._steps = Steps(FIRST_STEPS)
        self._guard()

    def _guard(self) -> None:
        """Set all limits; nothing has been read before."""
        connection = self.connection
        connection.set_progress_handler(self._steps, LOOK)
        for name, most in LIMITS.items():
            self._limit(name, most)
        self._limit("LENGTH", FIRST_LENGTH)
        if hasattr(connection, "setconfig"):
            for name, value in CONFIGURATION.items():
                connection.setconfig(getattr(sqlite3, f"SQLITE_DBCONFIG_{name}"), value)
        for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0"):
            connection.execute(f"PRAGMA {pragma}")

    def _limit(self, name: str, most: int) -> None:
        """Set a limit of SQLite, where Python can (from 3.11 on)."""
        if hasattr(self.connection, "setlimit"):
            self.connection.setlimit(getattr(sqlite3, f"SQLITE_LIMIT_{name}"), most)

    def check_tables(self, made_by: Mapping[str, str]) -> None:
        """Refuse a file that holds anything but these tables, as the statements ``made_by`` make them.

        Raises
        ------
        InputError
            For another table, a view, a trigger, an index, or a table of other columns.
        """
        query = "SELECT type, name, tbl_name, rootpage, sql FROM sqlite_master"
        rows = [row for _, row in zip(range(len(made_by) + 1), self.connection.execute(query), strict=False)]
        sound = all(
            (kind, about) == ("table", name) and isinstance(sql, str) and made_by.get(name) == _plain(sql)
            for kind, name, about, _, sql in rows
        )
        roots = {root for *_, root, _ in rows}
        if not sound or {name for _, name, *_ in rows} != {*made_by} or len(roots) != len(made_by):
            raise InputError(
                f"{self.file} is no checkpoint, or a damaged one: it holds other tables than a checkpoint has; take an "
                f"intact copy of it, or start again."
            )
        self._limit("LENGTH", max(self.size, FIRST_LENGTH))

    def rows(self, statement: str, *values: object) -> Iterator[tuple[object, ...]]:
        """The rows a statement finds, which may not take more steps than the size of the file allows."""
        self._steps.left = STEPS + STEPS_A_BYTE * self.size
        yield from self.connection.execute(statement, values)

    def allow_writing(self) -> None:
        """From now on the file may grow, and statements may take as long as they do."""
        self._limit("LENGTH", LONGEST)
        self.connection.set_progress_handler(None, LOOK)

    def close(self) -> None:
        """Close the file for reading and writing."""
        self.connection.close()


def statements_of(text: str) -> dict[str, str]:
    """By the name of a table the statement that makes it, of several with semicolons between."""
    plain = [_plain(statement) for statement in text.split(";") if statement.strip()]
    return {statement.split()[2]: statement for statement in plain}


def _plain(statement: str) -> str:
    return " ".join(statement.split())


def _size(file: Path) -> int:
    wal = f"{os.path.realpath(file)}-wal"
    return sum(os.path.getsize(name) for name in (file, wal) if os.path.exists(name))


def _check_companions(file: Path) -> None:
    """Refuse files beside a database that would disturb SQLite, or that would make it change or remove others."""
    for ending in (*COMPANIONS, JOURNAL):
        beside = f"{os.path.realpath(file)}{ending}"
        try:
            state = os.lstat(beside)
        except OSError:
            continue
        if ending == JOURNAL:
            raise InputError(f"{beside} is beside the checkpoint, which never has such a file; move it away.")
        if not stat.S_ISREG(state.st_mode):
            raise InputError(f"{beside} is no ordinary file, as what belongs to a checkpoint is; move it away.")
