"""Hours of search in one process: every bound holds on the way, every proof is accepted, and nothing is left behind."""

from __future__ import annotations

import json
import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.reliability.jobs import SIGNAL, BrokenOffError, Job, Stage, Subject, drawn, known, stopped
from benchmarks.reliability.leaks import Holding, Trend, descriptors, held, trend
from exactsel import Result, solve, verify
from exactsel.problem.interface import SubsetProblem
from exactsel.search.events import Event, IncumbentFound, LowerBoundRaised
from exactsel.search.spilling import Spilling
from exactsel.search.state import SearchState

WARM_UP = 0.2
"""Part of a run in which memory may grow, and libraries may open what they keep."""

ALLOCATED = 1.05
"""Times what is allocated after the warm-up: more at the end is a leak, whatever holes there are between."""

LATE = 4
"""Threads that libraries may begin later; they keep them, and use them again."""

SHOWN = 10
"""Of what is wrong, in a summary."""


@dataclass
class Tally:
    """What came of it."""

    jobs: int = 0
    stages: int = 0
    bounds: int = 0
    """Lower and upper bounds that were compared with the optimum."""
    proofs: int = 0
    trees: int = 0
    """Searches stopped and gone on with that came to the tree of the one nobody touched."""
    spilled: int = 0
    """Stages in which nodes were on the disk."""
    ways: Counter[str] = field(default_factory=Counter)
    """How stages began, and how they ended."""
    wrong: list[str] = field(default_factory=list)
    holdings: list[tuple[float, Holding]] = field(default_factory=list)
    """After each job, with the seconds since the start."""

    @property
    def warm(self) -> list[tuple[float, Holding]]:
        """Those after the warm-up."""
        return self.holdings[int(WARM_UP * len(self.holdings)) :]

    def memory(self, what: str = "memory") -> Trend:
        """How memory, or another amount that is held, went after the warm-up."""
        return trend([(at, getattr(holding, what)) for at, holding in self.warm])

    def leaks(self) -> list[str]:
        """What grew."""
        found, memory = [], self.memory()
        if memory.grows:
            found.append(f"memory grew from {memory.first:.0f} to {memory.last:.0f} MiB")
        allocated = self.memory("allocated")
        if allocated.last > ALLOCATED * allocated.first:
            found.append(f"what is allocated grew from {allocated.first:.1f} to {allocated.last:.1f} MiB")
        cold = self.holdings[: len(self.holdings) - len(self.warm) + 1]
        for name, more in (("descriptors", 0), ("threads", 0), ("tasks", LATE)):
            before = max(getattr(holding, name) for _, holding in cold)
            after = self.holdings[-1][1]
            if getattr(after, name) > before + more:
                found.append(f"{name}: {getattr(after, name)} at the end, {before} before; {descriptors()}")
        return found

    def as_dict(self) -> dict[str, Any]:
        """For a file."""
        memory = self.memory()
        counts = {name: getattr(self, name) for name in ("jobs", "stages", "bounds", "proofs", "trees", "spilled")}
        ends = {name: getattr(self.holdings[-1][1], name) for name in ("descriptors", "threads", "tasks")}
        return {
            **counts, "ways": dict(sorted(self.ways.items())), "seconds": round(self.holdings[-1][0], 1),
            "memory": {**memory._asdict(), "most": max(holding.memory for _, holding in self.warm)},
            **{name: self.memory(name)._asdict() for name in ("allocated", "blocks")}, **ends,
            "wrong": self.wrong, "leaks": self.leaks(),
        }  # fmt: skip


class Onlooker:
    """Compares every bound that is told with the optimum."""

    def __init__(self, subject: Subject, tell: Any) -> None:
        self._subject, self._tell = subject, tell
        self.seen = 0
        self.wrong: list[str] = []
        self.spilled = False

    def __call__(self, event: Event, state: SearchState) -> None:
        """Look at an event and at the state."""
        self.spilled |= isinstance(state.frontier, Spilling) and state.frontier.cold > 0
        lower = event.lower if isinstance(event, LowerBoundRaised) else state.lower
        upper = event.upper if isinstance(event, IncumbentFound) else state.upper
        self.compare(lower, upper, type(event).__name__)
        self._tell()

    def compare(self, lower: float, upper: float, where: str) -> None:
        """Both are bounds of the optimum, as are those of the subject."""
        self.seen += 1
        if not (lower <= self._subject.upper and upper >= self._subject.lower):
            known_ = f"[{self._subject.lower!r}, {self._subject.upper!r}]"
            self.wrong.append(f"{where}: [{lower!r}, {upper!r}] against {known_}")


def run(
    problems: Iterable[tuple[str, SubsetProblem, dict[str, Any]]], folder: Path, seed: int, *,
    seconds: float, jobs: int | None = None, timed: bool = True,
) -> Tally:  # fmt: skip
    """Carry out jobs until so many seconds are over, or so many are done; each has its line in ``soak.jsonl``."""
    work, temporary = folder / "work", folder / "temporary"
    for place in (work, temporary):
        place.mkdir(parents=True, exist_ok=True)
        for file in place.iterdir():
            file.unlink()
    tally, rng, began = Tally(), random.Random(seed), time.perf_counter()
    with temporary_files_in(temporary), open(folder / "soak.jsonl", "w", encoding="utf-8") as table:
        subjects = [known(*one, work) for one in problems]
        print(f"{len(subjects)} problems solved, {time.perf_counter() - began:.0f} s", flush=True)
        while (jobs is None or tally.jobs < jobs) and time.perf_counter() - began < seconds:
            job = drawn(rng, len(subjects), timed)
            trouble = carry_out(job, subjects[job.subject], work, tally)
            for file in [*work.iterdir()]:
                file.unlink()
            holding, at = held((work, temporary)), time.perf_counter() - began
            if holding.files:
                trouble.append(f"left behind: {', '.join(holding.files)}")
            tally.jobs += 1
            tally.holdings.append((at, holding))
            tally.wrong += [f"job {tally.jobs}, {subjects[job.subject].name}: {what}" for what in trouble]
            line = {"job": tally.jobs, "at": round(at, 2), "subject": subjects[job.subject].name, **job._asdict()}
            table.write(json.dumps({**line, "held": holding.as_dict(), "wrong": trouble}) + "\n")
            table.flush()
            if tally.jobs % 50 == 0:
                print(f"{tally.jobs} jobs, {at:.0f} s, {len(tally.wrong)} wrong; {holding}", flush=True)
    (folder / "soak.json").write_text(json.dumps(tally.as_dict(), indent=2) + "\n", encoding="utf-8")
    return tally


@contextmanager
def temporary_files_in(folder: Path) -> Iterator[None]:
    """A block whose temporary files are in a folder, those of SQLite, too."""
    names = ("TMPDIR", "SQLITE_TMPDIR")
    before, kept = tempfile.tempdir, {name: os.environ.get(name) for name in names}
    tempfile.tempdir = str(folder)
    os.environ.update(dict.fromkeys(names, str(folder)))
    try:
        yield
    finally:
        tempfile.tempdir = before
        for name, value in kept.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def carry_out(job: Job, subject: Subject, folder: Path, tally: Tally) -> list[str]:
    """A search through all its stages; what was wrong."""
    trouble: list[str] = []
    result: Result | None = None
    for stage in job.stages:
        result = _staged(job, stage, result, subject, folder, tally, trouble)
        tally.stages += 1
        if result is not None and result.reached:
            break
    if result is None:
        return trouble
    if job.stages[-1].stop.kind == "none" and not result.reached:
        trouble.append(f"nothing stopped it, but it ended with {result.claim.value}, {result.termination.value}")
    if result.reached and job.same_tree:
        tally.trees += 1
        if result.tree_hash != subject.trees[job.proof]:
            trouble.append("it came to another tree")
    return trouble


def _staged(
    job: Job, stage: Stage, before: Result | None, subject: Subject, folder: Path, tally: Tally, trouble: list[str]
) -> Result | None:
    """One stage; None where it was broken off."""
    saved, proof = folder / "run.ckpt", folder / "run.exsel"
    with stopped(stage.stop, subject) as (limits, tell):
        onlooker = Onlooker(subject, tell)
        limits |= {"threads": stage.threads, "memory_limit": stage.memory_limit}
        limits |= {"callback": onlooker, "signals": (SIGNAL,)}
        from_file = saved.exists() and (stage.from_file or before is None)
        way = "from file" if from_file else "begun" if before is None else "from result"
        tally.ways[way] += 1
        try:
            if from_file:
                result = solve(subject.problem, resume=saved, checkpoint_every=job.every or 0.0, **limits)
            elif before is not None:
                result = before.resume(**limits)
            else:
                limits |= subject.settings | ({"heuristics": "auto"} if job.heuristics else {})
                if job.every is not None:
                    limits |= {"checkpoint": saved, "checkpoint_every": job.every}
                result = solve(subject.problem, proof=proof if job.proof else None, **limits)
        except (BrokenOffError, KeyboardInterrupt) as error:
            if stage.stop.kind not in ("raise", "twice"):
                raise
            tally.ways[type(error).__name__] += 1
            result = None
        except Exception as error:  # whatever it is, it is what is looked for
            trouble.append(f"{way}, {stage}: {type(error).__name__}: {error}")
            result = None
    tally.spilled += onlooker.spilled
    if result is not None:
        tally.ways[result.termination.value] += 1
        onlooker.compare(result.lower, result.upper, "the result")
        if result.proof is not None:
            tally.proofs += 1
            verdict = verify(subject.problem, result.proof)
            if not (verdict.verified and verdict.lower >= result.lower):
                trouble.append(f"the proof was not accepted: {verdict}")
    tally.bounds += onlooker.seen
    trouble += onlooker.wrong[:SHOWN]
    return result


def told(tally: Tally) -> Iterator[str]:
    """A summary, line by line."""
    memory, last = tally.memory(), tally.holdings[-1][1]
    yield f"{tally.jobs} jobs in {tally.stages} stages, {tally.holdings[-1][0]:.0f} s; {tally.spilled} stages spilled"
    yield ", ".join(f"{count} {name}" for name, count in sorted(tally.ways.items()))
    yield f"{tally.bounds} pairs of bounds, {tally.proofs} proofs, {tally.trees} trees compared"
    yield f"memory {memory.first:.1f} MiB after the warm-up, {memory.last:.1f} at the end, {memory.slope:+.2f} an hour"
    used, blocks = tally.memory("allocated"), tally.memory("blocks")
    yield f"of it allocated {used.first:.1f} MiB, {used.last:.1f} at the end, {used.slope:+.2f} an hour"
    yield f"Python's blocks {blocks.first:.0f}, {blocks.last:.0f} at the end, {blocks.slope:+.0f} an hour"
    yield f"{last.descriptors} descriptors, {last.threads} threads, {last.tasks} of the system's"
    wrong: Sequence[str] = [*tally.wrong, *tally.leaks()]
    yield f"wrong: {len(wrong)}"
    yield from wrong[:SHOWN]
