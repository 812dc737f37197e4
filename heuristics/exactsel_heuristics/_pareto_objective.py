"""The interface of an objective of Pareto optimisation, and the calls that kernels make.

An objective is a named tuple of arrays with three static methods, which compiled code finds by the tuple's type:

``flipped_value(objective, source, slot, scratch, p, cutoff)``
    The value of the support in slot ``slot`` of ``source`` after the changes planned in ``scratch`` for worker p.
    Where it would exceed ``cutoff`` any number above ``cutoff`` will do; inf when its columns are dependent.
``settled_value(objective, members, slot, scratch, p)``
    Compute the factor of the support in that slot from the data, so that no rounding accumulates from member to
    member; returns the value.
``adopt(objective, members, slot)``
    Called for each new member of the archive, by one thread at a time.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any, Protocol

from exactsel._jit import overload
from exactsel_heuristics._pareto_layout import Members, Scratch


class ParetoObjective(Protocol):
    """A named tuple of arrays, and how kernels call it; its methods are given it as ``objective``."""

    @staticmethod
    def flipped_value(objective: Any, source: Members, slot: int, scratch: Scratch, p: int, cutoff: float) -> float:
        """The value of an offspring."""
        ...

    @staticmethod
    def settled_value(objective: Any, members: Members, slot: int, scratch: Scratch, p: int) -> float:
        """The value of a support, its factor computed again."""
        ...

    @staticmethod
    def adopt(objective: Any, members: Members, slot: int) -> None:
        """Prepare for offspring of a new member."""
        ...


def flipped_value(
    objective: ParetoObjective, source: Members, slot: int, scratch: Scratch, p: int, cutoff: float
) -> float:
    """The value of an offspring."""
    return float(type(objective).flipped_value(objective, source, slot, scratch, p, cutoff))


def settled_value(objective: ParetoObjective, members: Members, slot: int, scratch: Scratch, p: int) -> float:
    """The value of a support, its factor computed again."""
    return float(type(objective).settled_value(objective, members, slot, scratch, p))


def adopt(objective: ParetoObjective, members: Members, slot: int) -> None:
    """Prepare for offspring of a new member."""
    type(objective).adopt(objective, members, slot)


def _unannotated(function: Callable[..., Any]) -> Callable[..., Any]:
    """A copy without annotations: numba compares signatures literally."""
    return FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__)


def _compile_from_objective(stub: Callable[..., Any]) -> None:
    """Make compiled calls of ``stub`` run the method of that name of the objective they are given."""

    def choose(objective: Any, *_arguments: object) -> Callable[..., Any]:
        return _unannotated(getattr(objective.instance_class, stub.__name__))

    choose.__signature__ = inspect.signature(_unannotated(stub))  # type: ignore[attr-defined]
    choose.chosen = lambda kind: getattr(kind, stub.__name__, None)  # type: ignore[attr-defined]
    overload(stub)(choose)


for _stub in (flipped_value, settled_value, adopt):
    _compile_from_objective(_stub)
