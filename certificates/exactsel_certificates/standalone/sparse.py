"""Sparse matrices for the second checker: archives of scipy.sparse, Matrix Market and svmlight files."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from .arrays import Unreadable, numbers_of, read_bytes, text_of, unpacked
from .values import LARGEST, SMALLEST, Outside

MOST_LINES = 2**20
"""Rows, and columns, at most: empty ones take memory, too."""

SVMLIGHT = (".svm", ".svmlight", ".libsvm")


class Sparse(NamedTuple):
    """A matrix by its columns: the rows of the entries that are not zero, ascending, and what these are."""

    n: int
    rows: list[list[int]]
    values: list[list[float]]

    @property
    def entries(self) -> int:
        """How many there are."""
        return sum(map(len, self.rows))

    def table(self, columns: Sequence[int]) -> list[list[float]]:
        """Some columns, row by row."""
        table = [[0.0] * len(columns) for _ in range(self.n)]
        for place, j in enumerate(columns):
            for i, value in zip(self.rows[j], self.values[j], strict=True):
                table[i][place] = value
        return table


def sparse_of(n: int, d: int, entries: Iterable[tuple[int, int, float]]) -> Sparse:
    """From entries (row, column, value) in any order; Unreadable where one is outside, or two are in one place."""
    columns: list[dict[int, float]] = [{} for _ in range(d)]
    for i, j, value in entries:
        if not (0 <= i < n and 0 <= j < d):
            raise Unreadable(f"an entry is outside the {n} x {d} matrix; write the file again.")
        if i in columns[j]:
            raise Unreadable("the matrix holds an entry twice; add such entries up.")
        columns[j][i] = value
    filled = [sorted((i, v) for i, v in column.items() if v) for column in columns]
    return Sparse(n, [[i for i, _ in column] for column in filled], [[v for _, v in column] for column in filled])


def of_table(A: Sequence[Sequence[float]]) -> Sparse:
    """From a table."""
    return sparse_of(len(A), len(A[0]), ((i, j, v) for i, row in enumerate(A) for j, v in enumerate(row) if v))


def in_domain(A: Sparse) -> Sparse:
    """The same in doubles; Outside where it lies outside the domain."""
    if not A.n or not A.rows:
        raise Outside("A has no rows or no columns, but at least one of each was expected.")
    for j, column in enumerate(A.values):
        if not all(isinstance(v, int | float) and math.isfinite(v) and abs(v) <= LARGEST for v in column):
            raise Outside(f"column {j} of A holds something else than doubles of at most {LARGEST:g} in size.")
        if any(float(v) != v for v in column):
            raise Outside(f"column {j} of A holds a whole number that is no double.")
        if column and max(map(abs, column)) < SMALLEST:
            raise Outside(f"column {j} of A holds nothing above {SMALLEST:g} in size; multiply it by a constant.")
    return Sparse(A.n, A.rows, [[float(v) for v in column] for column in A.values])


def read_sparse(path: str) -> dict[str, Any] | None:
    """A, and y where the file has it, of a sparse matrix in a file; None where the file is of another kind."""
    ending = path.lower()
    if ending.endswith(SVMLIGHT) or ending.endswith(".mtx"):
        try:
            lines = read_bytes(path).decode("utf-8-sig").splitlines()
            return _svmlight(lines) if ending.endswith(SVMLIGHT) else _matrix_market(lines)
        except (ValueError, IndexError, OverflowError):
            raise Unreadable(f"{path!a} is not in the format of its extension; write it again.") from None
    return _archive(path)


def _archive(path: str) -> dict[str, Any] | None:
    data = read_bytes(path)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
            if not {"format", "shape", "data"} <= members.keys():
                return None
            kind = text_of("format", unpacked(archive, members["format"]))
            names = {"csr": ("indices", "indptr"), "csc": ("indices", "indptr"), "coo": ("row", "col")}.get(kind)
            if names is None:
                raise Unreadable(f"the sparse matrix is stored as {kind!a}; convert it to csr, csc or coo.")
            parts = [numbers_of(name, unpacked(archive, members[name])) for name in ("shape", "data", *names)]
    except Unreadable:
        raise
    except Exception as error:  # what zipfile and zlib raise for damaged archives is nowhere said
        raise Unreadable(f"{path!a} is a damaged .npz archive ({type(error).__name__}); write it again.") from None
    lists = [part for part in parts if isinstance(part, list) and not any(isinstance(v, list) for v in part[:1])]
    if len(lists) < len(parts):
        raise Unreadable(f"{path!a} does not hold the arrays of a sparse matrix; write it again.")
    whole = (int, bool)
    if not all(isinstance(v, whole) for part in (lists[0], *lists[2:]) for v in part):
        raise Unreadable(f"{path!a} has indices that are not integers; write it again.")
    return {"A": _stored(kind, *lists)}


def _stored(kind: str, shape: list[int], data: list[float], first: list[int], second: list[int]) -> Sparse:
    n, d = _sizes(shape)
    if kind == "coo":
        if not len(first) == len(second) == len(data):
            raise Unreadable("the arrays of the sparse matrix have lengths that do not match; write it again.")
        return sparse_of(n, d, zip(first, second, data, strict=True))
    lines, last = (n if kind == "csr" else d), second[-1] if second else -1
    rising = len(second) == lines + 1 and second[0] == 0 and all(a <= b for a, b in pairwise(second))
    if not rising or last > min(len(first), len(data)):
        raise Unreadable(f"indptr of the sparse matrix does not rise from 0 in {lines} steps; write the file again.")
    along = [line for line in range(lines) for _ in range(second[line + 1] - second[line])]
    pairs = (along, first) if kind == "csr" else (first, along)
    return sparse_of(n, d, zip(pairs[0][:last], pairs[1][:last], data[:last], strict=True))


def _sizes(shape: Sequence[Any]) -> tuple[int, int]:
    if len(shape) != 2 or not all(isinstance(size, int) and 0 < size <= MOST_LINES for size in shape):
        raise Unreadable("the sparse matrix has a shape that this checker does not take; ask the other one.")
    return shape[0], shape[1]


def _matrix_market(lines: list[str]) -> dict[str, Any]:
    banner = lines[0].lower().split()
    if banner[:3] != ["%%matrixmarket", "matrix", "coordinate"] or banner[4:] != ["general"]:
        raise Unreadable("the first line is not that of a general Matrix Market file of coordinates.")
    pattern = banner[3] == "pattern"
    if not pattern and banner[3] not in ("real", "double", "integer"):
        raise Unreadable("the matrix holds something else than real numbers.")
    words = [line.split() for line in lines[1:] if line.strip() and not line.startswith("%")]
    n, d = _sizes([int(word) for word in words[0][:2]])
    if len(words) - 1 != int(words[0][2]) or any(len(entry) != 3 - pattern for entry in words[1:]):
        raise Unreadable("the file announces another number of entries than it holds.")
    entries = ((int(e[0]) - 1, int(e[1]) - 1, 1.0 if pattern else float(e[2])) for e in words[1:])
    return {"A": sparse_of(n, d, entries)}


def _svmlight(lines: list[str]) -> dict[str, Any]:
    """Columns are numbered from 1 unless one is named 0."""
    rows = [words for line in lines if (words := line.partition("#")[0].split())]
    entries = []
    for i, words in enumerate(rows):
        for name, _, value in (word.partition(":") for word in words[1:]):
            if name != "qid":
                entries.append((i, int(name), float(value)))
    columns = [j for _, j, _ in entries]
    shift = 1 if min(columns, default=0) > 0 else 0
    n, d = _sizes([len(rows), max(columns, default=0) + 1 - shift])
    y = [float(words[0]) for words in rows]
    return {"A": sparse_of(n, d, ((i, j - shift, v) for i, j, v in entries)), "y": y}
