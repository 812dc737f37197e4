"""The options of commands whose searches others may help with."""

from __future__ import annotations

from typing import Any

import click

from exactsel.cli.options import Decorated


def worker_options(function: Decorated) -> Decorated:
    """Options for the executor of nodes, under the names :func:`exactsel.solve` has for them."""
    for option in reversed(
        [
            click.option(
                "--executor", type=click.Choice(("serial", "processes", "dask")),
                help="Expand nodes in this process, in worker processes, or on a Dask cluster. The tree is the same. "
                "Default: threads of this process.",
            ),
            click.option(
                "--workers", type=click.IntRange(min=1),
                help="Start this many worker processes. Default: one for each core.",
            ),
            click.option(
                "--scheduler",
                help="Use the Dask scheduler at this address, tcp://HOST:PORT. Default: workers on this machine.",
            ),
        ]
    ):  # fmt: skip
        function = option(function)
    return function


def workers_of(arguments: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments of exactsel.solve from the options about workers among ``arguments``."""
    return {name: arguments[name] for name in ("executor", "workers", "scheduler")}
