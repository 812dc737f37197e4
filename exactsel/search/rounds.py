"""Carry out rounds in the order they are begun in, in the background where that can be.

Kernels release the interpreter lock, so with two or more threads the Python of one round runs beside the kernels of the
next. With one thread a round is carried out when its outcome is needed: the same calls with the same arguments in the
same order, hence the same tree. Where rounds are divided into shards, a pool may work on these (pool.py), and goes from
the last ones of a round to the first ones of the next.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import TracebackType

from exactsel import interrupts
from exactsel._jit import working_threads
from exactsel.enumeration.work_budget import WorkBudget
from exactsel.errors import InputError
from exactsel.nodes.node import Node
from exactsel.nodes.regions import Round
from exactsel.search.expand import Expander
from exactsel.search.pool import Pool, ShardFuture, first_sound, merged, round_from_bytes, shard_bytes, shards


def _answer(pool: Pool, nodes: Sequence[Node], ticket: ShardFuture) -> Round:
    """The outcome of a dispatched shard, once there is an answer that can be right."""

    def look(data: bytes) -> Round:
        done = round_from_bytes(data, nodes, pool.problem)
        wrong = pool.check(nodes, done)
        if wrong:
            raise InputError(wrong)
        return done

    return first_sound(pool, ticket, look)


def _gathered(parts: Sequence[Callable[[], Round]], upper: float) -> Round:
    """The outcome of a round from those of its parts, some of which are only begun now."""
    return merged([part() for part in parts], upper)


class Rounds:
    """A context in which rounds are carried out, in the order they are begun in; leaving it waits for those under way.

    Parameters
    ----------
    expander : Expander
    shard : int, optional
        Nodes of a shard; None: rounds are not divided.
    pool : Pool, optional
        The executor of shards, where a round has more than one.
    """

    def __init__(self, expander: Expander, shard: int | None = None, pool: Pool | None = None) -> None:
        self._expander, self._shard, self._pool = expander, shard, pool
        self._waiting: deque[Callable[[], Round]] = deque()
        self._worker: ThreadPoolExecutor | None = None
        if expander.threads > 1:
            self._worker = ThreadPoolExecutor(1, "exactsel-round", interrupts.adopt, (interrupts.watches(),))

    @property
    def waiting(self) -> int:
        """How many rounds there are whose outcomes have not been fetched."""
        return len(self._waiting)

    def begin(self, nodes: Sequence[Node], upper: float, work_budget: WorkBudget) -> None:
        """Begin to expand the nodes."""
        parts = [(tuple(nodes), work_budget)]
        if self._shard is not None:
            parts = shards(nodes, work_budget, self._shard, self._expander.expected_work(nodes, work_budget))
        if self._pool is not None and len(parts) > 1:
            self._waiting.append(partial(_gathered, [self._given(*part, upper) for part in parts], upper))
            return
        expand = partial(self._expanded, parts, upper)
        worker = self._worker if working_threads(2) > 1 else None
        self._waiting.append(expand if worker is None else worker.submit(expand).result)

    def _expanded(self, parts: Sequence[tuple[tuple[Node, ...], WorkBudget]], upper: float) -> Round:
        done = [self._expander.expand(nodes, upper, work_budget) for nodes, work_budget in parts]
        return done[0] if len(done) == 1 else merged(done, upper)

    def _given(self, nodes: tuple[Node, ...], work_budget: WorkBudget, upper: float) -> Callable[[], Round]:
        """Give out a part, unless it holds a count, which is divided once more."""
        assert self._pool is not None
        if self._expander.counts(nodes):
            return partial(self._expander.expand, nodes, upper, work_budget)
        ticket = self._pool.executor.submit(shard_bytes(nodes, upper, work_budget))
        return partial(_answer, self._pool, nodes, ticket)

    def outcome(self) -> Round:
        """Wait for the first round of those that have been begun.

        Raises
        ------
        exactsel.search.expand.Interrupted
            After a stop; it then leaves no trace.
        exactsel.search.pool.WorkerFailureError
            When no worker could carry out a part of it; it then leaves no trace either.
        """
        assert self._waiting, "a round must be begun first"
        return self._waiting.popleft()()

    def forget(self) -> None:
        """Drop the outcomes of all rounds that have been begun, though their workers may continue for a while."""
        self._waiting.clear()

    def __enter__(self) -> Rounds:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._worker is not None:
            self._worker.shutdown()
