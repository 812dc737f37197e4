"""Sparse matrices for the command line: archives of scipy.sparse, Matrix Market and svmlight files.

No number in a file is believed: every entry is compared with the size the file announces before it is used.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from exactsel_certificates.entries import Entries
from exactsel_certificates.formula import FloatArray

SVMLIGHT = (".svm", ".svmlight", ".libsvm")

ENDINGS = (".mtx", *SVMLIGHT)
"""Texts that hold a sparse matrix."""

MOST_LINES = 2**24
"""Rows, and columns, at most."""


class SparseFile(NamedTuple):
    """What a file holds."""

    A: Entries
    y: FloatArray | None
    """(n,) the target of a svmlight file; None in the others."""


def is_archive(arrays: dict[str, Any]) -> bool:
    """Whether the arrays of an archive are those of scipy.sparse.save_npz."""
    return {"format", "shape", "data"} <= arrays.keys()


def of_archive(arrays: dict[str, Any]) -> SparseFile:
    """The matrix that scipy.sparse.save_npz has stored as csr, csc or coo; ValueError where there is none."""
    try:
        return _of_archive(arrays)
    except (KeyError, IndexError, TypeError, OverflowError, MemoryError) as error:
        raise ValueError(f"the archive holds no sound sparse matrix ({error}); write it again.") from None


def _of_archive(arrays: dict[str, Any]) -> SparseFile:
    kind = arrays["format"].reshape(-1)[0]
    text = kind.decode() if isinstance(kind, bytes) else str(kind)
    n, d = _sizes(arrays["shape"].tolist())
    data = arrays["data"]
    if data.ndim != 1 or data.dtype.kind not in "biuf":
        raise ValueError(f"the sparse matrix has entries of type {data.dtype}, but real numbers were expected.")
    if text == "coo":
        return SparseFile(Entries.of(arrays["row"], arrays["col"], data, (n, d)), None)
    if text not in ("csr", "csc"):
        raise ValueError(f"the sparse matrix is stored as {text!a}, but csr, csc or coo was expected; convert it.")
    first, indices, lines = arrays["indptr"].astype(np.int64), arrays["indices"], n if text == "csr" else d
    if first.shape != (lines + 1,) or first[0] != 0 or np.any(np.diff(first) < 0) or first[-1] > indices.size:
        raise ValueError(f"indptr of the sparse matrix does not rise from 0 in {lines} steps; write the file again.")
    along = np.repeat(np.arange(lines), np.diff(first))
    indices, data = indices[: along.size], data[: along.size]
    rows, columns = (along, indices) if text == "csr" else (indices, along)
    return SparseFile(Entries.of(rows, columns, data, (n, d)), None)


def read_text(path: str | os.PathLike[str], most_bytes: int) -> SparseFile:
    """The matrix in a Matrix Market or svmlight file; ValueError where there is none, OSError where nothing is read."""
    with Path(path).open("rb") as stream:
        data = stream.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise ValueError(f"{path} has more than {most_bytes} bytes; raise this limit if it is meant to be so large.")
    lines = data.decode("utf-8-sig", "strict").splitlines()
    try:
        return _svmlight(lines) if Path(path).suffix.lower() in SVMLIGHT else _matrix_market(lines)
    except (IndexError, OverflowError, MemoryError) as error:
        raise ValueError(f"{path} is not what its name says ({error}); write it again.") from None


def _sizes(sizes: list[Any]) -> tuple[int, int]:
    """Rows and columns, within what a check sets memory aside for."""
    if len(sizes) != 2 or not all(isinstance(size, int) and 0 < size <= MOST_LINES for size in sizes):
        raise ValueError(f"the sparse matrix has the shape {sizes[:5]}, but rows and columns were expected.")
    return sizes[0], sizes[1]


def _matrix_market(lines: list[str]) -> SparseFile:
    banner = lines[0].lower().split() if lines else []
    kinds = ("real", "double", "integer", "pattern")
    if banner[:3] != ["%%matrixmarket", "matrix", "coordinate"] or len(banner) != 5 or banner[3] not in kinds:
        raise ValueError("the first line is not that of a Matrix Market file of real coordinates.")
    if banner[4] != "general":
        raise ValueError(f"the matrix is {banner[4][:20]!a}, but a general one was expected; write all its entries.")
    words = [line.split() for line in lines[1:] if line.strip() and not line.startswith("%")]
    n, d, many = (int(word) for word in words[0])
    _sizes([n, d])
    width = 2 if banner[3] == "pattern" else 3
    if len(words) != many + 1 or any(len(entry) != width for entry in words[1:]):
        raise ValueError(f"the file announces {many} entries of {width} numbers, but holds others.")
    rows, columns = ([int(entry[place]) - 1 for entry in words[1:]] for place in (0, 1))
    values = [1.0 if width == 2 else float(entry[2]) for entry in words[1:]]
    return SparseFile(Entries.of(rows, columns, values, (n, d)), None)


def _svmlight(lines: list[str]) -> SparseFile:
    """Columns are numbered from 1 unless one is named 0, as scikit-learn takes it."""
    y: list[float] = []
    rows: list[int] = []
    columns: list[int] = []
    values: list[float] = []
    for line in lines:
        words = line.partition("#")[0].split()
        for word in words[1:]:
            name, _, value = word.partition(":")
            if name != "qid":
                rows.append(len(y))
                columns.append(int(name))
                values.append(float(value))
        if words:
            y.append(float(words[0]))
    least = min(columns, default=0)
    shift = 1 if least > 0 else 0
    n, d = _sizes([len(y), max(columns, default=0) + 1 - shift])
    return SparseFile(Entries.of(rows, np.array(columns, dtype=np.int64) - shift, values, (n, d)), np.array(y))
