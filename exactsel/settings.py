"""Settings of a solve, validated once and frozen."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from exactsel.errors import InputError
from exactsel.search.tolerance import Tolerance

DEFAULT_HEURISTICS = ("forward", "omp", "htp", "dual-iht", "swap")


@dataclass(frozen=True)
class Settings:
    """Options of :func:`exactsel.solve`, under the names the command line uses.

    ``tree``, ``bound``, ``branching``, ``frontier`` and the ``heuristics`` are names or objects.
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

    def __post_init__(self) -> None:
        Tolerance(self.eps, self.rel_eps)
        if self.time_limit is not None and not self.time_limit >= 0:
            raise InputError(f"time_limit is {self.time_limit}, but seconds cannot be negative; set --time-limit.")
        if self.node_limit is not None and not self.node_limit >= 0:
            raise InputError(f"node_limit is {self.node_limit}, but it cannot be negative; set --node-limit.")
        if not self.memory_limit > 0:
            raise InputError(f"memory_limit is {self.memory_limit}, but it must be positive; set --memory-limit.")
        for name in ("threads", "batch"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name} is {value}, but it must be at least 1; set --{name}.")

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


def _name(value: Any) -> str:
    return value if isinstance(value, str) else str(getattr(value, "name", type(value).__name__))
