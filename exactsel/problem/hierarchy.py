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

from exactsel.errors import InputError
from exactsel.kernels.node import IN, OUT
from exactsel.types import BoolArray, IntArray, StateArray

KINDS = ("strong", "weak")

MOST_TRIALS = 100_000
"""Sets of parents tried to complete a weak support, before the answer is that none was found."""

_PRODUCT = re.compile(r"[*: ]")
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
        left = np.bincount(self._child[state[self._parent] != OUT], minlength=state.size)
        lost = self._has_parents & (left == 0)
        if np.any(state[lost] == IN):
            return False
        if np.any(state[lost] != OUT):
            state[lost] = OUT
            return True
        last = self._has_parents & (left == 1) & (state == IN)
        state[self._parent[last[self._child] & (state[self._parent] != OUT)]] = IN
        return True

    def _orphans(self, state: StateArray) -> BoolArray:
        """Units that are in without the parents they need (d,)."""
        inside = np.bincount(self._child[state[self._parent] == IN], minlength=state.size)
        enough = inside >= (self._count if self.kind == "strong" else np.minimum(self._count, 1))
        return np.asarray((state == IN) & ~enough)

    def completed(self, support: Iterable[int], k: int, state: StateArray) -> tuple[int, ...] | None:
        """The smallest admissible set with these units, and those that are IN, and none that is OUT; None without one.

        Strong sets are unique. A weak set is searched for; None also where :data:`MOST_TRIALS` were not enough.
        """
        start = state.copy()
        chosen = list(support)
        if np.any(start[chosen] == OUT):
            return None
        start[chosen] = IN
        found = self.implied(start, k)
        for room in range(k - int(np.count_nonzero(start == IN)) + 1 if found is not None else 0):
            trials = [MOST_TRIALS]
            complete = None if found is None else self._filled(found, k, room, trials)
            if complete is not None:
                return tuple(np.flatnonzero(complete == IN).tolist())
        return None

    def _filled(self, state: StateArray, k: int, room: int, trials: list[int]) -> StateArray | None:
        """The region with every orphan given a parent, by at most ``room`` more units; depth first."""
        orphans = np.flatnonzero(self._orphans(state))
        if orphans.size == 0:
            return state
        for parent in self.parents[int(orphans[0])] if room > 0 else ():
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
        """An admissible set made of a support: its units in the order given, each with what it needs, while they fit.

        Parameters
        ----------
        support : sequence of int
            Most wanted first.
        k : int
        state : int8 array (d,)
            What was decided before; a region that is not empty.
        """
        kept = self.completed((), k, state)
        for unit in support:
            more = None if kept is None or unit in kept else self.completed((*kept, unit), k, state)
            kept = kept if more is None else more
        return () if kept is None else kept

    def entry(self) -> dict[str, Any]:
        """What defines it, as plain data: for the problem's hash, its description, and JSON."""
        return {"kind": self.kind, "parents": [[j, list(above)] for j, above in enumerate(self.parents) if above]}

    def __str__(self) -> str:
        count = sum(map(bool, self.parents))
        needs = "all their parents" if self.kind == "strong" else "one of their parents"
        return f"{count} units only together with {needs} ({self.kind} hierarchy)"

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
        For a kind that is not known, a unit that is its own parent, or one named twice.
    """
    if kind not in KINDS:
        raise InputError(f"the hierarchy is of kind {kind!r}, but strong or weak was expected; give one of them.")
    parents: list[tuple[int, ...]] = [()] * d
    for entry, above in spec.items():
        j = number(entry)
        if parents[j]:
            raise InputError(f"the hierarchy names unit {entry!r} twice; give all its parents in one place.")
        several: list[Any] = [above] if isinstance(above, str | int | np.integer) else list(above)
        parents[j] = tuple(sorted({number(parent) for parent in several}))
        if j in parents[j]:
            raise InputError(f"the hierarchy makes {entry!r} its own parent; leave it out of its parents.")
    return Hierarchy(tuple(parents), kind)


def parents_by_name(names: Sequence[str]) -> dict[str, list[str]]:
    """The parents of columns called like products and powers of others: ``a*b``, ``a:b``, ``a b`` and ``a^2``.

    What is no name of a column is no parent; a column none of whose parts is one has no parents.
    """
    known, found = set(names), {}
    for name in names:
        power = _POWER.fullmatch(name)
        parts = [power[1]] if power and power[1] in known else _PRODUCT.split(name)
        parts = [one[1] if (one := _POWER.fullmatch(part)) else part for part in parts]
        above = sorted({part for part in parts if part in known and part != name})
        if above:
            found[name] = above
    return found
