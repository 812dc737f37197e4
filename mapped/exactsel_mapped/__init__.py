"""Columns that stay in a file: memory maps, and room of the same kind for what is made of them.

The operating system reads a page of a map when it is needed, and forgets it when memory is. So code for mapped data
reads some columns, or some rows, at a time, and makes nothing of their size but in another map.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterator, Sequence
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

AT_ONCE = 1_000_000
"""Numbers processed together, or those of one column where they are more."""


def is_mapped(array: object) -> bool:
    """Whether the entries of an array lie in a file."""
    return _map_of(array) is not None


def file_of(array: object) -> str | None:
    """The file that the entries of an array lie in, or come from; None where there is none that is known."""
    name = getattr(_map_of(array), "filename", None)
    return None if name is None else os.fspath(name)


def is_kept(array: object) -> bool:
    """Whether an array (n, d) is a table of doubles in a file, column by column and read-only.

    Such a table is not copied.
    """
    if not isinstance(array, np.ndarray) or array.ndim != 2 or array.dtype != np.float64 or not array.dtype.isnative:
        return False
    return array.flags.f_contiguous and not array.flags.writeable and array.flags.aligned and is_mapped(array)


def room_like(array: object, shape: tuple[int, ...], kind: DTypeLike = np.float64) -> NDArray[Any]:
    """An array to be filled: in memory, or where ``array`` is mapped in a nameless file beside its own.

    Raises
    ------
    OSError
        When the disk has no room for it.
    """
    size = int(np.prod(shape)) * np.dtype(kind).itemsize
    stream = nameless_beside(array) if size else None
    if stream is None:
        return np.empty(shape, dtype=kind)
    with stream:
        _reserve(stream, size)
        memmap = np.memmap(stream, dtype=kind, mode="r+", shape=shape)
    memmap.filename = file_of(array)  # what is made of this one finds its place, too
    return memmap


def some_columns(A: NDArray[Any], columns: Sequence[int]) -> NDArray[Any]:
    """These columns of a table (n, d): of one that stays in its file in another file."""
    if not is_kept(A):
        return A[:, columns] if isinstance(A, np.ndarray) else A.of_columns(columns)
    rows = room_like(A, (len(columns), len(A)))
    for place, j in enumerate(columns):
        rows[place] = A[:, j]
    rows.flags.writeable = False
    return rows.T


def nameless_beside(array: object) -> IO[bytes] | None:
    """A file without a name, in the folder of the one that ``array`` is mapped from; None where it is not mapped.

    Where that folder cannot be written it is in the folder for temporary files, which may be memory itself.
    """
    if not is_mapped(array):
        return None
    name = file_of(array)
    if name is not None:
        try:
            return tempfile.TemporaryFile(dir=os.path.dirname(os.path.abspath(name)))
        except OSError:
            pass
    return tempfile.TemporaryFile()


def column_blocks(AT: NDArray[np.float64]) -> Iterator[slice]:
    """Some rows of AT (d, n) at a time, which are columns of A."""
    d, n = AT.shape
    step = max(1, AT_ONCE // max(1, n))
    return (slice(first, first + step) for first in range(0, d, step))


def _map_of(array: object) -> np.memmap[Any, Any] | mmap.mmap | None:
    """The map an array is a part of; None where there is none."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):
            return array
        array = array.base
    return array if isinstance(array, mmap.mmap) else None


def _reserve(stream: IO[bytes], size: int) -> None:
    """Take the room now: a full disk is an error here, and would end the process in the middle of writing to a map."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(stream.fileno(), 0, size)
        return
    for first in range(0, size, AT_ONCE):
        stream.write(bytes(min(AT_ONCE, size - first)))
    stream.flush()
