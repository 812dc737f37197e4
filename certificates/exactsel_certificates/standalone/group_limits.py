"""At most so many columns of each group, for the second checker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .demands import Demands, Region
from .values import refuse, whole


class Limits(Demands):
    """At most so many columns of each of some groups."""

    name = "limits"

    def __init__(self, most: int, groups: Sequence[Sequence[int]]) -> None:
        self.most, self.groups = most, groups

    def entry(self) -> dict[str, Any]:
        """What the hash of a problem has of it."""
        return {"most": self.most, "groups": self.groups}

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

    def crowded(self, units: set[int]) -> set[int]:
        """The columns of the first group that has too many."""
        held = (units.intersection(group) for group in self.groups)
        return next((some for some in held if len(some) > self.most), set())


def limited(groups: list[list[int]], per_group: object) -> Limits | None:
    """The limits on groups; None where no group has more columns."""
    most = whole(per_group)
    if most is None or most < 1 or not groups:
        refuse("the limit on each group", per_group, "a whole number of at least 1 with groups")
    larger = [group for group in groups if len(group) > most]
    return Limits(most, larger) if larger else None
