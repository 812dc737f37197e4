"""A hierarchy as people write it: ``child: parent, parent``, a line for each unit that has parents."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set

from exactsel_certificates.formula import KINDS, Hierarchy


def meant(units: Sequence[Sequence[int]], labels: Sequence[str], columns: Sequence[str]) -> dict[str, set[int]]:
    """The units each name means: the group of that label, or else those with a column of that name."""
    groups: dict[str, set[int]] = {}
    others: dict[str, set[int]] = {}
    for g, unit in enumerate(units):
        for j in unit:
            for known, names in ((groups, labels), (others, columns)):
                if j < len(names) and names[j]:
                    known.setdefault(names[j], set()).add(g)
    return others | groups


def read_hierarchy(lines: Iterable[str], called: Mapping[str, Set[int]], units: int) -> Hierarchy | None:
    """The hierarchy some lines say; None where they name no parents.

    Parameters
    ----------
    lines : iterable of str
        ``#`` begins a comment. The first line may say ``weak`` or ``strong``, without which it is strong.
    called : mapping from str to set of int
        The units of each name; a text that is no name of one unit, but a number below ``units``, is that one.

    Raises
    ------
    ValueError
        When the lines are none of a hierarchy, in one sentence.
    """
    said = [text for text in (line.partition("#")[0].strip() for line in lines) if text]
    kind = said.pop(0) if said and said[0] in KINDS else KINDS[0]
    parents: dict[int, tuple[int, ...]] = {}
    for text in said:
        # Names may hold colons; the one that ends the child is followed by a blank, or is the only one.
        found = re.fullmatch(r"(.*?):(?:\s+(.*))?", text) or re.fullmatch(r"([^:]*):([^:]*)", text)
        if found is None:
            raise ValueError(f"the hierarchy holds the line {text!r}, but 'child: parent, parent' was expected.")
        child = _unit(found[1], called, units)
        own = [_unit(name, called, units) for name in (found[2] or "").split(",") if name.strip()]
        if child in parents or child in own or len({*own}) < len(own):
            raise ValueError(f"the hierarchy names {found[1].strip()!r} or one of its parents twice; name each once.")
        parents[child] = tuple(sorted(own))
    listed = tuple(sorted((child, own) for child, own in parents.items() if own))
    return Hierarchy(kind, listed) if listed else None


def _unit(text: str, called: Mapping[str, Set[int]], units: int) -> int:
    name = text.strip()
    found = called.get(name, frozenset())
    if len(found) == 1:
        return next(iter(found))
    if not found and name.isascii() and name.isdecimal() and len(name) <= 9 and int(name) < units:
        return int(name)
    raise ValueError(f"the hierarchy names {name!r}, but no single column or group is called that; give its number.")
