"""Work on shards on a Dask cluster: the user's client, a scheduler's address, or a cluster made for the search.

Dask carries names of functions and bytes; what the bytes say is packed and unpacked here (search/packing.py), and no
pickle of a worker's is opened (dask_client.py): a user's client lends its address only. The
problem is sent once to each worker, also to one that comes later; one that Dask gives a shard before it has the problem
says so, and is sent both. What Dask does about lost workers it does: a shard is given to another one. One that several
workers died of comes back as an error, and is given up after some more times.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError
from typing import Any

import dask
import distributed
from distributed import Client, Future, LocalCluster, WorkerPlugin
from distributed.protocol.pickle import dumps

from exactsel.errors import InputError, OutputError
from exactsel.search.pool import ALLOWED, WorkerFailureError
from exactsel.solving.dask_client import UnopenedClient, bytes_of, connected
from exactsel.solving.shard_worker import ShardWorker, key_of
from exactsel.solving.worker import DONE, FAILED

PATIENCE = 600.0
"""Seconds a worker may take for a shard, compiling included."""

RECEIVING = 1.0
"""Seconds that an available answer may take to arrive before the stop flag is read."""

LACKING = b"\x02"
"""The answer of a worker that has not got the problem."""

QUIET = {
    "distributed.worker.profile.enabled": False, "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s", "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.worker.memory.monitor-interval": "1s",
}  # fmt: skip
"""For a cluster made here: what Dask would watch of each process takes 3 % of a core in all of them."""

_workshops: dict[str, ShardWorker] = {}
"""Of this worker, by the keys of their jobs."""


class _Job(WorkerPlugin):
    """Brings a job to a worker when it starts."""

    def __init__(self, job: bytes) -> None:
        self.job, self.name = job, f"exactsel-{key_of(job)}"

    def setup(self, worker: Any) -> None:
        """The worker keeps the job's bytes; it is made ready for it by the first shard."""
        jobs = _jobs_of(worker)
        jobs[key_of(self.job)] = self.job
        worker.exactsel_jobs = jobs


def _jobs_of(worker: object) -> dict[str, bytes]:
    jobs: dict[str, bytes] = getattr(worker, "exactsel_jobs", {})
    return jobs


def expanded(key: str, shard: bytes, job: bytes | None = None) -> bytes:
    """The outcome of a shard, on a worker, in bytes; LACKING where it has no such job, and is not given one."""
    try:
        if key not in _workshops:
            job = _jobs_of(distributed.get_worker()).get(key, job)
            if job is None:
                return LACKING
            _workshops.clear()
            _workshops[key] = ShardWorker(job)
        return DONE + _workshops[key].expanded(shard)
    except Exception as error:  # for any exception the supervisor decides
        return FAILED + f"{type(error).__name__}: {error}".encode()


class DaskExecutor:
    """Workers of a Dask cluster.

    Parameters
    ----------
    client : distributed.Client, optional
        A client, which is left as it is: its scheduler gets a second connection.
    workers : int, optional
        Workers of a cluster made on this machine, where there is neither a client nor an address.
    scheduler : str, optional
        Address of a scheduler, like ``tcp://10.0.0.1:8786``.
    patience : float
        Seconds a shard may take before it is given to another worker.
    """

    name = "dask"

    def __init__(
        self, client: Client | None = None, *, workers: int | None = None, scheduler: str | None = None,
        patience: float = PATIENCE,
    ) -> None:  # fmt: skip
        self._lent, self._workers, self._scheduler, self.patience = client, workers, scheduler, patience
        self.client: UnopenedClient | None = None
        self._held = False
        self._own: LocalCluster | None = None
        self.key = ""
        self.job = b""
        self.plugin = ""

    def begin(self, job: bytes) -> None:
        """Connect, and send the problem to every worker."""
        client = self._connected()
        plugin = _Job(job)
        self.key, self.job, self.plugin = key_of(job), job, plugin.name
        # a worker that ends just now; a worker without the problem reports that itself
        with contextlib.suppress(Exception):
            client.add_plugin(dumps(plugin), plugin.name)

    def _connected(self) -> UnopenedClient:
        if self.client is None and self._lent is not None:
            at: Any = self._lent.scheduler
            self.client = connected(at.address, security=self._lent.security)
        if self.client is None and self._scheduler is not None:
            try:
                self.client = connected(self._scheduler, timeout="10s")
            except (OSError, ValueError) as error:
                raise InputError(
                    f"no Dask scheduler answers at {self._scheduler} ({error}); start one there."
                ) from None
        if self.client is None:
            try:
                with dask.config.set(QUIET):
                    self._own = LocalCluster(
                        n_workers=self._workers, threads_per_worker=1, processes=True, dashboard_address=None
                    )
            except (OSError, RuntimeError) as error:
                raise OutputError(
                    f"Dask cannot start workers here ({error}); free space in the folder for temporary files, or let "
                    f"TMPDIR name another one."
                ) from None
            self.client = connected(self._own, direct_to_workers=True)
        return self.client

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Stay connected from one search to the next, until the block ends."""
        self._connected()
        self._held = True
        try:
            yield
        finally:
            self._held = False
            self._leave()

    def submit(self, shard: bytes) -> _ShardFuture:
        """Give out a shard."""
        return _ShardFuture(self, shard)

    def close(self) -> None:
        """Release all waiting threads; a client of the user's stays open."""
        client = self.client
        if client is None:
            return
        with contextlib.suppress(Exception):  # a scheduler that is gone takes nothing back
            client.drop_plugin(self.plugin)
        if not self._held:
            self._leave()

    def _leave(self) -> None:
        client, self.client = self.client, None
        if client is not None:
            with contextlib.suppress(Exception):
                client.leave()
            if self._own is not None:
                with contextlib.suppress(Exception):
                    self._own.close(timeout=2)
                self._own = None


class _ShardFuture:
    """A dispatched shard."""

    def __init__(self, executor: DaskExecutor, shard: bytes) -> None:
        self._executor, self._shard, self._tries, self._waited = executor, shard, 0, 0.0
        self._with_job = False
        self._future = self._submitted()

    def _submitted(self) -> Future[bytes]:
        assert self._executor.client is not None
        job = self._executor.job if self._with_job else None
        try:
            future = self._executor.client.submit(expanded, self._executor.key, self._shard, job, pure=False)
        except Exception as error:
            raise WorkerFailureError(f"the scheduler takes nothing ({error}).") from None
        self._ready = ready = threading.Event()
        future.add_done_callback(lambda _: ready.set())
        return future

    def result(self, timeout: float) -> bytes:
        """The answer, see :class:`exactsel.search.pool.ShardFuture`."""
        try:
            # Asking Dask for a result that is not there yet costs milliseconds each time.
            if not self._ready.wait(timeout) and not self._future.done():
                raise TimeoutError
            answer = bytes_of(self._future.result(max(timeout, RECEIVING)))
        except (TimeoutError, asyncio.TimeoutError):
            self._waited += timeout
            if self._waited > self._executor.patience:
                self.refuse(f"a worker took more than {self._executor.patience:g} s")
            raise TimeoutError from None
        except (CancelledError, asyncio.CancelledError):
            raise WorkerFailureError("the connection to the scheduler was lost.") from None
        except Exception as error:
            self.refuse(f"{type(error).__name__}: {error}")
            raise TimeoutError from None
        if answer == LACKING and not self._with_job:
            self._with_job = True
            self._future = self._submitted()
            raise TimeoutError
        if answer is not None and answer[:1] == FAILED:
            self.refuse(answer[1:].decode(errors="replace"))
            raise TimeoutError
        return answer[1:] if answer is not None and answer[:1] == DONE else b""

    def refuse(self, why: str) -> None:
        """Give it out again, a few times."""
        self._tries, self._waited = self._tries + 1, 0.0
        if self._tries >= ALLOWED:
            raise WorkerFailureError(why)
        with contextlib.suppress(Exception):
            self._future.cancel()
        self._future = self._submitted()


__all__ = ["DaskExecutor", "expanded"]
