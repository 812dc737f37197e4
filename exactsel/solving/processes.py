"""Executor of shards in processes of this machine.

A process that dies, hangs or lies is replaced, its shard dispatched again.
"""

from __future__ import annotations

import contextlib
import os
import queue
import selectors
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import IO

from exactsel._jit import available_threads
from exactsel.errors import InputError
from exactsel.search.pool import ALLOWED, WorkerFailureError
from exactsel.solving.worker import DONE, SIZE, send

PATIENCE = 600.0
"""Seconds a worker may take for a shard, compiling included."""

COMMAND = [sys.executable, "-m", "exactsel.solving.worker"]
"""What starts a worker."""

LOOK = 0.2
"""Seconds between two looks of a worker's keeper at whether it is to end."""


@dataclass(eq=False)
class _Task:
    """A dispatched shard."""

    shard: bytes
    waiting: queue.SimpleQueue[_Task | None]
    tries: int = 0
    answer: bytes | None = None
    trouble: str = ""
    ready: threading.Event = field(default_factory=threading.Event)

    def result(self, timeout: float) -> bytes:
        if not self.ready.wait(timeout):
            raise TimeoutError
        if self.answer is None:
            raise WorkerFailureError(self.trouble)
        return self.answer

    def refuse(self, why: str) -> None:
        self.ready.clear()
        self.failed(why)

    def failed(self, why: str) -> None:
        """Once more, or not any more."""
        self.tries, self.trouble, self.answer = self.tries + 1, why, None
        if self.tries < ALLOWED:
            self.waiting.put(self)
        else:
            self.ready.set()

    def done(self, answer: bytes) -> None:
        self.answer = answer
        self.ready.set()


class ProcessExecutor:
    """Processes of this machine.

    Parameters
    ----------
    workers : int, optional
        How many; one for each core by default.
    patience : float
        Seconds a worker may take for a shard before it is replaced.
    """

    name = "processes"

    def __init__(self, workers: int | None = None, patience: float = PATIENCE) -> None:
        self.workers = available_threads() if workers is None else workers
        if self.workers < 1:
            raise InputError(f"workers is {workers}, but there must be at least one.")
        self._patience = patience
        self._waiting: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._ending = threading.Event()
        self._keepers: list[_Keeper] = []

    @property
    def processes(self) -> list[int]:
        """The numbers of the processes that are at work."""
        return [keeper.pid for keeper in self._keepers if keeper.pid is not None]

    def begin(self, job: bytes) -> None:
        """Start the workers; each is sent the problem once."""
        self._ending.clear()
        self._keepers = [_Keeper(job, self._waiting, self._ending, self._patience) for _ in range(self.workers)]
        for keeper in self._keepers:
            keeper.start()

    def submit(self, shard: bytes) -> _Task:
        """Give out a shard."""
        task = _Task(shard, self._waiting)
        self._waiting.put(task)
        return task

    def close(self) -> None:
        """End all workers, also those at work."""
        self._ending.set()
        for keeper in self._keepers:
            keeper.kill()
        for _ in self._keepers:
            self._waiting.put(None)
        for keeper in self._keepers:
            keeper.join()
        self._keepers, self._waiting = [], queue.SimpleQueue()


class _Keeper(threading.Thread):
    """Keeps one worker busy, and replaces it where need be."""

    def __init__(
        self, job: bytes, waiting: queue.SimpleQueue[_Task | None], ending: threading.Event, patience: float
    ) -> None:
        super().__init__(name="exactsel-keeper", daemon=True)
        self._job, self._waiting, self._ending, self._patience = job, waiting, ending, patience
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The number of the process."""
        process = self._process
        return None if process is None else process.pid

    def run(self) -> None:
        """Until the end is near."""
        while not self._ending.is_set() and (task := self._waiting.get()) is not None:
            try:
                answer = self._answer(task.shard)
            except Exception as error:  # after any exception the shard is dispatched again, and this thread lives
                answer, reason = None, f"a worker ended ({error})"
            else:
                reason = "a worker ended, or took too long"
            if answer is not None and answer[:1] == DONE:
                task.done(answer[1:])
                continue
            self._replace()
            task.failed(reason if answer is None else answer[1:].decode(errors="replace"))
        self._replace()

    def _answer(self, shard: bytes) -> bytes | None:
        if self._process is None:
            environment = {**os.environ, "EXACTSEL_JIT": os.environ.get("EXACTSEL_JIT", "1")}
            self._process = subprocess.Popen(COMMAND, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self._introduce(self._process)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        send(self._process.stdin, shard)
        return self._received(self._process.stdout, time.monotonic() + self._patience)

    def _introduce(self, process: subprocess.Popen[bytes]) -> None:
        """Send a new worker the problem; one that does not read it in time is ended, so that no thread waits for it."""
        assert process.stdin is not None
        overdue = threading.Timer(self._patience, process.kill)
        overdue.daemon = True
        overdue.start()
        try:
            send(process.stdin, self._job)
        finally:
            overdue.cancel()

    def _received(self, stream: IO[bytes], deadline: float) -> bytes | None:
        """The next answer; None where the worker died, took too long, or is not wanted any more."""
        data, needed = b"", SIZE
        parts: list[bytes] = []
        with selectors.DefaultSelector() as ready:
            ready.register(stream, selectors.EVENT_READ)
            while needed:
                if self._ending.is_set() or time.monotonic() > deadline:
                    return None
                if not ready.select(LOOK):
                    continue
                part = os.read(stream.fileno(), min(needed, 2**20))
                if not part:
                    return None
                parts.append(part)
                needed -= len(part)
                if not needed and not data:
                    data = b"".join(parts)
                    needed, parts = int.from_bytes(data, "little"), []
        return b"".join(parts)

    def kill(self) -> None:
        """End the process from another thread."""
        process = self._process
        if process is not None:
            process.kill()

    def _replace(self) -> None:
        """End the process and forget it; the next shard gets a new one."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        for stream in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):  # what a dead process did not take
                if stream is not None:
                    stream.close()
        process.wait()
