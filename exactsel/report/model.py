"""The chosen model as a table, for stdout."""

from __future__ import annotations

from collections.abc import Sequence

from exactsel.types import FloatArray


def model_table(support: Sequence[int], coef: FloatArray, names: Sequence[str] | None) -> str:
    """One line per chosen column: its number, its name if it has one, and its coefficient."""
    width = max([len("name"), *(len(names[j]) for j in support)]) if names else 0
    lines = [
        f"{'column':>6}  {'name':<{width}}  {'coefficient':>18}" if names else f"{'column':>6}  {'coefficient':>18}"
    ]
    for j in support:
        label = f"  {names[j]:<{width}}" if names else ""
        lines.append(f"{j:>6}{label}  {coef[j]:>18.10g}")
    return "\n".join(lines)
