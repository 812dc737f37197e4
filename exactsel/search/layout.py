"""The tables of packed data, checked before anything is made of them: they may come from a file that is damaged."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exactsel.errors import InputError
from exactsel.types import IntArray

ARRAYS = ("int8", "uint8", "int32", "int64", "float16", "float64", "bool")
"""Types of arrays that can be packed."""

DIMENSIONS = 3
"""Of arrays, at most."""

CELLS: dict[str, type] = {"i": np.int64, "f": np.float64, "b": np.bool_, "n": np.int64, "t": np.int64, "r": np.int64}
CELLS |= {"s": np.int64, "di": np.int64, "df": np.int64, "m": np.int64}
"""How a field of each kind is stored."""

REFERENCES = ("r", "m", "s", "di", "df")
"""Kinds of fields that hold numbers of objects."""


def require(sound: bool | np.bool_, what: str) -> None:
    """Refuse packed data with ``what`` unless they are sound."""
    if not sound:
        raise InputError(
            f"the packed search, with {what}, is damaged; take an intact copy of it, or start the search again."
        )


@contextmanager
def refusing_damage() -> Iterator[None]:
    """Report every error inside as damaged data: the input read there is untrusted."""
    try:
        yield
    except InputError:
        raise
    except (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError) as error:
        try:
            require(False, "entries that do not go together")
        except InputError as refusal:
            raise refusal from error


class Layout:
    """Where everything lies in packed data. Made only of tables in which every number names what it should.

    ``kinds`` are the fields of each type of record and what they hold.
    """

    def __init__(
        self, header: dict[str, Any], arrays: dict[str, NDArray[Any]], kinds: dict[str, dict[str, str]]
    ) -> None:
        self._given, self.kinds = arrays, kinds
        self.columns: dict[str, NDArray[Any]] = {}
        """The arrays by name."""
        self.tables, self.texts = _texts(header, "tables"), _texts(header, "texts")
        valid = all(name in kinds or name in ARRAYS for name in self.tables)
        require(valid and len(set(self.tables)) == len(self.tables), "types of records that are not known")
        places = self._column("places", np.int64, (None, 2))
        self.codes, self.rows = places[:, 0], places[:, 1]
        require(_within(self.codes, 0, len(self.tables)), "objects of unknown types")
        self.objects = len(places)
        self.numbers = {name: np.flatnonzero(self.codes == code) for code, name in enumerate(self.tables)}
        """Of each type, the number of the object in each row."""
        self.starts: dict[str, IntArray] = {}
        """Where the entries of each row begin, and those of the last one end, in arrays that hold those of all rows."""
        for name, numbers in self.numbers.items():
            # Objects are numbered as they are packed, after all they refer to.
            require(np.array_equal(self.rows[numbers], np.arange(numbers.size)), f"other rows of {name} than it lists")
            if name in ARRAYS:
                self._check_arrays(name, numbers.size)
            else:
                self._check_fields(name, numbers)
        roots = header.get("roots")
        require(
            isinstance(roots, list) and all(type(root) is int and -1 <= root < self.objects for root in roots),
            "roots that are no objects",
        )
        assert isinstance(roots, list)
        self.roots: list[int] = roots

    def entries(self, name: str, numbers: IntArray) -> NDArray[Any]:
        """The entries of some arrays of one type, one after the other."""
        rows, starts = self.rows[numbers], self.starts[f"{name}.data"]
        sizes = starts[rows + 1] - starts[rows]
        ends = np.cumsum(sizes)
        where = np.arange(sizes.sum()) + np.repeat(starts[rows] - ends + sizes, sizes)
        part: NDArray[Any] = self.columns[f"{name}.data"][where]
        return part

    def shapes(self, numbers: IntArray) -> IntArray:
        """The shapes (m, DIMENSIONS) of arrays of any types, padded with -1."""
        sizes = np.empty((numbers.size, DIMENSIONS), dtype=np.int64)
        for code in np.unique(self.codes[numbers]).tolist():
            where = self.codes[numbers] == code
            sizes[where] = self.columns[f"{self.tables[code]}.shape"][self.rows[numbers[where]]]
        return sizes

    def _column(self, place: str, dtype: type, shape: tuple[int | None, ...]) -> NDArray[Any]:
        """An array of the type and shape it must have; None stands for any size."""
        column = self._given.get(place)
        sound = isinstance(column, np.ndarray) and column.dtype == dtype and column.ndim == len(shape)
        require(sound, f"no array '{place}' of the type it should have")
        assert column is not None
        fits = all(size in (None, length) for size, length in zip(shape, column.shape, strict=True))
        require(fits, f"an array '{place}' of another size than it should have")
        self.columns[place] = column
        return column

    def _check_arrays(self, name: str, rows: int) -> None:
        shapes = self._column(f"{name}.shape", np.int64, (rows, DIMENSIONS))
        gaps = (shapes[:, 1:] >= 0) & (shapes[:, :-1] < 0)
        require(not np.any(shapes < -1) and not np.any(gaps), f"impossible shapes in '{name}.shape'")
        data = self._column(f"{name}.data", np.dtype(name).type, (None,))
        self._start(f"{name}.data", [math.prod(size for size in shape if size >= 0) for shape in shapes.tolist()], data)

    def _check_fields(self, name: str, numbers: IntArray) -> None:
        for field, kind in self.kinds[name].items():
            place, owners = f"{name}.{field}", numbers
            cells = self._column(place, CELLS[kind], (None if kind == "m" else numbers.size,))
            if kind == "m":
                counts = self._column(f"{place}.count", np.int64, (numbers.size,))
                require(not np.any(counts < 0), f"impossible sizes in '{place}.count'")
                self._start(place, counts.tolist(), cells)
                owners = np.repeat(numbers, counts)
            if kind in REFERENCES:
                # What an object refers to was numbered before it, so nothing refers to itself by a detour either.
                require(np.all((cells >= -1) & (cells < owners)), f"numbers in '{place}' that are no objects")
            if kind == "t":
                require(_within(cells, -1, len(self.texts)), f"numbers in '{place}' that are no texts")

    def _start(self, place: str, sizes: list[int], cells: NDArray[Any]) -> None:
        # Sums of Python's whole numbers: those of numpy may overflow.
        require(sum(sizes) == cells.size, f"another number of entries in '{place}' than it should have")
        self.starts[place] = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _texts(header: dict[str, Any], entry: str) -> list[str]:
    texts = header.get(entry)
    require(isinstance(texts, list) and all(isinstance(text, str) for text in texts), f"no '{entry}' in its header")
    assert isinstance(texts, list)
    return texts


def _within(numbers: NDArray[Any], first: int, end: int) -> np.bool_:
    return np.all((numbers >= first) & (numbers < end))
