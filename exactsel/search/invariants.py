"""Invariants of every search, checked as it runs. A contradiction ends the search: it is never clipped away.

Every search checks these, as they cost nothing; :mod:`exactsel.proofs.recheck` checks every single region.
"""

from __future__ import annotations

import math

from exactsel.errors import InvariantError
from exactsel.search.state import SearchState

MARGIN = 1e-9
"""Times a bound: what rounding may make of it at most, and of an objective ..."""

UNIT_MARGIN = 1e-12
"""... and times the empty model's objective."""


def check_incumbent(state: SearchState) -> None:
    """A model that costs less than the regions' bounds allow for contradicts one of them.

    Raises
    ------
    InvariantError
        Where it does by more than rounding, in a search whose bounds are about all models.
    """
    floor = state.floor
    if state.valid_for or not math.isfinite(floor) or not floor > state.value:
        return
    upper = state.upper
    allowed = upper + MARGIN * abs(upper) + UNIT_MARGIN * state.unit
    needed = allowed if state.statement is None else state.statement.needed(allowed, state.valid_for)
    if floor - MARGIN * abs(floor) > needed:
        raise InvariantError(
            f"a model of objective {state.upper!r} was found where no model was to be below {floor!r} any more "
            f"({_where(state)}): one of the bounds was wrong."
        )


def check_round(state: SearchState) -> None:
    """No bound may fall, and no open node be lost or there twice.

    Raises
    ------
    InvariantError
        Where one is.
    """
    floor = state.floor
    if floor < state.highest - MARGIN * abs(floor) - UNIT_MARGIN * state.unit:
        raise InvariantError(f"the lower bound fell from {state.highest!r} to {floor!r} ({_where(state)}).")
    state.highest = max(state.highest, floor)
    if len(state.frontier) != state.pushed:
        raise InvariantError(
            f"{len(state.frontier)} nodes are open where {state.pushed} must be ({_where(state)}): nodes were lost, or "
            f"are there twice."
        )


def _where(state: SearchState) -> str:
    return f"round {state.rounds}, {state.nodes} nodes"
