"""Options of commands whose search is saved in a checkpoint and resumed from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from exactsel.cli.named_files import OutputFile, label
from exactsel.cli.options import Seconds, search_settings
from exactsel.errors import InputError

BESIDE = ("-wal", "-shm", "-journal")
"""Endings of what SQLite writes beside a checkpoint."""

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def checkpoint_options(function: Decorated) -> Decorated:
    """The options for the checkpoint: its file, its interval, and the file to resume from."""
    for option in reversed(
        [
            click.option(
                "--checkpoint", type=OutputFile(BESIDE),
                help="Save the search to this file while it runs. --resume continues from it.",
            ),
            click.option(
                "--checkpoint-every", type=Seconds(min=0),
                help=("Save a state after this many seconds, or after every round with 0. Default: 30, and at most a "
"fiftieth of the time."),
            ),
            click.option(
                "--resume", type=OutputFile(BESIDE),
                help="Continue from this checkpoint, and save to it. Limits may change, and all else stays.",
            ),
        ]
    ):  # fmt: skip
        function = option(function)
    return function


def saving(arguments: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments of exactsel.solve: the settings, those given alone where a search is resumed, and the files."""
    settings = search_settings(arguments)
    if arguments["resume"] is not None:
        settings = {name: value for name, value in settings.items() if given(name)}
    files = {name: arguments[name] for name in ("checkpoint", "checkpoint_every", "resume")}
    return settings | {name: value for name, value in files.items() if value is not None}


def given(name: str) -> bool:
    """Whether the command line sets the parameter, as opposed to its default."""
    return click.get_current_context().get_parameter_source(name) is not ParameterSource.DEFAULT


def refuse_given(names: Iterable[str], reason: str) -> None:
    """Refuse the first of these parameters that the command line sets."""
    parameters = {each.name: each for each in click.get_current_context().command.params}
    for name in names:
        if given(name):
            raise InputError(f"{reason}, but {label(parameters[name])} is given; leave it out.")
