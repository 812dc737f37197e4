"""The meaning of names in text lines about units, for the second checker."""

from __future__ import annotations

from typing import TypeGuard


class Unclear(Exception):
    """Lines say nothing that can be read; the text says why, in one sentence."""


def units_of(labels: list[str], columns: object, d: int) -> tuple[dict[str, set[int]], int]:
    """The units of each name, and how many there are, of d columns in groups by their labels, if there are any."""
    if not _texts(columns) or len(columns) not in (0, d):
        raise Unclear("the names of columns are no list of texts, one for each column; write them as such.")
    place: dict[str | int, int] = {}
    unit_of = [place.setdefault((labels[j] if j < len(labels) else "") or j, len(place)) for j in range(d)]
    names: dict[str, set[int]] = {}
    for j, name in enumerate(columns):
        names.setdefault(name, set()).add(unit_of[j])
    return names | {label: {place[label]} for label in labels if label in place}, len(place)


def said(lines: object) -> list[str]:
    """The lines that say something; ``#`` begins a comment."""
    if not _texts(lines):
        raise Unclear("a hierarchy or pairs are no list of texts; write them as such.")
    return [text for text in (line.split("#")[0].strip() for line in lines) if text]


def number_of(part: str, names: dict[str, set[int]], count: int) -> int:
    """The only unit of a name, or else that of a number."""
    name = part.strip()
    found = names.get(name, set())
    if len(found) == 1:
        return min(found)
    if not found and name.isascii() and name.isdigit() and len(name) < 10 and int(name) < count:
        return int(name)
    raise Unclear(f"{name!a} is the name of no column or group, or of several; give its number.")


def _texts(values: object) -> TypeGuard[list[str]]:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)
