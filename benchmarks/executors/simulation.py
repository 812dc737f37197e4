"""The cost model: what a search would take with W workers, from what one process measured.

A search with an executor is a sequence of rounds: shards are worked on side by side, each with an overhead for the way
there and back, and the supervisor looks at answers as they come. A round is committed once the last one is there and
the supervisor, which deals with rounds one after the other, has done its part. The next one is begun then, or, where
many nodes are open, when the round before was. The same tree is simulated shard by shard, so that what is uneven in it
shows.
"""

from __future__ import annotations

import heapq
import time
from dataclasses import dataclass, field
from typing import Any

from exactsel.search import rounds as rounds_module
from exactsel.search.pool import Executor
from exactsel.solving import solve
from exactsel.solving.shard_worker import ShardWorker


@dataclass
class MeasuredRound:
    """A round of a search, as one process carried it out."""

    beside: bool
    """Whether it was begun while another was under way."""
    shards: list[float] = field(default_factory=list)
    """CPU seconds of each that was given out."""


@dataclass
class Measured:
    """One search, as one process carried it out."""

    rounds: list[MeasuredRound] = field(default_factory=list)
    total: float = 0.0
    """Seconds of the whole search, compiling aside."""

    @property
    def shards(self) -> float:
        """Seconds that went into shards."""
        return sum(sum(one.shards) for one in self.rounds)

    @property
    def supervisor(self) -> float:
        """Seconds of everything else."""
        return self.total - self.shards


class _Measuring:
    """An executor in this thread that takes down what each shard takes."""

    name = "measuring"

    def __init__(self) -> None:
        self.measured = Measured([MeasuredRound(False)])

    def begin(self, job: bytes) -> None:
        self._workshop = ShardWorker(job)

    def submit(self, shard: bytes) -> Any:
        began = time.process_time()
        answer = self._workshop.expanded(shard)
        self.measured.rounds[-1].shards.append(time.process_time() - began)

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
        executor.measured.rounds.append(MeasuredRound(self.waiting > 0))
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
    free = [0.0] * workers
    before = committed = 0.0
    for one in search.rounds:
        begun = before if one.beside else committed
        done = begun
        for shard in one.shards:
            # Shards are taken in their order by whoever is free.
            done = max(done, end := max(heapq.heappop(free), begun) + shard + overhead)
            heapq.heappush(free, end)
        before, committed = committed, max(done, committed + supervisor)
    return committed
