"""The cost model: what a search would take with W workers, from what one process measured.

A search with an executor is a sequence of rounds: shards are worked on side by side, then the supervisor looks at the
answers and commits them, while the next round is under way already. So a round takes the longer of two things: the
work of its shards on W workers, each with an overhead for the way there and back, and what the supervisor does. The
same tree is simulated shard by shard, so that what is uneven in it shows.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from exactsel.search import rounds as rounds_module
from exactsel.search.pool import Executor
from exactsel.solving import solve
from exactsel.solving.job import Workshop


@dataclass
class Measured:
    """One search, as one process carried it out."""

    rounds: list[list[float]] = field(default_factory=list)
    """CPU seconds of each shard of each round that was given out."""
    total: float = 0.0
    """Seconds of the whole search, compiling aside."""

    @property
    def shards(self) -> float:
        """Seconds that went into shards."""
        return sum(map(sum, self.rounds))

    @property
    def supervisor(self) -> float:
        """Seconds of everything else."""
        return self.total - self.shards


class _Measuring:
    """An executor in this thread that takes down what each shard takes."""

    name = "measuring"

    def __init__(self) -> None:
        self.measured = Measured([[]])

    def begin(self, job: bytes) -> None:
        self._workshop = Workshop(job)

    def submit(self, shard: bytes) -> Any:
        began = time.process_time()
        answer = self._workshop.expanded(shard)
        self.measured.rounds[-1].append(time.process_time() - began)

        class Done:
            def result(self, timeout: float) -> bytes:
                return answer

            def refuse(self, why: str) -> None:
                raise AssertionError(why)

        return Done()

    def close(self) -> None:
        pass


def measured(problem: Any, **options: Any) -> Measured:
    """Carry a search out once, shard by shard, and take the CPU times down: all of it is done in this thread."""
    solve(problem, executor=_Measuring(), **options, node_limit=2000)  # kernels are there after this
    executor = _Measuring()
    begin = rounds_module.Rounds.begin

    def beginning(self: Any, *arguments: Any) -> None:
        executor.measured.rounds.append([])
        begin(self, *arguments)

    rounds_module.Rounds.begin = beginning  # type: ignore[method-assign]
    try:
        began = time.process_time()
        made: Executor = executor
        solve(problem, executor=made, **options)
        executor.measured.total = time.process_time() - began
    finally:
        rounds_module.Rounds.begin = begin  # type: ignore[method-assign]
    return executor.measured


def simulated(search: Measured, workers: int, overhead: float) -> float:
    """Seconds with so many workers, where a shard's way there and back takes ``overhead`` of its worker's time."""
    supervisor = search.supervisor / max(1, len(search.rounds))
    return sum(max(_makespan(shards, workers, overhead), supervisor) for shards in search.rounds)


def _makespan(shards: Sequence[float], workers: int, overhead: float) -> float:
    """When the last of some shards is done that are taken in their order by whoever is free."""
    free = [0.0] * min(workers, max(1, len(shards)))
    for shard in shards:
        heapq.heappush(free, heapq.heappop(free) + shard + overhead)
    return max(free) if shards else 0.0
