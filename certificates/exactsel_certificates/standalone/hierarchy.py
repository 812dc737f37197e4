"""Units that are chosen only together with others, or so many of a group at most, for the second checker.

``parents`` maps a unit to those it needs: all of them, or with ``weak`` one of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

KINDS = ("strong", "weak")
GROUP_LIMITS = "limits"
"""What a file says in place of a kind where there are limits on groups."""

Region = tuple[set[int], set[int]]
"""S and C."""


class Demands:
    """What regions and their parts come to, whichever way units hang together."""

    def pruned(self, region: Region | None, k: int) -> Region | None:
        """The region with all that its decisions imply; None where it holds no set of units at all."""
        raise NotImplementedError

    def lonely(self, S: set[int]) -> set[int]:
        """Units of S that need others, all of them elsewhere."""
        raise NotImplementedError

    def put(self, region: Region | None, j: int, inside: bool, k: int) -> Region | None:
        """The part of a region with a unit, or the part without it; nothing where the region says otherwise."""
        if region is None:
            return None
        S, C = region
        if j in C:
            return self.pruned((S | {j}, C - {j}) if inside else (S, C - {j}), k)
        return region if (j in S) == inside else None

    def allows(self, held: set[int], banned: set[int], count: int, k: int) -> bool:
        """Whether these units and all they imply may be chosen together."""
        region = None if held & banned else self.pruned((held, set(range(count)) - held - banned), k)
        return region is not None and not self.lonely(region[0])


class Limits(Demands):
    """At most so many columns of each of some groups."""

    def __init__(self, most: int, groups: Sequence[Sequence[int]]) -> None:
        self.most, self.groups = most, groups

    def pruned(self, region: Region | None, k: int) -> Region | None:
        """The region without what is left of full groups."""
        if region is None:
            return None
        S, C = region
        held = [len(S.intersection(group)) for group in self.groups]
        if len(S) > k or any(many > self.most for many in held):
            return None
        full = (group for group, many in zip(self.groups, held, strict=True) if many == self.most)
        return S, C.difference(*full)

    def lonely(self, S: set[int]) -> set[int]:
        """No column needs another one."""
        return set()


class Hierarchy(Demands):
    """Who needs whom; nobody anybody where ``parents`` is empty."""

    def __init__(self, weak: bool, parents: Mapping[int, Sequence[int]]) -> None:
        self.weak, self.parents = weak, parents

    def pruned(self, region: Region | None, k: int) -> Region | None:
        """The region with all that its decisions imply; None where it holds no set of units at all."""
        while region is not None:
            S, C = region
            # Sweeps over all units; in each the next decisions are those that follow from what was known before it.
            banned = {j for j in S | C if self.needs(j) and self.lost(j, S | C)}
            forced = {i for j in S for i in self.certain(j, S | C)}
            if banned & (S | forced) or not forced <= S | C or len(S | forced) > k:
                return None
            after = (S | forced, C - forced - banned)
            if after == region:
                return None if len(S) == k and self.lonely(S) else region
            region = after
        return None

    def needs(self, j: int) -> Sequence[int]:
        """The parents of a unit."""
        return self.parents.get(j, ())

    def lost(self, j: int, possible: set[int]) -> bool:
        """Whether a unit cannot have the parents it needs."""
        away = [i not in possible for i in self.needs(j)]
        return all(away) if self.weak else any(away)

    def certain(self, j: int, possible: set[int]) -> list[int]:
        """Parents that come with a unit in any case."""
        there = [i for i in self.needs(j) if i in possible]
        return there if not self.weak or len(there) == 1 else []

    def lonely(self, S: set[int]) -> set[int]:
        """Units of S whose parents are all elsewhere."""
        return {j for j in S if self.needs(j) and S.isdisjoint(self.needs(j))}
