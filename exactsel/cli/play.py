"""``exactsel play``."""

from __future__ import annotations

from typing import Any

import click

from exactsel.cli.helping import Command
from exactsel.cli.named_files import OutputFile
from exactsel.cli.options import (
    SIGNALS,
    catch_signals,
    exit_code,
    problem_options,
    read_problem,
)
from exactsel.cli.plain_options import plain_options, plain_settings


@click.command("play", cls=Command)
@problem_options
@plain_options
@click.option("--html", "page_file", type=OutputFile(), required=True, help="The page to write.")
def command(page_file: str, **arguments: Any) -> int:
    """Write a page in which the search of a small INSTANCE can be watched step by step.

    The page opens from disk in any browser. Unless told otherwise the search is plain best-first search, which takes
    one node at a time, starts from greedy's model, and stops after 200 nodes. Exit code 0 means that the page was
    written.
    """
    from exactsel.files import check_target, write_bytes
    from exactsel.report.player import player_page
    from exactsel.solving.choose import FAMILIES
    from exactsel.solving.entry import solve

    check_target(page_file)
    problem = read_problem(arguments)
    if arguments["heuristics"] is None:
        arguments["heuristics"] = FAMILIES[problem.family].greedy
    settings = plain_settings(problem, arguments)
    if settings["node_limit"] is None:
        settings["node_limit"] = 200
    catch_signals()
    result = solve(problem, record=True, signals=SIGNALS, **settings)
    write_bytes(page_file, player_page(problem, result).encode())
    return exit_code(True, result.termination)
