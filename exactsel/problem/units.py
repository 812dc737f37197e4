"""Units of selection: single columns, or groups of columns (:mod:`exactsel.problem.groups`), with their constraints.

A problem counts, names and decides about units; its objective speaks of columns. Units are numbered from 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np

from exactsel.arguments import entries
from exactsel.errors import InputError, option
from exactsel.kernels.admissible import Sets, all_sets
from exactsel.kernels.grouped import Groups
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.problem.checks import checked_names, column_meant
from exactsel.problem.coding import ColumnCoding
from exactsel.problem.fit import Fit
from exactsel.problem.numbered import Position, places_of
from exactsel.types import BoolArray, FloatArray, IntArray, StateArray


def ascending(numbers: Iterable[int]) -> IntArray:
    """Some numbers, each once, ascending; those that come so take less time."""
    array = np.fromiter(numbers, dtype=np.int64)
    return array if bool(np.all(array[1:] > array[:-1])) else np.unique(array)


class Constraint(Protocol):
    """Which units go together: what a set of at most k units must fulfil besides its size.

    A model is admissible when its columns lie in an admissible set, so the constraint only takes models away and every
    bound of a region holds with it too. :mod:`exactsel.problem.constraints` lists the kinds. In all methods ``state``
    (d,) is a region, units OUT, FREE or IN, which is left as it is, and k the most units of a set.
    """

    def implied(self, state: StateArray, k: int) -> StateArray | None:
        """The region with everything that follows for it; None where it holds no admissible set.

        Where no place is left what comes back must be an admissible set, and where there is a place for every unit,
        unless :meth:`to_divide` says otherwise.
        """
        ...

    def to_divide(self, state: StateArray, k: int) -> BoolArray | None:
        """Where the set of all units of a region has at most k and is none that is admissible, those to divide by (d,).

        They are free, and there are some; None where the region is one convex problem, or has more units than k.
        """
        ...

    def completed(self, support: Iterable[int], k: int, state: StateArray) -> tuple[int, ...] | None:
        """An admissible set of the region with these units, as small as can be, ascending; None where none is found."""
        ...

    def restricted(self, support: Sequence[int], k: int, state: StateArray) -> tuple[int, ...]:
        """An admissible set of the region made of a support, most wanted units first."""
        ...

    def largest(self, state: StateArray) -> int:
        """An upper bound of the size of admissible sets without units that are OUT, for any k."""
        ...

    def of_columns(self, units: Units) -> Constraint:
        """The same about the columns of these units, so that the columns of each admissible set are one, too."""
        ...

    def clash(self, included: Sequence[int]) -> tuple[int, ...]:
        """Some of these units that no admissible set holds together; empty where none are known."""
        ...

    def for_kernels(self) -> Sets:
        """The constraint as kernels take it."""
        ...

    def entry(self) -> dict[str, Any]:
        """The constraint as plain data under its name, for the problem's hash, its description and JSON."""
        ...


@dataclass(frozen=True, eq=False)
class Units:
    """Columns, chosen one by one. Made by :meth:`of`, which checks; no part of it can be changed."""

    columns: int
    """Number of columns, chosen or not."""
    column_names: tuple[str, ...] | None = None
    force_in: tuple[int, ...] = ()
    """Units every model holds, ascending; they count towards k."""
    force_out: tuple[int, ...] = ()
    """Units no model may hold, ascending."""
    constraint: Constraint | None = None
    """Which units go together; None where that is free."""
    other_names: tuple[str, ...] | None = None
    """Further names of the columns (columns,), as of groups of one column each."""
    coding: ColumnCoding | None = None
    """How the columns were computed from those of a table; None where they are its own."""

    grouped: ClassVar[bool] = False
    """Whether a unit may have several columns."""
    named_thing: ClassVar[str] = "feature"
    """The things a name may denote, where units are named."""

    @classmethod
    def of(
        cls, columns: int, names: Sequence[str] | None, force_in: Sequence[int | str], force_out: Sequence[int | str]
    ) -> Units:
        """Columns with their names, and the columns every model must or no model may hold, by number or name."""
        return Units(columns, checked_names(names, columns)).demanding(force_in, force_out)

    @property
    def d(self) -> int:
        """Number of units."""
        return self.columns

    @property
    def noun(self) -> str:
        """What a unit is, for people: what a factor or a formula makes is a term."""
        return "term" if self.coding is not None else "group" if self.grouped else "feature"

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the units."""
        return self.column_names

    @property
    def free_columns(self) -> bool:
        """Whether columns are chosen one by one and freely: kernels that search by themselves know nothing else."""
        return not self.grouped and self.constraint is None

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The columns of every unit where these are groups; empty where columns are chosen one by one."""
        return ()

    @cached_property
    def unit_of(self) -> IntArray:
        """The unit of every column (columns,)."""
        return np.arange(self.columns)

    @cached_property
    def spans(self) -> Groups:
        """The columns of every unit, in the form kernels take."""
        return Groups(np.arange(self.columns, dtype=np.int64), np.arange(self.columns + 1, dtype=np.int64))

    def region(self, k: int) -> StateArray | None:
        """What is decided before the search begins, (d,): units in, out, or free; None where no model is left."""
        state = np.full(self.d, FREE, dtype=np.int8)
        state[list(self.force_in)], state[list(self.force_out)] = IN, OUT
        return self.implied(state, k)

    def implied(self, state: StateArray, k: int) -> StateArray | None:
        """What the constraint makes of a region, see :class:`Constraint`; without one the region itself."""
        return state if self.constraint is None else self.constraint.implied(state, k)

    @cached_property
    def sets(self) -> Sets:
        """The admissible sets, as kernels take them."""
        return all_sets() if self.constraint is None else self.constraint.for_kernels()

    def to_divide(self, state: StateArray, k: int) -> BoolArray | None:
        """The units to divide a region by that only seems to be one convex problem, see :class:`Constraint`."""
        return None if self.constraint is None else self.constraint.to_divide(state, k)

    def completed(self, support: Iterable[int], k: int) -> tuple[int, ...] | None:
        """The smallest set of units known with these that a model may have; None where there is none.

        What is demanded need not be in a set without a constraint.
        """
        units = tuple(sorted(support))
        if self.constraint is None:
            return units
        region = self.region(k)
        return None if region is None else self.constraint.completed(units, k, region)

    def remaining(self, support: Iterable[int], unit: int, k: int) -> tuple[int, ...]:
        """What a support can keep without one of its units: all others, but for those that need it."""
        others = [j for j in support if j != unit]
        if self.constraint is None:
            return tuple(others)
        state = np.full(self.d, OUT, dtype=np.int8)
        state[others] = FREE
        implied = self.implied(state, k)
        return () if implied is None else tuple(j for j in others if implied[j] != OUT)

    def stays_without(self, unit: int, support: Iterable[int], k: int) -> bool:
        """Whether a support needs nothing but what a model without ``unit`` may have."""
        region = self.region(k)
        if self.constraint is None or region is None:
            return region is not None
        region[unit] = OUT
        return self.constraint.completed(support, k, region) is not None

    def keeping(self, columns: IntArray) -> Units:
        """The same groups of these columns alone; columns on their own are all kept."""
        raise NotImplementedError

    def limited(self, k: int) -> int:
        """k, which is at most the number of columns, or the number of units where that is less."""
        return k

    def check(self, k: int) -> None:
        """:class:`InputError` where no model of at most k units has all that is demanded."""
        count = len(self.force_in)
        if count > k:
            named = f"{option('force_in')} names {count} {self.noun}s"
            raise InputError(f"{named}, but k is {k}; raise k or name at most {k}.")
        together = () if self.constraint is None else self.constraint.clash(self.force_in)
        if together:
            raise InputError(
                f"{option('force_in')} names {' and '.join(map(self.label, together))}, but the {self.constraint} does "
                f"not allow them together; leave one of them out."
            )
        if self.completed((), k) is None:
            raise InputError(
                f"no set of at most {k} {self.noun}s was found that meets what is demanded under the "
                f"{self.constraint}; raise k or demand less."
            )

    def under(self, constraint: Constraint | None) -> Units:
        """The same units with this constraint in place of their own."""
        return replace(self, constraint=constraint)

    def demanding(self, force_in: Sequence[int | str], force_out: Sequence[int | str]) -> Units:
        """The same units with these demands in place of its own."""
        included, outside = (
            tuple(sorted({self.number(entry, option(which)) for entry in entries(which, demands)}))
            for demands, which in ((force_in, "force_in"), (force_out, "force_out"))
        )
        both = sorted({*included} & {*outside})
        if both:
            twice = f"{self.label(both[0])} is in {option('force_in')} and in {option('force_out')}"
            raise InputError(f"{twice}; leave it in one of them.")
        return replace(self, force_in=included, force_out=outside)

    def replace(self, **changes: Any) -> Units:
        """The same units with some of feature_names, force_in, force_out changed."""
        named = self
        if "feature_names" in changes:
            named = replace(self, column_names=checked_names(changes["feature_names"], self.columns))
        demands = {name: map(Position, getattr(self, name)) for name in ("force_in", "force_out")}
        return named.demanding(*(changes.get(name, default) for name, default in demands.items()))

    def number(self, entry: int | str, which: str) -> int:
        """The unit that ``entry`` names in the argument ``which``."""
        other = self.other_names or ()
        if entry in other and entry not in (self.column_names or ()):
            return other.index(str(entry))
        return column_meant(entry, self.column_names, self.columns, which)

    def label(self, unit: int) -> str:
        """A unit, in a message about it."""
        return f"feature {unit}"

    def called(self, name: str) -> list[int]:
        """The units of this name."""
        return list(self._named.get(name, ()))

    @cached_property
    def _named(self) -> dict[str, list[int]]:
        """The units of each name."""
        return places_of(self.names or ())

    def chosen(self, numbers: Iterable[int]) -> tuple[int, ...]:
        """Units named for a support, in that order; a unit that may be named twice counts once."""
        return tuple(numbers)

    def columns_of(self, units: Iterable[int]) -> IntArray:
        """The columns of some units, ascending."""
        return ascending(units)

    def units_of(self, columns: Iterable[int]) -> tuple[int, ...]:
        """The units some columns belong to, ascending."""
        return tuple(sorted({int(j) for j in columns}))

    def sizes(self, coef: FloatArray) -> FloatArray:
        """The length of every unit's coefficients (d,)."""
        return np.sqrt(np.bincount(self.unit_of, coef**2, self.d))

    def in_columns(self, supports: IntArray) -> IntArray:
        """Sets of units as sets of columns; a set is a row of numbers, padded with -1."""
        return supports

    def region_of_columns(self, state: StateArray, allowed: IntArray) -> StateArray:
        """A region of units as one of columns, where only those of the units ``allowed`` count."""
        return state

    def fitted(self, units: IntArray, fit: Fit) -> Fit:
        """A minimiser on the columns of ``units``, as one on the units."""
        return fit

    def entries(self) -> dict[str, Any]:
        """What goes into a problem's hash."""
        described: dict[str, Any] = {}
        if self.force_in or self.force_out:
            described = {"force_in": self.force_in, "force_out": self.force_out}
        return described | ({} if self.constraint is None else self.constraint.entry())

    def describe(self) -> dict[str, Any]:
        """The units as plain data; names and demands are the problem's."""
        target = None if self.coding is None else self.coding.target
        described = {} if self.constraint is None else self.constraint.entry()
        unit = self.noun if self.grouped or self.coding is not None else "column"
        return {"groups": None, "unit": unit, "left_side": target} | described
