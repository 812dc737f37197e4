"""What must hold between the results of two instances of which one is made from the other; no oracle is needed.

Bounds are about the data as given, in exact arithmetic. So where a change leaves the optimum as it is, the lower bound
of either may not exceed the upper bound of the other, without a tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from exactsel.losses.base import CLASSES
from exactsel.solving.result import Result
from exactsel.testing.instances import CSS, TinyInstance
from exactsel.testing.solving import Finding, Refused, solved
from exactsel.types import FloatArray
from exactsel_dev.campaigns import changes
from exactsel_dev.campaigns.brute_force import Truth
from exactsel_dev.campaigns.changes import Changed, Random
from exactsel_dev.campaigns.random_instances import random_instance

STREAM = 2204
"""Part of each seed."""


@dataclass(frozen=True)
class Both:
    """An instance, what it was changed into, and the results of both."""

    instance: TinyInstance
    changed: TinyInstance
    first: Result
    second: Result


Demand = Callable[[Both], Iterator[str]]


def _as_they_are(rng: Random, instance: TinyInstance) -> TinyInstance:
    return instance


@dataclass(frozen=True)
class Relation:
    """A change, and what must hold between the two results."""

    name: str
    change: Callable[[Random, TinyInstance], Changed]
    demand: Demand
    prepare: Callable[[Random, TinyInstance], TinyInstance] = _as_they_are
    """What makes an instance one the change applies to, more often than chance would."""


def not_larger(lower: Result, upper: Result) -> bool:
    """Whether the optimum of the first can be at most that of the second; a scope may leave models out."""
    return bool(lower.valid_for) or not lower.lower > upper.upper


def same_optimum(both: Both) -> Iterator[str]:
    """The two optima are one number."""
    yield from falls(both)
    yield from rises(both)


def falls(both: Both) -> Iterator[str]:
    """The optimum does not become larger."""
    if not not_larger(both.second, both.first):
        yield f"afterwards nothing is below {both.second.lower!r}, but before a model had {both.first.upper!r}"


def rises(both: Both) -> Iterator[str]:
    """The optimum does not become smaller."""
    if not not_larger(both.first, both.second):
        yield f"before nothing was below {both.first.lower!r}, but afterwards a model has {both.second.upper!r}"


ROUNDING = 1e-25
"""Part of the empty selection's objective below which that of a selection is rounding."""


def same_search(both: Both) -> Iterator[str]:
    """Everything is the same, to the last bit."""
    yield from _same_numbers(both, 0, 0)


def same_in_other_units(both: Both) -> Iterator[str]:
    """Objectives are those of before times a power of two; words, nodes and the tree are the same, bit for bit.

    Where columns span all others, what is left of an objective is rounding, and its last bits are not looked at.
    """
    if both.instance.loss == CSS and both.first.upper <= ROUNDING * both.first.null_objective:
        yield from _same_words(both, ("claim", "termination", "nodes", "tree_hash"))
        return
    columns = _power_between(both.instance.A, both.changed.A)
    target = _power_between(both.instance.y, both.changed.y)
    css, labels = both.instance.loss == CSS, both.instance.loss in (*CLASSES, "poisson")
    yield from _same_numbers(both, 2 * columns if css else 0 if labels else 2 * target, target - columns)


def _power_between(before: FloatArray, after: FloatArray) -> int:
    """The power of two one array was multiplied by; 0 where there is nothing to see it by."""
    if not before.any():
        return 0
    largest = int(np.argmax(np.abs(before)))
    return math.frexp(after.ravel()[largest])[1] - math.frexp(before.ravel()[largest])[1]


def _same_words(both: Both, names: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        if getattr(both.first, name) != getattr(both.second, name):
            yield f"{name} was {getattr(both.first, name)!s}, and is {getattr(both.second, name)!s}"


def _same_numbers(both: Both, objectives: int, coefficients: int) -> Iterator[str]:
    first, second = both.first, both.second
    yield from _same_words(both, ("claim", "termination", "support", "nodes", "tree_hash"))
    for name in ("upper", "lower", "null_objective"):
        expected, found = float(np.ldexp(getattr(first, name), objectives)), getattr(second, name)
        if expected != found:
            yield f"{name} is {found!r}, but {expected!r} was expected"
    if first.model is not None and second.model is not None:
        expected_coef = np.ldexp(first.model.coef, coefficients)
        if not np.array_equal(expected_coef, second.model.coef):
            yield f"coefficients are {second.model.coef.tolist()}, but {expected_coef.tolist()} were expected"


def copied_column(both: Both) -> Iterator[str]:
    """A copy can take up part of a coefficient, which is cheaper under a ridge, or is one more column to explain.

    No demand speaks of it, so it may stand for a column that may not be chosen, or not without others.
    """
    instance = both.instance
    if instance.loss == CSS:
        yield from rises(both)
        return
    yield from falls(both)
    if instance.lam == 0 and not (instance.force_out or instance.constraint):
        yield from rises(both)


def ridge_raised(both: Both) -> Iterator[str]:
    """The optimum does not fall, and is no larger than what the first model costs now."""
    yield from rises(both)
    model = both.first.model
    if model is None or both.second.valid_for or not np.all(np.isfinite(model.coef)):
        return
    truth = Truth(both.changed)
    cost = truth.of_model(model.coef.tolist()) * (1 + truth.blur)
    if math.isfinite(both.second.lower) and Fraction(both.second.lower) > cost:
        yield f"now nothing is below {both.second.lower!r}, but the model of before costs {float(cost)!r}"


def hierarchy_emptied(rng: Random, instance: TinyInstance) -> Changed:
    """A hierarchy in which nothing has a parent."""
    if instance.loss == CSS or instance.constraint:
        return None
    return replace(instance, hierarchy=((0, ()),), hierarchy_kind=str(rng.choice(["strong", "weak"])))


RELATIONS = {
    relation.name: relation
    for relation in (
        Relation("rows permuted", changes.rows_permuted, same_optimum),
        Relation("columns permuted", changes.columns_permuted, same_optimum),
        Relation("columns flipped", changes.columns_flipped, same_optimum),
        Relation("target flipped", changes.target_flipped, same_optimum),
        Relation("other units", changes.units_changed, same_in_other_units),
        Relation("column copied", changes.column_copied, copied_column),
        Relation("column of zeros", changes.zero_column, same_optimum),
        Relation("one more", changes.one_more, falls),
        Relation("more ridge", changes.more_ridge, ridge_raised),
        Relation("rows repeated", changes.rows_repeated, same_optimum, changes.with_whole_weights),
        Relation("row of weight zero", changes.weightless_row, same_optimum),
        Relation("groups of one", changes.groups_of_one, same_optimum),
        Relation("hierarchy without edges", hierarchy_emptied, same_search),
        Relation("forbidden removed", changes.forbidden_removed, same_optimum, changes.with_forbidden),
        Relation("shifted under an intercept", changes.shifted, same_optimum, changes.with_intercept),
        Relation("other settings", changes.other_settings, same_optimum),
        Relation("two threads", changes.two_threads, same_search, changes.with_one_thread),
    )
}
"""By name."""


def relation_of(seed: int) -> str:
    """The name of the relation a seed tries: all in turn."""
    return list(RELATIONS)[seed % len(RELATIONS)]


def instance_for(seed: int) -> TinyInstance:
    """The instance of a seed, one that its relation applies to where that can be had."""
    relation = RELATIONS[relation_of(seed)]
    return relation.prepare(np.random.default_rng([STREAM, seed, 0]), random_instance(seed))


def unrelated(instance: TinyInstance, name: str, seed: int) -> list[Finding] | None:
    """What is wrong between an instance and its change; None where the change does not apply, or one is refused."""
    relation = RELATIONS[name]
    changed = relation.change(np.random.default_rng([STREAM, seed, 1]), instance)
    if changed is None or not instance.admissible:
        return None
    try:
        both = Both(instance, changed, solved(instance), solved(changed))
    except Refused:
        return None
    return [Finding(name, detail) for detail in relation.demand(both)]
