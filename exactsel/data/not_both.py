"""Pairs that exclude each other as people write them: ``a, b``, on the command line or as the lines of a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from exactsel.data.arrays import read_text
from exactsel.data.column_lists import meant
from exactsel.errors import InputError, option
from exactsel.files import is_file

HOW = "write the two columns with a comma between them, or name a file with a line for each pair"


def read_not_both(texts: Sequence[str], names: Sequence[str] | None) -> dict[str, Any]:
    """What a problem takes, from texts ``a,b`` and names of files with lines ``a, b``.

    Raises
    ------
    InputError
        When a file cannot be read, or a text or line names fewer than two columns.
    """
    pairs: list[list[Any]] = []
    for text in texts:
        if not text.strip():
            raise InputError(f"{option('not_both')} is empty, but a pair of columns was expected; {HOW}.")
        lines = [text]
        if is_file(text):
            try:
                lines = read_text(Path(text)).splitlines()
            except (OSError, ValueError) as error:
                raise InputError(f"the pairs cannot be read from {text} ({error}); {HOW}.") from None
        pairs += not_both_in(lines, text if is_file(text) else option("not_both"), names)["not_both"]
    return {"not_both": pairs}


def not_both_in(lines: Sequence[str], where: str, names: Sequence[str] | None) -> dict[str, Any]:
    """The pairs some lines say, ``#`` beginning a comment; messages call the lines ``where``, errors are as above."""
    pairs: list[list[Any]] = []
    for line in lines:
        text = line.partition("#")[0].strip()
        if text:
            pairs.append(meant([text], names or ()))
            if len(pairs[-1]) < 2:
                raise InputError(f"{where} holds {text[:60]!r}, which is no pair of columns; {HOW}.")
    return {"not_both": pairs}
