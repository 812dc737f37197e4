"""The steps of a search inside the kernel as events of the search."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from exactsel.enumeration.native import NativeTree, Step
from exactsel.kernels.moves import BRANCHED, CLOSED, PUT_IN
from exactsel.kernels.native_record import BOUNDED
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.nodes.node import Node, is_convex
from exactsel.nodes.regions import Fixing, Fixings
from exactsel.problem.interface import SubsetProblem
from exactsel.search.events import Bounded, Discarded, Divided, Event, Fixed
from exactsel.types import StateArray


def events_of(search: NativeTree, node: Node, name: Callable[[int], int], problem: SubsetProblem) -> Iterator[Event]:
    """Every bound call, fixed column, split and closed region below ``node``.

    ``name`` gives the search's number of a node the kernel numbered; 0 is ``node`` itself.
    """
    k = problem.k
    states: dict[int, StateArray | None] = {0: node.state}

    def part(state: StateArray | None, column: int, decision: int) -> StateArray | None:
        return decided(state, column, decision, lambda region: problem.units.implied(region, k))

    visited: set[int] = set()
    count = 1
    for step in search.expanded_steps():
        number, state = name(step.number), states[step.number]
        proof = node.proof if step.proof is None else step.proof
        if step.kind == BOUNDED:
            visited.add(step.number)
            yield Bounded(number, step.bound, state is not None and is_convex(state, k), step.column)
        elif step.kind == BRANCHED:
            included, outside = count, count + 1
            count += 2
            states[included], states[outside] = part(state, step.column, IN), part(state, step.column, OUT)
            yield Divided(number, (step.column,), (name(included),), name(outside))
        elif step.kind == CLOSED and state is None:
            yield Discarded(number, node.state, "excluded", math.inf, proof)
        elif step.kind == CLOSED:
            assert state is not None
            yield Discarded(number, state, _reason(step, visited, state, k), step.bound, proof)
        else:
            put_in = step.kind == PUT_IN
            states[step.number] = part(state, step.column, IN if put_in else OUT)
            yield Fixed(number, Fixings.of([Fixing(step.column, put_in, step.bound, proof)]))


def _reason(step: Step, visited: set[int], state: StateArray, k: int) -> str:
    if step.number not in visited:
        return "inherited"
    return "solved" if is_convex(state, k) else "bound"


def decided(
    state: StateArray | None, column: int, decision: int, implied: Callable[[StateArray], StateArray | None]
) -> StateArray | None:
    """A region with one more decision and what follows from it; None where no model is left."""
    if state is None or state[column] != FREE:
        return state if state is not None and state[column] == decision else None
    part = state.copy()
    part[column] = decision
    return implied(part)
