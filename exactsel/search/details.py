"""Tell what a search inside the kernel did, in the events of the search itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from exactsel.kernels.moves import BRANCHED, CLOSED, PUT_IN
from exactsel.kernels.node import IN, OUT
from exactsel.kernels.subsearch import BOUNDED
from exactsel.search.events import Bounded, Discarded, Divided, Event, Fixed
from exactsel.search.node import Node, is_convex
from exactsel.types import StateArray
from exactsel.walks.relaxation import Below, Note


def events_of(below: Below, node: Node, name: Callable[[int], int], k: int) -> Iterator[Event]:
    """Every bound call, fixed column, split and closed region below ``node``.

    ``name`` gives the search's number of a node the kernel numbered; 0 is ``node`` itself.
    """
    states: dict[int, StateArray] = {0: node.state.copy()}
    visited: set[int] = set()
    count = 1
    for note in below.notes():
        number, state = name(note.number), states[note.number]
        proof = node.proof if note.proof is None else note.proof
        if note.kind == BOUNDED:
            visited.add(note.number)
            yield Bounded(number, note.bound, is_convex(state, k), note.column)
        elif note.kind == BRANCHED:
            inside, outside = count, count + 1
            count += 2
            states[inside], states[outside] = state.copy(), state.copy()
            states[inside][note.column], states[outside][note.column] = IN, OUT
            yield Divided(number, (note.column,), (name(inside),), name(outside))
        elif note.kind == CLOSED:
            yield Discarded(number, state, _reason(note, visited, state, k), note.bound, proof)
        else:
            put_in = note.kind == PUT_IN
            state[note.column] = IN if put_in else OUT
            yield Fixed(number, note.column, put_in, note.bound, proof)


def _reason(note: Note, visited: set[int], state: StateArray, k: int) -> str:
    if note.number not in visited:
        return "inherited"
    return "solved" if is_convex(state, k) else "bound"
