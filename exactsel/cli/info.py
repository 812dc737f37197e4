"""``exactsel info``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import click

from exactsel.cli.helping import Command
from exactsel.cli.options import problem_options, read_file, read_problem, warnings_as_lines
from exactsel.cli.talk import say


@click.command("info", cls=Command)
@problem_options
@click.option(
    "--root/--no-root", default=True, help="Bound the root too, where k and lam are known. This takes about a second."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
def command(root: bool, as_json: bool, **arguments: Any) -> None:
    """Show what a data file holds, and how hard the problem looks.

    The report has sizes, parameters, rank, condition, constant and duplicate columns, correlation, target and number of
    supports. With k and lam it has the gap at the root of the search, too. For a table that cannot be used as it is,
    the report shows the columns and says what to do. A table whose target is not named yet is no error.
    """
    import json
    from dataclasses import replace

    from exactsel.data import read_columns
    from exactsel.data.tables import with_labels, with_offset_read
    from exactsel.errors import InputError, NoTargetError
    from exactsel.report.columns import column_table
    from exactsel.studies.facts import instance_facts, problem_facts, root_facts, table_facts

    overrides = {name: arguments[name] for name in ("k", "loss", "lam", "delta")}
    try:
        with warnings_as_lines():
            instance, _ = with_offset_read(with_labels(read_file(arguments), arguments["loss"]), arguments["offset"])
            if arguments["weights"] is not None:  # they are about the problem, and not about the columns
                instance = replace(instance, weights=None)
            facts = instance_facts(instance, arguments["problem"], **overrides)
    except InputError as error:
        columns = read_columns(arguments["instance"], arguments["decimal"], arguments["encoding"])
        if columns is None:
            raise
        known = table_facts(columns) | {name: arguments[name] for name in ("problem", "target")}
        shown = f"{_listed(known | {'columns': len(columns)})}\n\n{column_table(columns)}"
        if isinstance(error, NoTargetError) and arguments["problem"] == "regression":
            advice = str(error)[0].upper() + str(error)[1:]
            say(json.dumps(known | {"advice": advice}) if as_json else f"{shown}\n\n{advice}")
            return
        if not as_json:
            say(shown)
        raise
    if facts["problem_hash"] is not None:
        try:
            problem = read_problem(arguments, quiet=True)
        except InputError:
            if not as_json:
                say(_listed(facts | {"problem_hash": None}))
            raise
        facts |= {**problem_facts(problem), **(root_facts(problem) if root else {})}
    if as_json:
        say(json.dumps(facts, allow_nan=False))
        return
    say(_listed(facts))


def _listed(facts: Mapping[str, Any]) -> str:
    """One line per fact."""
    lines = []
    for name, value in facts.items():
        shown = f"{value:.6g}" if isinstance(value, float) and not math.isinf(value) else value
        lines.append(f"{name:<20} {'-' if shown is None else shown}")
    return "\n".join(lines)
