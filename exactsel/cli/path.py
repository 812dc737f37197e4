"""``exactsel path``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from exactsel.cli.options import SIGNALS, exit_code, problem_options, read_problem, search_options, search_settings


@click.command("path")
@problem_options
@click.option("--k-max", type=int, help="All sizes from 1 to this; by default to the instance's k.")
@click.option("--ks", help="Sizes, separated by commas, instead of --k-max.")
@click.option("--lams", help="Ridge weights, separated by commas; the instance's own by default.")
@search_options
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def command(k_max: int | None, ks: str | None, lams: str | None, as_json: bool, **arguments: Any) -> int:
    """Find the best model of every size (and for every ridge weight), each with its certified gap.

    Limits hold for each problem. Exit code 0 means that the tolerance is proven for all of them.
    """
    from exactsel.errors import InputError
    from exactsel.path import solve_path
    from exactsel.report.path import path_table

    if k_max is not None and ks is not None:
        raise InputError("--k-max and --ks both say which sizes; give one of them.")
    sizes = _numbers(ks, int, "--ks 1,2,5")
    weights = _numbers(lams, float, "--lams 1,0.1,0.01")
    if arguments["k"] is None:
        arguments["k"] = k_max if k_max is not None else max(sizes) if sizes else None
    problem = read_problem(arguments)
    settings = search_settings(arguments)
    if k_max is not None:
        sizes = list(range(1, k_max + 1))
    path = solve_path(problem, sizes, weights, signals=SIGNALS, **settings)
    click.echo(path.to_json() if as_json else path_table(path))
    return exit_code(path.reached, path.results[-1].termination)


def _numbers(text: str | None, kind: Callable[[str], Any], example: str) -> list[Any] | None:
    from exactsel.errors import InputError

    if text is None:
        return None
    try:
        return [kind(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise InputError(f"'{text}' is no list of numbers; write it as {example}.") from None
