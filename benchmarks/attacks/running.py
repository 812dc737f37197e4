"""Run a campaign's trials, each from its own seed, on several processes, and add up what they found."""

from __future__ import annotations

import json
import os
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import Any

import click

CHUNK = 25
"""Trials that one process takes at a time."""

PROGRESS = 500
"""Trials between two lines of progress."""

SHOWN = 40
"""Findings that are printed as they come; all of them are counted."""


@dataclass
class Outcome:
    """What came of one trial."""

    seed: int
    counts: Counter[str] = field(default_factory=Counter)
    """What was done: ``solves``, ``refused: ...`` and so on."""
    findings: list[tuple[str, float, str]] = field(default_factory=list)
    """Class, size and detail of each promise not kept."""
    cells: Counter[tuple[str, ...]] = field(default_factory=Counter)
    """What goes into a table of the campaign's own."""


Trial = Callable[[int], Outcome]


def guarded(trial: Trial, seed: int) -> Outcome:
    """A trial whose exceptions are findings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return trial(seed)
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            name = f"exception {type(error).__name__} in {os.path.basename(where.filename)}:{where.lineno}"
            return Outcome(seed, Counter(), [(name, 1.0, str(error)[:200])])


def _chunk(trial: Trial, seeds: list[int]) -> list[Outcome]:
    return [guarded(trial, seed) for seed in seeds]


def outcomes(trial: Trial, seeds: Iterable[int], processes: int) -> Iterator[Outcome]:
    """The outcomes of all seeds, in any order; a process that dies is a finding of the seeds it had."""
    todo = list(seeds)
    chunks = [todo[i : i + CHUNK] for i in range(0, len(todo), CHUNK)]
    if processes == 1:
        for chunk in chunks:
            yield from _chunk(trial, chunk)
        return
    while chunks:
        with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
            running = {pool.submit(_chunk, trial, chunk): chunk for chunk in chunks}
            chunks = []
            for future in as_completed(running):
                try:
                    yield from future.result()
                except BrokenProcessPool:
                    chunk = running[future]
                    if len(chunk) == 1:
                        yield Outcome(chunk[0], Counter(), [("the process died", 1.0, "")])
                    else:  # once more, in pieces
                        chunks += [[seed] for seed in chunk]


class Tally:
    """Counts of a campaign, and its findings by class."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.cells: Counter[tuple[str, ...]] = Counter()
        self.classes: dict[str, list[tuple[float, int, str]]] = {}
        self.began = time.perf_counter()
        self.shown = 0

    def take(self, outcome: Outcome, quiet: bool = False) -> None:
        """Add a trial's outcome."""
        self.counts.update(outcome.counts)
        self.cells.update(outcome.cells)
        for what, size, detail in outcome.findings:
            self.classes.setdefault(what, []).append((size, outcome.seed, detail))
            if self.shown < SHOWN and not quiet:
                self.shown += 1
                click.echo(f"seed {outcome.seed}: {what} ({size:.1e}): {detail}", err=True)

    def rows(self) -> list[dict[str, Any]]:
        """A line for each class: how many seeds, sizes, the first seeds."""
        rows = []
        for what, found in sorted(self.classes.items(), key=lambda entry: -len(entry[1])):
            sizes = sorted(size for size, _, _ in found)
            seeds = sorted({seed for _, seed, _ in found})
            rows.append({
                "found": what, "times": len(found), "median size": f"{sizes[len(sizes) // 2]:.1e}",
                "largest": f"{sizes[-1]:.1e}", "first seeds": " ".join(map(str, seeds[:8])),
            })  # fmt: skip
        return rows

    @property
    def total(self) -> int:
        """Number of findings."""
        return sum(map(len, self.classes.values()))


def run_campaign(name: str, trial: Trial, count: int, seed: int, processes: int, log: str | None = None) -> Tally:
    """Run trials of the seeds from ``seed`` on, print the tables, and return the tally.

    ``log`` names a file that gets every finding as one JSON object a line.
    """
    tally = Tally()
    with open(log or os.devnull, "w", encoding="utf-8") as out:
        for done, outcome in enumerate(outcomes(trial, range(seed, seed + count), processes), start=1):
            tally.take(outcome)
            for what, size, detail in outcome.findings:
                out.write(json.dumps({"seed": outcome.seed, "what": what, "size": size, "detail": detail}) + "\n")
            if done % PROGRESS == 0:
                click.echo(f"{done} of {count} trials, {tally.total} findings", err=True)
    report(name, tally, count, seed)
    return tally


def report(name: str, tally: Tally, count: int, seed: int) -> None:
    """The tables of a campaign."""
    from benchmarks.paper.tables import markdown

    done = [{"what": what, "times": times} for what, times in sorted(tally.counts.items())]
    seconds = round(time.perf_counter() - tally.began)
    title = f"{name}: {count} trials, seeds {seed} to {seed + count - 1}, {seconds} s"
    click.echo(markdown(title, done or [{"what": "nothing came to an end", "times": count}]))
    found = tally.rows()
    if found:
        click.echo(markdown(f"{name}: {tally.total} findings", found))
    else:
        click.echo(f"{name}: nothing found")


def found_in(outcome: Outcome) -> str:
    """An outcome in full."""
    lines = [f"done         {what}" for what, times in outcome.counts.items() if times]
    lines += [f"FOUND        {what} ({size:.1e}): {detail}" for what, size, detail in outcome.findings]
    return "\n".join(lines if outcome.findings else [*lines, "nothing found"])


def kind_of(error: Exception) -> str:
    """A refusal without its numbers and names, so that equal ones are counted together."""
    words = str(error).split()
    plain = (word for word in words if not any(letter.isdigit() for letter in word))
    return " ".join(list(plain)[:9])
