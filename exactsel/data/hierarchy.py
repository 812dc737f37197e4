"""A hierarchy as people write it: a file of lines ``child: parent, parent``, or the names of the columns themselves."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from exactsel.data.arrays import read_text
from exactsel.errors import InputError
from exactsel.problem.hierarchy import KINDS, parents_by_name

BY_NAME = "names"
"""In place of a file: products and powers by the names of the columns."""

HOW = "write lines of 'child: parent, parent', after a first line 'weak' if one parent is enough"

# Names may hold colons; the one that ends the child is followed by a blank, or is the only one.
_LINE = re.compile(r"(.*?):(?:\s+(.*))?|([^:]*):([^:]*)")


class WrittenHierarchy(NamedTuple):
    """Names or numbers as they were written."""

    parents: dict[str, list[str]]
    kind: str

    def as_options(self) -> dict[str, Any]:
        """What a problem takes."""
        return {"hierarchy": self.parents, "hierarchy_kind": self.kind}


def read_hierarchy(text: str, names: Sequence[str] | None) -> WrittenHierarchy:
    """The hierarchy in a file, or that of the columns' ``names`` where ``text`` is ``names``.

    Raises
    ------
    InputError
        When the file cannot be read or holds anything else, or no name is that of a product or power of others.
    """
    if text == BY_NAME:
        parents = parents_by_name(names or ())
        if not parents:
            raise InputError("no column is called like a product or power of others (a*b, a:b, a^2); name a file.")
        return WrittenHierarchy(parents, KINDS[0])
    file = Path(text)
    try:
        lines = read_text(file).splitlines()
    except (OSError, ValueError) as error:
        raise InputError(f"the hierarchy cannot be read from {file} ({error}); {HOW}.") from None
    return hierarchy_in(lines, str(file))


def hierarchy_in(lines: Sequence[str], name: str) -> WrittenHierarchy:
    """The hierarchy some lines say; messages call them ``name``, errors as for :func:`read_hierarchy`."""
    said = [line for line in (line.partition("#")[0].strip() for line in lines) if line]
    kind = said.pop(0) if said and said[0] in KINDS else KINDS[0]
    parents: dict[str, list[str]] = {}
    for line in said:
        parts = _LINE.fullmatch(line)
        if parts is None:
            raise InputError(f"{name} holds the line '{line[:60]}', which names no child and parents; {HOW}.")
        child = (parts[1] if parts[3] is None else parts[3]).strip()
        if child in parents:
            raise InputError(f"{name} names '{child}' twice; give all its parents in one line.")
        above = parts[2] if parts[3] is None else parts[4]
        parents[child] = [name for name in (parent.strip() for parent in (above or "").split(",")) if name]
    if not parents:
        raise InputError(f"{name} names no parents; {HOW}.")
    return WrittenHierarchy(parents, kind)
