"""Time limits of commands, which hold from when a file is read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click
from click.core import ParameterSource

from exactsel import clock
from exactsel.deadlines import within

ONE_LIMIT = ("solve", "certify", "best", "play")
"""Commands whose time limit is for one run, with reading in it."""

WORTH_COUNTING = 0.5
"""Seconds of reading from which on they are taken off the limit, which else stays the number that was given."""


@contextmanager
def reading_in_time(arguments: dict[str, Any]) -> Iterator[None]:
    """A block of reading within the time limit that was given; where that is for one run, the time is taken off it."""
    context, limit = click.get_current_context(silent=True), arguments.get("time_limit")
    if limit is None or context is None or context.get_parameter_source("time_limit") is ParameterSource.DEFAULT:
        yield
        return
    began = clock.now()
    with within(limit):
        yield
    spent = clock.now() - began
    if spent > WORTH_COUNTING and context.info_name in ONE_LIMIT:
        arguments["time_limit"] = max(0.0, limit - spent)
