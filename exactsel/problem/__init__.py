"""The problem: data, loss, k and lam, validated once and frozen.

The names below are imported when first used, so that asking for a part loads no more than that part.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from exactsel.problem.column_subset import ColumnSubsetProblem
    from exactsel.problem.grouped import GroupedProblem
    from exactsel.problem.regression import Problem

__all__ = ["ColumnSubsetProblem", "GroupedProblem", "Problem"]

_HOMES = {"ColumnSubsetProblem": "column_subset", "GroupedProblem": "grouped", "Problem": "regression"}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'exactsel.problem' has no attribute '{name}'")
    return getattr(import_module(f"exactsel.problem.{_HOMES[name]}"), name)
