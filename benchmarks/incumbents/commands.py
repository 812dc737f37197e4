"""The command line."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

import click

from benchmarks.incumbents.cases import LOSSES, cases
from benchmarks.incumbents.fifty import fifty as fifty_problems
from benchmarks.incumbents.generators import ALL, variants
from benchmarks.incumbents.generators import run as run_search
from benchmarks.incumbents.peers import run_peers
from benchmarks.incumbents.runs import Found, method_alone, methods, search, until
from benchmarks.incumbents.tables import report
from benchmarks.incumbents.who import read_runs
from benchmarks.incumbents.who import report as who_report
from benchmarks.paper.tables import Row, markdown
from exactsel import Problem
from exactsel.files import write_bytes
from exactsel.start.primal_heuristics import FIRST_DUE


@click.group(context_settings={"show_default": True})
def main() -> None:
    """What methods find alone, and what the search finds with their help."""


@main.command()
@click.option("--folder", type=click.Path(path_type=Path, exists=True), default=lambda: os.environ.get("EXACTSEL_DATA"),
              help="Of .npz files with arrays A and y; EXACTSEL_DATA by default.")  # fmt: skip
@click.option("--data", default="*", help="Names, or patterns, of data sets.")
@click.option("--losses", default=",".join(LOSSES), help="Of these.")
@click.option("--k", default=8, type=click.IntRange(1), help="Most columns.")
@click.option("--time-limit", default=10.0, type=click.FloatRange(0.0), help="Seconds for each method and the search.")
@click.option("--seed", default=0, type=click.IntRange(0), help="The first seed.")
@click.option("--threads", default=1, type=click.IntRange(1), help="Of the search; methods use what there is.")
@click.option("--runs", type=click.Path(path_type=Path, dir_okay=False), required=True,
              help="File of runs, a JSON object a line; what it holds already is not run again.")  # fmt: skip
@click.option("--only-search", is_flag=True, help="Run the search anew, and no method.")
def run(
    folder: Path | None, data: str, losses: str, k: int, time_limit: float, seed: int, threads: int, runs: Path,
    only_search: bool,
) -> None:  # fmt: skip
    """Run every method, and the search, on every problem."""
    if folder is None:
        raise click.UsageError("EXACTSEL_DATA names no folder; give one with --folder.")
    known = read(runs)
    for case in cases(folder, data, losses, k):
        if case.name in known and not only_search:
            continue
        problem = case.make()
        found = [search(problem, time_limit, seed, threads)]
        found += [] if only_search else methods(problem, time_limit, seed)
        with runs.open("a") as file:
            for each in found:
                file.write(json.dumps({"case": case.name, **asdict(each)}) + "\n")
        click.echo(f"{case.name}: {found[0].upper:.9g} by {found[0].source}", err=True)


@main.command()
@click.option("--folder", type=click.Path(path_type=Path, exists=True), default=lambda: os.environ.get("EXACTSEL_DATA"),
              help="Of .npz files with arrays A and y; EXACTSEL_DATA by default.")  # fmt: skip
@click.option("--data", default="*", help="Names, or patterns, of data sets.")
@click.option("--k", default=8, type=click.IntRange(1), help="Most columns.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="Markdown file.")
def peers(folder: Path | None, data: str, k: int, out: Path) -> None:
    """Set scikit-learn, abess and zoopt, as far as they are installed, beside `exchange`: quadratic loss."""
    if folder is None:
        raise click.UsageError("EXACTSEL_DATA names no folder; give one with --folder.")
    rows: list[Row] = []
    for case in cases(folder, data, "quadratic", k):
        problem = case.make()
        assert isinstance(problem, Problem)
        method_alone("exchange", problem, 0.0, 1)  # what is to be compiled
        for name, value, seconds in run_peers(problem):
            ours = until(problem, value)
            rows.append({
                "problem": case.name, "method": name, "objective": f"{value:.8g}", "seconds": seconds,
                "exchange is as good after, s": ours, "times quicker": seconds / ours,
            })  # fmt: skip
        write_bytes(out, markdown("Other packages, and when exchange is as good", rows).encode())
    click.echo(out.read_text())


@main.command()
@click.option("--folder", type=click.Path(path_type=Path, exists=True), default=lambda: os.environ.get("EXACTSEL_DATA"),
              help="Of .npz files with arrays A and y; EXACTSEL_DATA by default. Without: generated ones.")  # fmt: skip
@click.option("--problems", help="Names, or patterns, of problems, separated by semicolons; all by default.")
@click.option("--work", default=5e9, type=click.FloatRange(0.0), help="Multiplications of each search.")
@click.option(
    "--seconds", default=10.0, type=click.FloatRange(0.0), help="CPU seconds after which one ends in any case."
)
@click.option("--seed", default=0, type=click.IntRange(0))
@click.option("--quick", is_flag=True, help="Less work, by default on the problems that are shipped.")
@click.option("--runs", type=click.Path(path_type=Path, dir_okay=False), required=True,
              help="File of runs, a JSON object a line; what it holds already is not run again.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Markdown file of the tables.")
def fifty(
    folder: Path | None, problems: str | None, work: float, seconds: float, seed: int, quick: bool, runs: Path,
    out: Path | None,
) -> None:  # fmt: skip
    """Search fifty problems with all generators of incumbents, without each, and with each alone."""
    if quick:
        problems, work = problems or "hidden*;overlap*", min(work, 1e7)
    known = read_runs(runs)
    for case in fifty_problems(folder, problems or "*"):
        problem, past = case.make(), dict(known.get(case.name, {}))
        for variant in (ALL, *variants(problem)):
            if variant != ALL and past[ALL].total_work < FIRST_DUE and not quick:
                break  # over before the first portion
            if variant not in past:
                past[variant] = run_search(problem, variant, work, seconds, seed)
                with runs.open("a") as file:
                    file.write(json.dumps({"case": case.name, **asdict(past[variant])}) + "\n")
        click.echo(f"{case.name}: {past[ALL].best:.9g} by {past[ALL].source}", err=True)
    text = who_report(read_runs(runs))
    if out is not None:
        write_bytes(out, text.encode())
    click.echo(text)


@main.command()
@click.argument("runs", type=click.Path(path_type=Path, exists=True))
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="Markdown file.")
def table(runs: Path, out: Path) -> None:
    """Draw up what is in RUNS: quality, seconds and certified gap of each method on each problem."""
    text = report(read(runs))
    write_bytes(out, text.encode())
    click.echo(text)


def read(runs: Path) -> dict[str, dict[str, Found]]:
    """By problem and method, the last of several."""
    found: dict[str, dict[str, Found]] = {}
    for line in runs.read_text().splitlines() if runs.exists() else ():
        fields = json.loads(line)
        case = fields.pop("case")
        found.setdefault(case, {})[fields["method"]] = Found(**fields)
    return found
