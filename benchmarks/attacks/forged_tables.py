"""Checkpoints whose tables are something else, whose rows are not those written, and whose pages lead astray."""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

Rng = np.random.Generator
Forgery = Callable[[Path, Rng], str]
"""Changes a checkpoint, and says how."""

TABLES = ("about", "owner", "saved", "part", "spool", "chunk", "progress")
MOST_LOOKS = 300
"""Times a hundred thousand steps of SQLite that a forgery may take."""

ENDLESS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c)"
HUGE = (
    "zeroblob(900000000)", "randomblob(900000000)", "printf('%.*c', 900000000, 'x')", "hex(zeroblob(400000000))",
    "(SELECT count(*) FROM c)", "(SELECT group_concat(n) FROM c)",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, -1, 0, 1, 2**62, -(2**63), 0.5, float("inf"), "", "x", "1", "\x1b[2J", b"", b"\0", b"\xff\xfe", "{}",
)  # fmt: skip


@contextmanager
def opened(file: Path) -> Iterator[sqlite3.Connection]:
    """A connection under which anything goes; what cannot be done to this file is left undone."""
    connection = sqlite3.connect(file, isolation_level=None)
    left = iter(range(MOST_LOOKS))
    connection.set_progress_handler(lambda: next(left, None) is None, 100_000)  # an endless view is forged once
    try:
        for pragma in ("ignore_check_constraints = ON", "writable_schema = ON", "foreign_keys = OFF"):
            connection.execute(f"PRAGMA {pragma}")
        with contextlib.suppress(sqlite3.Error, sqlite3.Warning, OverflowError):
            connection.execute("BEGIN")
            yield connection
            connection.execute("COMMIT")
    finally:
        connection.close()


def columns_of(connection: sqlite3.Connection, table: str) -> list[str]:
    """The names of a table's columns."""
    return [name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")]


def _table(rng: Rng) -> str:
    return str(rng.choice(TABLES))


def view(file: Path, rng: Rng) -> str:
    """A view over the rows of a table."""
    table = _table(rng)
    with opened(file) as connection:
        connection.execute(f"ALTER TABLE {table} RENAME TO hidden")
        connection.execute(f"CREATE VIEW {table} AS SELECT * FROM hidden")
    return f"view {table}"


def endless_view(file: Path, rng: Rng) -> str:
    """A view that has no end, or takes all memory."""
    table, what = _table(rng), str(rng.choice(HUGE))
    with opened(file) as connection:
        names = columns_of(connection, table)
        cells = ", ".join(f"{what} AS {name}" if rng.random() < 0.6 else f"0 AS {name}" for name in names)
        connection.execute(f"DROP TABLE {table}")
        rest = "FROM c" if rng.random() < 0.7 else ""
        connection.execute(f"CREATE VIEW {table} AS {ENDLESS} SELECT {cells} {rest}")
    return f"endless view {table}"


def trigger(file: Path, rng: Rng) -> str:
    """A trigger that runs for ever, or removes rows, when something is written."""
    table, when = _table(rng), str(rng.choice(["INSERT", "UPDATE", "DELETE"]))
    what = rng.choice(
        [f"SELECT count(*) FROM ({ENDLESS} SELECT n FROM c)", "DELETE FROM part", "SELECT raise(ABORT, 'no')"]
    )
    with opened(file) as connection:
        connection.execute(f"CREATE TRIGGER t AFTER {when} ON {table} BEGIN {what}; END")
    return f"trigger {table}"


def more_tables(file: Path, rng: Rng) -> str:
    """A table, an index or very many of them beside."""
    with opened(file) as connection:
        match int(rng.integers(3)):
            case 0:
                connection.execute("CREATE TABLE more (a)")
            case 1:
                connection.execute(f"CREATE INDEX i ON {_table(rng)} (1)")
            case _:
                many = ((f"t{i}", f"t{i}", f"CREATE TABLE t{i} (a)") for i in range(20_000))
                connection.executemany("INSERT INTO sqlite_master VALUES ('table', ?, ?, 2, ?)", many)
    return "more tables"


def other_columns(file: Path, rng: Rng) -> str:
    """A table made by another statement, or of other columns: generated ones, without rowid, renamed."""
    table = _table(rng)
    with opened(file) as connection:
        names = columns_of(connection, table)
        how = int(rng.integers(6))
        if how == 0:
            connection.execute(f"ALTER TABLE {table} ADD COLUMN more GENERATED ALWAYS AS (randomblob(100000000))")
        elif how == 1:
            connection.execute(f"ALTER TABLE {table} RENAME COLUMN {rng.choice(names)} TO other")
        elif how == 2:
            connection.execute(f"ALTER TABLE {table} DROP COLUMN {names[-1]}")
        else:
            types = ", ".join(f"{name}{' PRIMARY KEY' if not i else ''}" for i, name in enumerate(names))
            connection.execute(f"CREATE TABLE made ({types}) {'WITHOUT ROWID' if how < 5 else ''}")
            connection.execute(f"INSERT INTO made SELECT * FROM {table}")
            connection.execute(f"DROP TABLE {table}")
            connection.execute(f"ALTER TABLE made RENAME TO {table}")
    return f"other columns {table}"


def schema_text(file: Path, rng: Rng) -> str:
    """Entries of the schema that no statement makes."""
    table = _table(rng)
    changes = (
        ("sql", f"CREATE VIRTUAL TABLE {table} USING {rng.choice(['fts5', 'rtree', 'dbstat', 'nothing'])}(a, b)"),
        ("sql", f"CREATE TABLE {table} (a, b, c /* {'x' * int(rng.choice([10, 10**5, 10**7]))} */)"),
        ("sql", None), ("sql", b"\0"), ("sql", "nonsense"), ("sql", f"CREATE TABLE {table} (id, text AS (1), digest)"),
        ("rootpage", 0), ("rootpage", -1), ("rootpage", 10**9), ("rootpage", int(rng.integers(1, 9))),
        ("type", "view"), ("type", "trigger"), ("name", "other"), ("tbl_name", "other"), ("name", None),
    )  # fmt: skip
    column, value = changes[int(rng.integers(len(changes)))]
    with opened(file) as connection:
        connection.execute(f"UPDATE sqlite_master SET {column} = ? WHERE name = ?", (value, table))
    return f"schema {column} of {table}"


def without_constraints(connection: sqlite3.Connection, table: str) -> None:
    """Let a table hold anything; its statement is put back by :func:`with_constraints`."""
    connection.execute("CREATE TEMP TABLE IF NOT EXISTS before (name, sql)")
    connection.execute("INSERT INTO before SELECT name, sql FROM main.sqlite_master WHERE name = ?", (table,))
    (sql,) = connection.execute("SELECT sql FROM main.sqlite_master WHERE name = ?", (table,)).fetchone()
    loose = re.sub(r" NOT NULL| CHECK \(id = 0\)| TEXT| BLOB| REAL", "", sql)
    connection.execute("UPDATE main.sqlite_master SET sql = ? WHERE name = ?", (loose, table))
    _read_anew(connection)


def with_constraints(connection: sqlite3.Connection) -> None:
    """Put the statements back."""
    connection.execute(
        "UPDATE main.sqlite_master SET sql = (SELECT sql FROM before WHERE before.name = sqlite_master.name) "
        "WHERE name IN (SELECT name FROM before)"
    )


def _read_anew(connection: sqlite3.Connection) -> None:
    (version,) = connection.execute("PRAGMA schema_version").fetchone()
    connection.execute(f"PRAGMA schema_version = {version + 1}")


def cells(file: Path, rng: Rng) -> str:
    """Values of other types in the rows of a table."""
    table = _table(rng)
    with opened(file) as connection:
        without_constraints(connection, table)
        column = str(rng.choice(columns_of(connection, table)))
        value = VALUES[int(rng.integers(len(VALUES)))]
        where = "" if rng.random() < 0.5 else " WHERE rowid IN (SELECT rowid FROM {table} LIMIT 1)"
        with contextlib.suppress(sqlite3.Error):
            connection.execute(f"UPDATE {table} SET {column} = ?{where.format(table=table)}", (value,))
        with_constraints(connection)
    return f"cell {table}.{column}"


def cast(file: Path, rng: Rng) -> str:
    """Blobs as texts, texts as blobs, numbers as texts."""
    table = _table(rng)
    with opened(file) as connection:
        without_constraints(connection, table)
        column = str(rng.choice(columns_of(connection, table)[1:]))
        kind = str(rng.choice(["TEXT", "BLOB", "INTEGER", "REAL"]))
        connection.execute(f"UPDATE {table} SET {column} = CAST({column} AS {kind})")
        with_constraints(connection)
    return f"cast {table}.{column}"


def rows(file: Path, rng: Rng) -> str:
    """Rows removed, there twice, in another order, or under other numbers."""
    table = _table(rng)
    with opened(file) as connection:
        without_constraints(connection, table)
        names = columns_of(connection, table)
        key, others = names[0], ", ".join(names[1:])
        how = int(rng.integers(6))
        if how == 0:
            connection.execute(f"DELETE FROM {table}")
        elif how == 1:
            connection.execute(
                f"DELETE FROM {table} WHERE rowid IN (SELECT rowid FROM {table} ORDER BY random() LIMIT 1)"
            )
        elif how == 2:
            connection.execute(f"INSERT INTO {table} ({key}, {others}) SELECT {key} + 1000, {others} FROM {table}")
        elif how == 3:
            shift = int(rng.choice([1, 10**6, 2**40, -(2**40), 2**62]))
            connection.execute(f"UPDATE {table} SET {key} = -{key} - 1")
            connection.execute(f"UPDATE {table} SET {key} = {shift} - {key}")
        elif how == 4:
            connection.execute(
                f"INSERT INTO {table} ({key}, {others}) SELECT n + 5000, {', '.join(['zeroblob(0)'] * len(names[1:]))} "
                f"FROM ({ENDLESS} SELECT n FROM c LIMIT 20000)"
            )
        else:
            connection.execute(f"CREATE TEMP TABLE old AS SELECT * FROM {table}")
            numbers = [number for (number,) in connection.execute(f"SELECT {key} FROM old")]
            connection.execute(f"DELETE FROM {table}")
            for number, other in zip(numbers, rng.permutation(numbers).tolist(), strict=True):
                connection.execute(f"INSERT INTO {table} SELECT {other}, {others} FROM old WHERE {key} = {number}")
        with_constraints(connection)
    return f"rows {table} {how}"


def large(file: Path, rng: Rng) -> str:
    """A blob of many megabytes, or a long text, in a row."""
    table = _table(rng)
    with opened(file) as connection:
        without_constraints(connection, table)
        column = str(rng.choice(columns_of(connection, table)[1:]))
        what = str(rng.choice(["zeroblob(60000000)", "printf('%.*c', 20000000, '[')", "printf('%.*c', 9000000, 'x')"]))
        connection.execute(f"UPDATE {table} SET {column} = {what}")
        with_constraints(connection)
    return f"large {table}.{column}"


def header(file: Path, rng: Rng) -> str:
    """A field of the file's header."""
    place, width = [(0, 4), (16, 2), (18, 1), (19, 1), (20, 1), (28, 4), (32, 4), (36, 4), (44, 4), (52, 4), (56, 4),
                    (60, 4), (68, 4), (92, 4), (96, 4)][int(rng.integers(15))]  # fmt: skip
    raw = bytearray(file.read_bytes())
    raw[place : place + width] = int(rng.choice([0, 1, 2, 3, 255, 2**16 - 1, 2**31])).to_bytes(8, "big")[-width:]
    file.write_bytes(raw)
    return f"header byte {place}"


def pages(file: Path, rng: Rng) -> str:
    """The root of a table becomes an inner page whose children are itself, or one page again and again."""
    table = str(rng.choice(["part", "spool", "chunk", "saved", "progress"]))
    with opened(file) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    raw = bytearray(file.read_bytes())
    leaf = raw[(root - 1) * size : root * size]
    again = len(raw) // size + 1
    depth = int(rng.integers(1, 9))
    many = int(rng.choice([1, 300]))
    for level in range(depth):
        child = again + level
        at = root if level == depth - 1 else again + level + 1
        page = _inner(child if rng.random() < 0.9 else at, many, size)
        where = (at - 1) * size
        raw += bytes(max(0, where + size - len(raw)))
        raw[where : where + size] = page
        if level == 0:
            raw += bytes(max(0, again * size - len(raw)))
            raw[(again - 1) * size : again * size] = leaf
    raw[28:32] = (len(raw) // size).to_bytes(4, "big")
    file.write_bytes(raw)
    return f"pages of {table}"


def _inner(child: int, many: int, size: int) -> bytes:
    """An inner page of a table with one child, again and again."""
    content, cells_at = bytearray(size), []
    end = size
    for key in range(many):
        cell = child.to_bytes(4, "big") + bytes([0x80 | (key >> 7), key & 0x7F])
        end -= len(cell)
        content[end : end + len(cell)] = cell
        cells_at.append(end)
    content[:12] = (
        b"\x05" + bytes(2) + many.to_bytes(2, "big") + end.to_bytes(2, "big") + b"\0" + child.to_bytes(4, "big")
    )
    for i, place in enumerate(cells_at):
        content[12 + 2 * i : 14 + 2 * i] = place.to_bytes(2, "big")
    return bytes(content)


def bytes_changed(file: Path, rng: Rng) -> str:
    """Bits flipped, bytes changed, cut short, lengthened."""
    raw = bytearray(file.read_bytes())
    how = int(rng.integers(4))
    if how == 0:
        raw = raw[: int(rng.integers(len(raw)))]
    elif how == 1:
        raw += rng.integers(0, 256, 5000, dtype=np.uint8).tobytes()
    else:
        for _ in range(int(rng.integers(1, 30))):
            place = int(rng.integers(len(raw)))
            raw[place] = raw[place] ^ (1 << int(rng.integers(8))) if how == 2 else int(rng.integers(256))
    file.write_bytes(raw)
    return f"bytes {how}"


def companions(file: Path, rng: Rng) -> str:
    """Files beside the database."""
    ending = str(rng.choice(["-wal", "-shm", "-journal"]))
    beside, how = Path(f"{file}{ending}"), int(rng.integers(5))
    beside.unlink(missing_ok=True)
    if how == 0 and hasattr(os, "mkfifo"):
        os.mkfifo(beside)
    elif how == 1:
        beside.mkdir()
    elif how == 2:
        beside.symlink_to(file.with_name("canary"))
    else:
        beside.write_bytes(rng.integers(0, 256, int(rng.choice([0, 10, 512, 70_000])), dtype=np.uint8).tobytes())
    return f"companion {ending} {how}"


FORGERIES: tuple[Forgery, ...] = (
    view, endless_view, endless_view, trigger, more_tables, other_columns, schema_text, schema_text, cells, cells,
    cells, cast, rows, rows, large, header, pages, pages, bytes_changed, bytes_changed, companions,
)  # fmt: skip
