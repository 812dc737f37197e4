"""Pairs of units that exclude each other: a model holds at most one unit of each pair.

Of a unit that is in all units that it excludes are out, and nothing is left where one of them is in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import combinations

from exactsel_certificates.constraint import Constraint, Rule, lines_of, rising, unit_named, wholes
from exactsel_certificates.walk import IN, OUT


@dataclass(frozen=True)
class NotBoth(Constraint):
    """Pairs of units (groups, or columns where there are none) that are never chosen together."""

    name = "not_both"
    kind = "not_both"
    allows = "the pairs that exclude each other allow"

    pairs: tuple[tuple[int, ...], ...]
    """Two different units each, the smaller number first; ascending, each pair once, and at least one."""

    def check(self, units: int, grouped: bool) -> None:
        """:class:`ValueError` for pairs that are not as the class says."""
        whole_pairs = all(len(pair) == 2 and 0 <= pair[0] < pair[1] < units for pair in self.pairs)
        if not self.pairs or not whole_pairs or not rising(self.pairs):
            raise ValueError("pairs that exclude each other must be two different units each, ascending, each once.")

    def plain(self) -> NotBoth:
        """The same in plain numbers."""
        return NotBoth(tuple(wholes(pair) for pair in self.pairs))

    def rule(self, k: int) -> PairRule:
        """What it makes of regions."""
        return PairRule(self, k)

    def words(self) -> str:
        """The constraint for people."""
        return f"not both of {len(self.pairs)} pair{'s' * (len(self.pairs) > 1)}"


class PairRule(Rule):
    """Pairs of units that exclude each other, and the limit k on what is chosen."""

    def __init__(self, demanded: NotBoth, k: int) -> None:
        self.k, self.pairs = k, demanded.pairs
        self.excluded: dict[int, list[int]] = {}
        for i, j in demanded.pairs:
            self.excluded.setdefault(i, []).append(j)
            self.excluded.setdefault(j, []).append(i)

    def implied(self, state: bytes, changed: Iterable[int]) -> bytes | None:
        """The state of every unit where those that units of S exclude are out; None where nothing is left.

        All that follows from decisions on other units than ``changed`` must be there already.
        """
        now = bytearray(state)
        for unit in changed:
            for other in self.excluded.get(unit, ()) if now[unit] == IN else ():
                if now[other] == IN:
                    return None
                now[other] = OUT
        return None if now.count(IN) > self.k else bytes(now)

    def crowded(self, units: Sequence[int]) -> list[int]:
        """The first pair that is there whole."""
        there = {*units}
        return next(([*pair] for pair in self.pairs if there.issuperset(pair)), [])


def read(lines: Iterable[str], called: Mapping[str, Set[int]], units: int) -> NotBoth | None:
    """The pairs some lines ``unit, unit`` say, of a longer line each two of its units; None without any.

    Parameters and errors are those of :func:`.hierarchy.read`.
    """
    pairs: set[tuple[int, ...]] = set()
    for text in lines_of(lines):
        numbers = sorted(unit_named(name, called, units, "not_both") for name in text.split(","))
        if len({*numbers}) < max(2, len(numbers)):
            raise ValueError(f"not_both holds the line {text!r}, but two different columns or groups were expected.")
        pairs.update(combinations(numbers, 2))
    return NotBoth(tuple(sorted(pairs))) if pairs else None
