"""The best models along a path, for stdout."""

from __future__ import annotations

from exactsel.path import SolutionPath

HEADER = f"{'k':>4} {'lam':>10} {'objective':>16} {'gap':>9} {'claim':<12} {'nodes':>9} {'time':>9}  support"


def path_table(path: SolutionPath) -> str:
    """One line per problem."""
    lines = [HEADER]
    for result in path.results:
        lam = result.problem.get("lam")
        shown = "-" if lam is None else f"{lam:.4g}"
        names = result.feature_names or tuple(map(str, result.support))
        lines.append(
            f"{result.problem['k']:>4} {shown:>10} {result.upper:>16.10g} {result.rel_gap:>9.2g} "
            f"{result.claim.value:<12} {result.nodes:>9} {result.time:>8.2f}s  {', '.join(names) or 'none'}"
        )
    return "\n".join([*lines, "", "gap = (objective - lower) / max(1e-12, |objective|), proven for each line"])
