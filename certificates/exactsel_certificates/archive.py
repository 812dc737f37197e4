"""Read a problem from a .npz archive without believing a size it claims.

numpy allocates memory for any shape that the header of an array announces. Here the announced size is compared with the
bytes the archive has for it, and their sum against a limit, before anything is read.
"""

from __future__ import annotations

import os
import zipfile
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

MOST_BYTES = 4 * 2**30
"""A problem with more bytes than this is not read unless the caller says so."""

HEADER_BYTES = 10_000
"""The header of an array is no longer."""

IGNORED = ("feature_names.npy",)
"""What an archive may hold besides, and no check needs unless a hierarchy speaks of columns by name."""


def read_archive(
    path: str | os.PathLike[str], most_bytes: int = MOST_BYTES, only: str | None = None
) -> dict[str, NDArray[Any]]:
    """The arrays of an archive by name; where ``only`` names one, that one if there is one.

    Raises
    ------
    ValueError
        When it is none, is damaged, or is too large, in one sentence.
    OSError
        When it cannot be read at all.
    """
    try:
        return _read(path, most_bytes, only)
    except (OSError, _TooLargeError):
        raise
    except MemoryError:
        raise ValueError("the instance needs more memory than there is; check it on a larger machine.") from None
    except Exception as error:  # damaged bytes may raise anything in zipfile, zlib and numpy's parser
        raise ValueError(f"the instance is no .npz archive of plain arrays, or it is damaged ({error}).") from None


class _TooLargeError(ValueError):
    pass


def _read(path: str | os.PathLike[str], most_bytes: int, only: str | None) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {}
    with zipfile.ZipFile(path) as archive:
        members = [member for member in archive.infolist() if member.filename not in IGNORED]
        if only is not None:
            members = [member for member in archive.infolist() if member.filename == f"{only}.npy"]
        total = sum(member.file_size for member in members)
        if total > most_bytes:
            raise _TooLargeError(
                f"the instance holds {total} bytes, but no more than {most_bytes} are read; raise this limit if it is "
                f"meant to be so large."
            )
        for member in members:
            with archive.open(member) as stream:
                arrays[member.filename.removesuffix(".npy")] = _array(stream, member.file_size)
    return arrays


def _array(stream: IO[bytes], size: int) -> NDArray[Any]:
    version = np.lib.format.read_magic(stream)
    reader = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }.get(version)
    if reader is None:
        raise ValueError(f"arrays of version {version} are not known")
    shape, by_columns, kind = reader(stream, max_header_size=HEADER_BYTES)
    count = 1
    for length in shape:
        count *= length
    if kind.hasobject or min(shape, default=0) < 0 or not 0 <= count * kind.itemsize <= size:
        raise ValueError(f"an array of shape {shape} and type {kind} does not fit into its {size} bytes")
    data = stream.read(count * kind.itemsize)
    return np.frombuffer(data, dtype=kind, count=count).reshape(shape, order="F" if by_columns else "C")
