"""The chosen model as a table, for stdout."""

from __future__ import annotations

import json
from collections.abc import Sequence

from exactsel.preparing import Preparation
from exactsel.result import Result
from exactsel.subset import SubsetProblem
from exactsel.types import FloatArray


def model_table(
    support: Sequence[int], coef: FloatArray, names: Sequence[str] | None, preparation: Preparation | None = None
) -> str:
    """One line per chosen column: its number, its name if it has one, and its coefficient if there are any.

    Coefficients are those of the columns as they were given, before any ``preparation``; then the intercept follows.
    """
    intercept = 0.0
    if preparation is not None and coef.size:
        coef, intercept = preparation.undo(coef)
    width = max([len("name"), *(len(names[j]) for j in support)]) if names else 0
    heading = f"{'column':>6}" + (f"  {'name':<{width}}" if names else "")
    lines = [heading + (f"  {'coefficient':>18}" if coef.size else "")]
    for j in support:
        label = f"  {names[j]:<{width}}" if names else ""
        lines.append(f"{j:>6}{label}" + (f"  {coef[j]:>18.10g}" if coef.size else ""))
    if preparation is not None and preparation.centred:
        lines.append(f"intercept {intercept:.10g}")
    return "\n".join(line.rstrip() for line in lines)


def result_table(result: Result, problem: SubsetProblem) -> str:
    """The model of a result, see :func:`model_table`; with groups the chosen groups first, then their columns."""
    preparation: Preparation | None = getattr(problem, "preparation", None)
    columns = model_table(result.columns, result.coef, result.column_names, preparation)
    if not result.problem.get("groups"):
        return columns
    names, groups = result.problem["feature_names"], result.problem["groups"]
    lines = [f"{'group':>6}  columns"]
    for g in result.support:
        lines.append(f"{g:>6}  {names[g]}: {', '.join(map(str, groups[g]))}")
    return "\n".join([*lines, "", columns])


def json_with_model(result: Result, problem: SubsetProblem) -> str:
    """The result as JSON; of prepared data also the ``model`` for the data as they were given."""
    preparation: Preparation | None = getattr(problem, "preparation", None)
    if preparation is None:
        return result.to_json()
    coef, intercept = preparation.undo(result.coef)
    model = {"intercept": intercept, "coef": {str(j): float(coef[j]) for j in result.columns}}
    return json.dumps(result.as_dict() | {"model": model}, allow_nan=False)
