"""The interface of a heuristic: the contract of :mod:`exactsel.start.heuristic`, under its name for plug-ins."""

from __future__ import annotations

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

__all__ = ["Context", "Heuristic", "Proposal", "at_least", "column_subset", "never", "regression", "with_coefficients"]
