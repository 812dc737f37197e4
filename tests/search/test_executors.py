"""Whoever works on the shards of a search, the tree is the same; who dies, hangs or lies loses nothing."""

from __future__ import annotations

import os
import queue
import signal
import threading
import time

import numpy as np
import pytest
from clocks import HANG
from every_search import SEARCHES, every_second
from executors_for_tests import Given, Here, larger, same
from samples import many

from exactsel import Search, Settings, solve
from exactsel.closers.trial import CheaperFirst
from exactsel.errors import InputError, UnsupportedError, WorkerWarning
from exactsel.search.events import LowerBoundRaised
from exactsel.search.packed_bytes import from_bytes, to_bytes
from exactsel.search.pool import ALLOWED, merged, round_bytes, round_from_bytes
from exactsel.solving.executors import executor_for
from exactsel.solving.processes import ProcessExecutor
from exactsel.solving.shard_worker import ShardWorker, job_bytes

SHARDED = {"shard": 1, "batch": 4}


@pytest.mark.parametrize("kind", every_second(1, "the paper's"))
def test_the_tree_is_that_of_one_process(kind, kernels_at_once, monkeypatch):
    monkeypatch.setattr(CheaperFirst, "close", lambda *_: None)  # which leaves workers nothing of problems so small
    make, options = SEARCHES[kind]
    given = 0
    for seed in range(900, 900 + 2 * many(2, 3), many(2, 1)):
        serial = solve(make(seed), **options | SHARDED, executor="serial", signals=())
        here = Here()
        assert same(solve(make(seed), **options | SHARDED, executor=here, signals=()), serial)
        assert here.closed == 1
        given += here.given
    assert given > 0 or kind.startswith("dependent") or kind == "columns", "the case to be tested"


@pytest.mark.parametrize(("kind", "workers"), [("huber, default", 1), ("columns", 2), ("groups of labels", 2)])
def test_processes(kind, workers):
    make, options = SEARCHES[kind]
    serial = solve(make(900), **options | SHARDED, executor="serial", signals=())
    assert same(solve(make(900), **options | SHARDED, executor="processes", workers=workers, signals=()), serial)


def test_processes_that_are_killed_again_and_again():
    problem, options = larger()
    serial = solve(problem, **options, executor="serial", signals=())
    rng, executor, ending = np.random.default_rng(5), ProcessExecutor(2), threading.Event()
    kills = []

    def kill():
        while not ending.wait(float(rng.uniform(0.1, 0.6))):
            for pid in executor.processes[: 1 + len(kills) % 2]:
                if len(kills) < 6:
                    kills.append(pid)
                    os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    lower = []

    def watch(event, state):
        lower.append(state.lower)

    executor_allowed(executor, 100)
    killer.start()
    try:
        result = solve(problem, **options, executor=executor, signals=(), on_bound=watch)
    finally:
        ending.set()
        killer.join()
    assert same(result, serial)
    assert kills
    assert lower == sorted(lower)
    assert lower[-1] <= serial.upper


def executor_allowed(executor, times):
    """An executor that gives a shard out more often than workers are killed here."""
    submit = executor.submit

    def allowing(shard):
        task = submit(shard)
        task.tries = ALLOWED - times
        return task

    executor.submit = allowing


def test_a_worker_that_hangs():
    problem, options = larger()
    serial = solve(problem, **options, executor="serial", signals=())
    executor = ProcessExecutor(2, patience=HANG)
    stopped = []

    def stop(event, state):
        if not stopped and executor.processes:
            stopped.append(executor.processes[0])
            os.kill(stopped[0], signal.SIGSTOP)
            for keeper in executor._keepers:
                keeper._patience = 5.0

    executor_allowed(executor, 100)
    assert same(solve(problem, **options, executor=executor, signals=(), on_bound=stop), serial)
    assert stopped


def test_nobody_can_do_it(kernels_at_once, tmp_path):
    """The shard that fails every time is open still: the bound holds, and the search goes on with another executor."""
    problem, options = larger()
    serial = solve(problem, **options, executor="serial", signals=())
    file = tmp_path / "run.ckpt"
    executor = Here(lambda number, answer: b"" if number > 8 else answer)
    with pytest.warns(WorkerWarning, match="the search ends, as workers failed: "):
        result = solve(problem, **options, executor=executor, signals=(), checkpoint=file)
    assert result.termination.value == "worker_failure"
    assert result.open_nodes > 0
    assert result.lower < serial.lower <= result.upper
    assert same(result.resume(signals=()), serial)
    assert same(solve(problem, resume=file, signals=()), serial)


def test_interrupted_while_workers_are_at_it(kernels_at_once):
    problem, options = larger()
    search = Search(problem, Settings(**options), executor=Slow(), signals=(), compiled=True)
    for event in search:
        if isinstance(event, LowerBoundRaised):
            search._watch._raise_flag("interrupted")
    assert search.result().termination.value == "interrupted"
    assert search.result().lower <= search.result().upper


class Slow(Here):
    """Answers never come, from some time on."""

    def submit(self, shard):
        given = Given(self, shard)
        if self.given > 4:
            given.result = self.never
        return given

    def never(self, timeout):
        raise TimeoutError


# What is said, and what is refused


def test_who_can_be_asked():
    assert executor_for(None) is None
    assert executor_for("serial") is None
    assert executor_for("processes", 3).workers == 3
    here = Here()
    assert executor_for(here) is here
    for asked, more, match in (
        ("procesess", {}, r"there is no executor 'procesess'; did you mean 'processes'; use serial, processes, dask\."),
        (3, {}, "it must be serial, processes, dask, a Dask client or an executor"),
        ("processes", {"scheduler": "tcp://x"}, "only the executor dask has one"),
        ("processes", {"workers": 0}, "there must be at least one"),
    ):
        with pytest.raises(InputError, match=match):
            executor_for(asked, **more)


def test_what_workers_cannot_find():
    from exactsel.bounds.apg import AcceleratedGradientBound

    problem, options = larger()
    with pytest.raises(UnsupportedError, match="workers find plug-ins by name, but bound is an object"):
        solve(problem, **options, bound=AcceleratedGradientBound(), executor=Here())


@pytest.mark.parametrize("kind", SEARCHES)
def test_a_job_makes_the_same_problem(kind):
    make, options = SEARCHES[kind]
    workshop = ShardWorker(job_bytes(make(900), Settings(**options)))
    assert workshop.problem.hash == make(900).hash


def test_a_job_that_is_damaged():
    make, options = SEARCHES["huber, default"]
    job = job_bytes(make(900), Settings(**options))
    for damaged in (job[:-3], b"", job[:40] + bytes([job[40] ^ 1]) + job[41:]):
        with pytest.raises(InputError):
            ShardWorker(damaged)
    packed = from_bytes(job)
    packed.arrays["A"] = packed.arrays["A"] + 1
    with pytest.raises(InputError, match="came out as another one here"):
        ShardWorker(to_bytes(packed))


def test_rounds_are_merged_in_order(kernels_at_once):
    problem, options = larger()
    search = Search(problem, Settings(**options), signals=())
    for _ in search:
        if len(search.state.frontier) > 5:
            break
    nodes = list(search.state.open_nodes())[:6]
    upper = search.state.value
    parts = [search._expander.expand(nodes[i : i + 2], upper) for i in (0, 2, 4)]
    pairs = [nodes[i : i + 2] for i in (0, 2, 4)]
    again = [round_from_bytes(round_bytes(part), pair, search.problem) for part, pair in zip(parts, pairs, strict=True)]
    whole = merged(again, upper)
    assert [outcome.node.id for outcome in whole.outcomes] == [node.id for node in nodes]
    values = [fit.value for fit in whole.models]
    assert values == sorted(values, reverse=True)
    with pytest.raises(InputError, match="outcomes for other nodes"):
        round_from_bytes(round_bytes(parts[0]), nodes[4:], search.problem)


def test_nothing_is_left_behind():
    listed = os.path.isdir("/proc/self/fd")
    before, threads = len(os.listdir("/proc/self/fd")) if listed else 0, threading.active_count()
    problem, options = larger()
    executor = ProcessExecutor(2)
    solve(problem, **options, executor=executor, signals=(), node_limit=60)
    assert executor.processes == []
    deadline = time.monotonic() + HANG
    while threading.active_count() > threads and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() <= threads
    assert isinstance(executor._waiting, queue.SimpleQueue)
    assert not listed or len(os.listdir("/proc/self/fd")) <= before + 2
