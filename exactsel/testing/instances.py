"""A tiny instance as plain data: the input of a user, and the settings of its solve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import Any

from exactsel.problem.interface import SubsetProblem
from exactsel.solving.serialize import CSS, made_again
from exactsel.types import FloatArray

__all__ = ["CSS", "Parents", "TinyInstance", "columns_in_order"]

Parents = tuple[tuple[int, tuple[int, ...]], ...]
"""Units of a hierarchy, each with its parents."""


@dataclass(frozen=True, eq=False)
class TinyInstance:
    """A problem as it is given; ``k``, demands and hierarchy count groups where there are any."""

    A: FloatArray
    y: FloatArray
    k: int
    loss: str = "quadratic"
    lam: float = 0.0
    delta: float = 1.0
    weights: FloatArray | None = None
    intercept: bool = False
    scale: bool = False
    force_in: tuple[int, ...] = ()
    force_out: tuple[int, ...] = ()
    groups: tuple[str, ...] | None = None
    """The label of each column's group, empty for a column on its own."""
    hierarchy: Parents = ()
    hierarchy_kind: str = "strong"
    not_both: tuple[tuple[int, int], ...] = ()
    """Pairs of units that exclude each other; none beside a hierarchy."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Of the solve; what is not in it is left at its default."""

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.A.shape[0])

    @property
    def d(self) -> int:
        """Number of columns."""
        return int(self.A.shape[1])

    @cached_property
    def units(self) -> tuple[tuple[int, ...], ...]:
        """The columns of each unit, in the order of their first columns."""
        held: dict[Any, list[int]] = {}
        for j, label in enumerate(self.groups or ("",) * self.d):
            held.setdefault(label or j, []).append(j)
        return tuple(tuple(columns) for columns in held.values())

    @cached_property
    def admissible(self) -> tuple[frozenset[int], ...]:
        """Every set of units a model may be on; none where the demands cannot be met."""
        free = [u for u in range(len(self.units)) if u not in self.force_in and u not in self.force_out]
        places = self.k - len(self.force_in)
        sets = (frozenset((*self.force_in, *more)) for size in range(places + 1) for more in combinations(free, size))
        return tuple(chosen for chosen in sets if self._respects(chosen))

    @property
    def constraint(self) -> dict[str, Any]:
        """The hierarchy or the pairs, as arguments of a problem."""
        if self.hierarchy:
            return {"hierarchy": dict(self.hierarchy), "hierarchy_kind": self.hierarchy_kind}
        return {"not_both": self.not_both} if self.not_both else {}

    def _respects(self, chosen: frozenset[int]) -> bool:
        if any(chosen.issuperset(pair) for pair in self.not_both):
            return False
        enough = all if self.hierarchy_kind == "strong" else any
        return all(enough(parent in chosen for parent in above) for unit, above in self.hierarchy if unit in chosen)

    @cached_property
    def largest(self) -> tuple[frozenset[int], ...]:
        """The admissible sets that no other contains: an optimum is among their models."""
        by_size = sorted(self.admissible, key=len, reverse=True)
        maximal_sets: list[frozenset[int]] = []
        for chosen in by_size:
            if not any(chosen < other for other in maximal_sets):
                maximal_sets.append(chosen)
        return tuple(maximal_sets)

    def columns_of(self, chosen: frozenset[int]) -> tuple[int, ...]:
        """The columns of a set of units, ascending."""
        return tuple(sorted(j for unit in chosen for j in self.units[unit]))

    def problem(self) -> SubsetProblem:
        """The problem as exactsel takes it; InputError where it is refused."""
        return made_again(self.A, self.y, self.weights, vars(self) | {"constraint": self.constraint})


def columns_in_order(instance: TinyInstance, order: Sequence[int]) -> TinyInstance:
    """The instance with these columns, in this order; units that lose their columns leave demands and hierarchy."""
    groups = None if instance.groups is None else tuple(instance.groups[j] for j in order)
    restriction = replace(
        instance, A=instance.A[:, list(order)], groups=groups, hierarchy=(), not_both=(), force_in=(), force_out=()
    )
    number = {j: u for u, columns in enumerate(restriction.units) for j in columns}
    new_unit: dict[int, int] = {}
    for unit, columns in enumerate(instance.units):
        new_unit.update((unit, number[at]) for at, j in enumerate(order) if j in columns)

    def renamed(units: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(sorted(new_unit[u] for u in units if u in new_unit))

    edges: Parents = tuple(
        (new_unit[u], renamed(above)) for u, above in instance.hierarchy if u in new_unit and renamed(above)
    )
    pairs = sorted(renamed(pair) for pair in instance.not_both if {*pair} <= {*new_unit})
    return replace(
        restriction, force_in=renamed(instance.force_in), force_out=renamed(instance.force_out),
        hierarchy=tuple(sorted(edges)), not_both=tuple((i, j) for i, j in pairs),
    )  # fmt: skip
