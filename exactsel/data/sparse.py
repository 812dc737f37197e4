"""Sparse matrices: archives of scipy.sparse and Matrix Market files, every number in them checked first.

Small ones are made tables; the others stay as they are (:mod:`exactsel.problem.design`).

scipy's own readers believe what a file says: an index out of range is written to where it points.
"""

from __future__ import annotations

import codecs
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exactsel.data.arrays import floats, read_bytes, read_member
from exactsel.data.sizes import Budget
from exactsel.deadlines import ask
from exactsel.errors import InputError
from exactsel.problem.design import DesignMatrix, SparseColumns, stays_sparse
from exactsel.problem.doubles import EXACT, may_round_texts, rounding_of_texts, say
from exactsel.types import FloatArray, IntArray

MARKS = frozenset({"format.npy", "shape.npy", "data.npy"})
"""Members that distinguish an archive of scipy.sparse from an instance file."""

BANNER = "%%MatrixMarket matrix {coordinate, array} {real, integer, pattern} {general, symmetric, skew-symmetric}"


class Entries(NamedTuple):
    """What is stored: entry t stands in row ``rows[t]`` and column ``columns[t]``."""

    rows: IntArray
    columns: IntArray
    values: FloatArray


def is_sparse_archive(file: Path) -> bool:
    """Whether scipy.sparse.save_npz wrote it; not so when it is no archive at all, which its reader will say."""
    try:
        with zipfile.ZipFile(file) as archive:
            return {*archive.namelist()} >= MARKS
    except Exception:  # hostile bytes make zipfile raise nearly anything
        return False


def read_sparse_archive(file: Path) -> FloatArray | DesignMatrix:
    """The matrix scipy.sparse.save_npz has stored (csr, csc, coo, bsr or dia).

    Raises
    ------
    InputError, ValueError
        When a part is missing or of the wrong type or length, an index is out of range, or an entry is there twice.
    """
    budget = Budget(file)
    with zipfile.ZipFile(file) as archive:
        stored = {name.removesuffix(".npy"): name for name in archive.namelist()}
        layout = read_member(archive, stored["format"], budget).reshape(-1)
        layout_name = layout[0].decode() if layout.dtype.kind == "S" else str(layout[0])
        if layout.size != 1 or layout_name not in _LAYOUTS:
            raise InputError(f"{file} holds a sparse matrix of the format '{layout_name}'; store it as csr or coo.")
        shape = _whole(read_member(archive, stored["shape"], budget), "shape", file)
        if shape.size != 2 or shape.min() < 0:
            raise InputError(f"{file} has the shape {shape[:5].tolist()}; a table has rows and columns.")
        rows, columns = (int(size) for size in shape)
        budget.take_lines(rows, columns)
        names, entries_of = _LAYOUTS[layout_name]
        parts = [_whole(read_member(archive, stored[name], budget), name, file) for name in names]
        data = read_member(archive, stored["data"], budget)
    if data.dtype.kind not in "biuf":
        raise InputError(f"{file} has entries of type {data.dtype}; store real numbers.")
    return matrix_of(entries_of(data, rows, columns, *parts), rows, columns, budget)


def read_matrix_market(file: Path) -> FloatArray | DesignMatrix:
    """The real matrix in a Matrix Market file.

    Raises
    ------
    InputError, ValueError
        When the text is no Matrix Market file of real numbers, or its entries do not fit the size it declares.
    """
    budget = Budget(file)
    text = read_bytes(file, budget).removeprefix(codecs.BOM_UTF8)
    banner, _, text = text.partition(b"\n")
    words = banner.decode("ascii").lower().split()
    kinds = (("coordinate", "array"), ("real", "double", "integer", "pattern"), _MIRRORED)
    if words[:2] != ["%%matrixmarket", "matrix"] or len(words) != 5 or words[2:] == ["array", "pattern", "general"]:
        raise ValueError(f"the first line is not {BANNER}")
    if not all(word in choices for word, choices in zip(words[2:], kinds, strict=True)):
        raise InputError(f"{file} holds a matrix of the kind '{' '.join(words[2:])}'; expected was {BANNER}.")
    line = b"%"
    while line.startswith(b"%") or not line.strip():
        if not text:
            raise ValueError("it ends before the line with its size")
        line, _, text = text.partition(b"\n")
    sparse = words[2] == "coordinate"
    size = _from_1(floats(line), "size") + 1
    if size.size != 2 + sparse:
        raise ValueError(f"the line of sizes holds {size.size} numbers")
    rows, columns = int(size[0]), int(size[1])
    if words[4] != "general" and rows != columns:
        raise ValueError(f"a matrix of {rows} x {columns} cannot be {words[4]}")
    if sparse:
        budget.take_lines(rows, columns)
    else:
        budget.take_table(rows, columns)
    numbers = floats(text)
    stored = _coordinates(numbers, int(size[2]), words[3]) if sparse else _columns(numbers, rows, columns, words[4])
    if words[3] != "pattern":
        tell_of_entries(text.split()[2::3] if sparse else text.split(), stored.columns, stored.values, file)
    return matrix_of(_mirrored(stored, words[4]), rows, columns, budget, counted=not sparse)


def tell_of_entries(words: Sequence[bytes], columns: IntArray, values: FloatArray, where: object) -> None:
    """A word about what numbers written as ``words``, entries of these columns, lose as doubles; entries that are not
    written are zero.
    """
    if not may_round_texts(values) or not np.abs(values).max(initial=0.0) >= EXACT:
        return
    for j in np.unique(columns):
        ask()
        places = np.flatnonzero(columns == j).tolist()
        rounding = rounding_of_texts([words[i].decode("ascii", "replace") for i in places], values[places])
        say(rounding, f"in {where}, column {j}")


_MIRRORED = {"general": 0.0, "symmetric": 1.0, "skew-symmetric": -1.0}


def _coordinates(numbers: FloatArray, count: int, kind: str) -> Entries:
    width = 2 if kind == "pattern" else 3
    if numbers.size != width * count:
        raise ValueError(f"{count} entries are declared, but {numbers.size} numbers follow")
    table = numbers.reshape(count, width)
    values = np.ones(count) if width == 2 else table[:, 2]
    return Entries(_from_1(table[:, 0], "row"), _from_1(table[:, 1], "column"), values)


def _columns(numbers: FloatArray, rows: int, columns: int, symmetry: str) -> Entries:
    """All entries column by column, or where that says all, those below the diagonal."""
    j, i = np.divmod(np.arange(rows * columns), max(rows, 1))
    mask = {"general": i >= 0, "symmetric": i >= j, "skew-symmetric": i > j}[symmetry]
    if numbers.size != np.count_nonzero(mask):
        raise ValueError(f"{np.count_nonzero(mask)} numbers were expected, but {numbers.size} follow")
    return Entries(i[mask], j[mask], numbers)


def _mirrored(stored: Entries, symmetry: str) -> Entries:
    if symmetry == "general":
        return stored
    off = stored.rows != stored.columns
    if symmetry == "skew-symmetric" and not off.all():
        raise ValueError("a skew-symmetric matrix has an entry on its diagonal")
    return Entries(
        np.concatenate([stored.rows, stored.columns[off]]),
        np.concatenate([stored.columns, stored.rows[off]]),
        np.concatenate([stored.values, _MIRRORED[symmetry] * stored.values[off]]),
    )


def _from_1(numbers: FloatArray, what: str) -> IntArray:
    """Whole numbers counted from 1 (sizes: from 0), counted from 0."""
    least = 0 if what == "size" else 1
    if not np.all((numbers >= least) & (numbers < 2.0**53) & (numbers == np.floor(numbers))):
        raise ValueError(f"a {what} is no whole number from {least}")
    return numbers.astype(np.int64) - 1


def _whole(array: NDArray[Any], name: str, file: Path) -> IntArray:
    """A vector of whole numbers."""
    whole = array.dtype.kind in "iu" and array.ndim == 1
    if not whole or (array.size and int(array.max()) >= 2**62):
        raise InputError(
            f"{name} in {file} is of type {array.dtype} with {array.ndim} dimension(s), but one row of whole numbers "
            f"was expected; write the file again with scipy.sparse.save_npz."
        )
    return array.astype(np.int64)


def _vector(data: NDArray[Any], dimensions: int = 1) -> NDArray[Any]:
    if data.ndim != dimensions:
        raise ValueError(f"data has {data.ndim} dimensions, not {dimensions}")
    return data


def _compressed(data: NDArray[Any], lines: int, indices: IntArray, indptr: IntArray) -> tuple[IntArray, int]:
    """For each entry of a compressed matrix the line it is in, and how many there are."""
    if indptr.size != lines + 1 or indptr[0] != 0 or np.any(np.diff(indptr) < 0):
        raise ValueError(f"indptr does not rise from 0 in {lines} steps")
    count = int(indptr[-1])
    if len(data) != indices.size or count > indices.size:
        raise ValueError(f"{len(data)} entries and {indices.size} indices, but indptr ends with {count}")
    return np.repeat(np.arange(lines), np.diff(indptr)), count


def _from_csr(data: NDArray[Any], rows: int, columns: int, indices: IntArray, indptr: IntArray) -> Entries:
    lines, count = _compressed(_vector(data), rows, indices, indptr)
    return Entries(lines, indices[:count], data[:count])


def _from_csc(data: NDArray[Any], rows: int, columns: int, indices: IntArray, indptr: IntArray) -> Entries:
    lines, count = _compressed(_vector(data), columns, indices, indptr)
    return Entries(indices[:count], lines, data[:count])


def _from_coo(data: NDArray[Any], rows: int, columns: int, row: IntArray, col: IntArray) -> Entries:
    if not _vector(data).size == row.size == col.size:
        raise ValueError(f"{data.size} entries, {row.size} row and {col.size} column numbers")
    return Entries(row, col, data)


def _from_bsr(data: NDArray[Any], rows: int, columns: int, indices: IntArray, indptr: IntArray) -> Entries:
    _, high, wide = _vector(data, 3).shape
    if 0 in (high, wide) or rows % high or columns % wide:
        raise ValueError(f"blocks of {high} x {wide} do not fill {rows} x {columns}")
    lines, count = _compressed(data, rows // high, indices, indptr)
    i = lines[:, None, None] * high + np.arange(high)[:, None]
    j = indices[:count, None, None] * wide + np.arange(wide)
    i, j = np.broadcast_arrays(i, j)
    return Entries(i.reshape(-1), j.reshape(-1), data[:count].reshape(-1))


def _from_dia(data: NDArray[Any], rows: int, columns: int, offsets: IntArray) -> Entries:
    if _vector(data, 2).shape[0] != offsets.size or np.any(np.abs(offsets) > rows + columns):
        raise ValueError(f"{data.shape[0]} diagonals, but offsets {offsets[:5].tolist()}")
    j = np.broadcast_to(np.arange(data.shape[1]), data.shape)
    i = j - offsets[:, None]
    included = (i >= 0) & (i < rows) & (j < columns)
    return Entries(i[included], j[included], data[included])


_LAYOUTS: dict[str, tuple[tuple[str, ...], Any]] = {
    "csr": (("indices", "indptr"), _from_csr),
    "csc": (("indices", "indptr"), _from_csc),
    "coo": (("row", "col"), _from_coo),
    "bsr": (("indices", "indptr"), _from_bsr),
    "dia": (("offsets",), _from_dia),
}


def matrix_of(
    entries: Entries, rows: int, columns: int, budget: Budget, counted: bool = False
) -> FloatArray | DesignMatrix:
    """The matrix with its entries, every place checked; ``counted`` says that the budget knows of the table."""
    i, j, file = entries.rows, entries.columns, budget.file
    outside = np.flatnonzero((i < 0) | (i >= rows) | (j < 0) | (j >= columns))
    if outside.size:
        at = outside[0]
        raise InputError(
            f"{file} has an entry in row {i[at]} and column {j[at]} (from 0), but its size is {rows} x {columns}; the "
            f"file is damaged or forged, write it again."
        )
    sparse = stays_sparse(rows, columns, i.size)
    if not (sparse or counted):
        budget.take_table(rows, columns)
    ask()
    places = np.sort(i * columns + j)
    ask()
    if np.any(places[1:] == places[:-1]):
        raise InputError(
            f"{file} holds an entry twice, and what is meant is not plain; add such entries up (sum_duplicates in "
            f"scipy) or remove them."
        )
    if sparse:
        filled = entries.values != 0
        return SparseColumns.of(i[filled], j[filled], entries.values[filled], (rows, columns)).T
    # What doubles may not hold is made doubles by the problem, which says what is lost.
    matrix = np.zeros((rows, columns), dtype=entries.values.dtype if entries.values.dtype.itemsize > 4 else np.float64)
    with np.errstate(over="ignore", invalid="ignore"):  # what is no finite number is refused later, by name
        matrix[i, j] = entries.values
    return matrix
