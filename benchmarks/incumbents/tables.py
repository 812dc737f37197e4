"""Tables: how far above the best model known each method's is, after how long, and with what certified gap."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.incumbents.runs import SEARCH, Found
from benchmarks.paper.tables import Row, markdown

SAME = 1e-7
"""Relative: objectives that differ by no more count as the same."""

Runs = Mapping[str, Mapping[str, Found]]


def report(runs: Runs) -> str:
    """All tables."""
    parts = [markdown("The search beside the best of all methods alone", [_beside(*entry) for entry in runs.items()])]
    for loss in dict.fromkeys(name.split(", ")[1] for name in runs):
        some = {name: found for name, found in runs.items() if name.split(", ")[1] == loss}
        names = list(dict.fromkeys(method for found in some.values() for method in found if method != SEARCH))
        title = f"{loss}: excess over the best model known in % (seconds until it was found) [certified gap in %]"
        parts.append(markdown(title, [_methods(name, found, names) for name, found in some.items()]))
    return "\n".join(parts)


def _beside(name: str, found: Mapping[str, Found]) -> Row:
    ours, others = found[SEARCH], [each for method, each in found.items() if method != SEARCH]
    row: Row = {
        "problem": name, "objective": f"{ours.upper:.8g}", "found by": ours.source, "after, s": ours.seconds,
        "gap, %": 100.0 * _gap(ours.upper, ours),
    }  # fmt: skip
    if others:
        best = min(others, key=lambda each: (each.upper, each.seconds))
        worse = ours.upper > best.upper * (1.0 + SAME) if best.upper > 0 else ours.upper > best.upper
        row |= {
            "best method": best.method, "its objective": f"{best.upper:.8g}", "its time, s": best.seconds,
            "search is": "worse" if worse else "better" if ours.upper < best.upper * (1.0 - SAME) else "as good",
        }  # fmt: skip
    return row


def _methods(name: str, found: Mapping[str, Found], names: list[str]) -> Row:
    known = min(each.upper for each in found.values())
    row: Row = {"problem": name}
    for method in names:
        each = found.get(method)
        if each is None:
            row[method] = "–"
            continue
        excess = 100.0 * (each.upper - known) / abs(known) if known else 0.0
        row[method] = f"{excess:.3g} ({each.seconds:.2g}) [{100.0 * _gap(each.upper, found[SEARCH]):.2g}]"
    return row


def _gap(upper: float, proven: Found) -> float:
    """Relative gap of a model to what the search has proven."""
    return (upper - (proven.lower or 0.0)) / abs(upper) if upper else 0.0
