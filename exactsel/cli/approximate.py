"""``exactsel solve --method``: an approximate method in place of the search, with a certified gap."""

from __future__ import annotations

import ast
from typing import Any

import click

from exactsel.cli.compiling import tell_of_compiling
from exactsel.cli.options import SIGNALS, STEERING, Decorated, catch_signals, exit_code, read_problem
from exactsel.cli.saving import refuse_given
from exactsel.cli.talk import say
from exactsel.errors import InputError

SETTINGS = (*STEERING, "bound")
"""The settings of a search that an approximate method takes, too."""

OF_A_SEARCH = (
    "proof", "trace", "report", "recheck", "log_interval", "shared", "checkpoint", "checkpoint_every", "resume",
    "executor", "workers", "scheduler", "node_limit", "memory_limit", "tree", "branching", "frontier", "closer",
    "heuristics", "batch", "shard", "warm_start", "force_quit", "subtrees",
)  # fmt: skip
"""Options that a method without a search has no use for."""


def method_options(function: Decorated) -> Decorated:
    """Which method runs in place of the search, and its options."""
    method = (
        "Run this approximate method in place of the search and bound its gap. 'exactsel dev plugins' lists the "
        "methods. The bound is that of the root; a time limit raises it."
    )
    option_help = "Set an option of --method. May be repeated."
    function = click.option("--set", "options", multiple=True, metavar="NAME=VALUE", help=option_help)(function)
    return click.option("--method", metavar="NAME", help=method)(function)


def run_method(arguments: dict[str, Any]) -> int:
    """Run the method, print its model and gap, and return the exit code."""
    from exactsel.report.model import result_table
    from exactsel.studies import heuristics

    refuse_given(OF_A_SEARCH, "--method runs no search")
    heuristic = heuristics.make(arguments["method"], _parsed(arguments["options"]))
    problem = read_problem(arguments)
    tell_of_compiling(problem, arguments["quiet"], searches=False)
    catch_signals()
    result = heuristics.run(heuristic, problem, signals=SIGNALS, **{name: arguments[name] for name in SETTINGS})
    if not arguments["quiet"]:
        say(str(result), err=True)
    say(result.to_json() if arguments["as_json"] else result_table(result))
    return exit_code(result.reached, result.termination)


def _parsed(options: tuple[str, ...]) -> dict[str, Any]:
    """``("iterations=1000", "isolation=constant")`` as a dictionary; values are Python literals, else texts."""
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
