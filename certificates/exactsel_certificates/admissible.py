"""The test of a set of units against a problem's constraint."""

from __future__ import annotations

from collections.abc import Iterable

from exactsel_certificates.formula import Instance
from exactsel_certificates.walk import first_region
from exactsel_certificates.work import STEP, spend


def may_choose(instance: Instance, columns: Iterable[int]) -> bool:
    """Whether a model may choose these columns and no others; of groups nothing is said."""
    if instance.hierarchy is None or instance.groups:
        return True
    spend(STEP + 32.0 * instance.units)
    everything = range(instance.units)
    state = first_region(instance.units, [*columns], [*{*everything}.difference(columns)])
    return instance.hierarchy.rule(instance.k).implied(state, everything) is not None


def inadmissible(instance: Instance, listed: Iterable[int]) -> str:
    """Why the set of units that are listed or forced in, with all it implies, is not admissible; empty when it is."""
    if instance.hierarchy is None:
        return ""
    rule, what = instance.hierarchy.rule(instance.k), "group" if instance.groups else "column"
    included = {*listed, *instance.force_in}
    state = rule.implied(first_region(instance.units, [*included], instance.force_out), range(instance.units))
    if state is None:
        return f"the model's {what}s lie in no set of at most {instance.k} that {instance.hierarchy.allows}."
    alone = next(rule.orphans(state), None)
    if alone is None:
        return ""
    return f"the model holds {what} {alone} without a parent; list the parent that was chosen, with coefficient 0."
