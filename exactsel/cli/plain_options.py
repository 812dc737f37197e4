"""Options of commands that show the tree of a search, with plain best-first search as the default."""

from __future__ import annotations

from typing import Any

from exactsel.cli.options import Decorated, search_settings, setting_options
from exactsel.cli.saving import given
from exactsel.problem.interface import SubsetProblem
from exactsel.solving.settings import settings_of

DEFAULTS = {"tree": None, "bound": None}
TEXTS = {
    "tree": "Use this search tree: state-space or binary. Default: state-space, for plain best-first search.",
    "bound": "Use this lower bound, as for solve. Default: pdal, or another where it does not apply.",
}


def plain_options(function: Decorated) -> Decorated:
    """Everything that steers a search; the tree and the bound are those of plain best-first search by default."""
    return setting_options(*settings_of(), defaults=DEFAULTS, **TEXTS)(function)


def plain_settings(problem: SubsetProblem, arguments: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments of :func:`exactsel.solve`; subtrees are never walked whole, as that would not be seen."""
    from exactsel.solving.plain_search import plain_search

    plain = plain_search(problem)
    chosen = {name: value for name, value in plain.items() if name == "subtrees" or not given(name)}
    return search_settings(arguments | chosen)
