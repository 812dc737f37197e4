"""The best-first search.

    open <- {root};  incumbent <- the best of the starting heuristics;  dropped <- +inf
    loop:
        lower <- min(upper, dropped, smallest bound in open)
        stop if open is empty, or upper - lower <= tolerance, or a limit or an interrupt says so
        take the next B nodes (B fixed by the settings, not by the number of threads); above the memory limit those
            that come last wait on the disk
        expand them: bound, fix columns, round and refit, split            (expand.py, a pure function)
        commit new incumbents                                              (commit.py)
        commit in node order: closed regions, children with the bound they inherit
        give heuristics a portion of work where one is due, commit what they find (incumbents.py)

Where many nodes are open the next round is begun before the outcome of one is waited for (rounds.py): committing is
Python and takes a while, and of workers that share a round one would wait for the other at its end.

The engine knows nothing about losses or bounds. It yields an event for everything it commits (events.py); log,
recorded tree and certificate are observers of these.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from exactsel.enumeration.work_budget import HORIZON, HORIZON_PART, WorkBudget
from exactsel.errors import WorkerWarning, warn
from exactsel.interrupts import CompilationStopped, dispensable
from exactsel.search.commit import commit, commit_models
from exactsel.search.events import Event, Finished, LowerBoundRaised, RoundEnded, Started
from exactsel.search.expand import Expander, Interrupted
from exactsel.search.frontier import BestFirst
from exactsel.search.incumbents import improve
from exactsel.search.invariants import check_round
from exactsel.search.pool import FEW, WORTH, Pool, WorkerFailureError
from exactsel.search.rounds import Rounds
from exactsel.search.state import Begun, SearchState
from exactsel.search.watch import Watch
from exactsel.start.primal_heuristics import PrimalHeuristics

AHEAD = 4
"""Open nodes, in rounds, from which on a round begins before the one before has ended: the nodes that one adds could
not have been among the best by much."""


@dataclass(frozen=True)
class Limits:
    """When to stop before the gap is closed, and how many nodes make a round."""

    batch: int
    node_limit: int | None = None
    memory_limit: float = math.inf
    """MiB of open nodes above which those that come last wait on a disk (memory.py)."""
    details: bool = False
    """Report also the kernels' steps one by one (the steps of searches below a node)."""
    shard: int | None = None
    """Nodes of a shard, where rounds are divided (pool.py)."""


def search(
    state: SearchState, expander: Expander, limits: Limits, watch: Watch, improver: PrimalHeuristics | None = None,
    pool: Pool | None = None,
) -> Iterator[Event]:  # fmt: skip
    """Run until the gap is closed or a limit says stop; ``state`` is current at every event."""
    state.begin(limits.memory_limit, limits.node_limit)
    yield Started(state.open_nodes())
    with Rounds(expander, limits.shard, pool) as rounds:
        for batch in state.begun:
            rounds.begin(*batch)
        while True:
            termination = _termination(state, expander, limits, watch)
            # The same holds after a stop beside a round that may still complete: the nodes of the next round are those
            # it would have had, and the stopped round must not decide on them.
            goes_on = termination is None or (termination == watch.reason and rounds.waiting > 0)
            while goes_on and len(state.begun) < _under_way(state, expander, limits):
                batch = _take(state, limits)
                if termination is None:
                    rounds.begin(*batch)
            if termination is not None and not rounds.waiting:
                break
            try:
                with dispensable():
                    finished = rounds.outcome()
            except (Interrupted, CompilationStopped) as broken:
                if not watch.stopped:  # the signal was for a watch around this search
                    raise
                state.note_reached(getattr(broken, "reached", None))
                rounds.forget()
                continue
            except WorkerFailureError as error:
                warn(f"the search ends, as workers failed: {error}", WorkerWarning)
                termination = "worker_failure"
                break
            state.begun = state.begun[1:]
            yield from commit_models(state, finished, expander)
            for outcome in finished.outcomes:
                yield from commit(state, outcome, expander, limits.details)
                state.in_flight = state.in_flight[1:]
            if improver is not None:
                yield from improve(state, expander, improver)
            if state.bound_has_risen():
                yield LowerBoundRaised(state.lower)
            state.rounds += 1
            check_round(state)
            yield RoundEnded(state.rounds)
    state.end()
    yield Finished(termination, state.open_nodes())


def _take(state: SearchState, limits: Limits) -> Begun:
    """Take the nodes of the next round: a search resumed from this state begins with them."""
    state.relieve_memory()
    nodes = state.take(_batch(state, limits))
    batch = Begun(tuple(nodes), state.value, _effort(state, limits, len(nodes)))
    state.begun = (*state.begun, batch)
    return batch


def _termination(state: SearchState, expander: Expander, limits: Limits, watch: Watch) -> str | None:
    if state.open_count == 0:
        return "tree_exhausted"
    if state.value - state.bound <= expander.tolerance.absolute(state.value):
        return "gap_closed"
    if watch.stopped:
        return watch.reason
    if limits.node_limit is not None and state.nodes >= limits.node_limit:
        return "node_limit"
    if state.guard.stop_above(state.frontier, state.open_bytes):
        return "memory_limit"
    return None


def _under_way(state: SearchState, expander: Expander, limits: Limits) -> int:
    """How many rounds are to be under way: one, or two where many nodes are open.

    Not where the caller requires an order: in the paper's algorithm, one node at a time, up to a number of nodes. Nor
    where subtrees are walked, unless workers would wait for the last shards of a round: what its walks brought decides
    on the next ones (measured: 14 % more nodes without knowing).
    """
    strict = expander.tree.eager or limits.batch == 1 or limits.node_limit is not None
    pays = limits.shard is not None or expander.enumeration is None
    return 2 if pays and not strict and len(state.frontier) >= AHEAD * limits.batch else 1


def _effort(state: SearchState, limits: Limits, taken: int) -> WorkBudget:
    """What has been spent so far, and how many nodes the limit leaves once those taken have been bounded."""
    node_budget = None if limits.node_limit is None else max(0, limits.node_limit - state.nodes - taken)
    state.phase.note(state.nodes, len(state.frontier))
    horizon = math.inf
    frontier = state.frontier
    if state.phase.long and isinstance(frontier, BestFirst):
        rank = max(HORIZON, len(frontier) // HORIZON_PART)
        horizon = state.phase.horizon_at(state.nodes, lambda: frontier.bound_at(rank))
    few = limits.shard is not None and taken < FEW
    return WorkBudget(
        state.nodes, state.bound_calls, state.iterations, horizon, node_budget, state.walks.copy(), state.counted,
        WORTH if few else math.inf,
    )  # fmt: skip


def _batch(state: SearchState, limits: Limits) -> int:
    if limits.node_limit is None:
        return limits.batch
    return max(1, min(limits.batch, limits.node_limit - state.nodes))
