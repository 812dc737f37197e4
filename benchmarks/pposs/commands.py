"""The command line: all tables into one file."""

from __future__ import annotations

from pathlib import Path

import click

from benchmarks.paper.tables import markdown
from benchmarks.pposs.cases import logistic, logistic_to_the_end, of_the_paper, quadratic
from benchmarks.pposs.experiments import Evaluation, Iterations, Threads
from benchmarks.pposs.figure1 import Cores, Throughput
from benchmarks.pposs.quality import Quality
from exactsel.files import write_bytes

MANY = (*range(1, 11), 16, 30, 60, 120, 300, 900, 3600)
"""Processors of the table about Theorem 1; d = 60 and d^2 = 3600 among them."""

RESULTS = Path(__file__).resolve().parents[1] / "results"


@click.command()
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), default=RESULTS / "pposs.md", show_default=True)
@click.option("--quick", is_flag=True, help="Tiny problems: seconds, once the kernels are compiled.")
@click.option("--seeds", type=click.IntRange(1), help="Runs per cell.")
def main(out: Path, quick: bool, seeds: int | None) -> None:
    """Parallel Pareto optimisation: speed-up in time, in iterations, and what one evaluation costs."""
    cases = [quadratic(quick), logistic(quick)]
    plans = [
        Throughput(quick, repeats=2 if quick else 5),
        Cores(of_the_paper(quick), seeds=seeds or (2 if quick else 10)),
        Quality(of_the_paper(quick), seeds=seeds or (2 if quick else 50)),
        Evaluation([cases[0], logistic_to_the_end(quick)]),
        Threads(cases, processors=10, seeds=seeds or (2 if quick else 5)),
        Iterations(cases[0], processors=(1, 2, 4) if quick else MANY, seeds=seeds or (3 if quick else 50)),
    ]
    out.parent.mkdir(parents=True, exist_ok=True)
    tables: list[str] = []
    for plan in plans:
        tables.append(markdown(plan.title, list(plan.rows())))
        click.echo(tables[-1])
        # Anew after every table, so that nothing is lost.
        write_bytes(out, "\n".join(tables).encode())
