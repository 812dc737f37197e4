"""The command line: compare solvers, see where exactsel's time goes, write the instances."""

from __future__ import annotations

import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from benchmarks.paper.tables import Row, markdown
from benchmarks.speed import comparison, instances, profile, where
from benchmarks.speed.ours import MODES
from benchmarks.speed.peers.running import PEERS
from benchmarks.speed.processes import Demands, Solver, default_core, installed, ours, peer
from exactsel.files import write_bytes

DEFAULT, FAITHFUL = MODES
QUICK_LIMIT = 5.0


def shared(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of both commands that measure."""
    options = (
        click.option("--instances", "words", help="Names of instances or files, as globs, separated by commas; all."),
        click.option("--time-limit", type=float, default=60.0, show_default=True, help="Seconds on the clock each."),
        click.option("--rel-gap", type=float, default=1e-6, show_default=True, help="Gap asked of exactsel."),
        click.option("--core", type=click.IntRange(0), help="Core all processes run on; the first that is allowed."),
        click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Markdown file for the table."),
        click.option("--quick", is_flag=True, help="Tiny instances and a short limit: seconds."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.group()
def main() -> None:
    """How fast exactsel is beside other exact solvers, and where its time goes."""


@main.command()
@shared
@click.option("--peers", default=",".join(PEERS), show_default=True, help="Other solvers, by the start of their names.")
@click.option("--peer-python", default=sys.executable, help="Interpreter that has the peers; the running one.")
@click.option("--peer-rel-gap", type=float, default=1e-4, show_default=True, help="Gap asked of the peers.")
@click.option("--faithful", is_flag=True, help="The paper's algorithm too: state-space tree, pdal, no heuristics.")
@click.option(
    "--runs",
    "kept_in",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File that keeps every run; what is in it already, is not run again.",
)
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False), help="File for a performance profile.")
def compare(
    words: str | None,
    peers: str,
    peer_python: str,
    peer_rel_gap: float,
    faithful: bool,
    kept_in: Path | None,
    plot: Path | None,
    **given: Any,
) -> None:
    """exactsel beside every peer that is installed, one after the other on the same core."""
    demands = demanded(given, peer_rel_gap)
    solvers = [ours(DEFAULT), *([ours(FAITHFUL)] if faithful else []), *chosen_peers(peers, peer_python)]
    kept = {} if kept_in is None else comparison.read_runs(kept_in)
    runs: list[comparison.Run] = []
    with chosen(words, given["quick"]) as files:
        for file in files:
            for run in comparison.runs_of(file, solvers, demands, kept):
                runs.append(run)
                if kept_in is not None and (run.instance, run.solver) not in kept:
                    comparison.keep_run(kept_in, run)
                click.echo(f"{run.instance}: {run.solver} {run.refused or f'{run.seconds:.2f} s'}", err=True)
                deliver(given["out"], "Comparison", list(comparison.rows(runs)))
    click.echo(text("Comparison", list(comparison.rows(runs))))
    for sentence in comparison.contradictions(runs):
        click.echo(f"contradiction: {sentence}", err=True)
    if plot is not None:
        profile.draw(runs, plot)


@main.command(name="where")
@shared
def where_command(words: str | None, **given: Any) -> None:
    """Seconds and shares of the parts of a solve with exactsel."""
    demands = demanded(given, 0.0)
    made: list[Row] = []
    with chosen(words, given["quick"]) as files:
        for row in where.rows(files, demands):
            made.append(row)
            click.echo(f"{row['instance']}: {row['clock s']:.2f} s", err=True)
            deliver(given["out"], "Where the time goes", made)
    click.echo(text("Where the time goes", made))


@main.command(name="instances")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--quick", is_flag=True, help="Tiny ones only.")
def instances_command(folder: Path, quick: bool) -> None:
    """Write the instances as files."""
    for file in instances.write(folder, makers(quick)):
        click.echo(file)


def makers(quick: bool) -> instances.Makers:
    """The instances by name."""
    return instances.quick() if quick else instances.full()


@contextmanager
def chosen(words: str | None, quick: bool) -> Iterator[list[Path]]:
    """The files to run on; instances of ours are written to a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        yield instances.find(words or "*", makers(quick), Path(folder))


def chosen_peers(words: str, python: str) -> list[Solver]:
    """The peers asked for that are installed; a sentence for each that is not."""
    there = installed(python)
    wanted: list[Solver] = []
    for word in filter(None, (part.strip() for part in words.split(","))):
        names = [word] if word in PEERS else [name for name in PEERS if name.startswith(word)]
        if not names:
            raise click.UsageError(f"there is no peer called '{word}'; known are: {', '.join(PEERS)}.")
        for name in names:
            if name in there:
                wanted.append(peer(name, python))
            else:
                click.echo(f"{name} is skipped: {python} has no module {PEERS[name].module}.", err=True)
    return wanted


def demanded(given: dict[str, Any], peer_rel_gap: float) -> Demands:
    """What the options ask of the solvers."""
    limit = min(QUICK_LIMIT, given["time_limit"]) if given["quick"] else given["time_limit"]
    core = default_core() if given["core"] is None else given["core"]
    return Demands(limit, given["rel_gap"], peer_rel_gap, core)


def text(title: str, rows: Sequence[Row]) -> str:
    """The table under the command that made it."""
    command = shlex.join(["python", "-m", "benchmarks.speed", *sys.argv[1:]])
    return f"`{command}`\n\n{markdown(title, rows)}"


def deliver(out: Path | None, title: str, rows: Sequence[Row]) -> None:
    """Write what is there so far, so that nothing is lost."""
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(out, text(title, rows).encode())
