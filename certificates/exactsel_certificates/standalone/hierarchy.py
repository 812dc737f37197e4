"""Units that are chosen only together with others, for the second checker.

``parents`` maps a unit to those it needs: all of them, or with ``weak`` one of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .demands import Demands, Region
from .values import Outside, Unclear, choice, listed, number_of, refuse, said, units_of

KINDS = ("strong", "weak")


class Hierarchy(Demands):
    """Who needs whom; nobody anybody where ``parents`` is empty."""

    name = "hierarchy"

    def __init__(self, weak: bool, parents: Mapping[int, Sequence[int]]) -> None:
        self.weak, self.parents = weak, parents

    @property
    def kind(self) -> str:
        """What the header of a file calls it."""
        return KINDS[self.weak]

    def entry(self) -> dict[str, Any]:
        """What the hash of a problem has of it."""
        return {"kind": self.kind, "parents": sorted(self.parents.items())}

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


def of_pairs(parents: object, kind: object, count: int) -> Hierarchy | None:
    """Who needs whom, from pairs of a unit and its parents; None where there are no pairs."""
    if not isinstance(kind, str) or kind not in KINDS:
        refuse("the kind of the hierarchy", kind, " or ".join(KINDS))
    pairs = listed("the hierarchy", parents)
    if any(len(listed("an entry of the hierarchy", pair)) != 2 for pair in pairs):
        raise Outside("the hierarchy holds something else than pairs of a unit and its parents.")
    children = choice("the hierarchy", [j for j, _ in pairs], count)
    held = {j: choice(f"the parents of {j}", needs, count) for j, (_, needs) in zip(children, pairs, strict=True)}
    if children != sorted(children) or any(
        not needs or needs != sorted(needs) or j in needs for j, needs in held.items()
    ):
        raise Outside("units or parents of the hierarchy are out of order, or a unit has no parents or is its own.")
    return Hierarchy(kind == "weak", held) if held else None


def read(lines: object, labels: list[str], columns: object, d: int) -> dict[str, Any]:
    """``hierarchy`` and ``kind`` as the check takes them, from lines ``child: parent, parent``."""
    names, count = units_of(labels, columns, d)
    held: dict[int, list[int]] = {}
    kind = ""
    for text in said(lines):
        if text in KINDS and not kind and not held:
            kind = text
            continue
        child, parents = _parted(text)
        needs = [number_of(part, names, count) for part in parents.split(",") if part.strip()]
        j = number_of(child, names, count)
        if j in held or len({j, *needs}) <= len(needs):
            raise Unclear(f"the line {text!a} names a unit that was named already; name each once.")
        held[j] = sorted(needs)
    return {"hierarchy": sorted((j, needs) for j, needs in held.items() if needs), "kind": kind or KINDS[0]}


def _parted(text: str) -> tuple[str, str]:
    """Child and parents: what is before and after the first colon that ends a word, or the only one."""
    for place, letter in enumerate(text):
        if letter == ":" and not text[place + 1 : place + 2].strip():
            return text[:place], text[place + 1 :]
    if text.count(":") != 1:
        raise Unclear(f"the line {text!a} is none like 'child: parent, parent'; correct it.")
    child, _, parents = text.partition(":")
    return child, parents
