"""The kinds of constraints on which units go together: a new one is a file of its own, and an entry here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from exactsel.errors import InputError
from exactsel.problem import hierarchy, limits, not_both
from exactsel.problem.groups import GroupedUnits, GroupSpec, one_by_one
from exactsel.problem.units import Units

KINDS = (hierarchy.KIND, limits.KIND, not_both.KIND)

NAMES = tuple(kind.name for kind in KINDS)
"""Their keys in the description of a problem."""

ARGUMENTS: dict[str, Any] = {name: usual for kind in KINDS for name, usual in kind.arguments.items()}
"""All arguments of a problem that state constraints, with their values where there are none."""


def under(units: Units, arguments: Mapping[str, Any]) -> Units:
    """The units under the constraint that some arguments state, ``groups`` among them for limits on groups.

    Raises
    ------
    InputError
        For arguments that a kind refuses, and for two constraints at once.
    """
    for kind in KINDS:
        new_units = kind.under(units, arguments)
        if new_units is not units and units.constraint is not None:
            first = next(iter(kind.arguments))
            raise InputError(f"{first} does not go with a {units.constraint}; leave one of them out.")
        units = new_units
    return units


def units_of(
    columns: int, names: Sequence[str] | None, force_in: Sequence[int | str] = (),
    force_out: Sequence[int | str] = (), groups: GroupSpec | None = None, **arguments: object,
) -> Units:  # fmt: skip
    """What is chosen among some columns, as the arguments of :class:`exactsel.Problem` have it."""
    unknown = next((name for name in arguments if name not in ARGUMENTS), None)
    if unknown is not None:
        raise TypeError(f"{unknown!r} is no argument of a problem")
    if groups is None or arguments.get("per_group") is not None:
        units = Units.of(columns, names, force_in, force_out)
    else:
        units = GroupedUnits.of_columns(Units.of(columns, names, (), ()), groups, force_in, force_out)
    return one_by_one(under(units, {"groups": groups} | arguments))


def asked_again(units: Units) -> dict[str, Any]:
    """What makes a problem on other rows have the constraint of these units; nothing where they have none."""
    if units.constraint is None:
        return {}
    return next(kind.again(units.constraint) for kind in KINDS if kind.name in units.constraint.entry())


def descriptions(problem: Mapping[str, Any], label: Callable[[int], str]) -> list[str]:
    """The constraint of a problem as plain data, in words; none where it has none."""
    return [kind.text(problem[kind.name], label) for kind in KINDS if problem.get(kind.name)]


def flags(problem: Mapping[str, Any]) -> list[str]:
    """What to add to a command line that states the constraint of a problem (as plain data) again."""
    return [flag for kind in KINDS if problem.get(kind.name) for flag in kind.flags(problem[kind.name])]
