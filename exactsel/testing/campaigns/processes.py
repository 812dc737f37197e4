"""Seeds tried in processes of their own, in which all kernels are compiled: interpreted ones are slow for many."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

from exactsel.testing.campaigns.trials import Outcome, Trial

LOOK = 0.1
"""Seconds between two looks at whether the campaign is to end."""

DIED = "the process died"


def command_for(trial: Trial) -> list[str]:
    """What starts a process that tries seeds."""
    return [sys.executable, "-m", "exactsel.testing.campaigns.worker", trial.kind, trial.peer, trial.out or ""]


class Helper:
    """A process that tries one seed at a time; one that dies is started anew."""

    def __init__(self, trial: Trial) -> None:
        self._command = command_for(trial)
        self._process: subprocess.Popen[str] | None = None

    def tried(self, seed: int) -> Outcome:
        """What came of a seed; that the process died is a finding."""
        process = self._process = self._process or self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(f"{seed}\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except OSError:
            line = ""
        if line:
            return _outcome(line)
        self.close()
        return Outcome(seed, ["tried: to the end of its process"], [(DIED, f"exit code {process.returncode}")])

    def _started(self) -> subprocess.Popen[str]:
        environment = {**os.environ, "EXACTSEL_JIT": os.environ.get("EXACTSEL_JIT", "1")}
        return subprocess.Popen(
            self._command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )

    def kill(self) -> None:
        """End the process from another thread, whatever it is at."""
        process = self._process
        if process is not None:
            process.kill()

    def close(self) -> None:
        """End the process and forget it."""
        process, self._process = self._process, None
        if process is None:
            return
        for stream in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):  # what a dead process did not take
                if stream is not None:
                    stream.close()
        process.wait()


def _outcome(line: str) -> Outcome:
    held = json.loads(line)
    return Outcome(held["seed"], held["counts"], [(what, detail) for what, detail in held["wrong"]], held["files"])


def tried_in_processes(trial: Trial, seeds: range, jobs: int, stopped: Callable[[], bool]) -> Iterator[Outcome]:
    """The outcomes of all seeds as they come, until ``stopped`` says so."""
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for seed in seeds:
        waiting.put(seed)
    outcomes: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
    helpers = [Helper(trial) for _ in range(min(jobs, len(seeds)))]
    ending = threading.Event()

    def keep_busy(helper: Helper) -> None:
        with contextlib.suppress(queue.Empty), contextlib.closing(helper):
            while not ending.is_set():
                outcomes.put(helper.tried(waiting.get_nowait()))

    threads = [threading.Thread(target=keep_busy, args=(helper,), daemon=True) for helper in helpers]
    for thread in threads:
        thread.start()
    left = len(seeds)
    try:
        while left and not stopped():
            try:
                yield outcomes.get(timeout=LOOK)
            except queue.Empty:
                continue
            left -= 1
    finally:
        ending.set()
        if left:
            for helper in helpers:
                helper.kill()
        for thread in threads:
            thread.join()
