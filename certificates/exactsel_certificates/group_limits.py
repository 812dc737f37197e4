"""Limits on groups: at most so many columns of each group, where columns are chosen one by one.

Where a group has as many columns in as it may have, its others are out, and nothing is left where it has more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from exactsel_certificates.constraint import Constraint, Rule, rising, whole, wholes
from exactsel_certificates.walk import FREE, IN, OUT


@dataclass(frozen=True)
class Limits(Constraint):
    """At most so many columns of each group."""

    name = "limits"
    kind = "limits"
    allows = "the limits on groups allow"

    most: int
    """Columns of a group that are chosen at most, at least 1."""
    groups: tuple[tuple[int, ...], ...]
    """The groups with more columns than that, each ascending, in the order of their first columns."""

    def check(self, units: int, grouped: bool) -> None:
        """:class:`ValueError` for limits that are not as the class says."""
        held = [j for group in self.groups for j in group]
        if grouped or self.most < 1 or not self.groups or not {*held} <= {*range(units)} or len({*held}) < len(held):
            raise ValueError("limits must be at least 1 and about groups of different columns, chosen one by one.")
        larger = all(len(group) > self.most and rising(group) for group in self.groups)
        if not larger or not rising([group[0] for group in self.groups]):
            raise ValueError("limits must name the groups with more columns than that, in the order of their columns.")

    def plain(self) -> Limits:
        """The same in plain numbers."""
        return Limits(whole(self.most), tuple(wholes(group) for group in self.groups))

    def rule(self, k: int) -> LimitRule:
        """What it makes of regions."""
        return LimitRule(self, k)

    def words(self) -> str:
        """The constraint for people."""
        return f"at most {self.most} from each of {len(self.groups)} larger groups"


class LimitRule(Rule):
    """At most so many columns of each group, and the limit k on what is chosen."""

    def __init__(self, limits: Limits, k: int) -> None:
        self.k, self.most = k, limits.most
        self.groups = limits.groups
        self.group = {j: group for group in limits.groups for j in group}

    def implied(self, state: bytes, changed: Iterable[int]) -> bytes | None:
        """The state of every column where those of full groups are out; None where nothing is left.

        All that follows from decisions on other columns than ``changed`` must be there already.
        """
        now = bytearray(state)
        for group in {self.group[j] for j in changed if j in self.group}:
            included = sum(now[j] == IN for j in group)
            if included > self.most:
                return None
            for j in group if included == self.most else ():
                if now[j] == FREE:
                    now[j] = OUT
        return None if now.count(IN) > self.k else bytes(now)

    def crowded(self, units: Sequence[int]) -> list[int]:
        """The columns of the first group that has too many."""
        held = ([j for j in units if j in group] for group in self.groups)
        return next((some for some in held if len(some) > self.most), [])
