"""The door through which the command line prints: nothing passes that a terminal would obey."""

from __future__ import annotations

import click

from exactsel.errors import escaped


def say(text: str, err: bool = False) -> None:
    """Print a text of one or several lines, anything unprintable in it escaped."""
    click.echo(escaped(text, keep="\n"), err=err)


def say_line(text: str, err: bool = True) -> None:
    """Print one line, by default to stderr; a line break in the text is escaped as well."""
    click.echo(escaped(text), err=err)
