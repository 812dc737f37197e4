"""One solve: settings, what suits the problem, starting models, the search, and the result.

The names below are imported when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from exactsel.solving.api import solve
    from exactsel.solving.solver import Search

__all__ = ["Search", "solve"]

_HOMES = {"Search": "exactsel.solving.solver", "solve": "exactsel.solving.api"}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'exactsel.solving' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)
