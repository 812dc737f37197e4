"""Arrays and plain numbers from untrusted files: sizes are checked first, and nothing pickled is opened.

:mod:`numpy` itself sets memory aside on the word of a header, and :mod:`zipfile` unpacks more than its directory says.
"""

from __future__ import annotations

import codecs
import gzip
import io
import math
import os
import re
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from exactsel.data.sizes import Budget
from exactsel.deadlines import ask
from exactsel.errors import ExactselError, InputError
from exactsel.problem.doubles import may_round_texts, rounding_of_texts, say, to_doubles
from exactsel.problem.mapped_columns import stays_mapped
from exactsel.types import FloatArray

MAGIC = b"\x93NUMPY"
LONGEST_HEADER = 4096
"""Bytes of an ``.npy`` header; one of plain numbers takes some hundred."""

TEXT_BYTES = 64
"""What a text takes beside its characters."""

CHUNK = 2**20

UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""How a text in UTF-16 begins, where it says so."""

_READERS = {1: (2, np.lib.format.read_array_header_1_0), 2: (4, np.lib.format.read_array_header_2_0)}


@contextmanager
def refusing_damage(file: Path, what: str, advice: str) -> Iterator[None]:
    """Report a damaged file for any error of the library that reads it.

    The sentence is made of the file's name, ``what`` is the matter with it, the error's own words, and ``advice``.
    """
    try:
        yield
    except (ExactselError, Warning):  # of warnings that are configured as errors
        raise
    except MemoryError:
        raise InputError(f"{file} takes more memory than there is; keep fewer rows or columns.") from None
    except Exception as error:
        # Hostile bytes make parsers raise nearly anything, and none of it is a fault of this program.
        reason = f"{type(error).__name__}: {error}".partition("\n")[0][:100]
        raise InputError(f"{file} {what} ({reason}); {advice}.") from None


def read_npy(stream: IO[bytes], size: int, name: str, budget: Budget) -> NDArray[Any]:
    """The array in a stream of ``size`` bytes, which must hold neither more nor less.

    Parameters
    ----------
    stream : binary stream
        At the beginning of an ``.npy`` file, or of a member of an archive.
    size : int
        What is said to be in it; the word of an archive's directory will do.
    name : str
        What messages call it.
    budget : Budget
        What may be unpacked.

    Raises
    ------
    InputError
        When it holds pickled objects, dates or records, or its header does not fit what follows.
    ValueError
        When it is no ``.npy`` file, or damaged.
    """
    shape, by_columns, dtype, offset = npy_header(stream)
    if dtype.hasobject:
        raise InputError(
            f"{name} is a pickled object array, which is never opened because it could run code; store numbers as "
            f"A.astype(float) and texts as names.astype(str)."
        )
    if min(shape, default=0) < 0:
        raise ValueError(f"negative dimension in {shape}")
    if dtype.itemsize == 0 and dtype.kind != "V":
        raise ValueError("entries of no size")
    count = math.prod(shape)
    declared, held = count * dtype.itemsize, size - offset
    if declared != held:
        raise InputError(
            f"{name} declares {declared} bytes but holds {held}, so the file is damaged or forged; write it again."
        )
    if dtype.kind not in "biufcSU":
        raise InputError(f"{name} has entries of type {dtype}; store plain numbers or texts instead.")
    ask()
    budget.take(declared + (TEXT_BYTES * count if dtype.kind in "SU" else 0), name)
    content = _exactly(stream, declared)
    # At its end zipfile compares the checksum; it unpacks no more than is read.
    if stream.read(1):
        raise ValueError("there is more behind the array")
    if dtype.kind == "U":
        # numpy makes Python texts of impossible characters without looking, and those can crash the interpreter.
        content.decode("utf-32-le" if dtype.str[0] == "<" else "utf-32-be")
    array = np.frombuffer(content, dtype=dtype)
    return array.reshape(shape[::-1]).T if by_columns else array.reshape(shape)


def read_member(archive: zipfile.ZipFile, member: str, budget: Budget) -> NDArray[Any]:
    """One array of an archive, errors as for :func:`read_npy`."""
    info, name = archive.getinfo(member), f"{member} in {budget.file}"
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise InputError(
            f"{name} is packed in a way that is not read (zip method {info.compress_type}); write it with "
            f"numpy.savez or numpy.savez_compressed."
        )
    if info.file_size > budget.limit:
        budget.take(info.file_size, name)
    with archive.open(info) as stream:
        return read_npy(stream, info.file_size, name, budget)


def read_npy_file(file: Path, budget: Budget) -> NDArray[Any]:
    """The array in an ``.npy`` file, errors as for :func:`read_npy`."""
    with file.open("rb") as stream:
        return read_npy(stream, os.fstat(stream.fileno()).st_size, str(file), budget)


def map_npy_file(file: Path) -> NDArray[Any] | None:
    """The table in an ``.npy`` file left where it is, where it is large (:func:`stays_mapped`); else None.

    What its header says must be what the file holds, to the byte.
    """
    with file.open("rb") as stream:
        shape, by_columns, kind, offset = npy_header(stream)
        size = os.fstat(stream.fileno()).st_size
    fits = len(shape) == 2 and min(shape) > 0 and kind.isnative and offset % kind.itemsize == 0
    if not (fits and stays_mapped(shape[0], shape[1], kind) and size - offset == math.prod(shape) * kind.itemsize):
        return None  # the reader of the file reports the damage
    return np.memmap(file, dtype=kind, mode="r", offset=offset, shape=shape, order="F" if by_columns else "C")


def read_bytes(file: Path, budget: Budget) -> bytes:
    """All bytes of a file, unpacked where its name ends in ``.gz``; no more than the budget allows."""
    chunks: list[bytes] = []
    with file.open("rb") as raw:
        stream: IO[bytes] = gzip.GzipFile(fileobj=raw) if file.suffix.lower() == ".gz" else raw  # type: ignore[assignment]
        while chunk := stream.read(CHUNK):
            ask()
            budget.take(len(chunk))
            chunks.append(chunk)
    return b"".join(chunks)


def read_text(file: Path) -> str:
    """The text in a file beside the data: UTF-8, or UTF-16 that says so; a byte order mark is removed.

    Raises
    ------
    InputError
        When it unpacks to more than may be read.
    ValueError, OSError
        When it is no such text, or cannot be read.
    """
    try:
        data = read_bytes(file, Budget(file))
    except (EOFError, zlib.error) as error:
        raise ValueError(f"truncated or damaged: {error}") from None
    return data.decode("utf-16" if data.startswith(UTF_16) else "utf-8-sig")


def floats(text: bytes) -> FloatArray:
    """The numbers in a text, separated by white space, each the nearest float; ValueError for anything else."""
    if b"_" in text:
        raise ValueError("'_' in a number")
    pieces = list(_pieces(text))
    return np.concatenate(pieces) if pieces else np.zeros(0)


def read_numbers(file: Path, refuse: bool = True) -> FloatArray:
    """The numbers of an ``.npy`` file in one row, or of a text with equally many in each line; ``#`` begins a remark.

    What doubles do not hold is said, and refused as :func:`exactsel.problem.doubles.to_doubles` has it.

    Raises
    ------
    InputError, ValueError, OSError
        When it holds anything else.
    """
    if file.suffix.lower() == ".npy":
        array = read_npy_file(file, Budget(file))
        if array.dtype.kind not in "biuf":
            raise ValueError(f"entries of type {array.dtype}")
        return to_doubles(array.reshape(-1), str(file), refuse=refuse)
    text = re.sub(r"#[^\n]*", "", read_text(file)).encode()
    widths = {len(line.split()) for line in text.splitlines()} - {0}
    if len(widths) > 1:
        raise ValueError("lines of different lengths")
    numbers = floats(text)
    if may_round_texts(numbers):
        rounding = rounding_of_texts((word.decode() for word in text.split()), numbers)
        say(rounding, str(file), refuse=refuse)
    return numbers


def read_vector(file: str | os.PathLike[str]) -> FloatArray:
    """Numbers from a .npy file, or from a text file with one (or several) a line.

    Raises
    ------
    InputError
        When the file is missing or holds anything else.
    """
    path = Path(file)
    try:
        return read_numbers(path)
    except (InputError, Warning):  # of warnings that are configured as errors
        raise
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; give the file that holds the numbers.") from None
    except Exception:  # damaged bytes make numpy, gzip and zlib raise nearly anything
        raise InputError(
            f"{path} does not hold plain numbers; give a .npy vector or text with one number a line."
        ) from None


def _pieces(text: bytes) -> Iterator[FloatArray]:
    """The numbers in pieces, since a word takes many times the memory of its number."""
    for piece in re.finditer(rb"\s*(?s:.{1,%d})\S*" % CHUNK, text):
        ask()
        words = piece[0].split()
        if words:
            yield np.array([float(word) for word in words])


def npy_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Of an ``.npy`` file the shape, whether columns come first, the type, and the bytes the header took."""
    start = _exactly(stream, len(MAGIC) + 2)
    if start[:-2] != MAGIC or start[-2] not in _READERS or start[-1] != 0:
        raise ValueError("no header of an .npy file of version 1 or 2")
    width, parse = _READERS[start[-2]]
    counted = _exactly(stream, width)
    length = int.from_bytes(counted, "little")
    if length > LONGEST_HEADER:
        raise ValueError(f"a header of {length} bytes")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a damaged header makes Python's parser remark
        shape, by_columns, dtype = parse(io.BytesIO(counted + _exactly(stream, length)))
    return shape, by_columns, dtype, len(start) + width + length


def _exactly(stream: IO[bytes], size: int) -> bytes:
    content = stream.read(size)
    if len(content) != size:
        raise ValueError(f"it ends after {len(content)} of {size} bytes")
    return content
