"""A hierarchy: units that are chosen only together with their parents.

With every j that has parents, a set of units must hold all of them (strong) or one of them (weak). A region stands for
the admissible sets T with S in T, T in S and C, and at most k units. Two things follow from a region's decisions, again
and again until nothing new does: a unit that can no longer have the parents it needs is out, and parents that a unit of
S needs for certain are in. Both take no set away; so the region may be replaced by what is left of it, whatever order
they were found in. Nothing is left where a unit would be in and out, where more than k are in, and where k are in and
one of them has none of its parents among them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass

from exactsel_certificates.constraint import Constraint, Rule, lines_of, rising, unit_named, whole, wholes
from exactsel_certificates.walk import FREE, IN, OTHER, OUT

KINDS = ("strong", "weak")
"""With every unit all of its parents are chosen, or at least one."""


@dataclass(frozen=True)
class Hierarchy(Constraint):
    """Which units (groups, or columns where there are none) are chosen only together with others."""

    name = "hierarchy"
    allows = "the hierarchy allows"

    kind: str
    """``strong`` or ``weak``."""
    parents: tuple[tuple[int, tuple[int, ...]], ...]
    """The units that have parents, ascending, each with these, ascending."""

    def check(self, units: int, grouped: bool) -> None:
        """:class:`ValueError` for a hierarchy that is not as the class says."""
        if self.kind not in KINDS:
            raise ValueError(f"the hierarchy is '{self.kind}', but it must be {' or '.join(KINDS)}.")
        children, every = [j for j, _ in self.parents], {*range(units)}
        if not self.parents or not rising(children) or not {*children} <= every:
            raise ValueError(
                "the hierarchy must hold the units that have parents, ascending; leave it out if none have."
            )
        for j, parents in self.parents:
            if not parents or not rising(parents) or not {*parents} <= every or j in parents:
                raise ValueError(f"the parents of unit {j} must be different other units, ascending.")

    def plain(self) -> Hierarchy:
        """The same in plain numbers."""
        if not isinstance(self.kind, str):
            raise ValueError(f"the kind of the hierarchy is {self.kind!r}, no text.")
        return Hierarchy(self.kind, tuple((whole(j), wholes(parents)) for j, parents in self.parents))

    def rule(self, k: int) -> HierarchyRule:
        """What it makes of regions."""
        return HierarchyRule(self, k)

    def words(self) -> str:
        """The constraint for people."""
        return f"{self.kind} hierarchy ({len(self.parents)} with parents)"


class HierarchyRule(Rule):
    """A hierarchy, and the limit k on what is chosen."""

    def __init__(self, hierarchy: Hierarchy, k: int) -> None:
        self.k = k
        self.weak = hierarchy.kind == "weak"
        self.parents = dict(hierarchy.parents)
        self.children: dict[int, list[int]] = {}
        for j, parents in hierarchy.parents:
            for parent in parents:
                self.children.setdefault(parent, []).append(j)

    def implied(self, state: bytes, changed: Iterable[int]) -> bytes | None:
        """The state of every unit with all that follows from the decisions on ``changed``; None where nothing is left.

        All that follows from the other decisions must be there already.
        """
        now, waiting = bytearray(state), [*changed]
        while waiting:
            unit = waiting.pop()
            for j in (unit, *self.children.get(unit, ())):
                for other, decision in self._follows(now, j):
                    if now[other] == OTHER[decision]:
                        return None
                    if now[other] == FREE:
                        now[other] = decision
                        waiting.append(other)
        included = now.count(IN)
        full_with_orphan = included == self.k and next(self.orphans(now), None) is not None
        return None if included > self.k or full_with_orphan else bytes(now)

    def _follows(self, state: bytearray, j: int) -> Iterator[tuple[int, int]]:
        """Decisions that follow from those on j and its parents."""
        parents = self.parents.get(j, ())
        candidates = [parent for parent in parents if state[parent] != OUT]
        if len(candidates) < (min(1, len(parents)) if self.weak else len(parents)):
            yield j, OUT
        elif state[j] == IN and (len(candidates) == 1 or not self.weak):
            yield from ((parent, IN) for parent in candidates)

    def orphans(self, state: bytes | bytearray) -> Iterator[int]:
        """Units of S that have parents, but none of them in S."""
        for j, parents in self.parents.items():
            if state[j] == IN and not any(state[parent] == IN for parent in parents):
                yield j


def read(lines: Iterable[str], called: Mapping[str, Set[int]], units: int) -> Hierarchy | None:
    """The hierarchy some lines ``child: parent, parent`` say; None where they name no parents.

    Parameters
    ----------
    lines : iterable of str
        ``#`` begins a comment. The first line may say ``weak`` or ``strong``, without which it is strong.
    called : mapping from str to set of int
        The units of each name; a text that is no name of one unit, but a number below ``units``, is that one.

    Raises
    ------
    ValueError
        When the lines are none of a hierarchy, in one sentence.
    """
    said = lines_of(lines)
    kind = said.pop(0) if said and said[0] in KINDS else KINDS[0]
    parents: dict[int, tuple[int, ...]] = {}
    for text in said:
        # Names may hold colons; the one that ends the child is followed by a blank, or is the only one.
        match = re.fullmatch(r"(.*?):(?:\s+(.*))?", text) or re.fullmatch(r"([^:]*):([^:]*)", text)
        if match is None:
            raise ValueError(f"the hierarchy holds the line {text!r}, but 'child: parent, parent' was expected.")
        child = unit_named(match[1], called, units, "the hierarchy")
        needs = [
            unit_named(name, called, units, "the hierarchy") for name in (match[2] or "").split(",") if name.strip()
        ]
        if child in parents or child in needs or len({*needs}) < len(needs):
            raise ValueError(f"the hierarchy names {match[1].strip()!r} or one of its parents twice; name each once.")
        parents[child] = tuple(sorted(needs))
    pairs = tuple(sorted((child, needs) for child, needs in parents.items() if needs))
    return Hierarchy(kind, pairs) if pairs else None
