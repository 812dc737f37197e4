"""The contents of a table's columns, for stdout."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from exactsel.errors import escaped
from exactsel.problem.frames import Column

LONGEST = 60
"""Characters of a name that are shown."""


def column_table(columns: Sequence[Column]) -> str:
    """One line per column: its number and name, what it holds, and how many entries are missing."""
    names = [_name(column.name) for column in columns]
    width = max([len("name"), *map(len, names)])
    lines = [f"{'column':>6}  {'name':<{width}}  {'missing':>7}  holds"]
    for j, (name, column) in enumerate(zip(names, columns, strict=True)):
        lines.append(f"{j:>6}  {name:<{width}}  {column.missing:>7}  {_content(column)}")
    return "\n".join(lines)


def _name(name: str) -> str:
    return escaped(name if len(name) <= LONGEST else name[:LONGEST] + "…")


def _content(column: Column) -> str:
    if column.kind == "text":
        levels = list(dict.fromkeys(column.texts))
        examples = ", ".join(repr(level[:20]) for level in levels[:3]) + (", …" if len(levels) > 3 else "")
        return f"text, {len(levels)} different: {examples}"
    values = column.partial if column.values is None else column.values
    if values is None:
        return column.kind
    values = values[~np.isnan(values)]
    if not values.size:
        return "nothing"
    return f"numbers from {values.min():.6g} to {values.max():.6g}, {np.unique(values).size} different"
