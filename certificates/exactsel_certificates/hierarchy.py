"""What a hierarchy implies: which units a region must hold or cannot, and whether it holds any set at all.

With every j that has parents, a set of units must hold all of them (strong) or one of them (weak). A region stands for
the admissible sets T with S in T, T in S and C, and at most k units. Two things follow from a region's decisions, again
and again until nothing new does: a unit that can no longer have the parents it needs is out, and parents that a unit of
S needs for certain are in. Both take no set away; so the region may be replaced by what is left of it, whatever order
they were found in. Nothing is left where a unit would be in and out, where more than k are in, and where k are in and
one of them has none of its parents among them.

Limits on groups are of the same kind: where a group has as many columns in as it may have, its others are out, and
nothing is left where it has more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from exactsel_certificates.formula import Hierarchy, Instance, Limits
from exactsel_certificates.walk import FREE, IN, OTHER, OUT, first_region
from exactsel_certificates.work import STEP, spend


class Rule:
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
        inside = now.count(IN)
        full_with_orphan = inside == self.k and next(self.orphans(now), None) is not None
        return None if inside > self.k or full_with_orphan else bytes(now)

    def _follows(self, state: bytearray, j: int) -> Iterator[tuple[int, int]]:
        """Decisions that follow from those on j and its parents."""
        parents = self.parents.get(j, ())
        left = [parent for parent in parents if state[parent] != OUT]
        if len(left) < (min(1, len(parents)) if self.weak else len(parents)):
            yield j, OUT
        elif state[j] == IN and (len(left) == 1 or not self.weak):
            yield from ((parent, IN) for parent in left)

    def orphans(self, state: bytes | bytearray) -> Iterator[int]:
        """Units of S that have parents, but none of them in S."""
        for j, parents in self.parents.items():
            if state[j] == IN and not any(state[parent] == IN for parent in parents):
                yield j


class LimitRule:
    """At most so many columns of each group, and the limit k on what is chosen."""

    def __init__(self, limits: Limits, k: int) -> None:
        self.k, self.most = k, limits.most
        self.group = {j: group for group in limits.groups for j in group}

    def implied(self, state: bytes, changed: Iterable[int]) -> bytes | None:
        """The state of every column where those of full groups are out; None where nothing is left.

        All that follows from decisions on other columns than ``changed`` must be there already.
        """
        now = bytearray(state)
        for group in {self.group[j] for j in changed if j in self.group}:
            inside = sum(now[j] == IN for j in group)
            if inside > self.most:
                return None
            for j in group if inside == self.most else ():
                if now[j] == FREE:
                    now[j] = OUT
        return None if now.count(IN) > self.k else bytes(now)

    def orphans(self, state: bytes | bytearray) -> Iterator[int]:
        """None: no column needs another one."""
        return iter(())


def rule_of(demanded: Hierarchy | Limits, k: int) -> Rule | LimitRule:
    """What a hierarchy, or limits on groups, make of regions."""
    return LimitRule(demanded, k) if isinstance(demanded, Limits) else Rule(demanded, k)


def may_choose(instance: Instance, columns: Iterable[int]) -> bool:
    """Whether a model may choose these columns and no others; of groups nothing is said."""
    if instance.hierarchy is None or instance.groups:
        return True
    spend(STEP + 32.0 * instance.units)
    everything = range(instance.units)
    state = first_region(instance.units, [*columns], [*{*everything}.difference(columns)])
    return rule_of(instance.hierarchy, instance.k).implied(state, everything) is not None


def inadmissible(instance: Instance, listed: Iterable[int]) -> str:
    """Why the set of units that are listed or forced in, with all it implies, is not admissible; empty when it is."""
    if instance.hierarchy is None:
        return ""
    rule, what = rule_of(instance.hierarchy, instance.k), "group" if instance.groups else "column"
    inside = {*listed, *instance.force_in}
    state = rule.implied(first_region(instance.units, [*inside], instance.force_out), range(instance.units))
    if state is None:
        allows = "limits on groups allow" if isinstance(rule, LimitRule) else "hierarchy allows"
        return f"the model's {what}s lie in no set of at most {instance.k} that the {allows}."
    alone = next(rule.orphans(state), None)
    if alone is None:
        return ""
    return f"the model holds {what} {alone} without a parent; list the parent that was chosen, with coefficient 0."
