"""Processes that answer: a line on stdin, a line on stdout, again and again. One that dies or hangs is replaced."""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from exactsel.interrupts import end_now, leave_to_others

LOOK = 0.1
"""Seconds between two checks whether everything is to end."""

LAST_WORDS = 5.0
"""Seconds a process that says nothing any more has to end by itself, so that its exit code is its own."""

STARTS = 300.0
"""Seconds a process has to say that it has begun."""

READY = "ready"
"""What :func:`serve` says when it has begun."""

DIED, HUNG, UNREADY = "died", "hung", "unready"


@dataclass(frozen=True)
class Answer:
    """The outcome of a question."""

    number: int
    """Of the question, counted from 0."""
    line: str = ""
    """Empty where none came."""
    trouble: str = ""
    """:data:`DIED`, :data:`HUNG` or, where it did not even begin, :data:`UNREADY`, where none came."""
    code: int | None = None
    """The exit code of the process that gave none, where it could be started."""


class Helper:
    """A process that answers one question at a time; one that dies is started again for the next."""

    def __init__(self, command: Sequence[str], greeting: str = "") -> None:
        self._command, self._greeting = list(command), greeting
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()
        self._ended = False

    def ask(self, number: int, question: str, seconds: float | None = None) -> Answer:
        """The answer to a question, a line; after so many ``seconds`` the process is taken to hang, and is killed."""
        if self._process is None:
            try:
                process = self._started()
            except OSError:
                process = None
            if process is None:
                return Answer(number, trouble=UNREADY)
            if not self._greeted(process):
                return Answer(number, trouble=UNREADY, code=self._ended_with(process))
        process = self._process
        assert process is not None
        line, overdue = _told(process, question + "\n", seconds)
        if line.endswith("\n"):
            return Answer(number, line)
        return Answer(number, trouble=HUNG if overdue else DIED, code=self._ended_with(process))

    def _greeted(self, process: subprocess.Popen[str]) -> bool:
        """Whether a process has begun; what libraries print as they are imported comes before its greeting."""
        ends = time.monotonic() + STARTS
        while self._greeting:
            line, _ = _told(process, "", max(0.0, ends - time.monotonic()))
            if line == f"{self._greeting}\n":
                return True
            if not line.endswith("\n"):
                return False
        return True

    def _ended_with(self, process: subprocess.Popen[str]) -> int | None:
        """The exit code of a process that says nothing any more."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(LAST_WORDS)
        process.kill()
        self.close()
        return process.returncode

    def _started(self) -> subprocess.Popen[str] | None:
        """A new process; none where everything has ended meanwhile."""
        environment = {**os.environ, "EXACTSEL_JIT": os.environ.get("EXACTSEL_JIT", "1")}
        with self._lock:
            if not self._ended:
                self._process = subprocess.Popen(
                    self._command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                    encoding="utf-8",
                )  # fmt: skip
            return self._process

    def kill(self) -> None:
        """End the process from another thread, also in the middle of a question; no other one is started."""
        with self._lock:
            self._ended = True
            if self._process is not None:
                self._process.kill()

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


def _told(process: subprocess.Popen[str], text: str, seconds: float | None) -> tuple[str, bool]:
    """The line a process answers with, empty or cut short where it dies; whether it was killed for taking too long."""
    assert process.stdin is not None
    assert process.stdout is not None
    overdue = threading.Event()

    def end_overdue() -> None:
        overdue.set()
        process.kill()

    timer = None if seconds is None else threading.Timer(seconds, end_overdue)
    if timer is not None:
        timer.daemon = True
        timer.start()
    try:
        process.stdin.write(text)
        process.stdin.flush()
        return process.stdout.readline(), overdue.is_set()
    except (OSError, UnicodeDecodeError):
        return "", overdue.is_set()
    finally:
        if timer is not None:
            timer.cancel()


def answered(
    command: Sequence[str], questions: Sequence[str], jobs: int, stopped: Callable[[], bool],
    seconds: Sequence[float | None] | None = None, tries: int = 1, greeting: str = "",
) -> Iterator[Answer]:  # fmt: skip
    """The answers to all questions as they come, until ``stopped`` says so.

    Parameters
    ----------
    command : sequence of str
        What starts a process that answers (:func:`serve`). Kernels are compiled in it, as interpreted ones are slow for
        many questions, and what is answered would depend on those before.
    questions : sequence of str
        Lines without their ends.
    jobs : int
        Processes at a time.
    stopped : callable
        Whether to end now; then the processes are killed, and their current work is dropped.
    seconds : sequence of float or None, optional
        For each question how long its answer may take, before the process is replaced.
    tries : int
        How often a question is repeated as long as processes die of it.
    greeting : str
        What a process says on a line of its own when it has begun, :data:`READY` with :func:`serve`; empty for nothing.
    """
    waiting: queue.SimpleQueue[tuple[int, str, float | None]] = queue.SimpleQueue()
    for number, question in enumerate(questions):
        waiting.put((number, question, None if seconds is None else seconds[number]))
    answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
    helpers = [Helper(command, greeting) for _ in range(min(jobs, len(questions)))]
    ending = threading.Event()
    busy = (waiting, answers, ending, tries)
    threads = [threading.Thread(target=_keep_busy, args=(helper, *busy), daemon=True) for helper in helpers]
    for thread in threads:
        thread.start()
    remaining = len(questions)
    try:
        while remaining and not stopped():
            try:
                answer = answers.get(timeout=LOOK)
            except queue.Empty:
                continue
            if answer.trouble and stopped():
                break  # the signal that ends everything may have reached the process first
            remaining -= 1
            yield answer
    finally:
        ending.set()
        if remaining:
            for helper in helpers:
                helper.kill()
        for thread in threads:
            thread.join()


def _keep_busy(
    helper: Helper, waiting: queue.SimpleQueue[tuple[int, str, float | None]], answers: queue.SimpleQueue[Answer],
    ending: threading.Event, tries: int,
) -> None:  # fmt: skip
    """Send one question after the other, as long as there are any."""
    with contextlib.suppress(queue.Empty), contextlib.closing(helper):
        while not ending.is_set():
            task = waiting.get_nowait()
            for _ in range(tries):
                answer = helper.ask(*task)
                if answer.line or ending.is_set():
                    break
            answers.put(answer)


def serve(answer: Callable[[str], str]) -> None:
    """Answer every line of stdin with one on stdout, until the process that started this one ends, for any reason.

    Before the first it says that it is :data:`READY`. Libraries may print what they like: their stdout leads nowhere.
    """
    leave_to_others()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()

    def listen() -> None:
        for line in sys.stdin:
            lines.put(line)
        end_now(0, "")  # in the middle of an answer, too: nothing reads it

    threading.Thread(target=listen, name="exactsel-listen", daemon=True).start()
    with contextlib.suppress(OSError):
        answers.write(READY + "\n")
        answers.flush()
        while True:
            answers.write(answer(lines.get()) + "\n")
            answers.flush()
    end_now(1, "")
