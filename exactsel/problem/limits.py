"""Limits on groups: at most so many columns of each group, beside the at most k columns of a model.

Columns are chosen one by one. A set of columns is admissible when it has at most k, and at most ``most`` of every
group; a model is when its columns lie in such a set. The sets are the independent ones of a matroid (a partition
matroid, cut off at k), so a greedy choice is a best one wherever columns have weights.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from exactsel.errors import InputError
from exactsel.kernels.admissible import LIMITED, Sets
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.problem.groups import GroupedUnits, GroupSpec, one_by_one
from exactsel.problem.hierarchy import under_hierarchy
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
        inside = self._count(state == IN)
        if np.any(inside[:-1] > self.most) or np.count_nonzero(state == IN) > k:
            return None
        state = state.copy()
        state[(inside[self._group_of] == self.most) & (self._group_of < len(self.groups)) & (state == FREE)] = OUT
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
        found = self.implied(start, k)
        return None if found is None else tuple(np.flatnonzero(found == IN).tolist())

    def restricted(self, support: Sequence[int], k: int, state: StateArray) -> tuple[int, ...]:
        """What is IN, and the columns of a support in the order given as far as there is a place for them."""
        kept = np.flatnonzero(state == IN).tolist()
        room = self.most - self._count(state == IN)
        room[-1] = k
        for j in support:
            group = self._group_of[j]
            if state[j] == FREE and j not in kept and len(kept) < k and room[group] > 0:
                kept.append(j)
                room[group] -= 1
        return tuple(sorted(kept))

    def for_kernels(self) -> Sets:
        """See :class:`exactsel.problem.units.Constraint`."""
        groups = np.where(self._group_of < len(self.groups), self._group_of, -1)
        return Sets(LIMITED, groups, np.zeros(0, dtype=np.int64), self.most)

    def entry(self) -> dict[str, Any]:
        """What defines it, as plain data: for the problem's hash, its description, and JSON."""
        return {"limits": {"groups": [list(group) for group in self.groups], "most": self.most}}

    def __str__(self) -> str:
        return f"limit of {self.most} from each group ({len(self.groups)} groups have more columns)"

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


def limited_units(columns: Units, groups: GroupSpec | None, per_group: Any) -> Units:
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
        For a limit that is none, for groups as :class:`exactsel.GroupedProblem` refuses them, and for columns under
        another constraint.
    """
    try:
        most = operator.index(per_group)
    except TypeError:
        most = 0
    if most < 1 or isinstance(per_group, bool):
        raise InputError(f"per_group is {per_group!r}, but a whole number of at least 1 was expected; correct it.")
    if groups is None:
        raise InputError("per_group is given, but no groups; name the groups of which so many columns may be chosen.")
    if columns.constraint is not None:
        raise InputError(f"per_group does not go with a {columns.constraint}; leave one of them out.")
    known = GroupedUnits.of_columns(Units(columns.columns, columns.column_names), groups)
    larger = tuple(group for group in known.groups if len(group) > most)
    return columns.under(GroupLimits(most, larger, columns.columns)) if larger else columns


def limit_options(units: Units) -> dict[str, Any]:
    """What makes a problem on other rows have the limits of these units; nothing where they have none."""
    limits = units.constraint
    if not isinstance(limits, GroupLimits):
        return {}
    labels: list[str | None] = [None] * limits.d
    for number, group in enumerate(limits.groups):
        for j in group:
            labels[j] = f"g{number}"
    return {"groups": labels, "per_group": limits.most}


def units_of(
    columns: int, names: Sequence[str] | None, force_in: Sequence[int | str] = (),
    force_out: Sequence[int | str] = (), groups: GroupSpec | None = None, hierarchy: Mapping[Any, Any] | None = None,
    hierarchy_kind: str = "strong", per_group: int | None = None,
) -> Units:  # fmt: skip
    """What is chosen among some columns, as the arguments of :class:`exactsel.Problem` have it."""
    if per_group is not None:
        columns_alone = under_hierarchy(Units.of(columns, names, force_in, force_out), hierarchy, hierarchy_kind)
        return limited_units(columns_alone, groups, per_group)
    if groups is None:
        units = Units.of(columns, names, force_in, force_out)
    else:
        units = GroupedUnits.of_columns(Units.of(columns, names, (), ()), groups, force_in, force_out)
    return one_by_one(under_hierarchy(units, hierarchy, hierarchy_kind))
