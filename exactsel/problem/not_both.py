"""Pairs of units that exclude each other: a model holds at most one unit of each pair.

The pairs are the edges of a conflict graph. A set of units is admissible when it has at most k and no two of them are
neighbours in that graph. Every part of an admissible set is one, too, but such sets are no matroid: a greedy choice
need not be a best one, and the largest admissible set is not known without a search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from typing import Any

import numpy as np

from exactsel.arguments import shown
from exactsel.errors import InputError, option
from exactsel.kernels.admissible import NOT_BOTH, Sets
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.problem.constraint_kind import SHOWN, ConstraintKind, Entry
from exactsel.problem.numbered import Position
from exactsel.problem.units import Units
from exactsel.types import BoolArray, StateArray


@dataclass(frozen=True)
class NotBoth:
    """At most one unit of each pair: a :class:`exactsel.problem.units.Constraint`.

    Parameters
    ----------
    pairs : tuple of tuples of int
        Two different units each, the smaller number first; ascending, each pair once, and at least one.
    d : int
        Number of units.
    """

    pairs: tuple[tuple[int, int], ...]
    d: int

    def implied(self, state: StateArray, k: int) -> StateArray | None:
        """The region without the neighbours of units that are in; None where two neighbours, or more than k, are in."""
        included = state == IN
        banned = self._neighbours_of(included)
        if np.any(banned & included) or np.count_nonzero(included) > k:
            return None
        state = state.copy()
        state[banned & (state == FREE)] = OUT
        return state

    def to_divide(self, state: StateArray, k: int) -> BoolArray | None:
        """Where all units of a region have a place, but some exclude each other: those of them that are free (d,)."""
        possible = state != OUT
        if np.count_nonzero(state == IN) >= k or np.count_nonzero(possible) > k:
            return None
        divided = (state == FREE) & self._neighbours_of(possible)
        return divided if divided.any() else None

    def completed(self, support: Iterable[int], k: int, state: StateArray) -> tuple[int, ...] | None:
        """These units and all that are IN; None where they are no admissible set of the region."""
        start = state.copy()
        chosen = list(support)
        if np.any(start[chosen] == OUT):
            return None
        start[chosen] = IN
        closure = self.implied(start, k)
        return None if closure is None else tuple(np.flatnonzero(closure == IN).tolist())

    def restricted(self, support: Sequence[int], k: int, state: StateArray) -> tuple[int, ...]:
        """What is IN, and the units of a support in the order given, but those with a neighbour taken before."""
        selection = np.flatnonzero(state == IN).tolist()
        banned = {i for j in selection for i in self.neighbours[j]}
        for j in support:
            if state[j] == FREE and j not in selection and j not in banned and len(selection) < k:
                selection.append(j)
                banned.update(self.neighbours[j])
        return tuple(sorted(selection))

    def largest(self, state: StateArray) -> int:
        """No admissible set of units that are not OUT has more: they are covered by so many cliques, each with one."""
        cliques: list[set[int]] = []
        alone = 0
        for j in np.flatnonzero(state != OUT).tolist():
            neighbours = {*self.neighbours[j]}
            clique = next((held for held in cliques if held <= neighbours), None) if neighbours else None
            if clique is not None:
                clique.add(j)
            elif neighbours:
                cliques.append({j})
            else:
                alone += 1
        return alone + len(cliques)

    def of_columns(self, units: Units) -> NotBoth:
        """The same about the columns of units: each pair of columns of two that exclude each other."""
        columns = [units.columns_of([g]).tolist() for g in range(units.d)]
        pairs = {(min(i, j), max(i, j)) for g, h in self.pairs for i, j in product(columns[g], columns[h])}
        return NotBoth(tuple(sorted(pairs)), units.columns)

    def clash(self, included: Sequence[int]) -> tuple[int, ...]:
        """The first pair that is among these units; nothing where there is none."""
        there = {*included}
        return next((pair for pair in self.pairs if there.issuperset(pair)), ())

    def for_kernels(self) -> Sets:
        """See :class:`exactsel.problem.units.Constraint`."""
        members = np.array([i for j in range(self.d) for i in self.neighbours[j]], dtype=np.int64)
        first = np.cumsum([0, *(len(self.neighbours[j]) for j in range(self.d))], dtype=np.int64)
        return Sets(NOT_BOTH, members, first, 0)

    def entry(self) -> dict[str, Any]:
        """What defines it, as plain data: for the problem's hash, its description, and JSON."""
        return {"not_both": {"pairs": [list(pair) for pair in self.pairs]}}

    def __str__(self) -> str:
        return f"not_both condition ({len(self.pairs)} pair{'s' * (len(self.pairs) > 1)})"

    @cached_property
    def neighbours(self) -> tuple[tuple[int, ...], ...]:
        """The units that every unit excludes (d,), ascending."""
        adjacency: list[list[int]] = [[] for _ in range(self.d)]
        for i, j in self.pairs:
            adjacency[i].append(j)
            adjacency[j].append(i)
        return tuple(tuple(sorted(row)) for row in adjacency)

    def _neighbours_of(self, units: BoolArray) -> BoolArray:
        """The units that some of these exclude (d,)."""
        mask = np.zeros(self.d, dtype=bool)
        ends = np.array(self.pairs, dtype=np.int64)
        mask[ends[units[ends[:, 0]], 1]] = True
        mask[ends[units[ends[:, 1]], 0]] = True
        return mask


def not_both_of(spec: Iterable[Any], d: int, number: Callable[[int | str], int]) -> NotBoth | None:
    """The pairs that people write, by number or name; of more than two units each pair. None without any.

    Parameters
    ----------
    spec : iterable of sequences of int or str
    d : int
        Number of units.
    number : callable
        The number of a unit people name; raises InputError where there is none.

    Raises
    ------
    InputError
        For anything but lists of at least two different units.
    """
    if isinstance(spec, str) or not isinstance(spec, Iterable):
        raise InputError(f"not_both is {shown(spec)}, but a list of pairs was expected; write [('a', 'b')].")
    pairs: set[tuple[int, int]] = set()
    for entry in spec:
        single = isinstance(entry, str | bytes) or not isinstance(entry, Iterable)
        several = [] if single else list(entry)
        if len(several) < 2 or not all(isinstance(name, str | int | np.integer) for name in several):
            raise InputError(
                f"not_both holds {shown(entry)}, but a pair of names or numbers was expected; write [('a', 'b')]."
            )
        numbers = sorted(number(name) for name in several)
        if len({*numbers}) < len(numbers):
            twice = f"{option('not_both')} names one feature or group twice in {shown(entry)}"
            raise InputError(f"{twice}; name different ones.")
        pairs.update(combinations(numbers, 2))
    return NotBoth(tuple(sorted(pairs)), d) if pairs else None


def _under(units: Units, arguments: Mapping[str, Any]) -> Units:
    """The units with the requested pairs."""
    spec = arguments.get("not_both")
    constraint = (
        None if spec is None else not_both_of(spec, units.d, lambda entry: units.number(entry, option("not_both")))
    )
    return units if constraint is None else units.under(constraint)


def _again(constraint: NotBoth) -> dict[str, Any]:
    return {"not_both": [[*map(Position, pair)] for pair in constraint.pairs]}


def _text(entry: Entry, label: Callable[[int], str]) -> str:
    """In words; a long list by its first pairs."""
    pairs = entry["pairs"]
    said = ", ".join(" and ".join(map(label, pair)) for pair in pairs[:SHOWN])
    return f"not both: {said}" + (f", and {len(pairs) - SHOWN} more pairs" if len(pairs) > SHOWN else "")


KIND = ConstraintKind(
    name="not_both",
    arguments={"not_both": None},
    under=_under,
    again=_again,
    text=_text,
    flags=lambda entry: [f"{option('not_both')} FILE"],
)
