"""Limits on groups: at most so many columns of each group, beside the at most k columns of a model.

Columns are chosen one by one. A set of columns is admissible when it has at most k, and at most ``most`` of every
group; a model is when its columns lie in such a set. The sets are the independent ones of a matroid (a partition
matroid, cut off at k), so a greedy choice is a best one wherever columns have weights.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, SupportsIndex

import numpy as np

from exactsel.errors import InputError, option
from exactsel.kernels.admissible import LIMITED, Sets
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.problem.constraint_kind import ConstraintKind, Entry
from exactsel.problem.groups import GroupedUnits, GroupSpec
from exactsel.problem.units import Units
from exactsel.types import BoolArray, IntArray, StateArray


@dataclass(frozen=True)
class GroupLimits:
    """At most so many columns of each group: a :class:`exactsel.problem.units.Constraint`.

    Parameters
    ----------
    most : int
        Columns of a group that a set may hold at most, at least 1.
    groups : tuple of tuples of int
        The groups with more columns than that, each ascending, in the order of their first columns; no column is in
        two of them.
    d : int
        Number of columns.
    """

    most: int
    groups: tuple[tuple[int, ...], ...]
    d: int

    def implied(self, state: StateArray, k: int) -> StateArray | None:
        """The region without the other columns of groups that are full; None where more are in than may be."""
        included = self._count(state == IN)
        if np.any(included[:-1] > self.most) or np.count_nonzero(state == IN) > k:
            return None
        state = state.copy()
        state[(included[self._group_of] == self.most) & (self._group_of < len(self.groups)) & (state == FREE)] = OUT
        return state

    def to_divide(self, state: StateArray, k: int) -> BoolArray | None:
        """Where all units of a region have a place, but not in their groups: those of them that are still free (d,).

        None where the region is one convex problem, or where there are more units than places.
        """
        if np.count_nonzero(state == IN) >= k or np.count_nonzero(state != OUT) > k:
            return None
        crowded = self._count(state != OUT) > self.most
        crowded[-1] = False
        return (state == FREE) & crowded[self._group_of] if crowded.any() else None

    def completed(self, support: Iterable[int], k: int, state: StateArray) -> tuple[int, ...] | None:
        """These columns and all that are IN; None where they are no admissible set of the region."""
        start = state.copy()
        chosen = list(support)
        if np.any(start[chosen] == OUT):
            return None
        start[chosen] = IN
        closure = self.implied(start, k)
        return None if closure is None else tuple(np.flatnonzero(closure == IN).tolist())

    def restricted(self, support: Sequence[int], k: int, state: StateArray) -> tuple[int, ...]:
        """What is IN, and the columns of a support in the order given as far as there is a place for them."""
        selection = np.flatnonzero(state == IN).tolist()
        room = self.most - self._count(state == IN)
        room[-1] = k
        for j in support:
            group = self._group_of[j]
            if state[j] == FREE and j not in selection and len(selection) < k and room[group] > 0:
                selection.append(j)
                room[group] -= 1
        return tuple(sorted(selection))

    def largest(self, state: StateArray) -> int:
        """The size of the largest admissible set of columns that are not OUT, whatever k is."""
        included = self._count(state != OUT)
        return int(np.sum(np.minimum(included[:-1], self.most)) + included[-1])

    def of_columns(self, units: Units) -> GroupLimits:
        """The same: limits are about columns."""
        return self

    def clash(self, included: Sequence[int]) -> tuple[int, ...]:
        """The columns of one group that are more than its limit; none where there are no such."""
        held = ([j for j in included if self._group_of[j] == number] for number in range(len(self.groups)))
        return next((tuple(some) for some in held if len(some) > self.most), ())

    def for_kernels(self) -> Sets:
        """See :class:`exactsel.problem.units.Constraint`."""
        groups = np.where(self._group_of < len(self.groups), self._group_of, -1)
        return Sets(LIMITED, groups, np.zeros(0, dtype=np.int64), self.most)

    def entry(self) -> dict[str, Any]:
        """What defines it, as plain data: for the problem's hash, its description, and JSON."""
        return {"limits": {"groups": [list(group) for group in self.groups], "most": self.most}}

    def __str__(self) -> str:
        return f"limit of {self.most} from each group ({len(self.groups)} groups have more features)"

    def _count(self, chosen: BoolArray) -> IntArray:
        """How many of these columns (d,) each group has; those in no group come last."""
        return np.bincount(self._group_of[chosen], minlength=len(self.groups) + 1)

    @cached_property
    def _group_of(self) -> IntArray:
        """The group of every column (d,); one more than there are for a column in none."""
        group_of = np.full(self.d, len(self.groups), dtype=np.int64)
        for number, group in enumerate(self.groups):
            group_of[list(group)] = number
        return group_of


def limited_units(columns: Units, groups: GroupSpec | None, per_group: SupportsIndex) -> Units:
    """Columns that are chosen one by one, at most ``per_group`` of each group; as they are where that limits nothing.

    Parameters
    ----------
    columns : Units
        With their names and demands.
    groups : mapping or sequence of labels
        As for :class:`exactsel.GroupedProblem`.
    per_group : int

    Raises
    ------
    InputError
        For a limit that is none, and for groups as :class:`exactsel.GroupedProblem` refuses them.
    """
    try:
        most = operator.index(per_group)
    except TypeError:
        most = 0
    if most < 1 or isinstance(per_group, bool):
        raise InputError(f"per_group is {per_group!r}, but a whole number of at least 1 was expected; correct it.")
    if groups is None:
        raise InputError("per_group is given, but no groups; name the groups of which so many features may be chosen.")
    grouping = GroupedUnits.of_columns(Units(columns.columns, columns.column_names), groups)
    larger = tuple(group for group in grouping.groups if len(group) > most)
    return columns.under(GroupLimits(most, larger, columns.columns)) if larger else columns


def _under(units: Units, arguments: Mapping[str, Any]) -> Units:
    per_group = arguments.get("per_group")
    return units if per_group is None else limited_units(units, arguments.get("groups"), per_group)


def _again(limits: GroupLimits) -> dict[str, Any]:
    labels: list[str | None] = [None] * limits.d
    for number, group in enumerate(limits.groups):
        for j in group:
            labels[j] = f"g{number}"
    return {"groups": labels, "per_group": limits.most}


def _text(entry: Entry, label: Callable[[int], str]) -> str:
    many = len(entry["groups"])
    return f"at most {entry['most']} from each group ({many} group{'s' * (many > 1)} of more features)"


KIND = ConstraintKind(
    name="limits",
    arguments={"per_group": None},
    under=_under,
    again=_again,
    text=_text,
    flags=lambda entry: [f"{option('groups')} FILE {option('per_group', entry['most'])}"],
)
