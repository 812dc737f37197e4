"""What a heuristic is: the contract of :mod:`exactsel.start.heuristic`, under the name plug-ins know it by."""

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
