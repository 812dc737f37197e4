"""Instances whose table stays in its file: A column by column, to be mapped into memory, not read.

Such a file is an instance file like any other (:mod:`exactsel.data.instance`), with the key :data:`MARK` besides: A is
in it in one piece, as doubles, columns first, and where the processor wants it. Doubles, even of data that have fewer
digits: kernels are compiled for these, and once. Rows are taken in blocks of any size; each goes to a nameless file
first, since how many there will be is known in the end only, and from there one column after the other.
"""

from __future__ import annotations

import io
import os
import struct
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from exactsel.data.arrays import CHUNK, npy_header
from exactsel.data.blocks import block_rows
from exactsel.errors import InputError
from exactsel.files import replacing, spool
from exactsel.types import FloatArray

MARK = "columns_stay"
"""The key of a file whose A stays in it."""

ALIGNED = 64
"""Bytes of which a multiple lies before the numbers of A."""

PADDING = 0xD935
"""Of the field that fills up a member's head, as other programs that align members of archives have it."""

_HEAD, _ZIP64 = struct.Struct("<26xHH"), 20


def write_array(archive: zipfile.ZipFile, name: str, array: NDArray[Any]) -> None:
    """One array of an archive; equal arrays make equal bytes."""
    with archive.open(_member(name), "w", force_zip64=array.nbytes >= 2**30) as stream:
        np.lib.format.write_array(stream, array, allow_pickle=False)


def write_columns(archive: zipfile.ZipFile, n: int, columns: Iterable[FloatArray], d: int) -> None:
    """A (n, d) of an archive that is at its beginning, from the parts of its columns in order, and the mark."""
    info, header = _member("A"), io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": True, "shape": (n, d)})
    large = 8 * n * d >= 2**30
    before = archive.fp.tell() + _HEAD.size + len(info.filename) + 4 + (_ZIP64 if large else 0)  # type: ignore[union-attr]
    padding = -(before + len(header.getvalue())) % ALIGNED
    info.extra = struct.pack("<HH", PADDING, padding) + bytes(padding)
    with archive.open(info, "w", force_zip64=large) as stream:
        stream.write(header.getvalue())
        for part in columns:
            stream.write(np.asarray(part, dtype="<f8").data.cast("B"))
    write_array(archive, MARK, np.array(1))


def map_columns(archive: zipfile.ZipFile, member: str, file: Path) -> FloatArray:
    """A (n, d) of an archive with the mark, left where it is; read once to its end, in pieces, for its checksum.

    Raises
    ------
    InputError
        When it is not stored as the mark says.
    zipfile.BadZipFile
        When it is damaged.
    """
    info = archive.getinfo(member)
    with archive.open(info) as stream:
        shape, by_columns, kind, offset = npy_header(stream)
        while stream.read(CHUNK):
            pass
    with file.open("rb") as whole:
        whole.seek(info.header_offset)
        name, extra = _HEAD.unpack(whole.read(_HEAD.size))
    start = info.header_offset + _HEAD.size + name + extra + offset
    plain = info.compress_type == zipfile.ZIP_STORED and kind == np.dtype("<f8") and len(shape) == 2
    whole_table = plain and min(shape) > 0 and info.file_size - offset == 8 * shape[0] * shape[1]
    if not (whole_table and start % 8 == 0 and (by_columns or 1 in shape)):
        raise InputError(f"in {file}, A is not stored as the key {MARK} says; write it again with exactsel data gram.")
    return np.memmap(file, dtype=kind, mode="r", offset=start, shape=shape, order="F")


class ColumnFile:
    """Takes rows in blocks, and becomes an instance file.

    Parameters
    ----------
    path : path
        Where it will be; what is written before lies, without a name, on the same disk.
    d : int
        Number of columns.
    """

    def __init__(self, path: str | os.PathLike[str], d: int) -> None:
        self.rows, self.weighted = 0, False
        self._path, self._d = path, d
        self._stream: IO[bytes] = spool(path)
        self._sizes: list[int] = []
        self._part, self._filled = np.empty((d + 2, block_rows(d + 2))), 0

    def take(self, A: FloatArray, y: FloatArray, weights: FloatArray | None = None) -> None:
        """Take the rows A (m, d), y (m,), with weights (m,), 1 by default."""
        self.weighted |= weights is not None
        done = 0
        while done < len(A):
            many = min(len(A) - done, self._part.shape[1] - self._filled)
            here, into = slice(done, done + many), slice(self._filled, self._filled + many)
            self._part[: self._d, into] = A[here].T
            self._part[self._d, into] = y[here]
            self._part[self._d + 1, into] = 1.0 if weights is None else weights[here]
            done, self._filled = done + many, self._filled + many
            if self._filled == self._part.shape[1]:
                self._flush()
        self.rows += len(A)

    def end(self, others: Mapping[str, NDArray[Any]]) -> None:
        """Write the file, with ``others`` beside the rows.

        Raises
        ------
        OutputError
            When it cannot be written; nothing is left behind then.
        """
        self._flush()
        with replacing(self._path) as stream, zipfile.ZipFile(stream, "w") as archive:
            parts = (part for j in range(self._d) for part in self._column(j))
            write_columns(archive, self.rows, parts, self._d)
            beside = {"y": self._d} | ({"weights": self._d + 1} if self.weighted else {})
            for name, j in beside.items():
                write_array(archive, name, np.concatenate([*self._column(j)]))
            for name, array in others.items():
                write_array(archive, name, array)

    def close(self) -> None:
        """Forget what has not become a file."""
        self._stream.close()

    def _flush(self) -> None:
        if self._filled:
            self._stream.write(np.ascontiguousarray(self._part[:, : self._filled], dtype="<f8").data)
            self._sizes.append(self._filled)
            self._filled = 0

    def _column(self, j: int) -> Iterator[FloatArray]:
        """The parts of a column, block by block."""
        start = 0
        for m in self._sizes:
            self._stream.seek(start + 8 * m * j)
            yield np.frombuffer(self._stream.read(8 * m), dtype="<f8")
            start += 8 * m * (self._d + 2)


def _member(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
    # Left alone, both depend on the operating system, and so would the bytes.
    info.create_system = 3
    info.external_attr = 0o644 << 16
    return info
