"""The options that say which columns go together: a new kind of constraint has its options here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from exactsel.cli.named_files import FileOrText

DEMANDS = ("hierarchy", "not_both", "per_group")
"""Parameters that demand something of the columns of a model."""

NAMES = ("groups", *DEMANDS)
"""All parameters that say which columns go together."""


def constraint_options() -> list[Callable[[Any], Any]]:
    """The options, in the order in which help shows them."""
    return [
        click.option(
            "--groups",
            type=FileOrText(),
            help="Groups of columns that count once: a .json or .csv file, or 'NAME=COLUMN,COLUMN;NAME=PATTERN*'.",
        ),
        click.option("--per-group", type=int, metavar="N", help="Choose columns, at most N from each group."),
        click.option(
            "--hierarchy",
            type=FileOrText(),
            metavar="FILE",
            help="Columns (or groups) only together with their parents: lines 'child: parent, parent', first line "
            "weak where one parent is enough; or 'names' for columns called a*b, a:b, a^2.",
        ),
        click.option(
            "--not-both",
            type=FileOrText(),
            multiple=True,
            metavar="a,b|FILE",
            help="Columns (or groups) of which a model holds at most one, or a file with a line for each pair; "
            "repeat it for more pairs.",
        ),
    ]
