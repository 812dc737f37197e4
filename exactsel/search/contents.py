"""Valid contents of packed records: types, shapes, and entries that kernels can take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exactsel.bounds.witness import KINDS
from exactsel.problem.interface import SubsetProblem
from exactsel.search.layout import ARRAYS, Layout, require
from exactsel.types import IntArray

LARGEST_WHOLE = 2.0**53
"""Up to here every whole number is a float."""

WITNESS = "witness"
"""Stands for every type that is registered as one."""


@dataclass(frozen=True)
class Held:
    """What a field may refer to."""

    types: tuple[str, ...]
    shape: tuple[str, ...] | None = None
    """Of an array, None for any: d, n and columns are those of the problem, k is no more than its k, a whole number
    stands for itself, and any other name for a size that fields of one record share."""
    entries: str = ""
    """Of an array: unit, column, finite, number (anything but nan) or whole; empty for any."""
    optional: bool = False


HELD: dict[str, Held] = {
    "Fit.columns": Held(("int64",), ("k",), "unit"),
    "Portions.supports": Held(("int64",), ("k",), "unit"),
    "Portions.relaxed": Held(("int64",), ("any",), "unit"),
    "WorkBudget.walks": Held(("SubtreeRecord",), optional=True), "WorkBudget.counted": Held(("WholeProblemAttempt",)),
}  # fmt: skip
"""By record and field."""

BY_KIND = {
    "s": Held(("int64",), ("any",), optional=True),
    "di": Held(("float64",), ("any", "2"), "whole"),
    "df": Held(("float64",), ("any", "2"), "keys"),
}
"""Where nothing is said of the field."""


def check_contents(layout: Layout, problem: SubsetProblem | None) -> None:
    """Refuse records that hold what they may not; without a problem its sizes and the entries of arrays may be any."""
    schema = HELD | {
        f"{cls.__name__}.{name}": Held((field.type,), field.shape, field.entries)
        for cls, kind in KINDS.items()
        for name, field in kind.fields.items()
    }
    for name in layout.tables:
        if name in ARRAYS:
            continue
        sizes: dict[str, IntArray] = {}
        for field, kind in layout.kinds[name].items():
            place = f"{name}.{field}"
            held = schema.get(place, BY_KIND.get(kind))
            if held is not None:
                _check_field(layout, place, held, problem, sizes)


def _check_field(
    layout: Layout, place: str, held: Held, problem: SubsetProblem | None, sizes: dict[str, IntArray]
) -> None:
    """Check what one field of all records of a type refers to; ``sizes`` are those their fields share."""
    numbers = layout.columns[place]
    there = numbers >= 0
    require(held.optional or bool(np.all(there)), f"nothing where something must be in '{place}'")
    objects = np.unique(numbers[there])
    types = {*held.types, *(cls.__name__ for cls in KINDS if WITNESS in held.types)}
    allowed = [code for code, name in enumerate(layout.tables) if name in types]
    require(np.all(np.isin(layout.codes[objects], allowed)), f"objects of the wrong type in '{place}'")
    if held.shape is None or not objects.size:
        return
    _check_shapes(layout, place, held.shape, problem, sizes)
    if problem is not None or held.entries in ("whole", "keys"):
        sound = _sound(held.entries, layout.entries(held.types[0], objects), problem)
        require(sound, f"entries out of range in '{place}'")


def _check_shapes(
    layout: Layout, place: str, shape: tuple[str, ...], problem: SubsetProblem | None, sizes: dict[str, IntArray]
) -> None:
    numbers = layout.columns[place]
    there = np.flatnonzero(numbers >= 0)
    shapes = layout.shapes(numbers[there])
    dimensions = np.count_nonzero(shapes >= 0, axis=1)
    require(np.all(dimensions == len(shape)), f"arrays of the wrong number of dimensions in '{place}'")
    lengths = {} if problem is None else {"d": problem.d, "n": problem.n, "columns": problem.units.columns}
    for axis, size in enumerate(shape):
        along, sound = shapes[:, axis], True
        if size in lengths or size.isdigit():
            sound = bool(np.all(along == lengths.get(size, size.isdigit() and int(size))))
        elif size == "k":
            sound = problem is None or bool(np.all(along <= problem.k))
        elif size not in ("any", "d", "n", "columns"):
            shared = sizes.setdefault(size, np.full(numbers.size, -1, dtype=np.int64))
            sound = bool(np.all((shared[there] < 0) | (shared[there] == along)))
            shared[there] = along
        require(sound, f"arrays of the wrong size in '{place}'")


def _sound(kind: str, entries: NDArray[Any], problem: SubsetProblem | None) -> bool:
    """Whether all entries of arrays are what they should be."""
    match kind:
        case "whole":
            return _whole(entries)
        case "keys":
            pairs = entries.reshape(-1, 2)
            return _whole(pairs[:, 0]) and not np.any(np.isnan(pairs[:, 1]))
        case "finite":
            return bool(np.all(np.isfinite(entries)))
        case "number":
            return not np.any(np.isnan(entries))
    if problem is None or not kind:
        return True
    return bool(np.all((entries >= 0) & (entries < (problem.d if kind == "unit" else problem.units.columns))))


def _whole(numbers: NDArray[Any]) -> bool:
    return bool(np.all((np.abs(numbers) <= LARGEST_WHOLE) & (np.floor(numbers) == numbers)))
