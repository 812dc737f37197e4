"""The meaning of names in text lines about units, columns or groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set


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


def lines_of(lines: Iterable[str]) -> list[str]:
    """The lines that say something; ``#`` begins a comment."""
    return [text for text in (line.partition("#")[0].strip() for line in lines) if text]


def unit_named(text: str, called: Mapping[str, Set[int]], units: int, where: str) -> int:
    """The only unit of a name, or else the unit of a number; ValueError where there is none."""
    name = text.strip()
    found = called.get(name, frozenset())
    if len(found) == 1:
        return next(iter(found))
    if not found and name.isascii() and name.isdecimal() and len(name) <= 9 and int(name) < units:
        return int(name)
    raise ValueError(f"{where} names {name!r}, but no single column or group is called that; give its number.")
