"""``exactsel solve`` with several targets: a model for each, on columns of its own or on the same ones for all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from exactsel.cli.constraint_options import NAMES as CONSTRAINTS
from exactsel.cli.options import SIGNALS, catch_signals, exit_code, read_problem, search_settings
from exactsel.cli.talk import say
from exactsel.cli.workers import workers_of
from exactsel.errors import InputError

if TYPE_CHECKING:
    from exactsel.problem.regression import Problem
    from exactsel.studies.targets import TargetModels

OF_ONE_SEARCH = ("proof", "trace", "checkpoint", "resume", "report", "recheck")
"""Options that are about one search."""

REFUSED_SHARED = (
    "factors", "formula", *CONSTRAINTS, "nonnegative", "bounds", "max_coef", "sum_to", "equality", "offset"
)  # fmt: skip
"""Options that models with the same features do not take."""


def targets_of(arguments: dict[str, Any]) -> tuple[str, ...]:
    """The targets that are given one by one, or as a list of columns with commas between them."""
    from exactsel.data.column_lists import meant
    from exactsel.files import is_file

    target = arguments["target"]
    texts = () if target is None else target if isinstance(target, tuple) else (target,)
    if not any("," in text and not is_file(text) for text in texts):
        return tuple(texts)
    names = _column_names(arguments)
    targets = [name for text in texts for name in ([text] if is_file(text) else meant([text], names))]
    return tuple(map(str, targets))


def _column_names(arguments: dict[str, Any]) -> Sequence[str]:
    from exactsel.data import read_data
    from exactsel.data.reading import read_columns

    columns = read_columns(arguments["instance"], arguments["decimal"], arguments["encoding"])
    if columns is not None:
        return [column.name for column in columns]
    return read_data(arguments["instance"]).feature_names or ()


def solve_several(targets: Sequence[str], arguments: dict[str, Any]) -> int:
    """Solve for each target, say what was found, and return the exit code."""
    from exactsel.studies.targets import refuse_for_shared, solve_apart, solve_together

    _refuse_what_is_of_one(arguments)
    if arguments["problem"] == "css":
        raise InputError("column subset selection has no targets, but several are given; leave --target out.")
    if len({*targets}) < len(targets):
        twice = next(name for name in targets if targets.count(name) > 1)
        raise InputError(f"the target {twice} is given twice; name each target once.")
    shared = arguments["shared"]
    if shared:
        refuse_for_shared([name for name in REFUSED_SHARED if arguments[name]], arguments["loss"])
    problems = [_problem_of(name, targets, arguments) for name in targets]
    if len({problem.units.column_names for problem in problems}) > 1:
        raise InputError(
            "the targets leave tables with different columns, as values are missing in different rows; remove the rows "
            "that lack a target first, or solve for each target by itself."
        )
    settings = search_settings(arguments) | workers_of(arguments) | {"verbose": 0 if arguments["quiet"] else 1}
    catch_signals()
    if shared:
        first = problems[0]
        apart = [problem.replace(force_in=(), force_out=()) for problem in problems]
        demands = {"force_in": first.force_in, "force_out": first.force_out}
        models = solve_together(apart, targets, **demands, signals=SIGNALS, **settings)
    else:
        models = solve_apart([(problem,) for problem in problems], targets, signals=SIGNALS, **settings)
    say(models.to_json() if arguments["as_json"] else tables(models))
    stops = [result.termination.value for result in models.results]
    return exit_code(models.reached, "interrupted" if "interrupted" in stops else stops[0])


def tables(models: TargetModels) -> str:
    """A table for each target, and what is proven of it."""
    from exactsel.report.model import coefficient_table, result_table

    parts = []
    for place, (name, model) in enumerate(zip(models.names, models.models, strict=True)):
        if models.shared:
            columns = models.supports[place]
            parts.append(f"target {name}\n{coefficient_table(model, models.feature_names, columns, columns)}")
        else:
            result = models.results[place]
            parts.append(f"target {name}\n{result_table(result)}\n{result.claim_text}")
    if models.shared:
        parts.append(f"all targets on the same features: sum of objectives {models.upper:.10g}\n{models.claim_text}")
    return "\n\n".join(parts)


def _problem_of(name: str, targets: Sequence[str], arguments: dict[str, Any]) -> Problem:
    """The problem of one target, without the columns of the others."""
    from exactsel.files import is_file
    from exactsel.problem.interface import is_regression

    others = tuple(other for other in targets if other != name and not is_file(other))
    problem = read_problem(arguments | {"target": name, "drop": (*arguments["drop"], *others)})
    assert is_regression(problem)  # column subset selection was refused
    return problem


def _refuse_what_is_of_one(arguments: dict[str, Any]) -> None:
    flag = next((name for name in OF_ONE_SEARCH if arguments[name]), None)
    if flag is not None:
        raise InputError(
            f"--{flag} is about one search, but there are several targets; leave it out, or give one --target."
        )
