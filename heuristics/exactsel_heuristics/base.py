"""The interface of a heuristic: the contract of :mod:`exactsel.start.heuristic`, under its name for plug-ins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from exactsel.start.heuristic import (
    Context,
    Heuristic,
    Proposal,
    at_least,
    column_subset,
    never,
    regression,
    with_coefficients,
)

if TYPE_CHECKING:
    from exactsel.start.heuristic import AnyProblem as AnyProblem

__all__ = ["Context", "Heuristic", "Proposal", "at_least", "column_subset", "never", "regression", "with_coefficients"]
