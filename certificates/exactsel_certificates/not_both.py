"""Pairs of units that exclude each other: a model holds at most one unit of each pair.

Of a unit that is in all units that it excludes are out, and nothing is left where one of them is in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import combinations
from typing import Any, NamedTuple

from exactsel_certificates.constraint import rising, wholes
from exactsel_certificates.unit_names import lines_of, unit_named
from exactsel_certificates.walk import IN, OUT


class NotBoth(NamedTuple):
    """Pairs of units (groups, or columns where there are none) that are never chosen together."""

    pairs: tuple[tuple[int, ...], ...]
    """Two different units each, the smaller number first; ascending, each pair once, and at least one."""

    @property
    def name(self) -> str:
        """See :class:`.constraint.Constraint`, as for all that follow."""
        return "not_both"

    @property
    def kind(self) -> str:
        """What the header of a file calls it."""
        return "not_both"

    @property
    def allows(self) -> str:
        """Its verb phrase."""
        return "the pairs that exclude each other allow"

    def entry(self) -> dict[str, Any]:
        """What the hash of a problem has of it."""
        return self._asdict()

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


class PairRule:
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

    def orphans(self, state: bytes | bytearray) -> Iterator[int]:
        """None: no unit needs another one."""
        return iter(())

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
