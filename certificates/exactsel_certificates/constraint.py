"""The interface of a constraint for a check: the sets of units that a model may use, and how lines name units.

Each kind is one file (hierarchy, group_limits, not_both), and one entry of the table in constraints.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import pairwise
from typing import Any


class Rule:
    """What a constraint, and the limit k on what is chosen, make of regions."""

    def implied(self, state: bytes, changed: Iterable[int]) -> bytes | None:
        """The state of every unit with all that follows from the decisions on ``changed``; None where nothing is left.

        All that follows from decisions on other units must be there already.
        """
        raise NotImplementedError

    def orphans(self, state: bytes | bytearray) -> Iterator[int]:
        """Units of S that need others, none of which is in S."""
        return iter(())

    def crowded(self, units: Sequence[int]) -> list[int]:
        """Some of these units of which not all may be chosen together; none where the rule names none."""
        return []


class Constraint:
    """Which sets of at most k units are admissible, as plain data: a kind is a frozen dataclass of this class."""

    name: str
    """Under which the hash of a problem has it."""
    kind: str
    """What the header of a file calls it."""
    allows: str
    """Its verb phrase, for a sentence about what it allows."""

    def entry(self) -> dict[str, Any]:
        """What the hash of a problem has of it."""
        return dict(vars(self))

    def check(self, units: int, grouped: bool) -> None:
        """:class:`ValueError` where it is none of so many units, groups or columns."""
        raise NotImplementedError

    def plain(self) -> Constraint:
        """The same in plain numbers; ValueError, TypeError or AttributeError where it holds anything else."""
        raise NotImplementedError

    def rule(self, k: int) -> Rule:
        """What it makes of regions."""
        raise NotImplementedError

    def words(self) -> str:
        """The constraint for people."""
        raise NotImplementedError


def rising(numbers: Sequence[Any]) -> bool:
    """Whether each is larger than the one before it."""
    return all(low < high for low, high in pairwise(numbers))


def whole(value: object) -> int:
    """A whole number."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ValueError(f"a constraint holds {value!r}, no whole number.")
    return int(value.__index__())


def wholes(values: Iterable[Any]) -> tuple[int, ...]:
    """Whole numbers."""
    return tuple(whole(value) for value in values)


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
