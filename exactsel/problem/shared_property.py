"""Properties of an objective that depend on its data alone, worked out once for every lam, k and set of bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar, overload

if TYPE_CHECKING:
    from exactsel.problem.objective import Objective

T = TypeVar("T")


class shared_property(Generic[T]):
    """As ``functools.cached_property``, but kept in ``shared``, the dictionary of all objectives on the same data."""

    def __init__(self, function: Callable[[Objective], T]) -> None:
        self.function, self.name, self.__doc__ = function, function.__name__, function.__doc__

    @overload
    def __get__(self, objective: None, owner: type) -> shared_property[T]: ...

    @overload
    def __get__(self, objective: Objective, owner: type) -> T: ...

    def __get__(self, objective: Objective | None, owner: type) -> shared_property[T] | T:
        if objective is None:
            return self
        if self.name not in objective.shared:
            objective.shared[self.name] = self.function(objective)
        value: T = objective.shared[self.name]
        return value
