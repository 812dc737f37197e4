"""Where exactsel's time goes: seconds and shares of the parts of a solve."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.paper.tables import Row, shown
from benchmarks.speed.processes import Demands, Failed, ours, solved

PARTS: Mapping[str, str] = {
    "prepare": "prepare",
    "heuristics": "heuristics",
    "bound": "bounds",
    "subtrees": "subtree walks",
    "refit": "refits",
}
"""The parts that :attr:`exactsel.Result.times` knows, and their columns; the rest is queue and Python."""


def rows(files: Sequence[Path], demands: Demands) -> Iterator[Row]:
    """One row per instance."""
    for file in files:
        answer = solved(ours("exactsel"), file, demands)
        if "refused" in answer:
            raise Failed(f"{file.stem}: {answer['refused']}")
        yield row(file.stem, answer)


def row(instance: str, answer: dict[str, Any]) -> Row:
    """Seconds on the clock of each part, with its share of the whole."""
    total = answer["clock"]
    parts = {column: answer["parts"].get(part, 0.0) for part, column in PARTS.items()}
    parts["the rest"] = max(0.0, total - sum(parts.values()))
    return {
        "instance": instance,
        "finished": "yes" if answer["finished"] else "no",
        "clock s": total,
        **{column: f"{shown(seconds)} ({100.0 * seconds / total:.0f} %)" for column, seconds in parts.items()},
        "nodes": answer["nodes"],
        "bound calls": answer["bound_calls"],
        "iterations": answer["iterations"],
    }
