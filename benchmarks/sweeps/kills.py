"""Kill a sweep again and again (kill -9), its processes too, and go on: no job may be lost, and none be run twice."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

LONGEST = 600.0
"""Seconds after which a sweep that makes no progress is given up."""

GONE = 10.0
"""Seconds in which processes must have ended after the sweep they belonged to."""


@dataclass
class Tally:
    """What came of it."""

    jobs: int = 0
    kills: int = 0
    worker_kills: int = 0
    kept: list[int] = field(default_factory=list)
    """Jobs that were noted when the sweep was killed, each time."""
    repeated: int = 0
    """Jobs noted twice, or run again although they were noted."""
    lost: int = 0
    """Jobs noted at a kill that were not there afterwards, or without a result in the end."""
    orphans: int = 0
    """Processes that outlived their sweep."""
    same: bool = False
    """Whether the table is that of a sweep nobody touched, times aside."""
    whole_seconds: float = 0.0
    interrupt_seconds: float = 0.0
    """From Ctrl-C to the end, with the table written."""
    wrong: list[str] = field(default_factory=list)


def write_config(file: Path, count: int) -> int:
    """A config of some ``count`` small jobs; how many there are."""
    seeds = range(-(-count // 20))
    file.write_text(
        f"[defaults]\nnode_limit = 500\n[[sweep]]\n"
        f"generate = [{{name = 'hard', n = 30, d = 12, seed = {list(seeds)}}}]\n"
        f"k = [2, 3]\nmethod = ['solve', 'forward']\nseed = [0, 1, 2, 3, 4]\n"
    )
    return 20 * len(seeds)


def command(config: Path, out: Path, jobs: int) -> list[str]:
    """How a sweep is begun."""
    return [
        sys.executable, "-m", "exactsel", "dev", "sweep", str(config), "--out", str(out), "--jobs", str(jobs),
        "--quiet", "--json",
    ]  # fmt: skip


def noted(store: Path) -> Counter[str]:
    """How often each job stands in the store; a line cut short does not count."""
    with contextlib.suppress(FileNotFoundError):
        whole = store.read_bytes().rpartition(b"\n")[0].split(b"\n")
        return Counter(json.loads(line.partition(b" ")[2])["key"] for line in whole[1:])
    return Counter()


def rows(table: Path) -> list[dict[str, str]]:
    """The table without its columns of time."""
    with table.open(encoding="utf-8", newline="") as stream:
        return [{name: text for name, text in row.items() if name != "seconds"} for row in csv.DictReader(stream)]


def children(process: int) -> list[int]:
    """The processes it has started; none where the system does not say (other than Linux)."""
    found: list[int] = []
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += map(int, task.read_text().split())
    return found


def _lives(process: int) -> bool:
    """Whether there is such a process that is not merely waiting to be collected."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def _end(process: subprocess.Popen[str], number: int) -> None:
    process.send_signal(number)
    process.communicate(timeout=LONGEST)


def _wait_for(lines: int, store: Path, process: subprocess.Popen[str]) -> bool:
    """Until so many jobs are noted; False where the sweep ended before."""
    ends = time.monotonic() + LONGEST
    while time.monotonic() < ends and process.poll() is None:
        if store.exists() and store.read_bytes().count(b"\n") - 1 >= lines:
            return True
        time.sleep(0.02)
    return False


def _killed(words: list[str], store: Path, after: int, rng: random.Random, tally: Tally) -> bool:
    """One sweep that is killed some time after so many jobs more are noted; False where it ended before."""
    before = sum(noted(store).values())
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        if not _wait_for(before + after // 2, store, process):
            process.communicate()
            return False
        helpers = children(process.pid)
        if helpers and rng.random() < 0.7:
            with contextlib.suppress(ProcessLookupError):
                os.kill(rng.choice(helpers), signal.SIGKILL)
            tally.worker_kills += 1
        if not _wait_for(before + after, store, process):
            process.communicate()
            return False
        time.sleep(rng.uniform(0.0, 0.2))
        helpers = children(process.pid)
        _end(process, signal.SIGKILL)
    tally.kills += 1
    ends = time.monotonic() + GONE
    while any(map(_lives, helpers)) and time.monotonic() < ends:
        time.sleep(0.05)
    tally.orphans += sum(map(_lives, helpers))
    tally.kept.append(sum(noted(store).values()))
    return True


def _interrupted(words: list[str], table: Path, store: Path, tally: Tally) -> None:
    """One sweep that is interrupted: it must write its table."""
    before = sum(noted(store).values())
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        if not _wait_for(before + 2, store, process):
            tally.wrong.append("the sweep ended before it was interrupted")
            return
        began = time.perf_counter()
        _end(process, signal.SIGINT)
        tally.interrupt_seconds = time.perf_counter() - began
    if process.returncode != 130:
        tally.wrong.append(f"exit code {process.returncode} after Ctrl-C")
    if len(rows(table)) != sum(noted(store).values()):
        tally.wrong.append("the table after Ctrl-C does not hold what was noted")


def run(count: int, kills: int, seed: int, folder: Path, tell: bool = True) -> Tally:
    """A sweep nobody touches in one process, and the same in two, killed at random moments until it ends."""
    rng, tally = random.Random(seed), Tally()
    folder.mkdir(parents=True, exist_ok=True)
    config, whole, table = folder / "sweep.toml", folder / "whole.csv", folder / "killed.csv"
    store = folder / "killed.csv.store"
    for old in (whole, table, store, folder / "whole.csv.store"):
        old.unlink(missing_ok=True)
    tally.jobs = write_config(config, count)
    began = time.perf_counter()
    done = subprocess.run(command(config, whole, 1), capture_output=True, text=True, check=False)
    tally.whole_seconds = time.perf_counter() - began
    if done.returncode not in (0, 1):
        raise RuntimeError(f"the sweep ended with {done.returncode}: {done.stderr}")
    words = command(config, table, 2)
    seen: set[str] = set()
    for number in range(kills):
        left = tally.jobs - len(noted(store))
        if not _killed(words, store, rng.randint(1, max(1, left // (kills - number + 1))), rng, tally):
            tally.wrong.append("a sweep ended before it was killed")
        tally.lost += len(seen - {*noted(store)})
        seen = {*noted(store)}
        if tell:
            print(f"kill {tally.kills}: {len(seen)} of {tally.jobs} jobs noted", flush=True)
    _interrupted(words, table, store, tally)
    _finish(words, table, store, whole, seen, tally)
    return tally


def _finish(words: list[str], table: Path, store: Path, whole: Path, seen: set[str], tally: Tally) -> None:
    """Let the sweep come to its end, then once more, and look at what there is."""
    before = len(noted(store))
    for left in (tally.jobs - before, 0):
        ended = subprocess.run(words, capture_output=True, text=True, check=False)
        told = json.loads(ended.stdout)
        tally.repeated += max(0, told["run"] - left)
        tally.lost += told["missing"] + told["failed"]
    counts = noted(store)
    tally.lost += len(seen - {*counts}) + tally.jobs - len(counts)
    tally.repeated += sum(counts.values()) - len(counts)
    tally.same = rows(table) == rows(whole)
