"""The outcomes of the jobs of a sweep: an append-only file beside the table, one line a job.

A line is the sha256 of its text, a space, and the text, one JSON object. It counts as soon as it is whole, and it is on
the disk before the next job is noted. A line that was cut short by the end of a process is cut off; one that is damaged
counts for nothing, and its job is run again. While a sweep is at work it holds the file's lock, which ends with it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from exactsel.errors import InputError, option
from exactsel.files import unwritten
from exactsel.search.json_shapes import LARGEST, among, entries, maybe, number, read_json, text, truth, whole
from exactsel.studies.sweeps.jobs import canonical
from exactsel.studies.sweeps.performing import DONE, FAILED, REFUSED
from exactsel.studies.sweeps.table import COLUMNS

LAYOUT = 1
"""Of the lines."""

ENDING = ".store"
"""What the table's name is followed by."""

READ_AT_ONCE = 2**20

_SHAPES = {str: text, int: whole(-LARGEST), float: number()}
_CELLS = {name: maybe(_SHAPES[kind]) for name, kind in COLUMNS.items()}
_RECORD = entries(
    {
        "key": text, "status": among(DONE, REFUSED, FAILED), "row": entries({}, _CELLS | {"reached": truth}),
    },
    {"job": entries({}, _CELLS)},
)  # fmt: skip
"""Of a job, after the first line."""


class Store:
    """An open store; made by :meth:`open` and :meth:`read`."""

    def __init__(self, path: Path, descriptor: int | None, records: dict[str, dict[str, Any]], damaged: int) -> None:
        self.path = path
        self._descriptor = descriptor
        self.records = records
        """By the key of their job."""
        self.damaged = damaged
        """Lines that count for nothing."""

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Store:
        """The existing store, to be continued, or a new one.

        Raises
        ------
        InputError
            Where another sweep is at work on it, or the file is something else.
        OutputError
            Where it cannot be written.
        """
        file = Path(path)
        fresh = not file.exists()
        try:
            descriptor = os.open(file, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
        except OSError as error:
            raise unwritten(file, error) from None
        try:
            _lock(descriptor, file)
            data = _whole(descriptor)
            records, damaged, length = _understood(data, file)
            store = cls(file, descriptor, records, damaged)
            os.ftruncate(descriptor, length)
            os.lseek(descriptor, 0, os.SEEK_END)
            if not length:
                store._append(_line({"exactsel": "sweep", "layout": LAYOUT}))
        except OSError as error:
            os.close(descriptor)
            if fresh:
                file.unlink(missing_ok=True)
            raise unwritten(file, error) from None
        except BaseException:
            os.close(descriptor)
            raise
        return store

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Store:
        """What a store holds, also while a sweep is at work on it; nothing where there is none.

        Raises
        ------
        InputError
            Where the file is something else, or cannot be read.
        """
        file = Path(path)
        try:
            data = file.read_bytes()
        except FileNotFoundError:
            data = b""
        except OSError as error:
            raise InputError(f"{file} cannot be read ({error.strerror}); check its permissions.") from None
        records, damaged, _ = _understood(data, file)
        return cls(file, None, records, damaged)

    def add(self, key: str, record: Mapping[str, Any]) -> None:
        """Write the outcome of a job; it is on the disk afterwards.

        Raises
        ------
        OutputError
            On a full disk, say; what was noted before stays.
        """
        self._append(_line({**record, "key": key}))
        self.records[key] = dict(record)

    def _append(self, line: bytes) -> None:
        assert self._descriptor is not None
        before, rest = os.lseek(self._descriptor, 0, os.SEEK_END), memoryview(line)
        try:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
            os.fsync(self._descriptor)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, before)
            raise unwritten(self.path, error) from None

    def close(self) -> None:
        """Release the file; other processes may continue it."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def _line(record: Mapping[str, Any]) -> bytes:
    text = canonical(record).encode()
    return hashlib.sha256(text).hexdigest().encode() + b" " + text + b"\n"


def _whole(descriptor: int) -> bytes:
    parts: list[bytes] = []
    os.lseek(descriptor, 0, os.SEEK_SET)
    while part := os.read(descriptor, READ_AT_ONCE):
        parts.append(part)
    return b"".join(parts)


def _understood(data: bytes, file: Path) -> tuple[dict[str, dict[str, Any]], int, int]:
    """The records by key, how many lines are damaged, and how many bytes are whole lines."""
    length = data.rfind(b"\n") + 1
    first, *lines = data[:length].split(b"\n") if length else [b""]
    head = _line({"exactsel": "sweep", "layout": LAYOUT})
    if not length and head.startswith(data):
        return {}, 0, 0
    about = _record(first)
    if about is None or about.get("exactsel") != "sweep":
        raise InputError(
            f"{file} is no store of a sweep, or a damaged one; move it away, or give another {option('out')}."
        )
    if about.get("layout") != LAYOUT:
        raise InputError(
            f"{file} is a store of layout {about.get('layout')}, but this version of exactsel writes layout {LAYOUT}; "
            f"use the version that wrote it, or give another {option('out')}."
        )
    records: dict[str, dict[str, Any]] = {}
    damaged = 0
    for line in lines[:-1]:
        record = _record(line)
        if record is None or not _RECORD(record):
            damaged += 1
        else:
            records[record.pop("key")] = record
    return records, damaged, length


def _record(line: bytes) -> dict[str, Any] | None:
    """What a line holds; None where it is damaged."""
    digest, _, content = line.partition(b" ")
    if hashlib.sha256(content).hexdigest().encode() != digest:
        return None
    try:
        return read_json(content.decode())
    except (ValueError, MemoryError):
        return None


def _lock(descriptor: int, file: Path) -> None:
    """Lock the file until it is closed; :class:`InputError` where another process holds the lock."""
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(descriptor, 2**40, os.SEEK_SET)  # beyond every byte that is read
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        raise InputError(
            f"another sweep uses {file}; wait until it has ended, or give another {option('out')}."
        ) from None
