"""The chosen model as a table, for stdout."""

from __future__ import annotations

from exactsel.result import Result

FORCED = "forced in"
"""Said of a column of must_have whose coefficient came out as zero."""


def model_table(result: Result) -> str:
    """One line per column of the model: its number, its name if it has one, and its coefficient if there are any.

    Coefficients are those of the columns as they were given; then the intercept follows.
    """
    model, names = result.model, result.problem["feature_names"]
    width = max([len("name"), *(len(names[j]) for j in result.shown)]) if names else 0
    heading = f"{'column':>6}" + (f"  {'name':<{width}}" if names else "")
    lines = [heading + ("" if model is None else f"  {'coefficient':>18}")]
    for j in result.shown:
        line = f"{j:>6}" + (f"  {names[j]:<{width}}" if names else "")
        if model is not None:
            line += f"  {model.coef[j]:>18.10g}" + ("" if j in result.support else f"  {FORCED}")
        lines.append(line)
    if model is not None and model.intercept is not None:
        lines.append(f"intercept {model.intercept:.10g}")
    return "\n".join(line.rstrip() for line in lines)
