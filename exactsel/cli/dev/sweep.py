"""``exactsel dev sweep``."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from exactsel.cli.helping import Command
from exactsel.cli.named_files import InputFile, OutputFile
from exactsel.cli.talk import say, say_line
from exactsel.to_plain import counted

if TYPE_CHECKING:
    from exactsel.studies.sweeps import Sweep
    from exactsel.studies.sweeps.jobs import Job

EVERY = 5.0
"""Seconds between two lines of progress."""

TOLD = 20
"""Jobs without a result that are printed as they come; all of them are counted."""


# The control character keeps the lines of the config apart.
HELP = """Run every job of the grids in the TOML file CONFIG, and write a table with a row for each.

CONFIG holds a table [[sweep]] for each grid, the product of its lists. [defaults] holds what all grids share.

\b
[defaults]
time_limit = 10                      # seconds for each job, or node_limit
[[sweep]]
instances = ["instances/d*.npz"]     # from the folder of CONFIG on
generate = [{name = "hard", n = 100, d = [20, 40], seed = [0, 1]}]
k = [2, 3, 5]
lam = [0.01, 0.1]
loss = ["quadratic", "huber"]
method = ["solve", "omp", {name = "solve", bound = "apg"}]
seed = [0, 1]

TABLE.store gets each result at once. Ctrl-C ends the sweep with a table of the results so far. The same command
continues, also after kill -9 or with a changed CONFIG, and runs only the missing jobs. Exit code 0 means that every job
ran and proved its tolerance, 1 that a gap is left or a job has no result.
"""


@click.command(
    "sweep",
    cls=Command,
    help=HELP,
    examples=("dev sweep sweep.toml", "dev sweep sweep.toml --jobs 4 --out table.parquet"),
)
@click.argument("config", type=InputFile())
@click.option(
    "--out",
    type=OutputFile(),
    help="Write the table to this file, .csv or .parquet. Default: CONFIG with the ending .csv.",
)
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Run this many processes at a time.")
@click.option("--retry", is_flag=True, help="Run failed jobs again.")
@click.option("--dry-run", is_flag=True, help="List the jobs and how many have been run, and run none.")
@click.option("--quiet", is_flag=True, help="Print no progress on stderr.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with all rows on stdout.")
def command(
    config: str, out: str | None, jobs: int, retry: bool, dry_run: bool, quiet: bool, as_json: bool
) -> int:  # fmt: skip
    """Run every job of the grids, and write a table with a row for each."""
    from exactsel.cli.options import SIGNALS, catch_signals, exit_code
    from exactsel.studies.sweeps import plan, sweep

    if dry_run:
        _list_jobs(plan(config, out), as_json)
        return 0
    catch_signals()
    grid = sweep(config, out, jobs=jobs, retry=retry, progress=None if quiet else _progress(), signals=SIGNALS)
    if grid.damaged:
        say_line(
            f"Warning: {grid.damaged} damaged lines of {grid.store} counted for nothing; their jobs were run again."
        )
    say(grid.to_json() if as_json else str(grid))
    return exit_code(grid.reached, "interrupted" if grid.interrupted else "")


def _list_jobs(grid: Sweep, as_json: bool) -> None:
    """One line for each job, and how many have been run."""
    states = [grid.records.get(job.key, {}).get("status", "missing") for job in grid.jobs]
    if as_json:
        rows = [{**job.entries(), "status": state} for job, state in zip(grid.jobs, states, strict=True)]
        say(json.dumps({"jobs": len(rows), "missing": grid.missing, "listed": rows}, allow_nan=False))
        return
    for job, state in zip(grid.jobs, states, strict=True):
        say(f"{state:<8} {job}")
    say(f"{counted(len(grid.jobs), 'job')}, {len(grid.jobs) - grid.missing} run before, {grid.missing} to run")


def _progress() -> Callable[[Sweep, Job, Mapping[str, Any]], None]:
    """A reporter of jobs without a result as they come, and of the progress now and then."""
    last, reported = time.monotonic(), 0

    def tell(grid: Sweep, job: Job, record: Mapping[str, Any]) -> None:
        nonlocal last, reported
        if record["status"] != "done":
            reported += 1
            if reported <= TOLD:
                say_line(f"{record['status']}: {job}: {record['row']['error']}")
        if time.monotonic() - last >= EVERY:
            last = time.monotonic()
            rate, done = grid.run / max(grid.seconds, 1e-9), grid.before + grid.run
            say_line(f"{done} of {counted(len(grid.jobs), 'job')}, {reported} without a result, {rate:.1f} a second")

    return tell
