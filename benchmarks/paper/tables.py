"""Tables: rows of named cells, written as Markdown to read and as CSV to compute with."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev

from exactsel.files import write_bytes


@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation of some runs; ``at_least`` when some of them were cut short."""

    mean: float
    sd: float
    at_least: bool = False

    @classmethod
    def of(cls, values: Sequence[float], at_least: bool = False) -> Spread:
        """Summarise ``values``; the deviation of a single value is 0."""
        return cls(fmean(values), stdev(values) if len(values) > 1 else 0.0, at_least)

    def __str__(self) -> str:
        return f"{'≥ ' if self.at_least else ''}{shown(self.mean)} ± {shown(self.sd)}"


@dataclass(frozen=True)
class AtLeast:
    """A number known from below only."""

    value: float

    def __str__(self) -> str:
        return f"≥ {shown(self.value)}"


Cell = str | int | float | Spread | AtLeast
Row = dict[str, Cell]


def shown(value: Cell) -> str:
    """A cell as people read it: three significant digits, thousands separated."""
    if isinstance(value, int):
        return f"{value:,}"
    if not isinstance(value, float):
        return str(value)
    if value == 0.0 or not math.isfinite(value):
        return f"{value:g}"
    if abs(value) < 1e-3:
        return f"{value:.2g}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def markdown(title: str, rows: Sequence[Row]) -> str:
    """A Markdown table with its title as heading."""
    columns = list(rows[0])
    lines = [f"### {title}", "", f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    lines += [f"| {' | '.join(shown(row[column]) for column in columns)} |" for row in rows]
    return "\n".join(lines) + "\n"


def comma_separated(rows: Sequence[Row]) -> str:
    """The same as CSV, in full precision, with a column each for mean and standard deviation."""
    stream = io.StringIO()
    flat = [_flat(row) for row in rows]
    writer = csv.DictWriter(stream, list(flat[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return stream.getvalue()


def write(folder: Path, name: str, title: str, rows: Sequence[Row]) -> None:
    """Write ``name``.md and ``name``.csv, each in one step."""
    folder.mkdir(parents=True, exist_ok=True)
    write_bytes(folder / f"{name}.md", markdown(title, rows).encode())
    write_bytes(folder / f"{name}.csv", comma_separated(rows).encode())


def _flat(row: Row) -> dict[str, str | int | float]:
    cells: dict[str, str | int | float] = {}
    for name, value in row.items():
        if isinstance(value, Spread):
            cells[f"{name}, mean"], cells[f"{name}, sd"] = value.mean, value.sd
        else:
            cells[name] = value.value if isinstance(value, AtLeast) else value
    return cells


def total(rows: Iterable[Row], column: str) -> float:
    """Sum of a column of plain numbers; a row without it counts as 0."""
    values = (row.get(column, 0.0) for row in rows)
    return sum(float(value) for value in values if isinstance(value, int | float))
