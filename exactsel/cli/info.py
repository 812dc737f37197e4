"""``exactsel info``."""

from __future__ import annotations

import math
from typing import Any

import click

from exactsel.cli.options import problem_options, warnings_as_lines


@click.command("info")
@problem_options
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def command(instance: str, problem: str, as_json: bool, **overrides: Any) -> None:
    """Say what an instance file holds: sizes, parameters, rank, constant and duplicate columns, supports."""
    import json

    from exactsel.instance import read_instance
    from exactsel.report.facts import instance_facts

    with warnings_as_lines():
        facts = instance_facts(read_instance(instance), problem, **overrides)
    if as_json:
        click.echo(json.dumps(facts, allow_nan=False))
        return
    for name, value in facts.items():
        shown = f"{value:.6g}" if isinstance(value, float) and not math.isinf(value) else value
        click.echo(f"{name:<20} {'-' if shown is None else shown}")
