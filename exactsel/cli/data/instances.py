"""``exactsel data instances``."""

from __future__ import annotations

import click

from exactsel.cli.named_files import FileCommand, OutputFolder
from exactsel.cli.talk import say


@click.command("instances", cls=FileCommand)
@click.option(
    "--copy",
    "target",
    type=OutputFolder(),
    metavar="FOLDER",
    help="Copy the instances into this folder.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
def command(target: str | None, as_json: bool) -> None:
    """List the instances that come with exactsel, and what each of them shows, or copy them."""
    import json
    import textwrap

    from exactsel.data.shipped import copy_to, shipped

    instances = shipped()
    if as_json:
        rows = [
            {"file": instance.file.name, "rows": instance.rows, "columns": instance.columns, "point": instance.point}
            for instance in instances
        ]
        say(json.dumps({"instances": rows}))
    if target is not None:
        say(f"{len(copy_to(target))} instances are in {target}", err=True)
    elif not as_json:
        width = max(len(instance.file.name) for instance in instances)
        for instance in instances:
            head = f"{instance.file.name:<{width}}  {f'{instance.rows} x {instance.columns}':<9}  "
            say(textwrap.fill(instance.point, 110, initial_indent=head, subsequent_indent=" " * len(head)))
        say("exactsel data instances --copy instances writes them into a folder.", err=True)
