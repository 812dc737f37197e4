"""The chosen model as a table, for stdout."""

from __future__ import annotations

import json
from collections.abc import Sequence

from exactsel.problem import Problem
from exactsel.result import Result
from exactsel.subset import SubsetProblem
from exactsel.types import FloatArray


def given_model(coef: FloatArray, problem: SubsetProblem | None) -> tuple[FloatArray, float | None]:
    """Coefficients of the columns as they were given to the problem, and the intercept (None: it has none)."""
    if not isinstance(problem, Problem) or problem.preparation is None or not coef.size:
        return coef, None
    undone, intercept = problem.as_given(coef)
    return undone, intercept if problem.preparation.centred else None


def model_table(
    support: Sequence[int], coef: FloatArray, names: Sequence[str] | None, problem: SubsetProblem | None = None
) -> str:
    """One line per chosen column: its number, its name if it has one, and its coefficient if there are any.

    Coefficients are those of the columns as they were given to the ``problem``; then the intercept follows.
    """
    coef, intercept = given_model(coef, problem)
    width = max([len("name"), *(len(names[j]) for j in support)]) if names else 0
    heading = f"{'column':>6}" + (f"  {'name':<{width}}" if names else "")
    lines = [heading + (f"  {'coefficient':>18}" if coef.size else "")]
    for j in support:
        label = f"  {names[j]:<{width}}" if names else ""
        lines.append(f"{j:>6}{label}" + (f"  {coef[j]:>18.10g}" if coef.size else ""))
    if intercept is not None:
        lines.append(f"intercept {intercept:.10g}")
    return "\n".join(line.rstrip() for line in lines)


def json_with_model(result: Result, problem: SubsetProblem) -> str:
    """The result as JSON; of prepared data also the ``model`` for the data as they were given."""
    if not isinstance(problem, Problem) or problem.preparation is None:
        return result.to_json()
    coef, intercept = given_model(result.coef, problem)
    model = {"intercept": intercept or 0.0, "coef": {str(j): float(coef[j]) for j in result.support}}
    return json.dumps(result.as_dict() | {"model": model}, allow_nan=False)
