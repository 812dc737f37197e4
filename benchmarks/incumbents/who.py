"""Tables of the fifty problems: who found the final model, and the work to it with and without each generator."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path

from benchmarks.incumbents.generators import ALL, INSTEAD, SAME, Run
from benchmarks.paper.tables import Row, markdown

Runs = Mapping[str, Mapping[str, Run]]

METHODS = ("exchange", "swap", "poss", "pocss", "greedy-rls")
"""Those that get portions."""


def read_runs(file: Path) -> dict[str, dict[str, Run]]:
    """By problem and variant, the last of several."""
    runs: dict[str, dict[str, Run]] = {}
    for line in file.read_text().splitlines() if file.exists() else ():
        fields = json.loads(line)
        case, found = fields.pop("case"), tuple(map(tuple, fields.pop("found")))
        runs.setdefault(case, {})[fields["variant"]] = Run(**fields, found=found)
    return runs


def report(runs: Runs) -> str:
    """Both tables."""
    title = "Who found the final model, and what of the work to it is there without each generator, and with it alone"
    rows = [_row(name, variants) for name, variants in runs.items()]
    return "\n".join([markdown(title, rows), markdown("What each generator brings", _brings(runs))])


def _row(name: str, variants: Mapping[str, Run]) -> Row:
    whole, known = variants[ALL], _known(variants)
    row: Row = {
        "problem": name, "model": f"{whole.best:.7g}", "found by": whole.source, "work": _work(whole.work),
        "CPU s": f"{whole.seconds:.2g}", "above the best": _excess(whole, known),
    }  # fmt: skip
    for method in METHODS:
        for how in ("without", "only"):
            run = variants.get(f"{how} {method}")
            row[f"{how} {method}"] = "" if run is None else _cell(run, whole, known)
    row[INSTEAD] = _cell(variants[INSTEAD], whole, known) if INSTEAD in variants else ""
    return row


def _cell(run: Run, whole: Run, known: float) -> str:
    """The work to the whole portfolio's model, or how far above the best known the run ends."""
    work, _ = run.reached(whole.best)
    excess = _excess(run, known)
    return excess if math.isinf(work) else _work(work) + (" (better)" if _better(run, whole) else "")


def _brings(runs: Runs) -> list[Row]:
    rows: list[Row] = []
    for method in METHODS:
        served = {name: variants for name, variants in runs.items() if f"without {method}" in variants}
        pairs = [(variants[ALL], variants[f"without {method}"]) for variants in served.values()]
        rows.append({
            "generator": method, "problems": len(pairs),
            "found a model": sum(any(source == method for source, *_ in whole.found) for whole, _ in pairs),
            "found the final one": sum(whole.source == method for whole, _ in pairs),
            "without it worse": sum(_better(whole, other) for whole, other in pairs),
            "without it better": sum(_better(other, whole) for whole, other in pairs),
            "alone as good": sum(
                not _better(variants[ALL], variants[f"only {method}"])
                for variants in served.values() if f"only {method}" in variants
            ),
        })  # fmt: skip
    return rows


def _known(variants: Mapping[str, Run]) -> float:
    return min(run.best for run in variants.values())


def _better(one: Run, other: Run) -> bool:
    return one.best < other.best - SAME * abs(other.best)


def _excess(run: Run, known: float) -> str:
    excess = 100.0 * (run.best - known) / abs(known)
    return "0" if excess <= 100.0 * SAME else f"+{excess:.2g} %"


def _work(work: float) -> str:
    return f"{work:.1e}" if work else "start"
