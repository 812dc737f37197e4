"""``exactsel compare``."""

from __future__ import annotations

from typing import Any

import click

from exactsel.cli.command_lines import command_text
from exactsel.cli.helping import Command
from exactsel.cli.named_files import OutputFile
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


@click.command("compare", cls=Command)
@problem_options
@click.option("--heuristic", "heuristics", help="Compare these methods, separated by commas. Default: six light ones.")
@click.option("--all", "every", is_flag=True, help="Compare all reproducible methods that serve the problem.")
@setting_options(
    *STEERING,
    "bound",
    defaults={"time_limit": 60.0},
    time_limit="Stop each method, and the search, after this many seconds. Default: no limit.",
    eps="Stop the exact search at this absolute gap.",
    rel_eps="Stop the exact search at this gap relative to |upper|.",
    seed="Seed the random choices of the methods. --seeds counts from here.",
    threads="Use this many threads for the exact search. Default: all cores.",
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Run each random method this many times, with seeds from --seed on.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object in place of the table.")
@click.option(
    "--html", "page_file", type=OutputFile(), help="Write a self-contained HTML page of the comparison to this file."
)
def command(
    heuristics: str | None, every: bool, seeds: int, as_json: bool, page_file: str | None, **arguments: Any,
) -> int:  # fmt: skip
    """Run many methods and the exact search on INSTANCE and print them side by side.

    All gaps are certified. Exit code 0 means that the exact search proved its model, 1 that a gap is left.
    """
    from exactsel.cli.output import reported
    from exactsel.errors import InputError
    from exactsel.files import check_target, write_bytes
    from exactsel.studies.compare import ALL, compare
    from exactsel.studies.comparison_table import comparison_table

    if every and heuristics is not None:
        raise InputError("--all and --heuristic both say which methods to compare; give one of them.")
    check_target(page_file)
    problem = read_problem(arguments)
    options = {name: arguments[name] for name in (*STEERING, "bound")}
    catch_signals()
    comparison = compare(
        problem,
        methods=ALL if every else heuristics,
        seeds=seeds,
        signals=SIGNALS,
        alone=page_file is not None,
        **options,
    )
    if page_file is not None:
        from exactsel.report.comparison_page import comparison_page

        page = comparison_page(comparison, command=command_text(left_out=("page_file", "as_json")))
        with reported(page_file):
            write_bytes(page_file, page.encode())
    say(comparison.to_json() if as_json else comparison_table(comparison))
    return exit_code(comparison.result.reached, comparison.result.termination)
