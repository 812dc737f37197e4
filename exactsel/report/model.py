"""The chosen model as a table, for stdout."""

from __future__ import annotations

from collections.abc import Sequence

from exactsel.types import FloatArray


def model_table(support: Sequence[int], coef: FloatArray, names: Sequence[str] | None) -> str:
    """One line per chosen column: its number, its name if it has one, and its coefficient if there are any."""
    width = max([len("name"), *(len(names[j]) for j in support)]) if names else 0
    heading = f"{'column':>6}" + (f"  {'name':<{width}}" if names else "")
    lines = [heading + (f"  {'coefficient':>18}" if coef.size else "")]
    for j in support:
        label = f"  {names[j]:<{width}}" if names else ""
        lines.append(f"{j:>6}{label}" + (f"  {coef[j]:>18.10g}" if coef.size else ""))
    return "\n".join(line.rstrip() for line in lines)
