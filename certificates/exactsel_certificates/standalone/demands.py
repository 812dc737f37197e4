"""Regions and their parts where not every set of units may be chosen, for the second checker.

Each kind of constraint is one file (hierarchy, group_limits, not_both), and one entry of the table in constraints.py.
"""

from __future__ import annotations

from typing import Any

Region = tuple[set[int], set[int]]
"""S and C."""


class Demands:
    """Regions and their parts, for any dependences between units."""

    name = ""
    """Under which the hash of a problem has it."""

    @property
    def kind(self) -> str:
        """What the header of a file calls it."""
        return self.name

    def entry(self) -> dict[str, Any]:
        """What the hash of a problem has of it."""
        raise NotImplementedError

    def pruned(self, region: Region | None, k: int) -> Region | None:
        """The region with all that its decisions imply; None where it holds no set of units at all."""
        raise NotImplementedError

    def lonely(self, S: set[int]) -> set[int]:
        """Units of S that need others, all of them elsewhere."""
        return set()

    def crowded(self, units: set[int]) -> set[int]:
        """Some of these units of which not all may be chosen together; none where there are none."""
        return set()

    def put(self, region: Region | None, j: int, included: bool, k: int) -> Region | None:
        """The part of a region with a unit, or the part without it; nothing where the region says otherwise."""
        if region is None:
            return None
        S, C = region
        if j in C:
            return self.pruned((S | {j}, C - {j}) if included else (S, C - {j}), k)
        return region if (j in S) == included else None

    def allows(self, held: set[int], banned: set[int], count: int, k: int) -> bool:
        """Whether these units and all they imply may be chosen together."""
        region = None if held & banned else self.pruned((held, set(range(count)) - held - banned), k)
        return region is not None and not self.lonely(region[0])
