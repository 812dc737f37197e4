"""The command line: two tables into one file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import click

from benchmarks.paper.tables import Row, markdown
from benchmarks.twins.loops import Call, compare, parallel_kernels, recorded
from benchmarks.twins.pareto import rows as pareto_rows
from exactsel import solve
from exactsel._jit import available_threads
from exactsel.data.generate import generate
from exactsel.files import write_bytes
from exactsel_heuristics.base import Context
from exactsel_heuristics.greedy_rls import GreedyRegularizedLeastSquares

RESULTS = Path(__file__).resolve().parents[1] / "results"


def workload(quick: bool) -> None:
    """Searches that call as many parallel kernels as these do."""
    n, d, k = (30, 10, 2) if quick else (400, 40, 6)
    for loss in ("quadratic",) if quick else ("quadratic", "logistic", "huber"):
        problem = generate(loss, n=n, d=d, k=k, seed=0, lam=0.1).problem()
        supports = [[j, (j + 1) % d] for j in range(d)] * (1 if quick else 500)
        problem.objectives(supports, threads=1)
        problem.objectives(supports, threads=1)
        if quick:
            return
        for _ in range(2):
            GreedyRegularizedLeastSquares().run(problem, Context())
            for bound in ("apg", "pdal", "supergradient"):
                solve(problem, bound=bound, threads=1, node_limit=300)
            solve(problem, threads=1, node_limit=300)


def loop_rows(quick: bool, repeats: int, threads: int) -> Iterator[Row]:
    """One row per parallel kernel that the workload calls, and those it does not call."""
    longest: dict[str, Call] = {}
    with recorded(longest):
        workload(quick)
    for name in sorted(parallel_kernels()):
        row: Row = {"loop": name}
        if name in longest:
            figures = compare(longest[name], repeats, threads)
            row["serial, ms of CPU"] = 1e3 * figures["serial"]
            row["one thread / serial"] = figures["one"] / max(figures["serial"], 1e-9)
            row[f"speed-up on {threads}"] = figures["clock_one"] / figures["clock_all"]
        else:
            row |= {"serial, ms of CPU": "not called", "one thread / serial": "", f"speed-up on {threads}": ""}
        yield row


@click.command()
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), default=RESULTS / "twins.md", show_default=True)
@click.option("--quick", is_flag=True, help="Run tiny problems: seconds, once the kernels are compiled.")
@click.option("--repeats", type=click.IntRange(1), help="Runs of each, of which the best counts.")
def main(out: Path, quick: bool, repeats: int | None) -> None:
    """Compare every parallel loop with its serial form."""
    threads, runs = available_threads(), repeats or (1 if quick else 7)
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    tables = []
    for title, rows in (
        (f"PPOSS beside POSS, best of {runs}, {load}", pareto_rows(quick, runs, threads)),
        (f"Parallel loops beside their serial forms, best of {runs}, {load}", loop_rows(quick, runs, threads)),
    ):
        tables.append(markdown(title, list(rows)))
        click.echo(tables[-1])
    out.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(out, "\n".join(tables).encode())
