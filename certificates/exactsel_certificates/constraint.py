"""The interface of a constraint for a check: the sets of units that a model may use.

Each kind is one file (hierarchy, group_limits, not_both), and one entry of the table in constraints.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Protocol


class Rule(Protocol):
    """What a constraint, and the limit k on what is chosen, make of regions."""

    def implied(self, state: bytes, changed: Iterable[int]) -> bytes | None:
        """The state of every unit with all that follows from the decisions on ``changed``; None where nothing is left.

        All that follows from decisions on other units must be there already.
        """
        ...

    def orphans(self, state: bytes | bytearray) -> Iterator[int]:
        """Units of S that need others, none of which is in S."""
        ...

    def crowded(self, units: Sequence[int]) -> list[int]:
        """Some of these units of which not all may be chosen together; none where the rule names none."""
        ...


class Constraint(Protocol):
    """Which sets of at most k units are admissible, as plain data."""

    @property
    def name(self) -> str:
        """Under which the hash of a problem has it."""
        ...

    @property
    def kind(self) -> str:
        """What the header of a file calls it."""
        ...

    @property
    def allows(self) -> str:
        """Its verb phrase, for a sentence about what it allows."""
        ...

    def entry(self) -> dict[str, Any]:
        """What the hash of a problem has of it."""
        ...

    def check(self, units: int, grouped: bool) -> None:
        """:class:`ValueError` where it is none of so many units, groups or columns."""
        ...

    def plain(self) -> Constraint:
        """The same in plain numbers; ValueError, TypeError or AttributeError where it holds anything else."""
        ...

    def rule(self, k: int) -> Rule:
        """What it makes of regions."""
        ...

    def words(self) -> str:
        """The constraint for people."""
        ...


def rising(numbers: Sequence[Any]) -> bool:
    """Whether each is larger than the one before it."""
    return all(low < high for low, high in pairwise(numbers))


def whole(value: Any) -> int:
    """A whole number."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ValueError(f"a constraint holds {value!r}, no whole number.")
    return int(value.__index__())


def wholes(values: Iterable[Any]) -> tuple[int, ...]:
    """Whole numbers."""
    return tuple(whole(value) for value in values)
