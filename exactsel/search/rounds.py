"""Carry out a round in the background while the one before is committed.

Kernels release the interpreter lock, so with two or more threads the Python of one round runs beside the kernels of the
next. With one thread a round is carried out when its outcome is asked for: the same calls with the same arguments in
the same order, hence the same tree. Where rounds are divided into shards, a pool may work on these (pool.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import TracebackType

from exactsel import interrupts
from exactsel._jit import working_threads
from exactsel.errors import InputError
from exactsel.search.expand import Expander
from exactsel.search.node import Node
from exactsel.search.pool import Pool, Ticket, first_sound, merged, round_from_bytes, shard_bytes, shards
from exactsel.search.regions import Round
from exactsel.walks.effort import Effort


class Rounds:
    """A context in which rounds are carried out, one at a time; leaving it waits for the one that is going on.

    Parameters
    ----------
    expander : Expander
    shard : int, optional
        Nodes of a shard; None: rounds are not divided.
    pool : Pool, optional
        Who works on shards, where a round has more than one.
    """

    def __init__(self, expander: Expander, shard: int | None = None, pool: Pool | None = None) -> None:
        self._expander, self._shard, self._pool = expander, shard, pool
        self._wait: Callable[[], Round] | None = None
        self._worker: ThreadPoolExecutor | None = None
        if expander.threads > 1:
            self._worker = ThreadPoolExecutor(1, "exactsel-round", interrupts.adopt, (interrupts.watches(),))

    @property
    def begun(self) -> bool:
        """Whether there is a round whose outcome has not been asked for."""
        return self._wait is not None

    def begin(self, nodes: Sequence[Node], upper: float, effort: Effort) -> None:
        """Begin to expand the nodes."""
        parts = [(tuple(nodes), effort)] if self._shard is None else shards(nodes, effort, self._shard)
        if self._pool is not None and len(parts) > 1:
            self._wait = partial(self._gathered, [self._given(*part, upper) for part in parts], upper)
            return
        expand = partial(self._expanded, parts, upper)
        worker = self._worker if working_threads(2) > 1 else None
        self._wait = expand if worker is None else worker.submit(expand).result

    def _expanded(self, parts: Sequence[tuple[tuple[Node, ...], Effort]], upper: float) -> Round:
        done = [self._expander.expand(nodes, upper, effort) for nodes, effort in parts]
        return done[0] if len(done) == 1 else merged(done, upper)

    def _given(self, nodes: tuple[Node, ...], effort: Effort, upper: float) -> Callable[[], Round]:
        """Give out a part, unless it holds a count, which is divided once more; how to wait for what comes of it."""
        pool = self._pool
        assert pool is not None
        if self._expander.counts(nodes):
            return partial(self._expander.expand, nodes, upper, effort)
        return partial(self._checked, nodes, pool.executor.submit(shard_bytes(nodes, upper, effort)))

    @staticmethod
    def _gathered(given: Sequence[Callable[[], Round]], upper: float) -> Round:
        return merged([wait() for wait in given], upper)

    def _checked(self, nodes: Sequence[Node], ticket: Ticket) -> Round:
        """The first answer to a shard that can be right."""
        pool = self._pool
        assert pool is not None

        def look(data: bytes) -> Round:
            done = round_from_bytes(data, nodes, pool.problem)
            wrong = pool.check(nodes, done)
            if wrong:
                raise InputError(wrong)
            return done

        return first_sound(pool, ticket, look)

    def outcome(self) -> Round:
        """Wait for the round that has been begun.

        Raises
        ------
        exactsel.search.expand.Interrupted
            When it was told to stop; it then leaves no trace.
        exactsel.search.pool.WorkerFailureError
            When no worker could carry out a part of it; it then leaves no trace either.
        """
        assert self._wait is not None, "a round must be begun first"
        wait, self._wait = self._wait, None
        return wait()

    def __enter__(self) -> Rounds:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._worker is not None:
            self._worker.shutdown()
