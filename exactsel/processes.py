"""Processes that answer: a line on stdin, a line on stdout, again and again. One that dies or hangs is replaced."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from exactsel.interrupts import end_now

LOOK = 0.1
"""Seconds between two looks at whether everything is to end."""

LAST_WORDS = 5.0
"""Seconds a process that says nothing any more has to end by itself, so that its exit code is its own."""

DIED, HUNG = "died", "hung"


@dataclass(frozen=True)
class Answer:
    """What came of a question."""

    number: int
    """Of the question, counted from 0."""
    line: str = ""
    """Empty where none came."""
    trouble: str = ""
    """:data:`DIED` or :data:`HUNG` where none came."""
    code: int | None = None
    """The exit code of the process that gave none, where it could be started."""


class Helper:
    """A process that answers one question at a time; one that dies is started anew for the next."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = list(command)
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()
        self._ended = False

    def ask(self, number: int, question: str, seconds: float | None = None) -> Answer:
        """The answer to a question, a line; after so many ``seconds`` the process is taken to hang, and is killed."""
        try:
            process = self._process or self._started()
        except OSError:
            process = None
        if process is None:
            return Answer(number, trouble=DIED)
        overdue = threading.Event()
        timer = None if seconds is None else threading.Timer(seconds, _end_overdue, (process, overdue))
        if timer is not None:
            timer.start()
        line = _told(process, question)
        if timer is not None:
            timer.cancel()
        if line.endswith("\n"):
            return Answer(number, line)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(LAST_WORDS)
        process.kill()
        self.close()
        return Answer(number, trouble=HUNG if overdue.is_set() else DIED, code=process.returncode)

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
        """End the process from another thread, whatever it is at; no other one is started."""
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


def _told(process: subprocess.Popen[str], question: str) -> str:
    """The line a process answers with, empty or cut short where it dies."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(question + "\n")
        process.stdin.flush()
        return process.stdout.readline()
    except (OSError, UnicodeDecodeError):
        return ""


def _end_overdue(process: subprocess.Popen[str], overdue: threading.Event) -> None:
    overdue.set()
    process.kill()


def answered(
    command: Sequence[str], questions: Sequence[str], jobs: int, stopped: Callable[[], bool],
    seconds: Sequence[float | None] | None = None, tries: int = 1,
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
        Whether to end now; then the processes are killed, and nobody waits for what they are at.
    seconds : sequence of float or None, optional
        For each question how long its answer may take, before the process is replaced.
    tries : int
        How often a question is asked as long as processes die of it.
    """
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for number in range(len(questions)):
        waiting.put(number)
    answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
    helpers = [Helper(command) for _ in range(min(jobs, len(questions)))]
    ending = threading.Event()

    def keep_busy(helper: Helper) -> None:
        with contextlib.suppress(queue.Empty), contextlib.closing(helper):
            while not ending.is_set():
                number = waiting.get_nowait()
                for _ in range(tries):
                    answer = helper.ask(number, questions[number], None if seconds is None else seconds[number])
                    if answer.line or ending.is_set():
                        break
                answers.put(answer)

    threads = [threading.Thread(target=keep_busy, args=(helper,), daemon=True) for helper in helpers]
    for thread in threads:
        thread.start()
    left = len(questions)
    try:
        while left and not stopped():
            try:
                answer = answers.get(timeout=LOOK)
            except queue.Empty:
                continue
            if answer.trouble and stopped():
                break  # the signal that ends everything may have reached the process first
            left -= 1
            yield answer
    finally:
        ending.set()
        if left:
            for helper in helpers:
                helper.kill()
        for thread in threads:
            thread.join()


def serve(answer: Callable[[str], str]) -> None:
    """Answer every line of stdin with one on stdout, until whoever started this process ends, however that happens.

    Libraries may print what they like: their stdout leads nowhere.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all; whoever asks decides
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()

    def listen() -> None:
        for line in sys.stdin:
            lines.put(line)
        end_now(0, "")  # in the middle of an answer, too: nobody reads it

    threading.Thread(target=listen, name="exactsel-listen", daemon=True).start()
    with contextlib.suppress(OSError):
        while True:
            answers.write(answer(lines.get()) + "\n")
            answers.flush()
    end_now(1, "")
