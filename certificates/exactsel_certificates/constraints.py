"""The kinds of constraints on which units go together: a new one is a file of its own, and an entry here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any, TypeAlias

from exactsel_certificates import hierarchy, not_both
from exactsel_certificates.constraint import Constraint
from exactsel_certificates.group_limits import Limits

KINDS: dict[str, type[Any]] = {
    "hierarchy": hierarchy.Hierarchy, "limits": Limits, "not_both": not_both.NotBoth,
}  # fmt: skip
"""By the name under which the hash of a problem has it."""

Reader: TypeAlias = Callable[[Iterable[str], Mapping[str, Set[int]], int], Constraint | None]

READERS: dict[str, tuple[Reader, str]] = {
    "hierarchy": (hierarchy.read, "lines of child: parent, parent; first line weak or strong"),
    "not_both": (not_both.read, "lines of unit, unit: pairs that are never chosen together"),
}
"""Those that people write as lines, by the name of the option and of the instance's member; and what lines they are."""


def constraint_of(name: str, entry: Mapping[str, Any]) -> Constraint | None:
    """The constraint of a name and the entry the hash has of it; None where no checker knows the name."""
    kind = KINDS.get(name)
    if kind is None:
        return None
    constraint: Constraint = kind(**{key: _as_tuples(value) for key, value in entry.items()})
    return constraint


def _as_tuples(value: object) -> object:
    return tuple(map(_as_tuples, value)) if isinstance(value, list | tuple) else value
