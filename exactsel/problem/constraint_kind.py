"""What a kind of constraint tells those that read, show and repeat a problem."""

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
    """The arguments of a problem that ask for it, with what they are where none is asked for."""
    under: Callable[[Units, Mapping[str, Any]], Units]
    """The units under the constraint that the arguments, and ``groups``, ask for; the same units without one."""
    again: Callable[[Any], dict[str, Any]]
    """The arguments that ask for a constraint of this kind again, units by their positions; ``groups`` may be one."""
    text: Callable[[Entry, Callable[[int], str]], str]
    """An entry in words, units by their labels."""
    flags: Callable[[Entry], Sequence[str]]
    """What to add to a command line that states an entry again."""
