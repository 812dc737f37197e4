"""A search on a Dask cluster of this machine; it needs Dask, and is left out where that is missing."""

from __future__ import annotations

import gc
import os
import signal
import threading
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

from exactsel import Problem, solve, solve_path
from exactsel.cli.main import main
from exactsel.errors import InputError, WorkerWarning
from exactsel.search.pool import ALLOWED, WorkerFailureError

distributed = pytest.importorskip("distributed")
dask_executor = pytest.importorskip("exactsel.solving.dask_executor")
dask_client = pytest.importorskip("exactsel.solving.dask_client")

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def client():
    """Two workers, each a process, at some port that is free."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, worker_dashboard_address=None
    ) as cluster, distributed.Client(cluster, set_as_default=False) as client:  # fmt: skip
        yield client


@cache
def solved_in_one_process():
    rng = np.random.default_rng(2)
    A = rng.standard_normal((40, 30)) + rng.standard_normal((40, 1))
    y = A[:, :6].sum(axis=1) + 3 * rng.standard_normal(40)
    options = {"heuristics": (), "subtrees": False, "shard": 8, "batch": 32, "signals": ()}
    problem = Problem(A, y, 6, lam=0.5, loss="huber", delta=1.0)
    return problem, options, solve(problem, **options, executor="serial")


@pytest.fixture
def case():
    return solved_in_one_process()


def told_in_bytes(data):
    """What comes of a worker that returns bytes."""
    return distributed.protocol.Serialized(*distributed.protocol.serialize(data))


def same(one, other):
    parts = ("tree_hash", "nodes", "lower", "upper", "support", "termination")
    return all(getattr(one, name) == getattr(other, name) for name in parts)


def test_the_tree_is_that_of_one_process(client, case):
    problem, options, serial = case
    assert same(solve(problem, **options, executor=client), serial)
    assert client.status == "running", "a client of the user's is left as it is"


def test_by_the_address_of_a_scheduler(client, case):
    problem, options, serial = case
    address = client.scheduler.address
    assert same(solve(problem, **options, executor="dask", scheduler=address), serial)
    with pytest.raises(InputError, match=r"no Dask scheduler answers at nonsense"):
        solve(problem, **options, executor="dask", scheduler="nonsense")


def test_a_path_stays_connected_to_a_scheduler(client, case):
    problem, options, serial = case
    path = solve_path(problem, ks=[4, 6], **options, executor="dask", scheduler=client.scheduler.address)
    expected = solve_path(problem, ks=[4, 6], **options, executor="serial")
    assert all(map(same, path.results, expected.results))
    assert path.results[1].upper == serial.upper
    with pytest.raises(InputError, match=r"no Dask scheduler answers at nonsense"):
        solve_path(problem, ks=[4, 6], **options, executor="dask", scheduler="nonsense")


def test_workers_that_do_not_have_the_problem(client, case):
    """As one that is given a shard while it starts: it says so, and is sent the problem."""
    problem, options, serial = case
    told = []

    def forget(dask_worker):
        from exactsel.solving import dask_executor

        dask_worker.exactsel_jobs.clear()
        dask_executor._workshops.clear()

    def watch(event, state):
        told.append(event)
        if len(told) in (2, 4):
            client.run(forget)

    assert same(solve(problem, **options, executor=client, on_bound=watch), serial)
    assert len(told) > 4


def test_workers_that_are_killed(client, case, monkeypatch):
    problem, options, serial = case
    monkeypatch.setattr("exactsel.solving.dask_executor.ALLOWED", 100 * ALLOWED)
    killed, lower = [], []

    def watch(event, state):
        lower.append(state.lower)
        if len(lower) == 2:
            pids = [*client.run(os.getpid).values()]
            killed.append(pids[0])
            os.kill(pids[0], signal.SIGKILL)

    assert same(solve(problem, **options, executor=client, on_bound=watch), serial)
    assert killed
    assert lower == sorted(lower)
    assert lower[-1] <= serial.upper


def test_a_scheduler_that_is_lost(case):
    """The search ends, its bound holds, and it goes on here."""
    problem, options, serial = case
    cluster = distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=None, worker_dashboard_address=None
    )
    client = distributed.Client(cluster, set_as_default=False)
    told = []

    def watch(event, state):
        told.append(state.lower)
        if len(told) == 3:
            threading.Thread(target=cluster.close).start()

    try:
        with pytest.warns(WorkerWarning, match="the search ends, as workers failed"):
            result = solve(problem, **options, executor=client, on_bound=watch)
    finally:
        client.close()
        cluster.close()
    assert result.termination.value == "worker_failure"
    assert result.lower <= serial.lower
    assert same(result.resume(signals=()), serial)


def test_on_the_command_line(client, capsys, tmp_path, case):
    problem, _, serial = case
    np.savez(tmp_path / "a.npz", A=problem.A, y=problem.y, k=6, lam=0.5, loss="huber", delta=1.0)
    words = ["--heuristic", "none", "--no-subtrees", "--shard", "8", "--batch", "32", "--json", "--quiet"]
    with pytest.raises(SystemExit, match="0"):
        main(["solve", str(tmp_path / "a.npz"), *words, "--executor", "dask", "--scheduler", client.scheduler.address])
    assert f'"tree_hash": "{serial.tree_hash}"' in capsys.readouterr().out


def test_no_garbage_is_collected_while_a_client_starts(client, monkeypatch):
    """It could hold a client whose end takes the lock that the start holds."""
    kind = dask_client.UnopenedClient
    collects, start = [], kind.start
    monkeypatch.setattr(kind, "start", lambda self, **k: (collects.append(gc.isenabled()), start(self, **k))[1])
    dask_client.connected(client.scheduler.address).leave()
    assert collects == [False]
    assert gc.isenabled()


def test_a_worker_that_says_for_ever_that_it_lacks_the_problem():
    """It is sent it once; then its answer is one that cannot be right, which is refused like any other."""
    given = []

    class Nothing:
        def submit(self, function, key, shard, job, pure):
            given.append(job)
            return SimpleNamespace(
                result=lambda timeout: told_in_bytes(dask_executor.LACKING), cancel=lambda: None, done=lambda: True,
                add_done_callback=lambda told: told(None),
            )  # fmt: skip

    executor = dask_executor.DaskExecutor()
    executor.client = Nothing()
    executor.job = b"job"
    ticket = executor.submit(b"shard")
    with pytest.raises(TimeoutError):
        ticket.result(0.0)
    for _ in range(ALLOWED - 1):
        assert ticket.result(0.0) == b""
        ticket.refuse("no answer")
    assert given == [None] + [b"job"] * ALLOWED
    with pytest.raises(WorkerFailureError, match="no answer"):
        ticket.refuse("no answer")
