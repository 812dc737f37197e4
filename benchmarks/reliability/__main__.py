"""``python -m benchmarks.reliability``: the figures of docs/development/reliability.md, each with its seed."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import click

from benchmarks.reliability import kills as killing
from benchmarks.reliability import node_size as sizing
from benchmarks.reliability import open_nodes as opening
from benchmarks.reliability import open_search as searching
from benchmarks.reliability import saving as saving_cost
from benchmarks.reliability import soak as soaking
from benchmarks.reliability import stops as stopping
from benchmarks.reliability.jobs import problems_of, small_problems
from benchmarks.reliability.searches import make_cases, make_courses


@click.group()
def cli() -> None:
    """Attempts to lose a search."""


@cli.command()
@click.option("--kills", type=int, default=500, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--folder", type=click.Path(path_type=Path), required=True, help="For instances and checkpoints.")
@click.option(
    "--longest",
    type=float,
    default=killing.LONGEST,
    show_default=True,
    help="Seconds after which a process is killed at the latest; more on a busy machine, or nothing comes of it.",
)
@click.option("--only", default="", help="Searches whose name holds this.")
@click.option("--quick", is_flag=True, help="Ten kills.")
def kills(kills: int, seed: int, folder: Path, longest: float, only: str, quick: bool) -> None:
    """Kill searches with signal 9 at random moments, and go on with them; paths and lists with --only path, near."""
    instances = folder / "instances"
    made = make_courses(instances) if only.startswith(("path", "near")) else make_cases(instances)
    cases = [case for case in made if only in case.name]
    tally = killing.run(cases, 10 if quick else kills, seed, folder, longest)
    print(f"{tally.kills} kills ({tally.before_anything} before anything was saved) in {tally.runs} searches;")
    print(f"{tally.proofs} proofs checked; wrong: {len(tally.wrong)}")
    for line in tally.wrong:
        print(f"  {line}")
    raise SystemExit(1 if tally.wrong else 0)


@cli.command()
@click.option("--count", type=int, default=1000, show_default=True, help="Signals.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--folder", type=click.Path(path_type=Path), required=True, help="For instances and proofs.")
@click.option("--beside", type=click.IntRange(1), default=1, show_default=True, help="Searches at a time.")
@click.option("--only", default="", help="Searches whose name holds this.")
def stops(count: int, seed: int, folder: Path, beside: int, only: str) -> None:
    """Interrupt searches at random moments, and check what they say."""
    cases = [case for case in make_cases(folder / "instances") if only in case.name]
    told = stopping.run(cases, count, seed, folder, beside)
    print(f"{told.signals} signals, {told.early} of them before the search; {told.results} results with proofs;")
    print(f"{told.ended} searches had ended before;")
    print(f"from a signal to the end at most {told.longest:.1f} s, at most {told.most_work:.1f} s at work")
    print(f"wrong: {len(told.wrong)}")
    for line in told.wrong:
        print(f"  {line}")
    raise SystemExit(1 if told.wrong else 0)


@cli.command()
@click.option("--count", type=int, default=20_000_000, show_default=True)
@click.option("--memory-limit", type=float, default=2048.0, show_default=True, help="MiB of open nodes.")
@click.option("--seed", type=int, default=0, show_default=True)
def open_nodes(count: int, memory_limit: float, seed: int) -> None:
    """Open more nodes than memory has room for, take some in order, prune the others."""
    opening.run(count, memory_limit, seed)


@cli.command()
@click.option("--count", type=int, default=20_000_000, show_default=True, help="Open nodes at which to stop.")
@click.option("--memory-limit", type=float, default=2048.0, show_default=True, help="MiB of open nodes.")
@click.option(
    "--columns", type=int, default=100, show_default=True, help="With 80 too many nodes close from 10 million on."
)
@click.option("--seed", type=int, default=0, show_default=True)
def open_search(count: int, memory_limit: float, columns: int, seed: int) -> None:
    """Search until more nodes are open than memory has room for, and count them."""
    searching.run(count, memory_limit, seed, columns)


@cli.command()
@click.option("--count", type=int, default=40_000, show_default=True, help="Open nodes at which to stop.")
@click.option("--columns", type=int, default=100, show_default=True)
@click.option("--loss", type=click.Choice(["quadratic", "huber", "logistic"]), default="quadratic", show_default=True)
@click.option("--subtrees", is_flag=True, help="Let the kernels search small subtrees by themselves.")
@click.option("--seed", type=int, default=0, show_default=True)
def node_size(count: int, columns: int, loss: str, subtrees: bool, seed: int) -> None:
    """Measure what an open node takes, as objects and packed."""
    sizing.run(count, columns, loss, subtrees, seed)


@cli.command()
@click.option("--seconds", type=float, default=300.0, show_default=True)
@click.option("--columns", type=int, default=80, show_default=True)
@click.option("--loss", type=click.Choice(["quadratic", "huber", "logistic"]), default="quadratic", show_default=True)
@click.option("--proof", is_flag=True, help="Write a proof, too.")
@click.option("--subtrees", is_flag=True, help="Let the kernels search small subtrees by themselves.")
@click.option("--folder", type=click.Path(path_type=Path), required=True, help="For checkpoint and proof.")
@click.option("--seed", type=int, default=0, show_default=True)
def saving(seconds: float, columns: int, loss: str, proof: bool, subtrees: bool, folder: Path, seed: int) -> None:
    """Measure what checkpoints take of a search."""
    saving_cost.run(seconds, columns, loss, proof, subtrees, folder, seed)


@cli.command()
@click.option("--hours", type=float, default=8.0, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--folder", type=click.Path(path_type=Path), required=True, help="For files, and for what came of it.")
@click.option("--small", type=int, default=28, show_default=True, help="Random problems beside those of seconds.")
@click.option("--only-small", is_flag=True, help="Leave out those of seconds.")
def soak(hours: float, seed: int, folder: Path, small: int, only_small: bool) -> None:
    """Search for hours in one process, stop and go on at random, and look for what is left behind."""
    cases = [] if only_small else make_cases(folder / "instances")
    tally = soaking.run(chain(problems_of(cases), small_problems(seed, small)), folder, seed, seconds=3600.0 * hours)
    for line in soaking.told(tally):
        print(line)
    raise SystemExit(1 if tally.wrong or tally.leaks() else 0)


if __name__ == "__main__":
    cli()
