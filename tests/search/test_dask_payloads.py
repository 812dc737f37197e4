"""A Dask worker that answers with a pickle that runs code: the supervisor does not open it."""

from __future__ import annotations

import os
from types import SimpleNamespace

import numpy as np
import pytest

from exactsel import Problem, solve
from exactsel.errors import WorkerWarning

distributed = pytest.importorskip("distributed")
dask_executor = pytest.importorskip("exactsel.solving.dask_executor")
dask_client = pytest.importorskip("exactsel.solving.dask_client")

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def client():
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=None, worker_dashboard_address=None
    ) as cluster, distributed.Client(cluster, set_as_default=False) as client:  # fmt: skip
        yield client


def lie(kind, folder):
    """On a worker: from now on every shard is answered with an object that leaves a file when it is unpickled."""
    from exactsel.solving import dask_executor

    def answer(key, shard, job=None):
        import os

        file = f"{os.environ['LIES']!r} + '/' + str(__import__('os').getpid())"
        code = f"[open({file}, 'w').close(), ValueError('opened')][1]"

        class Payload(Exception):
            def __reduce__(self):
                return eval, (code,)

        if os.environ["LIE"] == "exception":
            raise Payload
        return Payload()

    os.environ["LIE"], os.environ["LIES"] = kind, str(folder)
    # Where Dask keeps the function, its code is replaced all the same.
    dask_executor.expanded.__code__ = answer.__code__
    return os.getpid()


def problem():
    rng = np.random.default_rng(2)
    A = rng.standard_normal((40, 30)) + rng.standard_normal((40, 1))
    return Problem(A, A[:, :6].sum(axis=1) + 3 * rng.standard_normal(40), 6, lam=0.5, loss="huber", delta=1.0)


@pytest.mark.parametrize("kind", ["result", "exception"])
def test_what_a_worker_has_pickled_is_not_opened_here(client, tmp_path, kind):
    (worker,) = client.run(lie, kind, tmp_path).values()
    mine = tmp_path / str(os.getpid())
    options = {"heuristics": (), "subtrees": False, "shard": 8, "batch": 32, "signals": ()}
    with pytest.warns(WorkerWarning, match="the search ends, as workers failed"):
        result = solve(problem(), **options, executor=client)
    assert result.termination.value == "worker_failure"
    assert not mine.exists()
    assert kind == "result" or (tmp_path / str(worker)).exists(), "Dask opens it where it was made"
    # An ordinary client, as which the supervisor would have asked, opens it.
    future = client.submit(dask_executor.expanded, "", b"", pure=False)
    with pytest.raises(ValueError, match="opened"):
        raise future.exception() or future.result()
    assert mine.exists()


def test_bytes_are_read_and_nothing_else():
    Serialized, serialize = distributed.protocol.Serialized, distributed.protocol.serialize
    assert dask_client.bytes_of(Serialized(*serialize(b"an answer"))) == b"an answer"
    assert dask_client.bytes_of(Serialized(*serialize(b""))) == b""
    for other in (None, "text", {"a": 1}, np.zeros(3), memoryview(b"abc"), 5):
        assert dask_client.bytes_of(Serialized(*serialize(other))) is None
    assert dask_client.bytes_of(b"opened already") is None
    header, frames = serialize(b"an answer")
    for wrong in ({}, None, {"compression": ["lz4"]}, {"compression": ["no such"]}, {"compression": 3}):
        damaged = wrong if not wrong else {**header, **wrong}
        assert dask_client.bytes_of(Serialized(damaged, frames)) is None
    assert dask_client.bytes_of(Serialized(header, [b"an ", b"answer"])) == b"an answer"


def test_events_of_workers_are_not_heeded(client):
    """Dask's client unpickles what workers have it warn of."""
    executor = dask_executor.DaskExecutor(client=client)
    with executor.held():
        for topic in ("warn", "print"):
            client.log_event(topic, {"message": b"no pickle", "category": b"no pickle", "args": ("a",)})
        assert executor.client.submit(bytes, 3, pure=False).result(60) is not None
        assert executor.client.rpc.deserialize is False
        assert executor.client is not client
    assert executor.client is None
    assert client.status == "running"


def test_a_cluster_made_for_the_search():
    """Its workers hand their answers over themselves, unopened as well."""
    options = {"heuristics": (), "subtrees": False, "shard": 8, "batch": 32, "signals": ()}
    serial = solve(problem(), **options, executor="serial")
    found = solve(problem(), **options, executor="dask", workers=1)
    assert (found.tree_hash, found.termination) == (serial.tree_hash, serial.termination)


class Leaving:
    """Leaves a file when it is unpickled."""

    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return open, (str(self.file), "w")


def test_types_and_exceptions_of_tasks_are_not_opened(tmp_path):
    """A worker names the type of what it has as a pickle as well."""
    said = []
    state = SimpleNamespace(
        type=None, finish=lambda *told: said.append(told), set_error=lambda *told: said.append(told)
    )
    client = dask_client.UnopenedClient.__new__(dask_client.UnopenedClient)
    client.futures = {"a": state}
    payload = distributed.protocol.pickle.dumps(Leaving(tmp_path / "left"))
    client._handle_key_in_memory("a", type=payload)
    client._handle_task_erred("a", exception=payload, traceback=payload)
    assert said[0][0] is None
    assert isinstance(said[1][0], RuntimeError)
    assert not (tmp_path / "left").exists()
    distributed.Client._handle_key_in_memory(client, "a", type=payload)
    assert (tmp_path / "left").exists(), "Dask's own client opens it"
