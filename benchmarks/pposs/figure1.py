"""Figure 1 of the paper, speed-up and quality over the number of cores, and evaluations a second over threads."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.differences import p_text, unpaired
from benchmarks.paper.tables import Row, Spread
from benchmarks.pposs.cases import Case
from exactsel._jit import available_threads
from exactsel.data.generate import generate
from exactsel.problem.column_subset import ColumnSubsetProblem
from exactsel.problem.regression import Problem
from exactsel_heuristics._pareto_search import Outcome, Task, run_synchronously, run_without_waiting
from exactsel_heuristics._pareto_tasks import column_subset_task, regression_task
from exactsel_heuristics.base import Context, Heuristic
from exactsel_heuristics.forward import ForwardSelection
from exactsel_heuristics.poss import ParetoOptimization
from exactsel_heuristics.pposs import AsynchronousParetoOptimization, ParallelParetoOptimization

POSS = "POSS"

VIRTUAL = 8
"""Processors of PPOSS where only threads vary: a number that two and four threads share evenly."""


def seconds_of(run: Callable[[], object]) -> float:
    """How long a call takes."""
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


@dataclass(frozen=True)
class Cores:
    """As many processors as threads, from one to as many as there are cores; the iterations of the theorem.

    Runs with one processor and with more take turns, so that other work on the machine meets them alike.
    """

    cases: Sequence[Case]
    seeds: int

    @property
    def title(self) -> str:
        """A heading that says what was run."""
        return f"Figure 1: speed-up in time and R² over the number of cores, {self.seeds} runs each"

    def rows(self) -> Iterator[Row]:
        """One row per data set and number of cores N; speed-up is over POSS, as in the paper."""
        for case in self.cases:
            problem, cores = case.problem, range(1, available_threads() + 1)
            seconds: dict[tuple[str, int], list[float]] = {}
            quality: dict[tuple[str, int], list[float]] = {}
            for seed in range(-1, self.seeds):
                for count in cores:
                    for name, method in self._methods(count).items():
                        if name == POSS and count > 1:
                            continue
                        began = time.perf_counter()
                        proposal = method.run(problem, Context(seed=max(seed, 0)))
                        took = time.perf_counter() - began
                        # The first of all compiles.
                        if seed >= 0:
                            seconds.setdefault((name, count), []).append(took)
                            quality.setdefault((name, count), []).append(_r2(problem, proposal.support))
            forward = _r2(problem, ForwardSelection().run(problem, Context()).support)
            for count in cores:
                row: Row = {"data": case.name, "N": count}
                for name in self._methods(count):
                    key = (name, 1 if name == POSS else count)
                    row[f"{name}, ms"] = 1e3 * min(seconds[key])
                    spread = Spread.of(quality[key])
                    row[f"{name}, R²"] = f"{spread.mean:.4f} ± {spread.sd:.4f}"
                    if name != POSS:
                        row[f"{name}, speed-up over POSS"] = min(seconds[POSS, 1]) / min(seconds[key])
                        row[f"{name}, R² against POSS, Mann-Whitney p"] = p_text(
                            unpaired(quality[key], quality[POSS, 1])
                        )
                row["forward selection, R²"] = f"{forward:.4f}"
                yield row

    @staticmethod
    def _methods(count: int) -> dict[str, Heuristic]:
        return {
            POSS: ParetoOptimization(),
            "PPOSS": ParallelParetoOptimization(count, threads=count),
            "batch 1": ParallelParetoOptimization(count, threads=count, batch=1),
            "PPOSS-asy": AsynchronousParetoOptimization(threads=count),
        }


def _r2(problem: Problem, support: tuple[int, ...]) -> float:
    return float(1.0 - 2.0 * problem.fit(support).value / (problem.y @ problem.y))


@dataclass(frozen=True)
class Throughput:
    """Evaluations a second, for short evaluations and long ones; the best of some runs that take turns."""

    quick: bool
    repeats: int

    @property
    def title(self) -> str:
        """A heading that says what was run."""
        return f"Evaluations a second over threads, {VIRTUAL} virtual processors, best of {self.repeats}"

    def rows(self) -> Iterator[Row]:
        """One row per problem and method."""
        for name, task, count in self._tasks():
            for method in ("PPOSS", "PPOSS, batch 1", "PPOSS-asy"):
                threads = [t for t in (1, 2, 4, 8, 16) if t <= available_threads()]
                times: dict[int, list[float]] = {t: [] for t in threads}
                for number in range(-1, self.repeats):
                    for t in threads:
                        run = _run_of(task, method, t, count if number >= 0 else VIRTUAL)
                        took = seconds_of(run)
                        if number >= 0:
                            times[t].append(took)
                row: Row = {"problem": name, "method": method, "a second, 1 thread": count / min(times[1])}
                row |= {f"{t} threads": min(times[1]) / min(times[t]) for t in threads[1:]}
                yield row

    def _tasks(self) -> Iterator[tuple[str, Task, int]]:
        rng = np.random.default_rng(0)
        for n, d, k in [(50, 12, 2)] if self.quick else [(200, 64, 8), (600, 500, 10)]:
            problem = Problem(
                rng.standard_normal((n, d)) + rng.standard_normal((n, 1)), rng.standard_normal(n), k, lam=0.0
            )
            yield f"quadratic, {n} x {d}, k = {k}", regression_task(problem), 2000 if self.quick else 400_000
        for n, d, k in [(50, 12, 2)] if self.quick else [(2000, 60, 6), (20_000, 60, 6)]:
            problem = generate("logistic", n=n, d=d, k=k, seed=0, lam=0.1).problem()
            yield f"logistic, {n} x {d}, k = {k}", regression_task(problem), 80 if self.quick else 8_000_000 // n
        n, d, k = (50, 12, 2) if self.quick else (200, 64, 10)
        selection = ColumnSubsetProblem(rng.standard_normal((n, d)), k)
        yield f"columns, {n} x {d}, k = {k}", column_subset_task(selection), 2000 if self.quick else 400_000


def _run_of(task: Task, method: str, threads: int, count: int) -> Callable[[], Outcome]:
    if method == "PPOSS-asy":
        return lambda: run_without_waiting(task, Context(), iterations=count, threads=threads)
    return lambda: run_synchronously(
        task, Context(), iterations=count // VIRTUAL, processors=VIRTUAL, threads=threads,
        batch=1 if method.endswith("batch 1") else None,
    )  # fmt: skip
