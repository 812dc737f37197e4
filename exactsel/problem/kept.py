"""Precomputed data of a search that the next one on the same data reuses."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from exactsel.problem.regression import Problem

KEPT_UP_TO = 200
"""Columns up to which tables are kept: with more a search takes so long that making them again is nothing beside it."""

T = TypeVar("T")


def kept(problem: Problem, name: str, key: Hashable, make: Callable[[], T]) -> T:
    """What ``make`` returns, which depends on the data and the key alone; the last one of a name is kept."""
    if problem.units.columns > KEPT_UP_TO:
        return make()
    last = problem.shared.get(name)
    if last is None or last[0] != key:
        last = problem.shared[name] = (key, make())
    cached: T = last[1]
    return cached
