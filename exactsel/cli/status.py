"""``exactsel status``."""

from __future__ import annotations

import json

import click

from exactsel.cli.helping import Command
from exactsel.cli.named_files import InputFile
from exactsel.cli.talk import say


@click.command("status", cls=Command, examples=("status run.ckpt", "status run.ckpt --json"))
@click.argument("checkpoint", type=InputFile())
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def command(checkpoint: str, as_json: bool) -> None:
    """Say how far a search, a path or a list of close models has come that saves itself to CHECKPOINT, at work or not.

    The bounds are those the search has told last; they hold whatever becomes of it. Whichever of 'exactsel solve',
    'path' and 'near' has begun it goes on with it, once it has ended, by --resume CHECKPOINT.
    """
    from exactsel.solving.status import status_of

    status = status_of(checkpoint)
    if as_json:
        say(json.dumps(status.as_dict(), allow_nan=False))
        return
    for name, value in status.lines():
        say(f"{name:<9} {value}")
