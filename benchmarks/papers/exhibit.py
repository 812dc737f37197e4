"""A table or figure of a paper, reproduced: its rows, its picture, and what the paper prints of it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.folder import MissingData
from benchmarks.paper.tables import AtLeast, Cell, Row, Spread, comma_separated, markdown
from benchmarks.papers.pictures import Line, Panel, draw
from exactsel.files import write_bytes

NUMBER = re.compile(r"[-+]?\d[\d,]*\.?\d*(?:e[-+]?\d+)?")


@dataclass(frozen=True)
class Exhibit:
    """One table or figure."""

    name: str
    """The file name, such as ``figure-2``."""
    title: str
    """What was measured: sizes, number of runs."""
    printed: str
    """What the paper prints or says of it, in a sentence or two."""
    rows: Sequence[Row]
    panels: Sequence[Panel] = ()
    """The picture; none for a table that is a list."""
    remarks: Sequence[str] = field(default=())
    """What was left out, and why."""

    def write(self, folder: Path) -> None:
        """Write the data (.csv), the text (.md) and the picture (.png)."""
        folder.mkdir(parents=True, exist_ok=True)
        write_bytes(folder / f"{self.name}.md", self.text().encode())
        if self.rows:
            write_bytes(folder / f"{self.name}.csv", comma_separated(self.rows).encode())
        if self.panels:
            draw(self.panels, folder / f"{self.name}.png")

    def text(self) -> str:
        """The exhibit as Markdown: what the paper says, then the table of what was measured."""
        parts = [f"**The paper:** {self.printed}\n"]
        parts += [f"{remark}\n" for remark in dict.fromkeys(self.remarks)]
        if self.panels:
            parts.append(f"![{self.title}]({self.name}.png)\n")
        # A table whose rows lack columns of the first one would lose them.
        for number, rows in enumerate(_of_one_kind(self.rows)):
            parts.append(markdown(self.title if number == 0 else f"{self.title}, continued", rows))
        return "\n".join(parts if self.rows else [f"### {self.title}\n", *parts])


def data_sets(
    printed: str, shapes: Mapping[str, tuple[int, int]], measured: Callable[[str], tuple[int, ...]]
) -> Exhibit:
    """A table of the printed sizes beside those of the available data."""
    rows: list[Row] = []
    for name, shape in shapes.items():
        try:
            available = str(measured(name))
        except MissingData:
            available = "–"
        rows.append({"data": name, "printed (rows, features)": str(shape), "available": available})
    return Exhibit("table-1", "The data sets", printed, rows)


def _of_one_kind(rows: Iterable[Row]) -> list[list[Row]]:
    """Rows in order, cut where the columns change."""
    groups: list[list[Row]] = []
    for row in rows:
        if not groups or list(groups[-1][0]) != list(row):
            groups.append([])
        groups[-1].append(row)
    return groups


def number(cell: Cell) -> float:
    """The number a cell holds, the mean of a spread; nan where it holds none."""
    if isinstance(cell, Spread):
        return cell.mean
    if isinstance(cell, AtLeast):
        return cell.value
    if isinstance(cell, int | float):
        return float(cell)
    # A number with its marks, not one inside a sentence.
    found = NUMBER.match(cell.strip("*≥ "))
    return float(found.group().replace(",", "")) if found else math.nan


def deviation(cell: Cell) -> float:
    """The standard deviation a cell holds; 0 where it holds none."""
    if isinstance(cell, Spread):
        return cell.sd
    if isinstance(cell, str) and "±" in cell:
        return number(cell.split("±")[1])
    return 0.0


def line(rows: Iterable[Row], x: str, y: str) -> Line:
    """A column over another one, where both hold numbers."""
    points = [(number(row[x]), row[y]) for row in rows if x in row and y in row]
    points = [(at, cell) for at, cell in points if math.isfinite(at) and math.isfinite(number(cell))]
    return Line([at for at, _ in points], [number(cell) for _, cell in points], [deviation(cell) for _, cell in points])


def lines(rows: Iterable[Row], x: str, columns: Mapping[str, str]) -> dict[str, Line]:
    """Several columns over one, by the name the picture gives them; those without a number are left out."""
    every = list(rows)
    drawn = {name: line(every, x, column) for name, column in columns.items()}
    return {name: points for name, points in drawn.items() if points.x}


def grouped(rows: Iterable[Row], by: str) -> dict[str, list[Row]]:
    """The rows by the value of a column, in order."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(str(row[by]), []).append(row)
    return groups
