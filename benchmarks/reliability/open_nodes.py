"""More open nodes than memory has room for: what a frontier that spills takes, and whether it keeps the order."""

from __future__ import annotations

import resource
import sys
import time

import numpy as np

from exactsel import Problem
from exactsel.bounds.witness import ModelPoint
from exactsel.nodes.node import Node
from exactsel.search.memory import MEBIBYTE
from exactsel.search.spilling import Spilling, TemporaryNodeStore

ENTRIES = 20
"""Of the model that proves a node's bound; two nodes share one."""


def run(count: int, limit: float, seed: int, columns: int = 100) -> None:
    """Open nodes of random bounds, as a search does, then take some, prune half and see that the order was kept."""
    rng = np.random.default_rng(seed)
    problem = Problem(rng.standard_normal((120, columns)), rng.standard_normal(120), ENTRIES, lam=1.0)
    frontier, began = Spilling(TemporaryNodeStore(), problem), time.perf_counter()
    for number in range(count):
        if number % 2 == 0:
            index = np.sort(rng.choice(columns, ENTRIES, replace=False)).astype(np.int32)
            point, state = ModelPoint(index, rng.standard_normal(ENTRIES)), rng.integers(0, 2, columns).astype(np.int8)
        node = Node(number, number // 2, 9, state, float(rng.random()), point, point)
        frontier.push(node)
        if frontier.size > limit * MEBIBYTE:
            frontier.spill()
        if (number + 1) % (count // 10) == 0:
            _tell(f"{number + 1} open, {frontier.cold} of them on the disk", began)
    taken = frontier.take(count // 100)
    order = [(node.bound, node.id) for node in taken]
    assert order == sorted(order), "taken out of order"
    assert frontier.lower() >= order[-1][0], "a smaller bound was left"
    _tell(f"{len(taken)} taken, in order", began)
    pruned = sum(1 for node in frontier.prune(0.5) if node.bound >= 0.5)
    _tell(f"{pruned} pruned", began)
    assert len(taken) + pruned + len(frontier) == count, "nodes were lost"
    print(f"none of {count} lost", flush=True)


def _tell(what: str, began: float) -> None:
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform != "darwin" else MEBIBYTE)
    print(f"{what}; {time.perf_counter() - began:.0f} s, at most {most:.0f} MiB in memory", flush=True)
