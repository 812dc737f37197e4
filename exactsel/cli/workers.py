"""The options of commands whose searches others may help with."""

from __future__ import annotations

from typing import Any

import click

from exactsel.cli.options import Decorated


def worker_options(function: Decorated) -> Decorated:
    """Who expands nodes, under the names :func:`exactsel.solve` has for it."""
    for option in reversed(
        [
            click.option(
                "--executor", type=click.Choice(("serial", "processes", "dask")),
                help="Who expands nodes; the tree is the same.",
            ),
            click.option(
                "--workers", type=click.IntRange(min=1), help="How many processes; one for each core by default."
            ),
            click.option(
                "--scheduler", help="Address of a Dask scheduler, tcp://HOST:PORT; else workers are started here."
            ),
        ]
    ):  # fmt: skip
        function = option(function)
    return function


def workers_of(arguments: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments of exactsel.solve from the options about workers among ``arguments``."""
    return {name: arguments[name] for name in ("executor", "workers", "scheduler")}
