"""The state of a search besides its nodes as plain arrays, and back: for another process, or for a file.

What is packed is a table for each type of record, an array for each of its fields, and a header that JSON can hold.
Records refer to each other by number, so what several share is packed once and shared again afterwards. A model is
packed as its columns and computed again from the problem. Nothing is executed when packed data are read, as it would be
with pickle. Nodes have a form of their own (nodes/table.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exactsel.bounds.witness import KINDS
from exactsel.enumeration.work_budget import Phase, SubtreeRecord, WholeProblemAttempt, WorkBudget
from exactsel.errors import InputError, UnsupportedError
from exactsel.nodes.regions import Seconds
from exactsel.problem.fit import Fit
from exactsel.problem.interface import SubsetProblem
from exactsel.search.contents import check_contents
from exactsel.search.layout import ARRAYS, CELLS, DIMENSIONS, Layout, refusing_damage, require
from exactsel.start.primal_heuristics import Portions
from exactsel.types import FloatArray

VERSION = 12
"""Of the layout."""

RECORDS: dict[type, str] = {
    Seconds: "bound:f refit:f subtrees:f",
    SubtreeRecord: "useful:f wasted:f failures:di successes:di typical:df given:df passed_over:di in_vain:f "
    "failure_rate:df",
    Phase: "long:b mark:i open_at_mark:i horizon:f horizon_until:i",
    Portions: "number:i due:f shares:df supports:m relaxed:m",
    WholeProblemAttempt: "after:f bound:f",
    WorkBudget: "nodes:i bound_calls:i iterations:i horizon:f left:n walks:r counted:r divides_from:f",
}
"""The fields of each record but witnesses and what they hold: i whole number, f number, b truth value, t text or None,
n whole number from 0 on or None, r another record, array or None, m several of those, s whole numbers or None, di and
df a table of whole numbers, or of numbers, by whole number."""


@dataclass(frozen=True)
class Packed:
    """Plain data: a header of what JSON can hold, and arrays by name."""

    header: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


def under(name: str, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The same, their names after another one."""
    return {f"{name}.{key}": array for key, array in arrays.items()}


def arrays_under(name: str, packed: Packed) -> dict[str, NDArray[Any]]:
    """What :func:`under` was given."""
    return {key[len(name) + 1 :]: array for key, array in packed.arrays.items() if key.startswith(f"{name}.")}


@cache
def fields_of(text: str) -> tuple[tuple[str, str], ...]:
    """The fields of a record, each with what it holds (see :data:`RECORDS`)."""
    return tuple((name, kind) for name, _, kind in (word.partition(":") for word in text.split()))


def _with_witnesses(records: dict[type, str] | None) -> dict[type, str]:
    """The records that can be packed, witnesses among them."""
    witnesses = {cls: " ".join(f"{name}:r" for name in kind.fields) for cls, kind in KINDS.items()}
    return witnesses | (RECORDS if records is None else records)


def _kinds(records: Iterable[tuple[str, tuple[tuple[str, str], ...]]]) -> dict[str, dict[str, str]]:
    """By name of record and of field what it holds, models among them."""
    return {name: dict(fields) for name, fields in records} | {"Fit": {"columns": "r"}}


def pack(values: Sequence[Any], records: dict[type, str] | None = None) -> Packed:
    """Pack records and arrays, with everything they refer to.

    Raises
    ------
    UnsupportedError
        For an object of another type, such as what a plug-in's bound may hand to children.
    """
    packer = _Packer(_with_witnesses(records))
    roots = [packer.number(value) for value in values]
    return packer.packed(roots)


def unpack(packed: Packed, problem: SubsetProblem, records: dict[type, str] | None = None) -> list[Any]:
    """What was packed; ``problem`` computes models again.

    Raises
    ------
    InputError
        Where the layout is that of another version, or the data are damaged.
    """
    with refusing_damage():
        require(isinstance(packed.header, dict) and isinstance(packed.arrays, dict), "no header")
        if packed.header.get("version") != VERSION:
            raise InputError(
                f"the packed search is of layout {packed.header.get('version')}, but this version reads layout "
                f"{VERSION}; use the version that packed it."
            )
        unpacker = _Unpacker(packed, problem, _with_witnesses(records))
        return [unpacker.object(number) for number in unpacker.roots]


@dataclass
class _Table:
    """The rows of one type of record, field by field."""

    rows: int = 0
    columns: dict[str, list[Any]] = field(default_factory=dict)

    def add(self, name: str, value: object) -> None:
        self.columns.setdefault(name, []).append(value)


class _Packer:
    def __init__(self, records: dict[type, str]) -> None:
        self._records = {cls: (cls.__name__, fields_of(text)) for cls, text in records.items()}
        self._tables: dict[str, _Table] = {}
        self._numbers: dict[int, int] = {}
        self._places: list[tuple[str, int]] = []
        self._texts: dict[str, int] = {}
        self._kept: list[Any] = []

    def number(self, value: object) -> int:
        """The number of an object, which is packed if it is new; -1 for None."""
        if value is None:
            return -1
        number = self._numbers.get(id(value))
        if number is None:
            place = self._added(value)
            number = self._numbers[id(value)] = len(self._places)
            self._places.append(place)
            self._kept.append(value)  # so that no other object gets its id
        return number

    def _added(self, value: object) -> tuple[str, int]:
        if isinstance(value, np.ndarray):
            return self._array(value)
        cells: dict[str, object]
        if isinstance(value, Fit):
            name, cells = "Fit", {"columns": self.number(value.columns)}
        else:
            record = self._records.get(type(value))
            if record is None:
                raise UnsupportedError(
                    f"a search that holds an object of type {type(value).__name__} cannot be packed; a bound should "
                    "hand on numpy arrays, or the points of exactsel.bounds.witness, and nothing else."
                )
            name, fields = record
            cells = {field: self._cell(kind, getattr(value, field)) for field, kind in fields}
        table = self._tables.setdefault(name, _Table())
        for field_name, cell in cells.items():
            table.add(field_name, cell)
        table.rows += 1
        return name, table.rows - 1

    def _cell(self, kind: str, value: Any) -> object:
        match kind:
            case "r":
                return self.number(value)
            case "m":
                return [self.number(element) for element in value]
            case "n":
                return -1 if value is None else value
            case "t":
                return -1 if value is None else self._texts.setdefault(value, len(self._texts))
            case "s":
                return -1 if value is None else self.number(np.array(value, dtype=np.int64))
            case "di" | "df":
                return self.number(np.array(list(value.items()), dtype=np.float64).reshape(-1, 2))
        return value

    def _array(self, value: NDArray[Any]) -> tuple[str, int]:
        name = value.dtype.name
        if name not in ARRAYS or value.ndim > DIMENSIONS:
            raise UnsupportedError(
                f"an array of type {name} and {value.ndim} dimensions cannot be packed; a bound should hand on arrays "
                f"of one of the types {', '.join(ARRAYS)} and at most {DIMENSIONS} dimensions."
            )
        table = self._tables.setdefault(name, _Table())
        table.add("shape", (*value.shape, *[-1] * (DIMENSIONS - value.ndim)))
        table.add("data", value.ravel())
        table.rows += 1
        return name, table.rows - 1

    def packed(self, roots: list[int]) -> Packed:
        """Everything added, as arrays."""
        names = {name: code for code, name in enumerate(self._tables)}
        arrays: dict[str, NDArray[Any]] = {
            "places": np.array([(names[name], row) for name, row in self._places], dtype=np.int64).reshape(-1, 2)
        }
        kinds = _kinds(self._records.values())
        for name, table in self._tables.items():
            for column, cells in table.columns.items():
                place = f"{name}.{column}"
                if name in ARRAYS:
                    arrays[place] = np.array(cells, dtype=np.int64) if column == "shape" else np.concatenate(cells)
                elif kinds[name][column] == "m":
                    arrays[place] = np.array([element for cell in cells for element in cell], dtype=np.int64)
                    arrays[f"{place}.count"] = np.array([len(cell) for cell in cells], dtype=np.int64)
                else:
                    arrays[place] = np.array(cells, dtype=CELLS[kinds[name][column]])
        return Packed({"version": VERSION, "tables": list(names), "texts": list(self._texts), "roots": roots}, arrays)


class _Unpacker:
    def __init__(self, packed: Packed, problem: SubsetProblem, records: dict[type, str]) -> None:
        self._types = {cls.__name__: (cls, fields_of(text)) for cls, text in records.items()}
        kinds = _kinds((name, fields) for name, (_, fields) in self._types.items())
        layout = Layout(packed.header, packed.arrays, kinds)
        check_contents(layout, problem)
        self._problem = problem
        self._arrays, self._starts = layout.columns, layout.starts
        self._tables, self._texts, self.roots = layout.tables, layout.texts, layout.roots
        self._places = list(zip(layout.codes.tolist(), layout.rows.tolist(), strict=True))
        self._objects: dict[int, Any] = {}

    def object(self, number: int) -> Any:
        """The object of this number; None for -1."""
        if number < 0:
            return None
        if number not in self._objects:
            code, row = self._places[number]
            self._objects[number] = self._made(self._tables[code], row)
        return self._objects[number]

    def _made(self, name: str, row: int) -> Any:
        if name in ARRAYS:
            return self._array(name, row)
        if name == "Fit":
            return self._problem.fit(self.object(int(self._arrays["Fit.columns"][row])))
        cls, fields = self._types[name]
        return cls(**{field: self._value(f"{name}.{field}", kind, row) for field, kind in fields})

    def _value(self, place: str, kind: str, row: int) -> Any:
        if kind == "m":
            first, end = self._part(place, row)
            return tuple(self.object(number) for number in self._arrays[place][first:end].tolist())
        value = self._arrays[place][row].item()
        match kind:
            case "r":
                return self.object(value)
            case "n":
                return None if value < 0 else value
            case "t":
                return None if value < 0 else self._texts[value]
            case "s":
                return None if value < 0 else tuple(self.object(value).tolist())
            case "di":
                return {int(key): int(entry) for key, entry in self.object(value).tolist()}
            case "df":
                return {int(key): entry for key, entry in self.object(value).tolist()}
        return value

    def _array(self, name: str, row: int) -> NDArray[Any]:
        shape = [size for size in self._arrays[f"{name}.shape"][row].tolist() if size >= 0]
        first, end = self._part(f"{name}.data", row)
        # A copy, so that one array that is kept does not keep all of them.
        part: FloatArray = self._arrays[f"{name}.data"][first:end].copy()
        return part.reshape(shape)

    def _part(self, place: str, row: int) -> tuple[int, int]:
        """Where the entries of a row begin and end in the array that holds those of all rows."""
        first, end = self._starts[place][row : row + 2].tolist()
        return first, end
