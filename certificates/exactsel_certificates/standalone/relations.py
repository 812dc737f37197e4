"""A hierarchy from lines ``child: parent, parent``, for the second checker."""

from __future__ import annotations

from typing import Any

from .hierarchy import KINDS


class Unclear(Exception):
    """Lines are none of a hierarchy; the text says why, in one sentence."""


def relations(lines: Any, labels: list[str], columns: Any, d: int) -> dict[str, Any]:
    """``hierarchy`` and ``kind`` as the check takes them; of d columns in groups by their labels, if there are any."""
    if not _texts(lines) or not (_texts(columns) and len(columns) in (0, d)):
        raise Unclear("the hierarchy or the names of columns are no list of texts; write them as such.")
    place: dict[Any, int] = {}
    unit_of = [place.setdefault((labels[j] if j < len(labels) else "") or j, len(place)) for j in range(d)]
    names: dict[str, set[int]] = {}
    for j, name in enumerate(columns):
        names.setdefault(name, set()).add(unit_of[j])
    names |= {label: {place[label]} for label in labels if label in place}
    held: dict[int, list[int]] = {}
    kind = ""
    for line in lines:
        text = line.split("#")[0].strip()
        if not text:
            continue
        if text in KINDS and not kind and not held:
            kind = text
            continue
        child, parents = _parted(text)
        own = [_number(part, names, len(place)) for part in parents.split(",") if part.strip()]
        j = _number(child, names, len(place))
        if j in held or len({j, *own}) <= len(own):
            raise Unclear(f"the line {text!a} names a unit that was named already; name each once.")
        held[j] = sorted(own)
    return {"hierarchy": sorted((j, own) for j, own in held.items() if own), "kind": kind or KINDS[0]}


def _texts(values: object) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def _parted(text: str) -> tuple[str, str]:
    """Child and parents: what is before and after the first colon that ends a word, or the only one."""
    for place, letter in enumerate(text):
        if letter == ":" and not text[place + 1 : place + 2].strip():
            return text[:place], text[place + 1 :]
    if text.count(":") != 1:
        raise Unclear(f"the line {text!a} is none like 'child: parent, parent'; correct it.")
    child, _, parents = text.partition(":")
    return child, parents


def _number(part: str, names: dict[str, set[int]], count: int) -> int:
    name = part.strip()
    found = names.get(name, set())
    if len(found) == 1:
        return min(found)
    if not found and name.isascii() and name.isdigit() and len(name) < 10 and int(name) < count:
        return int(name)
    raise Unclear(f"{name!a} is the name of no column or group, or of several; give its number.")
