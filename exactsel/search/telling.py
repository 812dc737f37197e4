"""Have a worker tell every step of a search below a node: how regions that were closed at once are proven one by one.

Telling takes several times as long as the search did, and a share of all subtrees is looked at in full. So workers do
that too: one is asked once the answer is there, when nobody can take it back any more. It need not be the one who gave
the answer, and is not believed either: what it tells proves the answer by its witnesses, or does not.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from exactsel.errors import InputError
from exactsel.kernels.node import IN, OUT
from exactsel.nodes.regions import SubtreeResult
from exactsel.problem.interface import SubsetProblem
from exactsel.search.layout import refusing_damage, require
from exactsel.search.packed_bytes import AS_IT_IS, from_bytes, to_bytes
from exactsel.search.packed_searches import searches_as_arrays, searches_from
from exactsel.search.packing import Packed
from exactsel.types import StateArray
from exactsel.walks.relaxation import KernelSearch, Subsearcher

TELL = "tell"
"""In a header: these are bytes of a search whose steps are asked for."""


def question_bytes(outcome: SubtreeResult) -> bytes:
    """What a worker is asked."""
    assert isinstance(outcome.told, KernelSearch)
    return search_bytes(outcome.node.state, _steps_alone(outcome.told))


def told_bytes(packed: Packed, problem: SubsetProblem, subsearcher: Subsearcher | None) -> bytes:
    """Every step of the search that :func:`question_bytes` packed; the answer as a worker sends it.

    Raises
    ------
    InputError
        Where there is nothing to tell, or it is damaged.
    """
    state, search = search_from(packed, problem)
    if subsearcher is None:
        raise InputError("this search is not left to kernels; run the same exactsel everywhere.")
    return search_bytes(state, subsearcher.in_full(search, state))


def with_steps(outcome: SubtreeResult, data: bytes, problem: SubsetProblem) -> SubtreeResult:
    """An outcome with the steps of an answer, and nothing else of it.

    Raises
    ------
    InputError
        Where the answer is none, or damaged.
    """
    assert isinstance(outcome.told, KernelSearch)
    _, told = search_from(from_bytes(data), problem)
    search = replace(
        outcome.told, steps=told.steps, step_bounds=told.step_bounds, scaled_points=told.scaled_points
    )  # fmt: skip
    return replace(outcome, told=search)


def search_bytes(state: StateArray, search: KernelSearch) -> bytes:
    """A search and the region it was made in."""
    arrays = searches_as_arrays([search]) | {"region": np.asarray(state, dtype=np.int8)}
    return to_bytes(Packed({TELL: 1}, arrays), AS_IT_IS)


def search_from(packed: Packed, problem: SubsetProblem) -> tuple[StateArray, KernelSearch]:
    """What :func:`search_bytes` was given; :class:`exactsel.errors.InputError` where it is damaged."""
    with refusing_damage():
        (search,) = searches_from(packed.arrays, problem)
        state = packed.arrays["region"]
        require(state.dtype == np.int8 and state.shape == (problem.d,), "a region of another problem")
        members = np.count_nonzero(state == IN)
        require(bool(np.all((state >= OUT) & (state <= IN)) and members <= problem.k), "an impossible state")
        return state.copy(), search


def _steps_alone(search: KernelSearch) -> KernelSearch:
    """The search without the regions it left open."""
    return replace(
        search, open_states=search.open_states[:0], open_bounds=search.open_bounds[:0],
        open_labels=search.open_labels[:0],
    )  # fmt: skip
