"""A search with more open nodes than memory has room for: what it takes, and whether it loses any."""

from __future__ import annotations

import math
import resource
import sys
import time
from collections.abc import Iterable

import numpy as np

from exactsel import Problem, Settings
from exactsel.nodes.node import Node
from exactsel.search.events import Discarded, LowerBoundRaised, RoundEnded
from exactsel.search.memory import MEBIBYTE
from exactsel.search.spilling import Spilling
from exactsel.solving.solver import Search


def run(count: int, limit: float, seed: int, columns: int) -> None:
    """Search until so many nodes are open, on data in which nearly no region can be closed; then count them."""
    settings = Settings(heuristics=(), subtrees=False, memory_limit=limit, threads=1)
    search, began = Search(_problem(columns, "quadratic", seed), settings), time.perf_counter()
    told, lower, closed = count // 20, -math.inf, 0
    for event in search:
        if isinstance(event, LowerBoundRaised):
            assert event.lower >= lower, f"the lower bound fell from {lower} to {event.lower}"
            lower = event.lower
        closed += isinstance(event, Discarded)
        if isinstance(event, RoundEnded) and search.state.open_count >= told:
            told += count // 20
            _tell(search, began)
            if search.state.open_count >= count:
                break
    state = search.state
    # Every split closes one node and opens two, whose numbers are the next ones.
    split, rest = divmod(state.next_id - 1, 2)
    assert rest == 0, "an odd number of nodes"
    assert state.open_count == 1 + split - closed, f"{state.open_count} open, not {1 + split - closed}"
    seen, first = _walk(state.open_nodes())
    assert seen == state.open_count, f"{seen} nodes are there, not {state.open_count}"
    assert first == state.frontier.lower() or state.in_flight, "the smallest bound is another"
    _tell(search, began)
    print(f"none of {seen} lost; a node split {split} times, {closed} closed", flush=True)


def searched_until(count: int, columns: int, loss: str, seed: int, subtrees: bool = False) -> Search:
    """A search, without a limit on memory, with so many open nodes."""
    settings = Settings(heuristics=(), subtrees=subtrees, memory_limit=math.inf, threads=1)
    search = Search(_problem(columns, loss, seed), settings)
    for event in search:
        if isinstance(event, RoundEnded) and search.state.open_count >= count:
            break
    return search


def _problem(columns: int, loss: str, seed: int) -> Problem:
    """Nearly no region of it can be closed."""
    rng = np.random.default_rng(seed)
    A, y = rng.standard_normal((columns + 10, columns)), rng.standard_normal(columns + 10)
    return Problem(A, np.sign(y) if loss == "logistic" else y, k=columns // 5, loss=loss, lam=0.5)


def _walk(nodes: Iterable[Node]) -> tuple[int, float]:
    """Count open nodes by reading each, in order."""
    seen, last, first = 0, -math.inf, math.inf
    for node in nodes:
        assert node.bound >= last, "nodes out of order"
        seen, last, first = seen + 1, node.bound, min(first, node.bound)
    return seen, first


def _tell(search: Search, began: float) -> None:
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform != "darwin" else MEBIBYTE)
    state, frontier = search.state, search.state.frontier
    cold = frontier.cold if isinstance(frontier, Spilling) else 0
    spent = f"{time.perf_counter() - began:.0f} s, {time.process_time():.0f} s of a processor"
    print(
        f"{state.open_count} open, {cold} of them on the disk, bounds from {state.bound:.4f} to {state.value:.4f}; "
        f"{spent}, at most {most:.0f} MiB in memory",
        flush=True,
    )
