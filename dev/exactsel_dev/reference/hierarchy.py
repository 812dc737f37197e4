"""Which units go together, slow and plain: the admissible sets one by one, and what a region's decisions imply.

With a unit that has parents a set must hold all of them (strong) or one of them (weak); with limits at most so many
columns of a group, and of a pair that excludes each other at most one unit.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from exactsel_certificates.constraint import Constraint
from exactsel_certificates.formula import Instance
from exactsel_certificates.group_limits import Limits
from exactsel_certificates.hierarchy import Hierarchy
from exactsel_certificates.not_both import NotBoth


def admissible_sets(instance: Instance) -> Iterator[frozenset[int]]:
    """Every set of at most k units that a model may use, by the definition: there are many."""
    free = sorted({*range(instance.units)} - {*instance.force_in} - {*instance.force_out})
    for size in range(instance.k - len(instance.force_in) + 1):
        for more in combinations(free, size):
            chosen = frozenset((*instance.force_in, *more))
            if instance.hierarchy is None or respects(instance.hierarchy, chosen):
                yield chosen


def respects(hierarchy: Constraint, chosen: frozenset[int]) -> bool:
    """Whether a set may be chosen: every unit of it has the parents in it that it needs, say."""
    if isinstance(hierarchy, NotBoth):
        return not any(chosen.issuperset(pair) for pair in hierarchy.pairs)
    if isinstance(hierarchy, Limits):
        return all(len(chosen & {*group}) <= hierarchy.most for group in hierarchy.groups)
    assert isinstance(hierarchy, Hierarchy)
    enough = any if hierarchy.kind == "weak" else all
    return all(enough(parent in chosen for parent in parents) for j, parents in hierarchy.parents if j in chosen)


def implied(
    hierarchy: Constraint, included: frozenset[int], candidates: frozenset[int], k: int
) -> tuple[frozenset[int], frozenset[int]] | None:
    """S and C with all that follows from them; None where no admissible set is left for certain."""
    if not isinstance(hierarchy, Hierarchy):
        if len(included) > k or not respects(hierarchy, included):
            return None
        return included, frozenset(j for j in candidates if respects(hierarchy, included | {j}))
    while True:
        possible = included | candidates
        into, out_of = set(included), set[int]()
        for j, parents in hierarchy.parents:
            left = [parent for parent in parents if parent in possible]
            enough = bool(left) if hierarchy.kind == "weak" else len(left) == len(parents)
            if not enough:
                out_of.add(j)
            elif j in included and (hierarchy.kind == "strong" or len(left) == 1):
                into |= {*left}
        if out_of & into or len(into) > k:
            return None
        if into == included and not out_of & candidates:
            break
        included, candidates = frozenset(into), candidates - into - out_of
    return None if len(included) == k and not respects(hierarchy, included) else (included, candidates)


def completed(
    hierarchy: Constraint, included: frozenset[int], candidates: frozenset[int], k: int
) -> frozenset[int] | None:
    """An admissible set of a region, found by trying the parents of one unit without any after the other."""
    region = implied(hierarchy, included, candidates, k)
    if region is None:
        return None
    included, candidates = region
    if not isinstance(hierarchy, Hierarchy):
        return included
    alone = next((own for j, own in hierarchy.parents if j in included and included.isdisjoint(own)), None)
    if alone is None:
        return included
    tried = (completed(hierarchy, included | {j}, candidates - {j}, k) for j in alone if j in candidates)
    return next((found for found in tried if found is not None), None)
