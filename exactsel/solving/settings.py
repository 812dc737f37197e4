"""Settings of a solve: each said once, with what it may be and how the command line calls it; checked and frozen."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, fields
from numbers import Integral, Real
from textwrap import indent
from typing import TYPE_CHECKING, Any

from exactsel import registry
from exactsel.arguments import shown
from exactsel.errors import InputError, option
from exactsel.nodes.tolerance import Tolerance
from exactsel.start.portfolio import AUTO

if TYPE_CHECKING:
    from exactsel.bounds.base import BoundSolver
    from exactsel.closers.base import Closer
    from exactsel.nodes.branching import Branching
    from exactsel.nodes.trees import Tree
    from exactsel.search.frontier import Frontier


@dataclass(frozen=True)
class Setting:
    """What is known of a field of :class:`Settings` beside its name and default (None: it may be left open)."""

    kind: type
    """float, int, bool, or str for what may be an object as well as a name."""
    text: str
    """The help text."""
    holds: Callable[[Any], bool]
    """Whether a value of the right kind may be taken ..."""
    demand: str
    """... and what to say where it may not."""
    plug_ins: str
    """The kind of plug-in it names, as :mod:`exactsel.registry` calls it."""
    flag: str
    """Its option on the command line, where that is not its own name."""


def _anything(value: object) -> bool:
    return True


def _about(
    kind: type, text: str, holds: Callable[[Any], bool] = _anything, demand: str = "", *, plug_ins: str = "",
    flag: str = "",
) -> dict[str, Setting]:  # fmt: skip
    return {"setting": Setting(kind, text, holds, demand, plug_ins, flag)}


def _is_tolerance(value: float) -> bool:
    return math.isfinite(value) and value >= 0


def _is_not_negative(value: float) -> bool:
    return value >= 0


_TOLERANCE = (_is_tolerance, "a tolerance must be a finite number that is not negative")
_SECONDS = (_is_not_negative, "seconds cannot be negative")
_COUNT = (_is_not_negative, "it cannot be negative")
_POSITIVE = (lambda value: value > 0, "it must be positive")
_FROM_ONE = (lambda value: value >= 1, "it must be at least 1")


@dataclass(frozen=True)
class Settings:
    """Options of :func:`exactsel.solve`, under the names the command line uses.

    ``tree``, ``bound``, ``branching``, ``frontier``, ``closer`` and the ``heuristics`` are names or objects; one
    text with names separated by commas will do for the heuristics, ``"none"`` for none.
    """

    eps: float = field(default=0.0, metadata=_about(float, "Stop at this absolute gap.", *_TOLERANCE))
    rel_eps: float = field(default=1e-6, metadata=_about(float, "Stop at this gap relative to |upper|.", *_TOLERANCE))
    time_limit: float | None = field(
        default=None, metadata=_about(float, "Stop after this many seconds. Default: no limit.", *_SECONDS)
    )
    node_limit: int | None = field(
        default=None, metadata=_about(int, "Stop after this many nodes of the search tree. Default: no limit.", *_COUNT)
    )
    memory_limit: float = field(
        default=4096.0,
        metadata=_about(
            float, "Keep at most this many MiB of open nodes in memory, and the others on disk.", *_POSITIVE
        ),
    )
    threads: int | None = field(
        default=None,
        metadata=_about(int, "Use this many threads. Default: all cores. The tree does not depend on it.", *_FROM_ONE),
    )
    seed: int = field(default=0, metadata=_about(int, "Seed the random choices of the heuristics.", *_COUNT))
    tree: str | Tree = field(
        default="binary",
        metadata=_about(str, "Use this search tree: binary, or state-space as in the paper.", plug_ins="trees"),
    )
    bound: str | BoundSolver = field(
        default="auto",
        metadata=_about(
            str,
            (
                "Use this lower bound: split, spectral, apg, fit, pdal, supergradient or cvxpy; eigenvalue for "
                "css, grouped with groups."
            ),
            plug_ins="bounds",
        ),
    )
    branching: str | Branching = field(
        default="auto",
        metadata=_about(str, "Use this branching rule: half, largest or costliest.", plug_ins="branchings"),
    )
    frontier: str | Frontier = field(
        default="best-first",
        metadata=_about(str, "Use this order of nodes: best-first, depth-first or weighted.", plug_ins="frontiers"),
    )
    closer: str | Closer = field(
        default="auto",
        metadata=_about(
            str, "Ask this plug-in first to close regions. Default: only those that are built in.", plug_ins="closers"
        ),
    )
    heuristics: tuple[Any, ...] = field(
        default=AUTO,
        metadata=_about(
            str,
            (
                "Use these heuristics before and beside the search, separated by commas. 'none' uses none. "
                "Default: all that suit the problem."
            ),
            flag="heuristic",
        ),
    )
    batch: int | None = field(
        default=None,
        metadata=_about(
            int,
            "Expand this many nodes in one round. The tree depends on it. Default: chosen from the problem.",
            *_FROM_ONE,
        ),
    )
    shard: int | None = field(
        default=None,
        metadata=_about(
            int,
            (
                "Dispatch at most this many nodes to a worker at once. The tree depends on it. Default: 32 with "
                "an executor."
            ),
            *_FROM_ONE,
        ),
    )
    warm_start: bool = field(default=True, metadata=_about(bool, "Start each bound from that of the parent node."))
    force_quit: bool = field(default=True, metadata=_about(bool, "End the computation of a bound at the cut-off."))
    subtrees: bool = field(default=True, metadata=_about(bool, "Search small subtrees inside compiled kernels."))

    def __post_init__(self) -> None:
        for entry in fields(self):
            setting, value = entry.metadata["setting"], getattr(self, entry.name)
            if setting.plug_ins:
                _check_plug_in(entry.name, setting, value)
            if setting.kind is str or (value is None and entry.default is None):
                continue
            value = _checked(entry.name, setting, value)
            object.__setattr__(self, entry.name, value)
        heuristics = _listed(self.heuristics)
        if "auto" in heuristics and len(heuristics) > 1:
            raise InputError(
                "'auto' stands for all heuristics that suit the problem, but it is given beside others; give it alone, "
                f"or leave it out; set {option('heuristics')}."
            )
        object.__setattr__(self, "heuristics", heuristics)

    @property
    def tolerance(self) -> Tolerance:
        """The gap at which the search may stop."""
        return Tolerance(self.eps, self.rel_eps)

    def as_dict(self) -> dict[str, Any]:
        """The settings as plain data; objects by their names."""
        plain = asdict(self)
        plain["heuristics"] = [_name(heuristic) for heuristic in self.heuristics]
        for name, setting in settings_of().items():
            if setting.plug_ins:
                plain[name] = _name(getattr(self, name))
        return plain


def _parameters() -> str:
    lines = []
    for entry in fields(Settings):
        lines += [f"{entry.name} : {entry.type}", f"    {entry.metadata['setting'].text}"]
    return indent("\n".join(["Parameters", "----------", *lines]), "    ")


def settings_of() -> dict[str, Setting]:
    """What is known of each field of :class:`Settings`, by its name."""
    return {entry.name: entry.metadata["setting"] for entry in fields(Settings)}


def option_of(name: str) -> str:
    """The option of the command line that sets a field, for example ``--time-limit``."""
    return "--" + (settings_of()[name].flag or name).replace("_", "-")


def _checked(name: str, setting: Setting, value: object) -> float | int | bool:
    """The value as a plain number or switch; :class:`InputError` where it is none, or one that cannot be."""
    if setting.kind is bool:
        if not isinstance(value, bool):
            raise InputError(f"{name} is {shown(value)}, but it is a switch; give True or False.")
        return value
    number = _whole(value) if setting.kind is int else _number(value)
    if number is None:
        what = "whole number" if setting.kind is int else "number"
        raise InputError(f"{name} is {shown(value)}, but it must be a {what}; set {option(name)}.")
    if not setting.holds(number):
        raise InputError(f"{name} is {number}, but {setting.demand}; set {option(name)}.")
    return number


def _number(value: object) -> float | None:
    """The value as a plain float; None where it is no number, or too large for one."""
    try:
        return float(value) if isinstance(value, Real) else None
    except OverflowError:
        return None


def _whole(value: object) -> int | None:
    """The value as a plain integer; None where it is no whole number."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return int(value) if isinstance(value, Integral) else None


def _listed(heuristics: object) -> tuple[Any, ...]:
    """The heuristics one by one; a text holds their names, separated by commas, or is 'none'."""
    if isinstance(heuristics, str):
        names = tuple(name.strip() for name in heuristics.split(",") if name.strip())
        return () if names == ("none",) else names
    entries = tuple(heuristics) if isinstance(heuristics, Iterable) and not isinstance(heuristics, type) else (None,)
    if not all(isinstance(entry, str) or callable(getattr(entry, "run", None)) for entry in entries):
        raise InputError(
            f"heuristics is {shown(heuristics)}, but a list of names or objects was expected; () is for none."
        )
    return entries


def _check_plug_in(name: str, setting: Setting, value: object) -> None:
    """:class:`InputError` for what is neither the name of a plug-in nor an object with one."""
    called = value if isinstance(value, str) else getattr(value, "name", None)
    if isinstance(value, type) or not isinstance(called, str):
        choices = ", ".join(registry.names(setting.plug_ins))
        raise InputError(f"{name} is {shown(value)}, but a name or an object was expected; known are: {choices}.")


def _name(value: object) -> str:
    return value if isinstance(value, str) else str(getattr(value, "name", type(value).__name__))


Settings.__doc__ = f"{Settings.__doc__}\n{_parameters()}\n"
