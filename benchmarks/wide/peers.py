"""Other solvers on the same instances, side by side."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.paper.tables import Row
from benchmarks.speed.processes import Demands, Solver, printed, solved
from benchmarks.wide.designs import Design
from benchmarks.wide.instances import INSTANCES, to_plain
from benchmarks.wide.runs import OURS, gap_text
from exactsel import Problem

NAMES = ("l0bnb", "el0ps", "okridge", "abess")

PRICED = Solver("exactsel, penalised", (sys.executable, "-m", "benchmarks.wide.priced"))

LISTED = (
    "unit-1000-lam.02", "unit-1000-lam.002", "unit-10000-lam.02", "limits-3000", "limits-10000",
    "limits-10000-five-times", "free-10000",
)  # fmt: skip

WITHOUT_LIMITS = (Design("ridge-1000", 1000, 1000, 10, lam=2.0), Design("tall-3000", 5000, 3000, 10, lam=2.0))

DESIGNS: dict[str, Design] = {
    design.name: design
    for design in (*(INSTANCES[name] for name in LISTED), *WITHOUT_LIMITS)
    if isinstance(design, Design)
}
"""The instances by name."""


def other(name: str, python: str) -> Solver:
    """Another solver, in the interpreter that has it."""
    return Solver(name, (python, "-m", "benchmarks.wide.other", name))


def installed(python: str) -> list[str]:
    """The solvers that interpreter has."""
    found: list[str] = printed((python, "-m", "benchmarks.wide.other", "installed"))
    return found


def rows(design: Design, names: Sequence[str], python: str, demands: Demands) -> Iterator[Row]:
    """exactsel for k columns and for a price of each, then the others."""
    with tempfile.TemporaryDirectory() as folder:
        told, file = Path(folder) / "instance.json", Path(folder) / "instance.npz"
        told.write_text(json.dumps(to_plain(design)), encoding="utf-8")
        hints = printed((sys.executable, "-m", "benchmarks.wide.hints", str(told), str(file)))
        yield _row(design, "exactsel", solved(OURS, told, demands), demands)
        # Its tolerance is exactsel's, whatever it is called.
        own = replace(demands, peer_rel_gap=demands.rel_gap)
        priced = solved(PRICED, told, own, ("--penalty", repr(hints["penalty"])))
        yield _row(design, PRICED.name, priced, own)
        for name in names:
            yield _row(design, name, solved(other(name, python), file, demands), demands)


def _row(design: Design, solver: str, answer: dict[str, Any], demands: Demands) -> Row:
    if "refused" in answer:
        return {
            "instance": design.name, "solver": solver, "CPU s": "–", "MB": "–", "gap": answer["refused"], "nodes": "–",
            "model": "–",
        }  # fmt: skip
    support = sorted(answer["support"])
    gap = None
    if answer["lower"] is not None and len(support) <= design.k:
        A, y = design.data()
        objective = Problem(A, y, design.k, lam=design.lam).fit(support).value
        gap = max(0.0, objective - max(0.0, answer["lower"])) / objective
    return {
        "instance": design.name,
        "solver": solver,
        "CPU s": float(answer["seconds"]),
        "MB": round(answer["megabytes"]),
        "gap": gap_text(gap, answer["finished"], demands.time_limit, demands.gap_of(solver)),
        "nodes": answer["nodes"],
        "model": "the target's" if support == design.support else f"{len(support)} columns",
    }
