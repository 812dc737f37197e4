"""``python -m benchmarks.executors``."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click
import numpy as np

from benchmarks.executors.cases import CASES, LARGE, OPTIONS, SMALL
from benchmarks.executors.simulation import measured, simulated
from exactsel import solve
from exactsel.search.pool import ALLOWED, SHARD, SHARDS
from exactsel.solving.executors import executor_for
from exactsel.solving.processes import ProcessExecutor

WORKERS = (1, 2, 4, 8, 16, 64, 256, 1_000, 10_000)


@click.group()
def cli() -> None:
    """What executors cost, gain and survive."""


@cli.command()
@click.option("--workers", type=int, multiple=True, default=(1, 2), show_default=True)
@click.option("--executor", default="processes", show_default=True)
@click.option("--only", default="", help="Losses whose name holds this.")
@click.option("--repeats", type=int, default=1, show_default=True)
@click.option("--batch", type=int, default=SHARD * SHARDS, show_default=True, help="Nodes of a round.")
@click.option("--shard", type=int, default=SHARD, show_default=True, help="Nodes of a shard.")
@click.option("--cases", type=click.Choice(list(CASES)), default="large", show_default=True)
def speed(workers: tuple[int, ...], executor: str, only: str, repeats: int, batch: int, shard: int, cases: str) -> None:
    """Seconds with so many workers; the trees must be the same."""
    for loss, make in CASES[cases].items():
        if only not in loss:
            continue
        problem, hashes, taken = make(), set(), {}
        for count in [*workers] * repeats:
            with _warm(executor, problem, count) as made:
                began = time.perf_counter()
                result = solve(problem, executor=made, batch=batch, shard=shard, **OPTIONS)
                taken.setdefault(count, []).append(time.perf_counter() - began)
            hashes.add(result.tree_hash)
        assert len(hashes) == 1, "another tree"
        times = "   ".join(f"{count}: {min(seconds):.1f} s" for count, seconds in taken.items())
        print(f"{loss}   {result.nodes} nodes, the same tree   {times}", flush=True)


@contextmanager
def _warm(executor: str, problem: Any, count: int) -> Iterator[Any]:
    """An executor; where that is a cluster, its workers have everything compiled."""
    if executor == "processes":
        yield ProcessExecutor(count)
        return
    cluster: Any = executor_for("dask", count)
    with cluster.held():
        solve(problem, executor=cluster, node_limit=3000, **OPTIONS)
        yield cluster


@cli.command()
@click.option("--only", default="", help="Losses whose name holds this.")
@click.option("--seconds", type=float, default=20.0, show_default=True, help="Of each search, at most.")
@click.option("--batch", type=int, default=SHARD * SHARDS, show_default=True, help="Nodes of a round.")
@click.option("--shard", type=int, default=SHARD, show_default=True, help="Nodes of a shard.")
@click.option("--cases", type=click.Choice(list(CASES)), default="long", show_default=True)
def cost(only: str, seconds: float, batch: int, shard: int, cases: str) -> None:
    """CPU seconds of the supervisor and of one Dask worker; they do not depend on what else a machine is doing.

    Where two workers share two cores with the supervisor they take at least half of all there is to do, and one worker
    takes what it has to do itself, if the supervisor is done meanwhile.
    """
    for loss, make in CASES[cases].items():
        if only not in loss:
            continue
        problem = make()
        with _warm("dask", problem, 1) as cluster:
            before, own = sum(cluster.client.run(time.process_time).values()), time.process_time()
            result = solve(problem, executor=cluster, batch=batch, shard=shard, time_limit=seconds, **OPTIONS)
            own = time.process_time() - own
            worker = sum(cluster.client.run(time.process_time).values()) - before
        print(
            f"{loss}: {result.termination.value}, {result.nodes} nodes   supervisor {own:.1f} s, worker {worker:.1f} s "
            f"({own / worker:.3f})   at most {2 * worker / (worker + own):.2f} times one with two",
            flush=True,
        )


@cli.command()
@click.option("--kills", type=int, default=200, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--quick", is_flag=True, help="Ten kills.")
def kills(kills: int, seed: int, quick: bool) -> None:
    """Kill workers with signal 9 at random moments: the tree must be the same, and the bound hold at every moment."""
    rng, done, wrong, searches = np.random.default_rng(seed), 0, 0, 0
    known = {loss: solve(make(), executor="serial", **OPTIONS) for loss, make in SMALL.items()}
    while done < (10 if quick else kills):
        for loss, make in SMALL.items():
            executor, ending, killed, lower = _Patient(2), threading.Event(), [0], []
            killer = threading.Thread(target=_kill, args=(executor, ending, killed, rng))
            killer.start()
            result = solve(make(), executor=executor, on_bound=_noting(lower), **OPTIONS)
            ending.set()
            killer.join()
            done, searches = done + killed[0], searches + 1
            sound = result.tree_hash == known[loss].tree_hash and lower == sorted(lower)
            wrong += not (sound and lower[-1] <= known[loss].upper)
        print(f"{done} kills in {searches} searches, {wrong} wrong", flush=True)
    raise SystemExit(1 if wrong else 0)


def _noting(lower: list[float]) -> Any:
    return lambda event, state: lower.append(state.lower)


class _Patient(ProcessExecutor):
    """Gives a shard out as often as need be, since whoever kills workers here does so often."""

    def submit(self, shard: bytes) -> Any:
        task = super().submit(shard)
        task.tries = ALLOWED - 1000
        return task


def _kill(executor: ProcessExecutor, ending: threading.Event, killed: list[int], rng: np.random.Generator) -> None:
    while not ending.wait(float(rng.uniform(0.2, 1.5))):
        for pid in executor.processes[: int(rng.integers(1, 3))]:
            killed[0] += 1
            os.kill(pid, signal.SIGKILL)


@cli.command()
@click.option("--overhead", type=float, default=0.003, show_default=True, help="Seconds of a shard's way.")
@click.option("--shards", type=int, multiple=True, default=(SHARDS, 64), show_default=True)
@click.option("--seconds", type=float, default=40.0, show_default=True, help="Of each search, at most.")
@click.option("--quick", is_flag=True, help="Small problems.")
def model(overhead: float, shards: tuple[int, ...], seconds: float, quick: bool) -> None:
    """Predicted speed-up with up to 10,000 workers, from one search in one process, simulated shard by shard."""
    for loss, make in (SMALL if quick else LARGE).items():
        for count in shards:
            search = measured(make(), shard=SHARD, batch=SHARD * count, time_limit=seconds, **OPTIONS)
            one = simulated(search, 1, 0.0)
            gains = "  ".join(f"{w}: {one / simulated(search, w, overhead):.1f}" for w in WORKERS)
            given = sum(len(one.shards) for one in search.rounds)
            print(
                f"{loss}, {count} shards a round: {search.total:.0f} s, {100 * search.shards / search.total:.0f} % in "
                f"{given} shards of {1000 * search.shards / max(1, given):.0f} ms   {gains}",
                flush=True,
            )


if __name__ == "__main__":
    cli()
