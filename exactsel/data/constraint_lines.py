"""Constraints that people write as lines: in instance files, and in files that the command line names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from exactsel.data.hierarchy import hierarchy_in, read_hierarchy
from exactsel.data.not_both import not_both_in, read_not_both
from exactsel.problem.constraints import ARGUMENTS

Lines: TypeAlias = Callable[[Sequence[str], str, Sequence[str] | None], dict[str, Any]]

MEMBERS: dict[str, Lines] = {
    "hierarchy": lambda lines, where, names: hierarchy_in(lines, where).as_options(),
    "not_both": not_both_in,
}
"""What makes arguments of a problem of lines, by the name of the member of an instance that holds them."""

CALLED = {"hierarchy": "a hierarchy", "not_both": "pairs"}
"""What such a member holds, for people."""

OPTIONS: dict[str, Callable[[Any, Sequence[str] | None], dict[str, Any]]] = {
    "hierarchy": lambda text, names: read_hierarchy(text, names).as_options(),
    "not_both": read_not_both,
}
"""What makes arguments of a problem of an option of the command line, by its name."""


def constraint_asked(
    arguments: Mapping[str, Any], stored: Mapping[str, Sequence[str] | None], names: Sequence[str] | None
) -> dict[str, Any]:
    """The constraint that a problem's arguments state, or else the instance's own, as arguments of a problem.

    Parameters
    ----------
    arguments : mapping
        Those that are given; TypeError for others than a problem has.
    stored : mapping
        The lines that the instance holds, by the names of :data:`MEMBERS`.
    names : sequence of str, optional
        Of the columns.
    """
    unknown = next((name for name in arguments if name not in ARGUMENTS), None)
    if unknown is not None:
        raise TypeError(f"{unknown!r} is no argument of a problem")
    constraint = {name: value for name, value in arguments.items() if value is not None}
    for name, read in MEMBERS.items():
        lines = stored.get(name)
        if lines is not None and name not in constraint:
            constraint |= read(lines, f"the instance's {name}", names)
    return constraint


def constraint_options(arguments: Mapping[str, Any], names: Sequence[str] | None) -> dict[str, Any]:
    """The constraint that options of the command line name, as arguments of a problem; nothing where none is given."""
    constraint: dict[str, Any] = {}
    for name, read in OPTIONS.items():
        if arguments[name] not in (None, ()):
            constraint |= read(arguments[name], names)
    return constraint
