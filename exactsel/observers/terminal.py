"""Tables that fit: in a narrow terminal the least important columns are dropped, in a pipe or file none."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TextIO


def terminal_width(stream: TextIO) -> int | None:
    """Characters in a line of the terminal a stream goes to; None where it goes elsewhere."""
    try:
        return os.get_terminal_size(stream.fileno()).columns if stream.isatty() else None
    except (OSError, ValueError):  # no terminal after all, or a stream without a file
        return None


def fitting(widths: Mapping[str, int], less_important: Sequence[str], width: int | None) -> list[str]:
    """The columns of a table that fit into ``width``; those of ``less_important`` are dropped in order."""
    columns = list(widths)
    for name in less_important:
        if width is None or sum(widths[column] + 1 for column in columns) <= width:
            break
        if name in columns:
            columns.remove(name)
    return columns
