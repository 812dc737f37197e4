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
            help=(
                "Count each of these groups of features once: a .json or .csv file, or "
                "'NAME=COLUMN,COLUMN;NAME=PATTERN*'."
            ),
        ),
        click.option("--per-group", type=int, metavar="N", help="Choose single features, at most N from each group."),
        click.option(
            "--hierarchy",
            type=FileOrText(),
            metavar="FILE",
            help=(
                "Choose features only together with their parents. Write lines 'child: parent, parent' into a "
                "file, and weak as its first line if one parent is enough. 'names' reads parents from names "
                "like a*b, a:b and a^2."
            ),
        ),
        click.option(
            "--not-both",
            type=FileOrText(),
            multiple=True,
            metavar="a,b|FILE",
            help="Allow at most one of these two features. May be repeated. A file holds a pair a line.",
        ),
    ]
