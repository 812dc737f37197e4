"""The option --status: how far a search has come that saves itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from exactsel.cli.named_files import InputFile, label
from exactsel.cli.talk import say

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class InstanceOrStatus(click.Argument):
    """The data, which may be missing where --status is given."""

    def process_value(self, ctx: click.Context, value: object) -> object:
        """Return the file, or None beside --status, which is eager and so known by now."""
        if isinstance(ctx.params.get("status"), str) and self.value_is_missing(value):
            return None
        return super().process_value(ctx, value)


def status_option(function: Decorated) -> Decorated:
    """The option that shows the state of a checkpoint in place of a search."""
    text = "Print the progress of the search, path or list that this file holds, running or not, and do nothing else."
    return click.option("--status", type=InputFile(), is_eager=True, help=text)(function)


def print_status(checkpoint: str, as_json: bool) -> int:
    """Print what a checkpoint says of its search and return the exit code."""
    from exactsel.errors import InputError
    from exactsel.solving.status import status_of

    context = click.get_current_context()
    for parameter in context.command.params:
        name = str(parameter.name)
        if name not in ("status", "as_json") and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise InputError(
                f"--status reads a checkpoint and searches nothing, but {label(parameter)} is given; leave it out."
            )
    status = status_of(checkpoint)
    if as_json:
        say(json.dumps(status.as_dict(), allow_nan=False))
        return 0
    for name, value in status.lines():
        say(f"{name:<9} {value}")
    return 0
