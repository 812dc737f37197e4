"""The kinds of constraints on which units go together: a new one is a file of its own, and a few words here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import hierarchy, not_both
from .demands import Demands
from .group_limits import limited
from .values import Outside, listed

READERS: dict[str, Callable[..., dict[str, Any]]] = {"hierarchy": hierarchy.read, "not_both": not_both.read}
"""What makes arguments of the check of lines that people write, by the name of the option and of the member."""

ARGUMENTS: dict[str, Any] = {"hierarchy": (), "kind": "strong", "not_both": (), "per_group": None}
"""What the check takes of them, and what they are where there is no such constraint."""


def arguments_of(related: dict[str, Any]) -> dict[str, Any]:
    """All of :data:`ARGUMENTS`, as they are given or without a constraint."""
    unknown = next((name for name in related if name not in ARGUMENTS), None)
    if unknown is not None:
        raise TypeError(f"{unknown!r} is no argument of the check; its constraints are {', '.join(ARGUMENTS)}")
    return ARGUMENTS | related


def is_asked(related: dict[str, Any]) -> bool:
    """Whether these arguments state a constraint."""
    lists = [listed("a constraint", related[name]) for name in READERS]
    return any(map(len, lists)) or related["per_group"] is not None


def demands_of(related: dict[str, Any], groups: list[list[int]], d: int) -> tuple[Demands | None, list[list[int]]]:
    """The constraint of these arguments, and the groups that are chosen: none where there are limits on them."""
    count = len(groups) or d
    constraints: list[Demands | None] = [
        hierarchy.of_pairs(related["hierarchy"], related["kind"], count),
        not_both.of_pairs(related["not_both"], count),
    ]
    if related["per_group"] is not None:
        if any(constraints):
            raise Outside("there are limits on groups and another constraint, but only one of the two was expected.")
        return limited(groups, related["per_group"]), []
    if all(constraints):
        raise Outside("there are a hierarchy and pairs that exclude each other, but only one of them was expected.")
    return constraints[0] or constraints[1], groups
