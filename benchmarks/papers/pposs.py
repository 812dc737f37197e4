"""Qian and others, PPOSS: theorems 1 and 2 and figure 1."""

from __future__ import annotations

import time
from collections.abc import Iterator

from benchmarks.paper.tables import Row
from benchmarks.papers.exhibit import Exhibit, grouped, line, lines, number
from benchmarks.papers.pictures import Line, Panel
from benchmarks.papers.request import Request
from benchmarks.pposs.cases import Case, of_the_paper, quadratic
from benchmarks.pposs.commands import MANY
from benchmarks.pposs.experiments import Iterations
from benchmarks.pposs.figure1 import Cores
from benchmarks.pposs.quality import Quality
from exactsel_heuristics._pareto_search import run_synchronously
from exactsel_heuristics._pareto_tasks import regression_task
from exactsel_heuristics.base import Context

TITLE = "Qian, Shi, Yu, Tang and Zhou, Parallel Pareto Optimization for Subset Selection"

THEOREM_1 = (
    "the expected iterations to the guarantee of forward selection are 2ek²n/N for N = o(n), O(k²/i) for N of order "
    "n^i, and O(1) for N of order n^min(3k-1, n)."
)
THEOREM_2 = "an iteration of PPOSS with N processors takes at most (N - 1) t_u + c/2 longer than one of POSS."
SPEED_UP = (
    "speed-up around 7 with 10 cores; R² is stable over N and better than the greedy algorithm's on five of six data "
    "sets; PPOSS-asy is faster and slightly worse in R² (10 runs)."
)

METHODS = ("PPOSS", "batch 1", "PPOSS-asy")


def exhibits(request: Request) -> Iterator[Exhibit]:
    """The theorems' figures and figure 1, each as soon as it is measured."""
    if request.wants("theorem-1"):
        yield _theorem_1(request)
    if request.wants("theorem-2"):
        yield _theorem_2(request)
    if request.wants("figure-1"):
        yield _figure_1(request)
    if request.wants("effort"):
        yield _effort(request)


def _theorem_1(request: Request) -> Exhibit:
    case, runs = quadratic(request.quick), 3 if request.quick else 50
    experiment = Iterations(case, (1, 2, 4) if request.quick else MANY, seeds=runs)
    rows = list(experiment.rows())
    first = line(rows, "processors", "to reach forward")
    linear = Line(first.x, [first.y[0] / count for count in first.x])
    drawn = {"PPOSS, batch 1, to forward selection": first, "linear speed-up": linear}
    drawn |= {"PPOSS, batch 1, to the median of POSS": line(rows, "processors", "to reach POSS")}
    evaluations = Line(first.x, [count * needed for count, needed in zip(first.x, first.y, strict=True)])
    panels = [
        Panel("iterations", "processors N", "iterations", drawn, log_x=True, log_y=True),
        Panel("evaluations", "processors N", "evaluations", {next(iter(drawn)): evaluations}, log_x=True, log_y=True),
    ]
    return Exhibit("theorem-1", experiment.title, THEOREM_1, rows, panels)


def _theorem_2(request: Request) -> Exhibit:
    case = quadratic(request.quick)
    processors = (1, 2, 4) if request.quick else (1, 2, 4, 8, 16, 32)
    rows = list(_iteration_times(case, processors, 2 if request.quick else 7))
    columns = {"PPOSS, batch 1": "µs an iteration", "N evaluations of POSS": "µs of N evaluations of POSS"}
    drawn = lines(rows, "N", columns)
    panel = Panel("one thread", "processors N", "µs of processor time", drawn, log_x=True, log_y=True)
    return Exhibit("theorem-2", f"Processor time of an iteration, {case.name}, one thread", THEOREM_2, rows, [panel])


def _iteration_times(case: Case, processors: tuple[int, ...], repeats: int) -> Iterator[Row]:
    """The best of some runs; all N offspring of an iteration on one thread, so that only the overhead is seen."""
    task, alone = regression_task(case.problem), 0.0
    for count in processors:
        times = []
        for _ in range(repeats + 1):
            began = time.process_time()
            outcome = run_synchronously(
                task, Context(), iterations=40_000 // count, processors=count, threads=1, batch=1
            )
            times.append((time.process_time() - began) / (outcome.evaluations / count))
        took = 1e6 * min(times[1:])
        alone = alone or took
        yield {
            "N": count, "µs an iteration": took, "µs of N evaluations of POSS": count * alone,
            "overhead an evaluation": took / (count * alone) - 1.0,
        }  # fmt: skip


def _figure_1(request: Request) -> Exhibit:
    runs = 2 if request.quick else 10
    experiment = Cores(of_the_paper(request.quick), seeds=runs)
    rows = list(experiment.rows())
    panels = []
    for data, own in grouped(rows, "data").items():
        fast = {name: line(own, "N", f"{name}, speed-up over POSS") for name in METHODS}
        good = {name: line(own, "N", f"{name}, R²") for name in METHODS}
        good["forward selection"] = Line([1.0], [number(own[0]["forward selection, R²"])], style="level")
        panels.append(Panel(f"{data}: time", "cores N", "speed-up over POSS", fast))
        panels.append(Panel(f"{data}: quality", "cores N", "R²", good))
    return Exhibit("figure-1", experiment.title, SPEED_UP, rows, panels)


def _effort(request: Request) -> Exhibit:
    runs = 2 if request.quick else 50
    experiment = Quality(of_the_paper(request.quick), seeds=runs)
    rows = list(experiment.rows())
    panels = []
    for data, own in grouped(rows, "data").items():
        ticks = {float(at): f"{row['method']}, N {row['N']}" for at, row in enumerate(own)}
        values = {"evaluations": line([{**row, "at": at} for at, row in enumerate(own)], "at", "evaluations")}
        panels.append(Panel(data, "", "evaluations to forward's R²", values, ticks=ticks, joined=False))
    return Exhibit("effort", experiment.title, THEOREM_1, rows, panels)
