"""The chosen model as a table, for stdout."""

from __future__ import annotations

from collections.abc import Sequence

from exactsel.problem.model import Model
from exactsel.solving.result import Result

FORCED = "forced in"
"""Said of a column of force_in whose coefficient came out as zero."""


def model_table(result: Result) -> str:
    """One line per column of the model: its number, its name if it has one, and its coefficient if there are any.

    Coefficients are those of the columns as they were given; then the intercept follows, and a target that is computed.
    """
    table = coefficient_table(result.model, result.column_names, result._shown, result.columns)
    target = result.problem.get("left_side")
    return table if target is None else f"{table}\npredicts {target}"


def coefficient_table(
    model: Model | None, names: Sequence[str] | None, columns: Sequence[int], included: Sequence[int]
) -> str:
    """One line per column of ``columns``, those that are not ``included`` the model said to be forced in; its
    intercept.
    """
    width = max([len("name"), *(len(names[j]) for j in columns)]) if names else 0
    what = "column" if model is None else "feature"
    heading = what + (f"  {'name':<{width}}" if names else "")
    lines = [heading + ("" if model is None else f"  {'coefficient':>18}")]
    for j in columns:
        line = f"{j:>{len(what)}}" + (f"  {names[j]:<{width}}" if names else "")
        if model is not None:
            line += f"  {model.coef[j]:>18.10g}" + ("" if j in included else f"  {FORCED}")
        lines.append(line)
    if model is not None and model.intercept is not None:
        lines.append(f"intercept {model.intercept:.10g}")
    return "\n".join(line.rstrip() for line in lines)


def result_table(result: Result) -> str:
    """The model of a result, see :func:`model_table`; with groups the chosen groups first, then their columns."""
    if not result.problem.get("groups"):
        return model_table(result)
    names, groups = result.problem["feature_names"], result.problem["groups"]
    lines = [f"{result._noun:>6}  df  features"]
    for g in result.support:
        lines.append(f"{g:>6} {len(groups[g]):>3}  {names[g]}: {', '.join(map(str, groups[g]))}")
    return "\n".join([*lines, "", model_table(result)])
