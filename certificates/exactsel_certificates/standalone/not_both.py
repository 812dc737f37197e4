"""Pairs of units that exclude each other, for the second checker."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise
from typing import Any

from .demands import Demands, Region
from .values import Outside, Unclear, choice, listed, number_of, said, units_of


class NotBoth(Demands):
    """At most one unit of each pair."""

    name = "not_both"

    def __init__(self, pairs: Sequence[Sequence[int]]) -> None:
        self.pairs = pairs

    def entry(self) -> dict[str, Any]:
        """What the hash of a problem has of it."""
        return {"pairs": self.pairs}

    def pruned(self, region: Region | None, k: int) -> Region | None:
        """The region without the units that those of S exclude."""
        if region is None:
            return None
        S, C = region
        banned = {j for i, j in self.pairs if i in S} | {i for i, j in self.pairs if j in S}
        return None if banned & S or len(S) > k else (S, C - banned)

    def crowded(self, units: set[int]) -> set[int]:
        """The first pair that is there whole."""
        return next(({*pair} for pair in self.pairs if units.issuperset(pair)), set())


def of_pairs(pairs: object, count: int) -> NotBoth | None:
    """The constraint of some pairs of units; None where there are none."""
    held = [choice("a pair", pair, count) for pair in listed("the pairs", pairs)]
    if any(len(pair) != 2 or pair[0] > pair[1] for pair in held):
        raise Outside("not_both holds something else than pairs of different units, the smaller number first.")
    if any(first >= second for first, second in pairwise(held)):
        raise Outside("the pairs of not_both are out of order, or one is there twice.")
    return NotBoth(held) if held else None


def read(lines: object, labels: list[str], columns: object, d: int) -> dict[str, Any]:
    """``not_both`` as the check takes it, from lines ``unit, unit``: each two units of a line."""
    names, count = units_of(labels, columns, d)
    held: set[tuple[int, ...]] = set()
    for text in said(lines):
        numbers = sorted(number_of(part, names, count) for part in text.split(","))
        if len({*numbers}) < max(2, len(numbers)):
            raise Unclear(f"the line {text!a} names no two different units; write 'unit, unit'.")
        held.update(combinations(numbers, 2))
    return {"not_both": [[*pair] for pair in sorted(held)]}
