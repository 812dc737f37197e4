"""Settings of a solve, validated once and frozen."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from numbers import Integral, Real
from typing import Any

from exactsel.errors import InputError
from exactsel.search.tolerance import Tolerance
from exactsel.start.portfolio import DEFAULT_HEURISTICS


@dataclass(frozen=True)
class Settings:
    """Options of :func:`exactsel.solve`, under the names the command line uses.

    ``tree``, ``bound``, ``branching``, ``frontier`` and the ``heuristics`` are names or objects; one text with
    names separated by commas will do for the heuristics, ``"none"`` for none.
    """

    eps: float = 0.0
    rel_eps: float = 1e-6
    time_limit: float | None = None
    node_limit: int | None = None
    memory_limit: float = 4096.0
    """MiB of open nodes above which the search goes depth-first for a while."""
    threads: int | None = None
    seed: int = 0
    tree: Any = "binary"
    bound: Any = "auto"
    branching: Any = "auto"
    frontier: Any = "best-first"
    heuristics: tuple[Any, ...] = DEFAULT_HEURISTICS
    batch: int | None = None
    warm_start: bool = True
    force_quit: bool = True
    subtrees: bool = True
    """Bound ``auto`` and a tree that fixes columns: let the kernels search small subtrees by themselves."""

    def __post_init__(self) -> None:
        for name in ("eps", "rel_eps"):
            value = self._number(name)
            if not (math.isfinite(value) and value >= 0):
                raise InputError(
                    f"{name} is {value}, but a tolerance must be a finite number that is not negative; "
                    f"set {_option(name)}."
                )
        if self.time_limit is not None and not self._number("time_limit") >= 0:
            raise InputError(f"time_limit is {self.time_limit}, but seconds cannot be negative; set --time-limit.")
        if not self._number("memory_limit") > 0:
            raise InputError(f"memory_limit is {self.memory_limit}, but it must be positive; set --memory-limit.")
        for name in ("seed", "node_limit"):
            if name == "seed" or self.node_limit is not None:
                value = self._whole(name)
                if value < 0:
                    raise InputError(f"{name} is {value}, but it cannot be negative; set {_option(name)}.")
        for name in ("threads", "batch"):
            if getattr(self, name) is not None:
                value = self._whole(name)
                if value < 1:
                    raise InputError(f"{name} is {value}, but it must be at least 1; set {_option(name)}.")
        for name in ("warm_start", "force_quit", "subtrees"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(f"{name} is {getattr(self, name)!r}, but it is a switch; give True or False.")
        object.__setattr__(self, "heuristics", _listed(self.heuristics))

    def _number(self, name: str) -> float:
        """Store the field as a plain float and return it."""
        given = getattr(self, name)
        try:
            value = float(given) if isinstance(given, Real) else None
        except OverflowError:
            value = None
        if value is None:
            raise InputError(f"{name} is {given!r}, but it must be a number; set {_option(name)}.")
        object.__setattr__(self, name, value)
        return value

    def _whole(self, name: str) -> int:
        """Store the field as a plain integer and return it."""
        given = getattr(self, name)
        whole = given.is_integer() if isinstance(given, float) else isinstance(given, Integral)
        if not whole or isinstance(given, bool):
            raise InputError(f"{name} is {given!r}, but it must be a whole number; set {_option(name)}.")
        value = int(given)
        object.__setattr__(self, name, value)
        return value

    @property
    def tolerance(self) -> Tolerance:
        """The gap at which the search may stop."""
        return Tolerance(self.eps, self.rel_eps)

    def as_dict(self) -> dict[str, Any]:
        """The settings as plain data; objects by their names."""
        plain = asdict(self)
        plain["heuristics"] = [_name(heuristic) for heuristic in self.heuristics]
        for key in ("tree", "bound", "branching", "frontier"):
            plain[key] = _name(getattr(self, key))
        return plain


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def _listed(heuristics: Any) -> tuple[Any, ...]:
    """The heuristics one by one; a text holds their names, separated by commas, or is 'none'."""
    if isinstance(heuristics, str):
        names = tuple(name.strip() for name in heuristics.split(",") if name.strip())
        return () if names == ("none",) else names
    if not isinstance(heuristics, Iterable):
        raise InputError(f"heuristics is {heuristics!r}, but a list of names or objects was expected; () is for none.")
    return tuple(heuristics)


def _name(value: Any) -> str:
    return value if isinstance(value, str) else str(getattr(value, "name", type(value).__name__))
