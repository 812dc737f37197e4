"""Instances, each solved in a process of its own, and the rows of their table."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.paper.tables import Row
from benchmarks.speed.processes import Demands, Solver, solved
from benchmarks.wide.instances import Instance, to_plain
from exactsel.files import write_bytes

Run = dict[str, Any]
"""An instance as JSON has it, and what its process printed."""

OURS = Solver("exactsel", (sys.executable, "-m", "benchmarks.wide.one"))


def run(instance: Instance, demands: Demands) -> Run:
    """Solve it in a process of its own; ``refused`` and a reason where there is no answer."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "instance.json"
        file.write_text(json.dumps(to_plain(instance)), encoding="utf-8")
        return {"instance": to_plain(instance), "limit": demands.time_limit, **solved(OURS, file, demands)}


def row(run: Run) -> Row:
    """A line of the table."""
    name, aim = run["instance"]["name"], run["instance"]["aim"]
    if "refused" in run:
        return {
            "instance": name, "CPU s": "–", "aim": aim or "–", "MB": "–", "gap": run["refused"], "nodes": "–",
            "closed by": "–",
        }  # fmt: skip
    return {
        "instance": name,
        "CPU s": float(run["seconds"]),
        "aim": "–" if aim is None else f"{aim:g}",
        "MB": round(run["megabytes"]),
        "gap": gap_text(run["gap"], run["termination"] != "time_limit", run["limit"]),
        "nodes": run["nodes"],
        "closed by": run["closed_by"] or run["method"],
    }


def gap_text(gap: float | None, finished: bool, limit: float, tolerance: float = 1e-6) -> str:
    """The relative gap: 0 within the tolerance, otherwise in percent, and the limit that ended the run."""
    if gap is None:
        return "no bound"
    text = "0" if gap <= tolerance else f"{100.0 * gap:.3g} %"
    return text if finished else f"{text} at the limit of {limit:g} s"


def read_runs(file: Path) -> dict[str, Run]:
    """The runs kept in a file, by the names of their instances; none without the file."""
    kept = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    return {run["instance"]["name"]: run for run in kept}


def keep_runs(file: Path, runs: dict[str, Run]) -> None:
    """Write all runs to a file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(file, (json.dumps(list(runs.values()), indent=1) + "\n").encode())
