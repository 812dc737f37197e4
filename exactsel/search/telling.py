"""Have a worker tell every step of a search below a node: how regions that were closed at once are proven one by one.

Telling takes several times as long as the search did, and a share of all subtrees is looked at in full. So workers do
that too: one is asked once the answer is there, when nobody can take it back any more. It need not be the one who gave
the answer, and is not believed either: what it tells proves the answer by its witnesses, or does not.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from exactsel.errors import InputError
from exactsel.nodes.regions import NodeSearched
from exactsel.problem.interface import SubsetProblem
from exactsel.search.layout import refusing_damage, require
from exactsel.search.packed_bytes import AS_IT_IS, from_bytes, to_bytes
from exactsel.search.packed_searches import check_points
from exactsel.search.packing import Packed, pack, unpack
from exactsel.types import StateArray
from exactsel.walks.relaxation import KernelSearch, Subsearcher

TELL = "tell"
"""In a header: these are bytes of a search whose steps are asked for."""


def question_bytes(outcome: NodeSearched) -> bytes:
    """What a worker is asked."""
    packed = pack([np.ascontiguousarray(outcome.node.state), _steps_alone(outcome.search)])
    return to_bytes(Packed({TELL: packed.header}, packed.arrays), AS_IT_IS)


def told_bytes(packed: Packed, problem: SubsetProblem, subsearcher: Subsearcher | None) -> bytes:
    """Every step of the search that :func:`question_bytes` packed; the answer as a worker sends it.

    Raises
    ------
    InputError
        Where there is nothing to tell, or it is damaged.
    """
    state, search = _unpacked(Packed(packed.header[TELL], packed.arrays), problem)
    if subsearcher is None:
        raise InputError("this search is not left to kernels; run the same exactsel everywhere.")
    return to_bytes(pack([state, subsearcher.in_full(search, state)]), AS_IT_IS)


def with_steps(outcome: NodeSearched, data: bytes, problem: SubsetProblem) -> NodeSearched:
    """An outcome with the steps of an answer, and nothing else of it.

    Raises
    ------
    InputError
        Where the answer is none, or damaged.
    """
    _, told = _unpacked(from_bytes(data), problem)
    search = replace(
        outcome.search, steps=told.steps, step_bounds=told.step_bounds, scaled_points=told.scaled_points
    )  # fmt: skip
    return replace(outcome, search=search)


def _unpacked(packed: Packed, problem: SubsetProblem) -> tuple[StateArray, KernelSearch]:
    with refusing_damage():
        state, search = unpack(packed, problem)
        require(isinstance(search, KernelSearch), "no search below a node")
        require(state.dtype == np.int8 and state.shape == (problem.d,), "a region of another problem")
        check_points(search, problem)
        return state, search


def _steps_alone(search: KernelSearch) -> KernelSearch:
    """The search without the regions it left open."""
    return replace(
        search, open_states=search.open_states[:0], open_bounds=search.open_bounds[:0],
        open_labels=search.open_labels[:0],
    )  # fmt: skip
