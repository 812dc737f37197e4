"""Methods side by side, as a text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from exactsel.problem.model import demands_text, listed
from exactsel.to_plain import counted

if TYPE_CHECKING:
    from exactsel.studies.compare import Comparison

HEADER = f"{'method':<14} {'objective':>16} {'gap':>9} {'shared':>8} {'evaluations':>12} {'time':>9}  support"


def comparison_table(comparison: Comparison) -> str:
    """One line per method, the exact search last, and how to read the columns."""
    result, size = comparison.result, len(comparison.result.support)
    names = result.problem["feature_names"]
    lines = [HEADER]
    for row in comparison.rows:
        overlap = f"{row.shared} of {size}"
        lines.append(
            f"{row.method:<14} {row.value:>16.10g} {row.gap:>9.2g} {overlap:>8} "
            f"{row.evaluations:>12} {row.time:>8.3f}s  {listed(row.support, names, between=',')}"
        )
    everything = f"{size} of {size}"
    lines += [
        f"{'exact search':<14} {result.upper:>16.10g} {result.gap:>9.2g} {everything:>8} "
        f"{counted(result.nodes, 'node'):>12} {result.time:>8.3f}s  {listed(result.support, names, between=',')}",
        "",
        f"claim     {result.claim_text}",
        f"gap       objective - {result.lower:.10g}, the proven lower bound; relative to the objective"
        + (f"; for {result.valid_for}" if result.valid_for else ""),
        f"shared    {result._noun}s in common with the best model known (the last line's)",
    ]
    lines += _spreads(comparison)
    demands = demands_text(result.problem)
    lines += [f"constraints {demands}"] if demands else []
    lines += [f"left out  {method}: {reason}" for method, reason in comparison.left_out]
    return "\n".join(lines)


def _spreads(comparison: Comparison) -> list[str]:
    """How the objectives of the random methods lie over the seeds, where there were several."""
    several = [row for row in comparison.rows if row.values]
    if not several:
        return []
    lines = ["", f"{'over seeds':<14} {'runs':>5} {'median':>16} {'smallest':>16} {'largest':>16}  gap of the median"]
    for row in several:
        least, middle, most = row.spread
        gap = middle - comparison.result.lower
        lines.append(
            f"{row.method:<14} {len(row.values):>5} {middle:>16.10g} {least:>16.10g} {most:>16.10g}  {gap:.3g}"
        )
    return [*lines, "the lines above are about the best run of each, its own evaluations and time", ""]
