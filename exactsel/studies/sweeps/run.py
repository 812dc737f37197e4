"""Run the jobs of a sweep that have not been run, note each as it is done, and write the table."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from exactsel.errors import ExactselError, InputError
from exactsel.files import NamedFile, refuse_shared, write_bytes
from exactsel.interrupts import dispensable
from exactsel.processes import HUNG, READY, UNREADY, Answer, answered
from exactsel.search.watch import Watch
from exactsel.studies.sweeps.config import jobs_of, read_config
from exactsel.studies.sweeps.jobs import Job
from exactsel.studies.sweeps.performing import DONE, FAILED, REFUSED, perform, trouble
from exactsel.studies.sweeps.store import ENDING, Store
from exactsel.studies.sweeps.table import COLUMNS, check_table, table_bytes
from exactsel.to_plain import Readable, counted

TRIES = 2
"""Times a job is given to a process, before it is noted as failed: one may be killed for no fault of the job."""

Config = str | os.PathLike[str] | Mapping[str, Any]


@dataclass(repr=False)
class Sweep(Readable):
    """The results of a sweep, also of one that still runs."""

    jobs: tuple[Job, ...]
    table: str
    """The file with a row for each job that has been run."""
    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Results of jobs, by their key."""
    before: int = 0
    """Jobs that had been run before."""
    run: int = 0
    """Jobs that were run now."""
    damaged: int = 0
    """Damaged lines of the store."""
    interrupted: bool = False
    seconds: float = 0.0

    @property
    def store(self) -> str:
        """The file from which the sweep resumes."""
        return self.table + ENDING

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of the table, in the order of the jobs; those not run have none."""
        return [_row(job, self.records[job.key]) for job in self.jobs if job.key in self.records]

    @property
    def missing(self) -> int:
        """Jobs that have not been run."""
        return len(self.jobs) - sum(job.key in self.records for job in self.jobs)

    def count(self, status: str) -> int:
        """Jobs that were ``done``, ``refused`` or ``failed``."""
        return sum(self.records.get(job.key, {}).get("status") == status for job in self.jobs)

    @property
    def reached(self) -> bool:
        """Whether every job was run, and proved the requested tolerance."""
        return all(self.records.get(job.key, {}).get("row", {}).get("reached") for job in self.jobs)

    @property
    def claims(self) -> dict[str, int]:
        """How often each claim was made."""
        return dict(Counter(row["claim"] for row in self.rows if row["status"] == DONE and row["claim"]))

    def as_dict(self) -> dict[str, Any]:
        """The sweep as plain data: the JSON object of the command line."""
        return {
            "jobs": len(self.jobs), "before": self.before, "run": self.run, "missing": self.missing,
            **{status: self.count(status) for status in (DONE, REFUSED, FAILED)}, "claims": self.claims,
            "damaged": self.damaged, "interrupted": self.interrupted, "seconds": round(self.seconds, 1),
            "table": self.table, "store": self.store, "rows": self.rows,
        }  # fmt: skip

    def __str__(self) -> str:
        jobs, rest = counted(len(self.jobs), "job"), f", {self.missing} missing" if self.missing else ""
        lines = [
            f"sweep      {jobs}: {self.before} run before, {self.run} now{rest}, {self.seconds:.1f} s",
            *(f"  {times:>8}  {claim}" for claim, times in sorted(self.claims.items())),
            *(f"  {self.count(status):>8}  {status}" for status in (REFUSED, FAILED) if self.count(status)),
        ]
        return "\n".join([*lines, f"table      {self.table}"])


Progress = Callable[[Sweep, Job, Mapping[str, Any]], None]


def plan(config: Config, out: str | os.PathLike[str] | None = None) -> Sweep:
    """What :func:`sweep` would run, and what has been run; nothing is run, and no file is made.

    Parameters
    ----------
    config, out
        As for :func:`sweep`.

    Raises
    ------
    InputError
        As :func:`sweep`.
    """
    jobs, table = _asked(config, out)
    return _with(Store.read(table + ENDING), jobs, table)


def sweep(
    config: Config,
    out: str | os.PathLike[str] | None = None,
    *,
    jobs: int = 1,
    retry: bool = False,
    progress: Progress | None = None,
    signals: Sequence[int] = (signal.SIGINT,),
) -> Sweep:
    """Run every job of a grid that has not been run yet, and write a table with a row for each.

    Each result is saved beside the table, in ``TABLE.store``, when its job ends. A sweep that was interrupted continues
    where it stopped when you call it again. A sweep with a changed config keeps the results that still apply: a job is
    known by the content of its instance, its parameters, settings and seed, and the version of exactsel.

    Parameters
    ----------
    config : path or mapping
        A TOML file, or the same as dictionaries: ``{"sweep": [{"instances": ["a.npz"], "k": [2, 3]}]}``, see
        :mod:`exactsel.studies.sweeps.config`.
    out : path, optional
        The table, ``.csv`` or ``.parquet``; by default the file of the config with the ending ``.csv``.
    jobs : int
        Processes at a time; rows do not depend on it. 0 runs all jobs in this process, for debugging: last bits may
        then depend on which kernels are compiled, and a job that hangs is not ended.
    retry : bool
        Run failed jobs again.
    progress : callable, optional
        Called with the sweep, the job and its result after each job.
    signals : sequence of int
        Signals that end the sweep with a table of the results so far (main thread only).

    Returns
    -------
    Sweep

    Raises
    ------
    InputError
        For a config that cannot be used, or where another sweep uses the store.
    OutputError
        Where the store or the table cannot be written.
    """
    all_jobs, table = _asked(config, out)
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 0:
        raise InputError(f"jobs is {jobs!r}, but a number of processes was expected; give 1 or more.")
    _check_ours(table)
    with Watch(None, signals) as watch, closing(Store.open(table + ENDING)) as store:
        watch.keep_result()
        grid = _with(store, all_jobs, table)
        open_jobs = [job for job in grid.jobs if _is_left(grid.records.get(job.key), retry)]
        grid.before = len(grid.jobs) - len(open_jobs)
        try:
            _run(grid, store, open_jobs, jobs, progress, watch, signals)
        finally:
            grid.interrupted = watch.interrupted
            write_bytes(table, table_bytes(grid.rows, table))
    return grid


def _asked(config: Config, out: str | os.PathLike[str] | None) -> tuple[list[Job], str]:
    """The jobs and the table."""
    if isinstance(config, Mapping):
        if out is None:
            raise InputError("no table is named; give out='table.csv'.")
        tables, base = config, Path()
    else:
        tables, base = read_config(config), Path(config).parent
        out = Path(config).with_suffix(".csv") if out is None else out
    table = os.fspath(out)
    check_table(table)
    with dispensable():  # data may be large; nothing has been run that a signal could lose
        jobs = jobs_of(tables, base, (table, table + ENDING))
    read = [] if isinstance(config, Mapping) else [NamedFile("the config", config)]
    for source in {job.source.path: job.source for job in jobs if job.source.path}.values():
        read.append(NamedFile("an instance", source.path))
        read += [NamedFile("a target", source.reading["target"])] if source.target_hash else []
    refuse_shared([NamedFile("the table", table), NamedFile("the table's store", table + ENDING)], read)
    return jobs, table


def _check_ours(table: str) -> None:
    """:class:`InputError` where the table would overwrite a file that no sweep wrote."""
    if os.path.exists(table) and not os.path.exists(table + ENDING):
        raise InputError(
            f"{table} is there already and no sweep's, as it has no store; remove it, or name another table."
        )


def _with(store: Store, jobs: Sequence[Job], table: str) -> Sweep:
    records = {job.key: store.records[job.key] for job in jobs if job.key in store.records}
    return Sweep(tuple(jobs), table, records, before=len(records), damaged=store.damaged)


def _is_left(record: Mapping[str, Any] | None, retry: bool) -> bool:
    return record is None or (retry and record.get("status") == FAILED)


def _run(
    grid: Sweep,
    store: Store,
    open_jobs: Sequence[Job],
    jobs: int,
    progress: Progress | None,
    watch: Watch,
    signals: Sequence[int],
) -> None:
    """Run the jobs that are left, and note each."""
    began = time.perf_counter()
    outcomes = _in_processes(open_jobs, jobs, lambda: watch.interrupted) if jobs else _here(open_jobs, watch, signals)
    with closing(outcomes):
        for job, record in outcomes:
            store.add(job.key, {**record, "job": job.entries()})
            grid.records[job.key] = record
            grid.run += 1
            grid.seconds = time.perf_counter() - began
            if progress is not None:
                progress(grid, job, record)
    grid.seconds = time.perf_counter() - began


def _here(
    open_jobs: Sequence[Job], watch: Watch, signals: Sequence[int]
) -> Generator[tuple[Job, dict[str, Any]], None, None]:
    for job in open_jobs:
        record = None if watch.interrupted else perform(job, signals)
        if record is None:
            return
        yield job, record


def command_for_jobs() -> list[str]:
    """What starts a process that runs jobs."""
    return [sys.executable, "-m", "exactsel.studies.sweeps.worker"]


def _in_processes(
    open_jobs: Sequence[Job], jobs: int, stopped: Callable[[], bool]
) -> Generator[tuple[Job, dict[str, Any]], None, None]:  # fmt: skip
    lines, patience = [job.to_line() for job in open_jobs], [job.give_up_after for job in open_jobs]
    for answer in answered(command_for_jobs(), lines, jobs, stopped, patience, TRIES, READY):
        job = open_jobs[answer.number]
        yield job, json.loads(answer.line) if answer.line else _without_answer(job, answer)


def _without_answer(job: Job, answer: Answer) -> dict[str, Any]:
    """What is noted of a job that took its processes with it."""
    if answer.trouble == UNREADY:  # no fault of the job, nor would others fare better
        ended = "" if answer.code is None else f" (exit code {answer.code})"
        raise ExactselError(f"the processes that run jobs cannot begin{ended}; see what they say, and start it again.")
    if answer.trouble == HUNG:
        why = f"no answer came within {job.give_up_after:g} seconds, {TRIES} times."
    else:
        why = f"the process died {TRIES} times, the last time with exit code {answer.code}."
    return trouble(FAILED, why)


def _row(job: Job, record: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the table: the parameters, then the outcome."""
    entries, outcome = (
        job.entries(),
        {name: value for name, value in record.get("row", {}).items() if name != "reached"},
    )
    return {**dict.fromkeys(COLUMNS), **entries, "error": "", **outcome, "status": record.get("status")}
