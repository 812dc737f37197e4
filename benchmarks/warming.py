"""Searches whose result nobody wants: they compile the kernels that a timed search is about to call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from exactsel import solve
from exactsel.problem.regression import Problem

NODES = 100
"""A search with so small a limit bounds nodes instead of listing supports, by kernels that a listing never calls."""

SECONDS = 1.0


def warm(problem: Problem, mode: Mapping[str, Any] | None = None) -> None:
    """Search a problem up to a few nodes, and for a second.

    What a search calls depends on the data, so a small problem of the same kind does not do.

    Parameters
    ----------
    problem : Problem
        One of those that are about to be timed.
    mode : mapping, optional
        Options of :func:`exactsel.solve`.
    """
    options = {"threads": 1, **(mode or {})}
    solve(problem, node_limit=NODES, **options)
    solve(problem, time_limit=SECONDS, **options)
