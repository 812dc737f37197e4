"""The interface of a kind of constraint for code that reads, shows and repeats a problem."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from exactsel.problem.units import Units

Entry: TypeAlias = Mapping[str, Any]
"""A constraint as plain data: what ``Constraint.entry`` has under its name."""

SHOWN = 3
"""Parts of a constraint that are shown one by one."""


@dataclass(frozen=True)
class ConstraintKind:
    """One kind of constraint; its file has one of these, and :mod:`exactsel.problem.constraints` lists them."""

    name: str
    """Its key in descriptions, in JSON and in the hash of a problem."""
    arguments: Mapping[str, Any]
    """The problem's arguments that state it, with their values where it is absent."""
    under: Callable[[Units, Mapping[str, Any]], Units]
    """The units under the constraint that the arguments, and ``groups``, state; the same units without one."""
    again: Callable[[Any], dict[str, Any]]
    """The arguments that state a constraint of this kind again, units by their positions; ``groups`` may be one."""
    text: Callable[[Entry, Callable[[int], str]], str]
    """An entry in words, units by their labels."""
    flags: Callable[[Entry], Sequence[str]]
    """What to add to a command line that states an entry again."""
