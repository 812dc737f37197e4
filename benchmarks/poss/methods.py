"""The methods of the paper under the names it gives them."""

from __future__ import annotations

from collections.abc import Mapping

from exactsel import registry
from exactsel.errors import InputError
from exactsel_heuristics.base import Heuristic

NAMES: Mapping[str, str] = {
    "POSS": "poss",
    "FR": "forward",
    "FoBa": "foba",
    "OMP": "omp",
    "RFE": "rfe",
    "Lasso": "lasso",
    "SCAD": "scad",
    "MCP": "mcp",
}
"""The paper's name of a method, and the one it is registered under."""


def methods() -> dict[str, Heuristic]:
    """All methods that can be loaded, with their default options, which are the paper's where it names any."""
    found: dict[str, Heuristic] = {}
    for name, registered in NAMES.items():
        try:
            found[name] = registry.load("heuristics", registered)()
        except (ImportError, AttributeError, InputError):
            continue
    return found
