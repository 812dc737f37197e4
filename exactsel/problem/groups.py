"""Groups of columns as units: the user's definition of groups, checked, numbered and named.

Groups are numbered from 0 in the order of their first columns; a column that no group names is a group of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from exactsel.arguments import entries
from exactsel.errors import InputError, did_you_mean, warn_of_data
from exactsel.kernels.grouped import Groups
from exactsel.kernels.node import IN, OUT
from exactsel.problem.checks import column_number
from exactsel.problem.fit import Fit
from exactsel.problem.numbered import Position, check_position, places_of
from exactsel.problem.units import Units
from exactsel.types import IntArray, StateArray

GroupSpec = Mapping[str, Sequence[int | str]] | Sequence[Any]
"""Names of groups with their columns (names, numbers, or patterns of names such as ``"city_*"``), or one label per
column (columns of equal label are a group)."""


@dataclass(frozen=True)
class GroupedFit(Fit):
    """A minimiser on the columns of some groups: ``columns`` are numbers of groups, ``coef`` is one per column."""

    unit_of: IntArray

    @property
    def support(self) -> tuple[int, ...]:
        """Groups with a non-zero coefficient, ascending."""
        return tuple(int(g) for g in np.unique(self.unit_of[np.flatnonzero(self.coef)]))


@dataclass(frozen=True, eq=False)
class GroupedUnits(Units):
    """Groups of columns, a column on its own being one as well. Made by :meth:`of_columns`, which checks."""

    named: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """The groups people named, each with its columns ascending."""

    grouped: ClassVar[bool] = True
    named_thing: ClassVar[str] = "group or feature"

    @classmethod
    def of_columns(
        cls, columns: Units, groups: GroupSpec, force_in: Sequence[int | str] = (), force_out: Sequence[int | str] = ()
    ) -> Units:
        """Columns partitioned into groups, with further demands; a demand on a column becomes one on its group.

        Raises
        ------
        InputError
            For an unknown column, a column in two groups, an empty group, a group called like a column outside it, or
            columns under a constraint.
        """
        if columns.constraint is not None:
            raise InputError("these features are under a constraint, which groups do not know; leave one of them out.")
        units = cls(
            columns.columns, columns.column_names, coding=columns.coding, named=_named_groups(groups, columns)
        )  # fmt: skip
        included, outside = (
            [*map(Position, units.units_of(columns.columns_of(demands))), *entries(which, additions)]
            for which, demands, additions in (
                ("force_in", columns.force_in, force_in),
                ("force_out", columns.force_out, force_out),
            )
        )
        return units.demanding(included, outside)

    @cached_property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The columns of every group, columns on their own included."""
        return _partition(self.named, self.columns)

    @property
    def d(self) -> int:
        """Number of groups."""
        return len(self.groups)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the groups; a column on its own has its own name."""
        return _unit_names(self.named, self.groups, self.column_names)

    @cached_property
    def unit_of(self) -> IntArray:
        """The group of every column (columns,)."""
        unit_of = np.empty(self.columns, dtype=np.int64)
        for g, members in enumerate(self.groups):
            unit_of[list(members)] = g
        return unit_of

    @cached_property
    def spans(self) -> Groups:
        """The groups in the form kernels take."""
        first = np.concatenate([[0], np.cumsum([len(members) for members in self.groups])]).astype(np.int64)
        return Groups(np.array([j for members in self.groups for j in members], dtype=np.int64), first)

    def keeping(self, columns: IntArray) -> Units:
        """The same groups, in the same order, of these columns alone (ascending); each must keep one."""
        place = {int(j): at for at, j in enumerate(columns)}
        names = None if self.column_names is None else tuple(self.column_names[j] for j in columns)
        named = {name: tuple(place[j] for j in held if j in place) for name, held in self.named.items()}
        coding = None if self.coding is None else self.coding.of_columns([int(j) for j in columns])
        return replace(self, columns=columns.size, column_names=names, named=named, coding=coding)

    def limited(self, k: int) -> int:
        """k, at most the number of groups; a warning says so."""
        if k > self.d:
            warn_of_data(f"k = {k} is more than the {self.d} {self.noun}s; using k = {self.d}.")
        return min(k, self.d)

    def replace(self, **changes: object) -> Units:
        """The same groups with force_in or force_out changed."""
        if "feature_names" in changes:
            raise TypeError("a problem with groups has the names of its groups; replace changes no 'feature_names'")
        return super().replace(**changes)

    def number(self, entry: int | str, which: str) -> int:
        """The group that ``entry`` names: by its number, its name, or the name of one of its columns."""
        if isinstance(entry, str):
            matches, written = self.called(entry), column_number(entry)
            if not matches and written is not None and 0 <= written < self.d:
                return written
            if len(matches) != 1:
                what = f"no {self.noun} or feature is" if not matches else f"{len(matches)} are"
                meant = "" if matches else did_you_mean(entry, (*(self.names or ()), *(self.column_names or ())))
                raise InputError(
                    f"{which} names {entry!r}, but {what} called that{meant}; give the number of the {self.noun}."
                )
            return matches[0]
        if isinstance(entry, bool) or not isinstance(entry, int | np.integer) or not 0 <= entry < self.d:
            raise InputError(
                f"{which} names {self.noun} {entry!r}, but the {self.noun}s are numbered 0 to {self.d - 1}."
            )
        check_position(entry, self.names, which)
        return int(entry)

    def label(self, unit: int) -> str:
        """A group, in a message about it."""
        return f"the {self.noun} '{self.names[unit]}'"

    def called(self, name: str) -> list[int]:
        """The groups of this name, or that hold a column of this name."""
        return super().called(name) or list(self.units_of(self._columns_named.get(name, ())))

    @cached_property
    def _columns_named(self) -> dict[str, list[int]]:
        """The columns of each name."""
        return places_of(self.column_names or ())

    def chosen(self, numbers: Iterable[int]) -> tuple[int, ...]:
        """Groups named for a support, in that order; a group named by two of its columns counts once."""
        return tuple(dict.fromkeys(numbers))

    def units_of(self, columns: Iterable[int]) -> tuple[int, ...]:
        """The groups some columns belong to, ascending."""
        return tuple(sorted({int(self.unit_of[j]) for j in columns}))

    def columns_of(self, units: Iterable[int]) -> IntArray:
        """The columns of some groups, ascending."""
        return np.array(sorted(j for g in units for j in self.groups[int(g)]), dtype=np.int64)

    def in_columns(self, supports: IntArray) -> IntArray:
        """Sets of groups as sets of columns; a set is a row of numbers, padded with -1."""
        rows = [self.columns_of(row[row >= 0]) for row in np.asarray(supports, dtype=np.int64)]
        padded = np.full((len(rows), max((row.size for row in rows), default=0)), -1, dtype=np.int64)
        for padded_row, row in zip(padded, rows, strict=True):
            padded_row[: row.size] = row
        return padded

    def region_of_columns(self, state: StateArray, allowed: IntArray) -> StateArray:
        """The region of the one model that has all columns of the groups ``allowed``."""
        columns = np.full(self.columns, OUT, dtype=np.int8)
        columns[self.columns_of(allowed)] = IN
        return columns

    def fitted(self, units: IntArray, fit: Fit) -> Fit:
        """A minimiser on the columns of some groups, as one on the groups."""
        return GroupedFit(units, fit.coef, fit.value, fit.gradient_norm, self.unit_of)

    def entries(self) -> dict[str, Any]:
        """What goes into a problem's hash: names do not."""
        return {"groups": self.groups} | super().entries()

    def describe(self) -> dict[str, Any]:
        """The groups as plain data: which columns each of them has, and what the columns are called."""
        grouping = {"groups": self.groups, "columns": self.columns, "column_names": self.column_names}
        return super().describe() | grouping


def _named_groups(groups: GroupSpec, columns: Units) -> dict[str, tuple[int, ...]]:
    """The groups people named, each with its columns ascending."""
    if isinstance(groups, Mapping):
        named = {
            str(name): [j for entry in entries(f"the group '{name}'", held) for j in _meant(entry, columns, str(name))]
            for name, held in groups.items()
        }
    else:
        named = _by_labels(groups, columns.columns)
    owner: dict[int, str] = {}
    for name, members in named.items():
        if not name.isprintable():
            raise InputError(f"the group name {name!r} holds a line break or control character; rename the group.")
        if not members:
            raise InputError(f"the group '{name}' has no features; leave it out, or name its features.")
        for j in members:
            if j in owner:
                again = "twice in" if owner[j] == name else f"in '{owner[j]}' and in"
                raise InputError(f"feature {_shown(j, columns)} is {again} the group '{name}'; name it once.")
            owner[j] = name
    for name in named:
        foreign = [j for j, label in enumerate(columns.column_names or ()) if label == name and owner.get(j) != name]
        if foreign:
            raise InputError(f"the group '{name}' is called like a feature outside it; give the group another name.")
    return {name: tuple(sorted(members)) for name, members in named.items()}


def _by_labels(groups: Sequence[Any], d: int) -> dict[str, list[int]]:
    labels = [] if isinstance(groups, str | bytes) else entries("groups", groups, "names with features, or labels,")
    if len(labels) != d:
        kind = "a text" if isinstance(groups, str | bytes) else f"{len(labels)} labels"
        raise InputError(f"groups is {kind}, but {d} features need one label each; or give names with their features.")
    named: dict[str, list[int]] = {}
    for j, label in enumerate(labels):
        if label is not None:
            named.setdefault(str(label), []).append(j)
    return named


def labels_of(groups: GroupSpec, columns: int, names: Sequence[str] | None = None) -> list[str | None]:
    """The label of the group of each column, None for a column on its own."""
    named = GroupedUnits.of_columns(Units.of(columns, names, (), ()), groups).named  # type: ignore[attr-defined]
    label_of = {j: name for name, members in named.items() for j in members}
    return [label_of.get(j) for j in range(columns)]


def one_by_one(units: Units) -> Units:
    """The units, where each group is one column as columns chosen one by one, which names of groups still name."""
    if not isinstance(units, GroupedUnits) or units.d < units.columns:
        return units
    return Units(
        units.columns,
        units.column_names,
        units.force_in,
        units.force_out,
        units.constraint,
        other_names=units.names,
        coding=units.coding,
    )


def matching(entry: int | str, names: Sequence[str] | None, whose: str) -> list[int] | None:
    """The columns that a pattern of names stands for; None where ``entry`` is a column's name or no pattern.

    Raises
    ------
    InputError
        When the pattern matches no column.
    """
    names = names or ()
    if not isinstance(entry, str) or not ("*" in entry or "?" in entry) or entry in names:
        return None
    matches = [j for j, name in enumerate(names) if fnmatchcase(name, entry)]
    if not matches:
        raise InputError(f"the pattern '{entry}' of {whose} matches no feature; correct it.")
    return matches


def _meant(entry: int | str, columns: Units, group: str) -> list[int]:
    """The columns a name, number or pattern stands for."""
    matches = matching(entry, columns.column_names, f"the group '{group}'")
    return [_column(entry, columns, group)] if matches is None else matches


def _column(entry: int | str, columns: Units, group: str) -> int:
    """The number of a column named in a group."""
    if isinstance(entry, str):
        matches = [j for j, name in enumerate(columns.column_names or ()) if name == entry]
        if len(matches) != 1:
            what = "no feature is" if not matches else f"{len(matches)} features are"
            meant = "" if matches else did_you_mean(entry, columns.column_names or ())
            raise InputError(f"the group '{group}' names {entry!r}, but {what} called that{meant}; correct the name.")
        return matches[0]
    if isinstance(entry, int | np.integer) and not isinstance(entry, bool):
        check_position(entry, columns.column_names, f"the group '{group}'")
    if isinstance(entry, bool) or not isinstance(entry, int | np.integer) or not 0 <= entry < columns.columns:
        raise InputError(
            f"the group '{group}' names feature {entry!r}, but the features are numbered 0 to {columns.columns - 1}."
        )
    return int(entry)


def _shown(j: int, columns: Units) -> str:
    return f"'{columns.column_names[j]}'" if columns.column_names else str(j)


def _partition(named: dict[str, tuple[int, ...]], d: int) -> tuple[tuple[int, ...], ...]:
    """All groups, columns on their own included, in the order of their first columns."""
    taken = {j for columns in named.values() for j in columns}
    return tuple(sorted([*named.values(), *((j,) for j in range(d) if j not in taken)]))


def _unit_names(
    named: dict[str, tuple[int, ...]], groups: Sequence[tuple[int, ...]], names: Sequence[str] | None
) -> tuple[str, ...]:
    called = {columns: name for name, columns in named.items()}
    return tuple(called.get(columns) or (names[columns[0]] if names else f"feature {columns[0]}") for columns in groups)
