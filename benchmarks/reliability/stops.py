"""Interrupt searches at random moments (Ctrl-C, SIGTERM): what they say holds, and their proofs are accepted.

A process that does not end soon is asked where its threads stand, and what it has done since: on a busy machine one
that waits for a processor is not one that hangs.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import IO, NamedTuple

from benchmarks.reliability.kills import command
from benchmarks.reliability.searches import Case
from exactsel import verify
from exactsel.problem.interface import SubsetProblem

LATEST = 1.1
"""Times what a whole search takes, after which a signal comes at the latest."""

SIGNALS = (signal.SIGINT, signal.SIGTERM)

PATIENCE = 60.0
"""Seconds after a signal from which on a process is asked where it stands, each ..."""

AGAIN = 10.0
"""... so many seconds, ..."""

ASKED = 6
"""... so often; then it is killed."""

MOST_WORK = 10.0
"""Seconds of a processor that a process may take after its signal."""

LOOK = 0.02
"""Seconds between two looks at a process."""


@dataclass
class Stops:
    """What came of it."""

    signals: int = 0
    results: int = 0
    """Interrupted searches that said something."""
    ended: int = 0
    """Searches that had ended before."""
    early: int = 0
    """Signals that came before the command had begun to watch for them."""
    longest: float = 0.0
    """Seconds from a signal to the end of the process, at most; those it was at work, at most:"""
    most_work: float = 0.0
    wrong: list[str] = field(default_factory=list)


class Plan(NamedTuple):
    """One search and its signal."""

    case: Case
    sent: signal.Signals
    share: float
    """Of what a whole search takes, after which the signal comes."""


class End(NamedTuple):
    """How a process ended."""

    code: int
    out: str
    err: str
    signalled: bool
    """Whether it had not ended before the signal."""
    seconds: float
    """From the signal to the end."""
    work: float
    """Seconds it was at work meanwhile; 0 where the system does not say."""


class Whole(NamedTuple):
    """A search that nobody interrupted."""

    problem: SubsetProblem
    lower: float
    upper: float
    work: float
    """Seconds its process was at work; 0 where the system does not say."""
    seconds: float
    """Seconds it took."""


def run(cases: list[Case], count: int, seed: int, folder: Path, beside: int = 1) -> Stops:
    """Send so many signals, with ``beside`` searches at a time; where one comes too late, there is another."""
    stops, lock = Stops(), threading.Lock()
    folder.mkdir(parents=True, exist_ok=True)
    proofs = SimpleQueue[Path]()
    for number in range(beside):
        proofs.put(folder / f"run-{number}.exsel")
    with heeding_interrupts(), ThreadPoolExecutor(beside) as pool:
        known = {case.name: _whole(case, folder / "whole.exsel") for case in cases}
        plans = _plans(cases, seed)

        def one(plan: Plan) -> None:
            proof, whole = proofs.get(), known[plan.case.name]
            end = _stopped(plan, whole, proof)
            trouble = _judged(plan, end, whole, proof)
            with lock:
                _count(stops, plan, end, trouble)
            proofs.put(proof)

        while stops.signals < count:
            for _ in pool.map(one, [next(plans) for _ in range(min(14 * beside, count - stops.signals))]):
                pass
            took = f"a signal is followed by at most {stops.longest:.1f} s, {stops.most_work:.1f} of them at work"
            print(f"{stops.signals} signals, {stops.results} results, {len(stops.wrong)} wrong; {took}", flush=True)
    return stops


@contextmanager
def heeding_interrupts() -> Iterator[None]:
    """A block whose child processes heed SIGINT, also where a shell has begun this one in the background.

    Such a shell has SIGINT ignored, and so do all children, up to the moment when a search asks for it: a signal that
    comes before is lost, as it should, and the search runs to its end.
    """
    before = signal.getsignal(signal.SIGINT)
    ignored = before == signal.SIG_IGN and threading.current_thread() is threading.main_thread()
    if ignored:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        if ignored:
            signal.signal(signal.SIGINT, before)


def _whole(case: Case, proof: Path) -> Whole:
    """Solve it twice: once to have kernels compiled, once for the time."""
    words, took, work, out = _words(case, proof), 0.0, 0.0, ""
    for _ in range(2):
        began, work = time.perf_counter(), 0.0
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            while process.poll() is None:
                work = max(work, _worked(process.pid))
                time.sleep(LOOK)
            took, out = time.perf_counter() - began, process.stdout.read()
    problem, result = case.problem(), json.loads(out)
    assert verify(problem, proof).verified
    return Whole(problem, result["lower"], result["upper"], work, took)


def _words(case: Case, proof: Path) -> list[str]:
    return [sys.executable, "-m", "benchmarks.reliability.watched", *command(case, "--proof", str(proof))[3:]]


def _plans(cases: list[Case], seed: int) -> Iterator[Plan]:
    rng = random.Random(seed)
    while True:
        for case in cases:
            yield Plan(case, rng.choice(SIGNALS), rng.random())


def _count(stops: Stops, plan: Plan, end: End, trouble: list[str]) -> None:
    stops.signals += end.signalled
    stops.ended += not end.signalled
    stops.results += end.signalled and bool(end.out)
    stops.early += not end.out
    stops.longest, stops.most_work = max(stops.longest, end.seconds), max(stops.most_work, end.work)
    stops.wrong += [f"{plan.case.name}, {plan.sent.name} at {plan.share:.4f}: {what}" for what in trouble]


def _stopped(plan: Plan, whole: Whole, proof: Path) -> End:
    """Run a search, and send the signal."""
    proof.unlink(missing_ok=True)
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        with subprocess.Popen(_words(plan.case, proof), stdout=out, stderr=err) as process, _killed_at_last(process):
            signalled, seconds, work = _comes_to(plan.share * LATEST, whole, process), 0.0, 0.0
            if signalled:
                process.send_signal(plan.sent)
                seconds, work = _until_the_end(process)
        return End(process.returncode, _text(out), _text(err), signalled, seconds, work)


def _comes_to(share: float, whole: Whole, process: subprocess.Popen[bytes]) -> bool:
    """Wait until a process has done so much of a search, or has ended; by its work, where that is known: other
    processes do not change it.
    """
    began = time.perf_counter()
    while process.poll() is None:
        done = _worked(process.pid) / whole.work if whole.work else (time.perf_counter() - began) / whole.seconds
        if done >= share:
            return True
        time.sleep(LOOK)
    return False


@contextmanager
def _killed_at_last(process: subprocess.Popen[bytes]) -> Iterator[None]:
    try:
        yield
    finally:
        process.kill()


def _until_the_end(process: subprocess.Popen[bytes]) -> tuple[float, float]:
    """Wait for a process to end; seconds, and those it was at work. Where it takes long it says where it stands."""
    began, before, asked, work = time.perf_counter(), _worked(process.pid), 0, 0.0
    while process.poll() is None and asked <= ASKED:
        time.sleep(LOOK)
        work = max(work, _worked(process.pid) - before)
        if time.perf_counter() - began > PATIENCE + AGAIN * asked:
            asked += 1
            if hasattr(signal, "SIGUSR1"):
                process.send_signal(signal.SIGUSR1)
    return time.perf_counter() - began, work


def _worked(process: int) -> float:
    """Seconds a process has been at work; 0 where that cannot be told, or it has ended."""
    try:
        numbers = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(numbers[11]) + int(numbers[12])) / float(os.sysconf("SC_CLK_TCK"))


def _text(stream: IO[str]) -> str:
    stream.seek(0)
    return stream.read()


def _judged(plan: Plan, end: End, whole: Whole, proof: Path) -> list[str]:
    """What is wrong."""
    trouble = []
    if end.code == -signal.SIGKILL:
        trouble.append(f"had not ended after {end.seconds:.0f} s, {end.work:.1f} of them at work: {end.err}")
    elif end.work > MOST_WORK:
        trouble.append(f"ended after {end.seconds:.0f} s, {end.work:.1f} of them at work: {end.err}")
    if not end.out:
        if end.code not in (130, -int(plan.sent), 128 + int(plan.sent)):
            trouble.append(f"no result, exit code {end.code}: {end.err[-300:]}")
        return trouble
    result = json.loads(end.out)
    if not (result["lower"] <= whole.upper and result["upper"] >= whole.lower):
        trouble.append(f"[{result['lower']}, {result['upper']}] against [{whole.lower}, {whole.upper}]")
    verdict = verify(whole.problem, proof) if end.signalled else None
    if verdict is not None and not (verdict.verified and verdict.lower >= result["lower"]):
        trouble.append(f"the proof was not accepted: {verdict}")
    return trouble
