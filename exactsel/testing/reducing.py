"""Reduction of a failing instance: fewer rows, columns, demands and settings, and plain numbers.

Every step is tried in a fixed order and kept where the instance still fails, until no step can be kept, so that equal
instances reach equal ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from exactsel.testing.instances import TinyInstance, columns_in_order

MOST_TRIES = 3000
"""Instances that are tried before what has been reached is good enough."""

DIGITS = (0, 1, 2, 4, 8)
"""Decimal places numbers are rounded to, the fewest first."""

Fails = Callable[[TinyInstance], bool]


def reduced(instance: TinyInstance, fails: Fails, most_tries: int = MOST_TRIES) -> TinyInstance:
    """A small instance that fails as this one does.

    Parameters
    ----------
    instance : TinyInstance
        One that fails.
    fails : callable
        Whether an instance fails in the same way.
    most_tries : int
        Calls of ``fails``.

    Returns
    -------
    TinyInstance
        From which none of the steps can be taken any more, unless the tries ran out.
    """
    tries = 0
    while tries < most_tries:
        for smaller in _steps(instance):
            tries += 1
            if tries > most_tries or (smaller.admissible and fails(smaller)):
                break
        else:
            return instance
        if tries <= most_tries:
            instance = smaller
    return instance


def _steps(instance: TinyInstance) -> Iterator[TinyInstance]:
    """Everything that makes it smaller, the largest parts first."""
    yield from _fewer_rows(instance)
    yield from _fewer_columns(instance)
    yield from _fewer_words(instance)
    yield from _plainer_numbers(instance)


def _fewer_rows(instance: TinyInstance) -> Iterator[TinyInstance]:
    for gone in _parts(instance.n):
        rows = [i for i in range(instance.n) if i not in gone]
        weights = None if instance.weights is None else instance.weights[rows]
        if weights is None or np.any(weights > 0):
            yield replace(instance, A=instance.A[rows], y=instance.y[rows], weights=weights)


def _fewer_columns(instance: TinyInstance) -> Iterator[TinyInstance]:
    for gone in _parts(instance.d):
        columns = [j for j in range(instance.d) if j not in gone]
        smaller = columns_in_order(instance, columns)
        most = len(smaller.units)
        yield replace(smaller, k=min(smaller.k, most))
        if smaller.k > 1:  # one of those removed may have been in the model
            yield replace(smaller, k=min(smaller.k - 1, most))


def _parts(many: int) -> Iterator[set[int]]:
    """Halves, then quarters, then one at a time; never all of them."""
    size = many // 2
    while size >= 1:
        for start in range(0, many, size):
            part = set(range(start, min(start + size, many)))
            if len(part) < many:
                yield part
        size //= 2


def _fewer_words(instance: TinyInstance) -> Iterator[TinyInstance]:
    """Without one of the settings, demands or preparations."""
    if instance.settings:
        yield replace(instance, settings={})
    for name in instance.settings:
        yield replace(instance, settings={key: value for key, value in instance.settings.items() if key != name})
    if instance.hierarchy:
        yield replace(instance, hierarchy=())
    for edge in instance.hierarchy if len(instance.hierarchy) > 1 else ():
        yield replace(instance, hierarchy=tuple(other for other in instance.hierarchy if other != edge))
    for pair in instance.not_both:
        yield replace(instance, not_both=tuple(other for other in instance.not_both if other != pair))
    if instance.groups and not instance.constraint:
        yield replace(instance, groups=None, force_in=(), force_out=(), k=min(instance.k, instance.d))
    for unit in instance.force_in:
        yield replace(instance, force_in=tuple(u for u in instance.force_in if u != unit))
    for unit in instance.force_out:
        yield replace(instance, force_out=tuple(u for u in instance.force_out if u != unit))
    if instance.weights is not None:
        yield replace(instance, weights=None)
    if instance.scale:
        yield replace(instance, scale=False)
    if instance.intercept:
        yield replace(instance, intercept=False)
    if instance.k > 0:
        yield replace(instance, k=instance.k - 1)


def _plainer_numbers(instance: TinyInstance) -> Iterator[TinyInstance]:
    """With numbers of fewer digits: all at once, column by column, then one by one."""
    for places in DIGITS:
        for name in ("A", "y", "weights"):
            before = getattr(instance, name)
            if before is not None:
                rounded = np.round(before, places)
                if not np.array_equal(rounded, before) and (name != "weights" or np.any(rounded > 0)):
                    yield replace(instance, **{name: rounded})
        for name in ("lam", "delta"):
            value = round(getattr(instance, name), places)
            if value > 0 and value != getattr(instance, name):
                yield replace(instance, **{name: value})
    if instance.lam not in (0.0, 1.0):
        yield replace(instance, lam=1.0)
    for i, j in np.argwhere(instance.A != 0).tolist():
        yield _with_entry(instance, i, j, 0.0)
    for i, j in np.argwhere((instance.A != 0) & (instance.A != 1)).tolist():
        yield _with_entry(instance, i, j, 1.0)
        if (integer := float(np.round(instance.A[i, j]))) not in (float(instance.A[i, j]), 0.0, 1.0):
            yield _with_entry(instance, i, j, integer)


def _with_entry(instance: TinyInstance, i: int, j: int, value: float) -> TinyInstance:
    A = instance.A.copy()
    A[i, j] = value
    return replace(instance, A=A)
