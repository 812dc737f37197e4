"""The command line: a row for each instance, a picture of them, and other solvers beside."""

from __future__ import annotations

import fnmatch
import shlex
import sys
from pathlib import Path

import click

from benchmarks.paper.tables import markdown, shown
from benchmarks.speed.processes import Demands
from benchmarks.wide import peers as side_by_side
from benchmarks.wide.instances import ASKED, INSTANCES
from benchmarks.wide.picture import draw
from benchmarks.wide.runs import keep_runs, read_runs, row, run

FILE = click.Path(path_type=Path, dir_okay=False)


@click.group(invoke_without_command=True)
@click.option(
    "--only",
    default="*",
    help="Instances by name, as a glob; all but those that write gigabytes, which are to be named.",
)
@click.option("--most", type=float, default=60.0, show_default=True, help="Seconds on the clock each.")
@click.option("--json", "file", type=FILE, help="File that keeps the runs; those of the same name are replaced.")
@click.pass_context
def main(context: click.Context, only: str, most: float, file: Path | None) -> None:
    """Solve instances of many columns, each in a process of its own on one thread."""
    if context.invoked_subcommand is not None:
        return
    large = {instance.name for instance in ASKED}
    names = [name for name in fnmatch.filter(INSTANCES, only) if name not in large or name == only]
    if not names:
        raise click.UsageError(f"no instance is called '{only}'; there are: {', '.join(INSTANCES)}.")
    runs, demands = {} if file is None else read_runs(file), Demands(most, 1e-6, 1e-6)
    rows = []
    for name in names:
        runs[name] = run(INSTANCES[name], demands)
        rows.append(row(runs[name]))
        click.echo(", ".join(map(shown, rows[-1].values())), err=True)
        if file is not None:
            keep_runs(file, runs)
    click.echo(markdown(_command(), rows))


def _command() -> str:
    return shlex.join(["python", "-m", "benchmarks.wide", *sys.argv[1:]])


@main.command()
@click.option("--only", default="*", help="Instances by name, as a glob; all.")
@click.option("--most", type=float, default=60.0, show_default=True, help="Seconds on the clock each.")
@click.option("--peer-python", default=sys.executable, help="Interpreter that has the solvers; the running one.")
def peers(only: str, most: float, peer_python: str) -> None:
    """Put other solvers beside exactsel: L0BnB, El0ps, OKRidge and abess, where they are installed."""
    there = side_by_side.installed(peer_python)
    for name in side_by_side.NAMES:
        if name not in there:
            click.echo(f"{name} is skipped: {peer_python} has no module of that name.", err=True)
    rows = []
    for name in fnmatch.filter(side_by_side.DESIGNS, only):
        for line in side_by_side.rows(side_by_side.DESIGNS[name], there, peer_python, Demands(most, 1e-6, 1e-4)):
            rows.append(line)
            click.echo(", ".join(map(shown, line.values())), err=True)
    if rows:
        click.echo(markdown(_command(), rows))


@main.command()
@click.argument("file", type=FILE)
@click.argument("svg", type=FILE)
def picture(file: Path, svg: Path) -> None:
    """Draw time and memory over p, from the runs that --json has kept in FILE."""
    draw(read_runs(file).values(), svg)


if __name__ == "__main__":
    main()
