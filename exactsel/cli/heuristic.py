"""``exactsel heuristic``."""

from __future__ import annotations

import ast
from typing import Any

import click

from exactsel.cli.compiling import tell_of_compiling
from exactsel.cli.helping import Command
from exactsel.cli.options import (
    SIGNALS,
    STEERING,
    catch_signals,
    exit_code,
    problem_options,
    read_problem,
    setting_options,
)
from exactsel.cli.talk import say


@click.command("heuristic", cls=Command)
@click.argument("method")
@problem_options
@click.option("--set", "options", multiple=True, metavar="NAME=VALUE", help="An option of the method; may be repeated.")
@setting_options(
    *STEERING,
    "bound",
    seed="Seed of the method's random choices.",
    time_limit="Seconds for the method and then for raising the bound; root bound only.",
    threads="Threads of the search; all cores by default.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@click.option("--quiet", is_flag=True, help="No report on stderr.")
def command(method: str, options: tuple[str, ...], as_json: bool, quiet: bool, **arguments: Any) -> int:
    """Run the method METHOD on INSTANCE and certify how far from optimal its answer is.

    `exactsel dev plugins` lists the methods. Exit code 0 means the answer is proven to be within the tolerance, 1 that
    a gap is left.
    """
    from exactsel.report.model import result_table
    from exactsel.studies import heuristics

    heuristic = heuristics.make(method, _parsed(options))
    problem = read_problem(arguments)
    tell_of_compiling(problem, quiet, searches=False)
    catch_signals()
    result = heuristics.run(
        heuristic, problem, signals=SIGNALS, **{name: arguments[name] for name in (*STEERING, "bound")}
    )
    if not quiet:
        say(str(result), err=True)
    say(result.to_json() if as_json else result_table(result))
    return exit_code(result.reached, result.termination)


def _parsed(options: tuple[str, ...]) -> dict[str, Any]:
    """``("iterations=1000", "isolation=constant")`` as a dictionary; values are Python literals, else texts."""
    from exactsel.errors import InputError

    parsed: dict[str, Any] = {}
    for option in options:
        name, equals, text = option.partition("=")
        if not equals or not name.strip():
            raise InputError(f"--set {option} is no option of a method; write it as --set NAME=VALUE.")
        try:
            value = ast.literal_eval(text.strip())
        except (ValueError, SyntaxError):
            value = text.strip()
        parsed[name.strip().replace("-", "_")] = value
    return parsed
