"""Temporary parts of a proof during the search: nameless files on the disk of the proof's own file."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from exactsel.files import spool

CHUNK = 1 << 20
"""Bytes copied at a time."""


class Spools:
    """Files that grow, by name; the growth of each is available, so that a checkpoint writes only that."""

    def __init__(self, path: Path, names: Iterable[str]) -> None:
        self._path = path
        self._open: dict[str, IO[bytes]] = {}
        self._told: dict[str, int] = {}
        for name in names:
            self.begin(name)

    def begin(self, name: str) -> IO[bytes]:
        """A new one, in the place of what there is under this name."""
        if name in self._open:
            self._open[name].close()
        self._open[name] = spool(self._path)
        self._told[name] = 0
        return self._open[name]

    def __getitem__(self, name: str) -> IO[bytes]:
        return self._open[name]

    def write(self, name: str, data: bytes) -> None:
        """Let one grow."""
        self._open[name].write(data)

    def size(self, name: str) -> int:
        """Bytes written so far."""
        return self._open[name].tell()

    def growth(self) -> dict[str, bytes]:
        """The bytes added to each spool since the last call; unchanged spools are omitted."""
        grown = {}
        for name, stream in self._open.items():
            first, end = self._told[name], stream.tell()
            if end > first:
                stream.flush()
                grown[name] = _read(stream, first, end)
                self._told[name] = end
        return grown

    def copy(self, name: str, target: IO[bytes]) -> None:
        """Append the whole of one to another file."""
        source = self._open[name]
        source.seek(0)
        while chunk := source.read(CHUNK):
            target.write(chunk)

    def close(self) -> None:
        """Remove them."""
        for stream in self._open.values():
            with contextlib.suppress(OSError):  # what a full disk did not take is not wanted any more
                stream.close()
        self._open.clear()


def _read(stream: IO[bytes], first: int, end: int) -> bytes:
    """Bytes of a file, which stays where it is."""
    stream.seek(first)
    data = stream.read(end - first)
    stream.seek(0, os.SEEK_END)
    return data
