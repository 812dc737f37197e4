"""Hierarchy: a unit only together with its parents, such as an interaction with its main effects.

Units are what is chosen, columns or groups of columns. A set T of units is admissible when it has at most k of them and

* ``strong``: all parents of every unit in T are in T;
* ``weak``: at least one parent of every unit in T that has parents is in T.

A model is admissible when its columns lie in an admissible set; its coefficients may be zero. Since the hierarchy only
takes models away, every bound of a region holds with it too; what it adds is what it *implies* for a region, and that
is all the search and the checkers of proofs know of it (Bien, Taylor, Tibshirani: A lasso for hierarchical
interactions, Annals of Statistics 41 (2013), name the two kinds).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from exactsel.arguments import shown
from exactsel.errors import InputError, option
from exactsel.kernels.admissible import STRONG, WEAK, Sets
from exactsel.kernels.node import IN, OUT
from exactsel.problem.constraint_kind import SHOWN, ConstraintKind, Entry
from exactsel.problem.numbered import Position
from exactsel.problem.units import Units
from exactsel.types import BoolArray, IntArray, StateArray

KINDS = ("strong", "weak")

MOST_TRIALS = 10_000
"""Sets of parents tried to complete a weak support, before the answer is that none was found (under a second)."""

_POWER = re.compile(r"(.+)\^(\d+)")


@dataclass(frozen=True)
class Hierarchy:
    """Which units go together.

    Parameters
    ----------
    parents : tuple of tuples of int (d,)
        The parents of every unit, ascending; none for most.
    kind : str
        ``strong`` or ``weak``, see above.
    """

    parents: tuple[tuple[int, ...], ...]
    kind: str = "strong"

    def implied(self, state: StateArray, k: int) -> StateArray | None:
        """A region with all that follows from it: units that must be in, units that cannot be; None where it is empty.

        Parameters
        ----------
        state : int8 array (d,)
            OUT, FREE or IN (:mod:`exactsel.kernels.node`) for every unit; not changed.
        k : int
            Most units of a model.
        """
        state = state.copy()
        step = self._strong_step if self.kind == "strong" else self._weak_step
        while True:
            before = state.copy()
            if not step(state):
                return None
            if np.array_equal(before, state):
                break
        full = int(np.count_nonzero(state == IN)) - k
        if full > 0 or (full == 0 and self._orphans(state).any()):
            return None
        return state

    def _strong_step(self, state: StateArray) -> bool:
        """Parents of units that are in come in, units go out whose parents are out; False where that contradicts."""
        needed = self._parent[state[self._child] == IN]
        if np.any(state[needed] == OUT):
            return False
        state[needed] = IN
        state[self._child[state[self._parent] == OUT]] = OUT
        return True

    def _weak_step(self, state: StateArray) -> bool:
        """Units without a parent left go out; a unit that is in takes in its last parent; False on a contradiction."""
        parent_count = np.bincount(self._child[state[self._parent] != OUT], minlength=state.size)
        lost = self._has_parents & (parent_count == 0)
        if np.any(state[lost] == IN):
            return False
        if np.any(state[lost] != OUT):
            state[lost] = OUT
            return True
        last = self._has_parents & (parent_count == 1) & (state == IN)
        state[self._parent[last[self._child] & (state[self._parent] != OUT)]] = IN
        return True

    def _orphans(self, state: StateArray) -> BoolArray:
        """Units that are in without the parents they need (d,)."""
        included = np.bincount(self._child[state[self._parent] == IN], minlength=state.size)
        enough = included >= (self._count if self.kind == "strong" else np.minimum(self._count, 1))
        return np.asarray((state == IN) & ~enough)

    def to_divide(self, state: StateArray, k: int) -> None:
        """Nothing: all units of a region that has a place for them, together, are an admissible set."""

    def completed(self, support: Iterable[int], k: int, state: StateArray) -> tuple[int, ...] | None:
        """The smallest admissible set with these units, all that are IN and none that is OUT; None if none is found.

        Strong sets are unique. A weak set is searched for, with :data:`MOST_TRIALS`; there may be one where none is
        found.
        """
        start = state.copy()
        chosen = list(support)
        if np.any(start[chosen] == OUT):
            return None
        start[chosen] = IN
        closure, trials = self.implied(start, k), [MOST_TRIALS]
        if closure is None:
            return None
        for room in range(self._least(closure), k - int(np.count_nonzero(closure == IN)) + 1):
            complete = self._filled(closure, k, room, trials)
            if complete is not None:
                return tuple(np.flatnonzero(complete == IN).tolist())
        return None

    def _least(self, state: StateArray) -> int:
        """Units that are still needed at least: orphans no two of which could share a parent need one each."""
        seen: set[int] = set()
        count = 0
        for j in np.flatnonzero(self._orphans(state)).tolist():
            if seen.isdisjoint(self.parents[j]):
                count += 1
                seen.update(self.parents[j])
        return count

    def _filled(self, state: StateArray, k: int, room: int, trials: list[int]) -> StateArray | None:
        """The region with every orphan given a parent, by at most ``room`` more units; depth first."""
        orphans = np.flatnonzero(self._orphans(state))
        if orphans.size == 0:
            return state
        for parent in self.parents[int(orphans[0])] if room >= self._least(state) else ():
            if state[parent] == OUT or trials[0] <= 0:
                continue
            trials[0] -= 1
            tried = state.copy()
            tried[parent] = IN
            further = self.implied(tried, k)
            complete = None if further is None else self._filled(further, k, room - 1, trials)
            if complete is not None:
                return complete
        return None

    def restricted(self, support: Sequence[int], k: int, state: StateArray) -> tuple[int, ...]:
        """An admissible set made of a support: the smallest with all of it, where there is one; else its units in the
        order given, each with what it needs, while they fit.

        Parameters
        ----------
        support : sequence of int
            Most wanted first.
        k : int
        state : int8 array (d,)
            What was decided before; a region that is not empty.
        """
        selection = self.completed(support, k, state)
        if selection is not None:
            return selection
        selection = self.completed((), k, state)
        for unit in support:
            more = None if selection is None or unit in selection else self.completed((*selection, unit), k, state)
            selection = selection if more is None else more
        return () if selection is None else selection

    def largest(self, state: StateArray) -> int:
        """All units that are not OUT: parents may be had for each."""
        return int(np.count_nonzero(state != OUT))

    def of_columns(self, units: Units) -> Hierarchy:
        """The same, where a wide unit is in with all its columns or with none."""
        above = [tuple(units.columns_of(self.parents[g]).tolist()) for g in range(units.d)]
        return Hierarchy(tuple(above[g] for g in units.unit_of.tolist()), self.kind)

    def clash(self, included: Sequence[int]) -> tuple[int, ...]:
        """None: units of any hierarchy go together where there is room for what they need."""
        return ()

    def for_kernels(self) -> Sets:
        """See :class:`exactsel.problem.units.Constraint`."""
        members = np.array([parent for those in self.parents for parent in those], dtype=np.int64)
        first = np.cumsum([0, *(len(those) for those in self.parents)], dtype=np.int64)
        return Sets(STRONG if self.kind == "strong" else WEAK, members, first, 0)

    def entry(self) -> dict[str, Any]:
        """What defines it, as plain data: for the problem's hash, its description, and JSON."""
        parents = [[j, list(above)] for j, above in enumerate(self.parents) if above]
        return {"hierarchy": {"kind": self.kind, "parents": parents}}

    def __str__(self) -> str:
        count = sum(map(bool, self.parents))
        return f"{self.kind} hierarchy ({count} of the features ha{'s' if count == 1 else 've'} parents)"

    @cached_property
    def _edges(self) -> IntArray:
        return np.array([(j, i) for j, above in enumerate(self.parents) for i in above], dtype=np.int64).reshape(-1, 2)

    @cached_property
    def _child(self) -> IntArray:
        return np.ascontiguousarray(self._edges[:, 0])

    @cached_property
    def _parent(self) -> IntArray:
        return np.ascontiguousarray(self._edges[:, 1])

    @cached_property
    def _count(self) -> IntArray:
        """How many parents every unit has."""
        return np.array([len(above) for above in self.parents], dtype=np.int64)

    @cached_property
    def _has_parents(self) -> BoolArray:
        return np.asarray(self._count > 0)


def hierarchy_of(spec: Mapping[Any, Any], kind: str, d: int, number: Callable[[int | str], int]) -> Hierarchy:
    """A hierarchy from what people write: unit to parents, by number or name; one parent needs no list.

    Parameters
    ----------
    spec : mapping
    kind : str
    d : int
        Number of units.
    number : callable
        The number of a unit people name; raises InputError where there is none.

    Raises
    ------
    InputError
        For a kind that is not known, a unit that is its own parent, one named twice, or anything but names and numbers.
    """
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(f"the hierarchy is of kind {shown(kind)}, but strong or weak was expected; give one of them.")
    if not isinstance(spec, Mapping):
        raise InputError(
            f"the hierarchy is a {type(spec).__name__}, but a mapping was expected; write {{'a*b': ['a', 'b']}}."
        )
    parents: dict[int, tuple[int, ...]] = {}
    for entry, above in spec.items():
        j, several = number(entry), _several(entry, above)
        numbers = [number(parent) for parent in several]
        if j in parents or len({*numbers}) < len(numbers):
            raise InputError(f"the hierarchy names {entry!r} or one of its parents twice; name each once.")
        if j in numbers:
            raise InputError(f"the hierarchy makes {entry!r} its own parent; leave it out of its parents.")
        parents[j] = tuple(sorted(numbers))
    return Hierarchy(tuple(parents.get(j, ()) for j in range(d)), kind)


def _several(entry: object, above: object) -> list[Any]:
    """The parents of one entry as a list."""
    single = (str, int, np.integer)
    several = [above] if isinstance(above, single) else list(above) if isinstance(above, Iterable) else [None]
    if not all(isinstance(parent, single) for parent in several):
        raise InputError(f"the parents of {entry!r} are {above!r}, but names or numbers were expected; list them.")
    return several


def parents_by_name(names: Sequence[str]) -> dict[str, list[str]]:
    """The parents of columns called like products and powers of others: ``a*b``, ``a:b``, ``a b`` and ``a^2``.

    A name is a product by the first of these signs at which all its parts are columns, or powers of columns. One that
    has a blank in it and other parts is just a name.

    Raises
    ------
    InputError
        For a product by ``*`` or ``:`` of which one factor is a column and another is none.
    """
    columns, hierarchy = {*names}, {}
    for name in names:
        power = _POWER.fullmatch(name)
        factors = [power[1]] if power and power[1] in columns else _factors(name, columns)
        parents = sorted({factor for factor in factors if factor != name})
        if parents:
            hierarchy[name] = parents
    return hierarchy


def _factors(name: str, columns: set[str]) -> list[str]:
    """The columns a product is made of; none where the name is no product of columns."""
    missing = ""
    for sign in "*: ":
        parts = name.split(sign)
        factors = [_factor(part, columns) for part in parts]
        if len(parts) > 1 and all(factors):
            return factors
        if sign != " " and len(parts) > 1 and any(factors):
            missing = missing or next(part for part, factor in zip(parts, factors, strict=True) if not factor)
    if missing:
        raise InputError(
            f"the feature '{name}' looks like a product, but '{missing}' is no feature; give the hierarchy as a file."
        )
    return []


def _factor(part: str, columns: set[str]) -> str:
    """The column a factor names, itself or by a power of it; empty where there is none."""
    power = _POWER.fullmatch(part)
    return part if part in columns else power[1] if power and power[1] in columns else ""


def _under(units: Units, arguments: Mapping[str, Any]) -> Units:
    """The units under the hierarchy that is asked for (:func:`hierarchy_of`)."""
    spec = arguments.get("hierarchy")
    if spec is None:
        return units
    kind = arguments.get("hierarchy_kind", KINDS[0])
    hierarchy = hierarchy_of(spec, kind, units.d, lambda entry: units.number(entry, option("hierarchy")))
    return units.under(hierarchy) if any(hierarchy.parents) else units


def _again(hierarchy: Hierarchy) -> dict[str, Any]:
    parents = {Position(j): [*map(Position, above)] for j, above in enumerate(hierarchy.parents) if above}
    return {"hierarchy": parents, "hierarchy_kind": hierarchy.kind}


def _text(entry: Entry, label: Callable[[int], str]) -> str:
    """In words; one that is long by its first units."""
    joined, parents = " and " if entry["kind"] == "strong" else " or ", entry["parents"]
    said = [f"{label(j)} only with {joined.join(map(label, above))}" for j, above in parents[:SHOWN]]
    more = f", and so on for {len(parents) - SHOWN} more" if len(parents) > SHOWN else ""
    return f"{entry['kind']} hierarchy: {', '.join(said)}{more}"


KIND = ConstraintKind(
    name="hierarchy",
    arguments={"hierarchy": None, "hierarchy_kind": KINDS[0]},
    under=_under,
    again=_again,
    text=_text,
    flags=lambda entry: [f"{option('hierarchy')} FILE"],
)
