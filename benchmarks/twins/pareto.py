"""PPOSS beside POSS: processor time for each offspring on one thread, and time on two and more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.paper.tables import Row
from benchmarks.twins.in_loop import in_parallel_loop
from benchmarks.twins.loops import cpu_and_seconds
from exactsel.data.generate import generate
from exactsel.problem.column_subset import ColumnSubsetProblem
from exactsel.problem.regression import Problem
from exactsel_heuristics._pareto_search import Task, run_synchronously, run_without_waiting
from exactsel_heuristics._pareto_tasks import column_subset_task, regression_task
from exactsel_heuristics.base import Context

PROCESSORS = 8
BATCH = 200
"""Of the comparison of a barrier with a parallel loop."""


def tasks(quick: bool) -> Iterator[tuple[str, Task, int]]:
    """Name, task and number of offspring."""
    rng, many = np.random.default_rng(0), 1 if quick else 100
    n, d, k = (50, 12, 2) if quick else (200, 64, 8)
    A = rng.standard_normal((n, d)) + rng.standard_normal((n, 1))
    yield f"quadratic, {n} x {d}, k = {k}", regression_task(Problem(A, rng.standard_normal(n), k, lam=0.0)), 4000 * many
    if quick:
        return
    yield f"columns, {n} x {d}, k = {k}", column_subset_task(ColumnSubsetProblem(A, k)), 2000 * many
    for loss in ("logistic", "huber"):
        problem = generate(loss, n=2000, d=60, k=6, seed=0, lam=0.1).problem()
        yield f"{loss}, 2000 x 60, k = 6", regression_task(problem), 60 * many


def rows(quick: bool, repeats: int, threads: int) -> Iterator[Row]:
    """One row per task and method: microseconds of processor time, and both ratios to POSS on one thread."""
    for name, task, count in tasks(quick):
        share = partial(run_synchronously, task, iterations=count // PROCESSORS, processors=PROCESSORS)
        kinds: dict[tuple[str, int], Callable[[Context], Any]] = {}
        kinds["POSS", 1] = partial(run_synchronously, task, iterations=count)
        for team in sorted({1, threads, *(count for count in (2, 4, 8) if count < threads)}):
            kinds["PPOSS", team] = partial(share, threads=team, batch=None)
            kinds["PPOSS, batch 1", team] = partial(share, threads=team, batch=1)
            kinds["PPOSS-asy", team] = partial(run_without_waiting, task, iterations=count, threads=team)
            if name.startswith("quadratic"):
                kinds[f"batch {BATCH}, barrier", team] = partial(share, threads=team, batch=BATCH)
                kinds[f"batch {BATCH}, parallel loop", team] = partial(_in_loop, task, count // PROCESSORS, team)
        times: dict[tuple[str, int], list[tuple[float, float]]] = {kind: [] for kind in kinds}
        for repeat in range(repeats + 1):
            for kind, run in kinds.items():
                measured = cpu_and_seconds(lambda run=run: run(Context(seed=1)))  # type: ignore[misc]
                if repeat:
                    times[kind].append(measured)
        best = {kind: tuple(min(each) for each in zip(*pairs, strict=True)) for kind, pairs in times.items()}
        cpu, clock = best["POSS", 1]
        for (method, team), (used, took) in best.items():
            yield {
                "problem": name, "method": method, "threads": team, "µs of CPU an offspring": 1e6 * used / count,
                "CPU / POSS": used / cpu, "speed-up over POSS": clock / took,
            }  # fmt: skip


def _in_loop(task: Task, iterations: int, threads: int, context: Context) -> Any:
    return in_parallel_loop(task, context.seed, iterations, PROCESSORS, BATCH, threads)
