"""``exactsel data convert``."""

from __future__ import annotations

from typing import Any

import click

from exactsel.cli.constraint_arguments import labels_of_groups
from exactsel.cli.constraint_options import DEMANDS
from exactsel.cli.helping import Command
from exactsel.cli.named_files import OutputFile
from exactsel.cli.options import problem_options, read_file, warnings_as_lines
from exactsel.cli.talk import say


@click.command("convert", cls=Command)
@problem_options
@click.argument("out", type=OutputFile())
def command(out: str, **arguments: Any) -> None:
    """Write the data of INSTANCE to the .npz file OUT, with the k, lam, loss, weights and groups that you give.

    The column y, or --target, becomes the target. Equal data give equal bytes, from any kind of file.
    """
    from dataclasses import replace

    from exactsel.data.instance import write_instance
    from exactsel.data.tables import with_labels
    from exactsel.errors import InputError

    overrides = {name: arguments[name] for name in ("k", "lam", "loss", "delta") if arguments[name] is not None}
    if any(arguments[name] for name in ("scale", "offset", "force_in", "force_out", *DEMANDS)):
        raise InputError(
            "an instance file holds features as they are and no constraints; leave these options to solve."
        )
    overrides |= {} if arguments["intercept"] is None else {"intercept": arguments["intercept"]}
    with warnings_as_lines():
        instance = with_labels(replace(read_file(arguments), **overrides))
    if arguments["groups"] is not None:
        instance = replace(instance, groups=labels_of_groups(arguments["groups"], instance))
    if arguments["problem"] == "css":
        instance = replace(instance, y=None, intercept=None)
    write_instance(out, instance)
    rows, columns = instance.A.shape
    say(f"{out}: n={rows} d={columns}{'' if instance.y is None else ', with a target'}", err=True)
