"""One leg of one island: POSS or PPOSS from given supports, here or in a process of its own.

A leg receives all it needs but the data: its seed, how many iterations, and the supports its archive begins with. So
the process that runs it, and repeated runs, make no difference.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from exactsel.problem.capabilities import FREE_COEFFICIENTS
from exactsel.problem.interface import is_regression
from exactsel.processes import LOOK, READY, Helper, serve
from exactsel.solving.serialize import given, made_again
from exactsel_heuristics._pareto_search import Outcome, Supports, Task, run_synchronously
from exactsel_heuristics._pareto_tasks import regression_task
from exactsel_heuristics.base import Context

if TYPE_CHECKING:
    from exactsel.problem.regression import Problem

TRIES = 2
"""Times a leg is given to a process; after that it is run here."""


@dataclass(frozen=True)
class Leg:
    """What an island does between two exchanges."""

    seed: int
    iterations: int
    processors: int
    batch: int | None
    supports: Supports


def run_leg(task: Task, leg: Leg, context: Context) -> Outcome:
    """The leg in this process."""
    return run_synchronously(
        task, replace(context, seed=leg.seed), iterations=leg.iterations, processors=leg.processors,
        threads=context.threads if leg.processors > 1 else 1, supports=leg.supports, batch=leg.batch,
    )  # fmt: skip


class LegProcesses:
    """Processes that run legs of one problem; leaving the context ends them, also those at work."""

    def __init__(self, problem: Problem, task: Task, count: int) -> None:
        self._task, self._stack = task, contextlib.ExitStack()
        self._helpers: list[Helper] = []
        try:
            file = Path(self._stack.enter_context(tempfile.TemporaryDirectory())) / "problem.npz"
            self._write(problem, file)
        except OSError:  # a full disk: every leg is run here then, and comes out the same
            self._stack.close()
            return
        command = [sys.executable, "-m", __name__, os.fspath(file)]
        self._helpers = [Helper(command, READY) for _ in range(count)]

    @staticmethod
    def _write(problem: Problem, file: Path) -> None:
        """What processes make the problem of again."""
        data, entries = given(problem)
        arrays: dict[str, Any] = {} if data.weights is None else {"weights": data.weights}
        about = json.dumps({"hash": problem.hash, "entries": entries})
        np.savez(file, **arrays, A=np.asarray(data.A), y=np.asarray(data.y), about=np.array(about))

    def __enter__(self) -> LegProcesses:
        return self

    def __exit__(self, *_: object) -> None:
        for helper in self._helpers:
            helper.kill()
            helper.close()
        self._stack.close()

    def run(self, legs: Sequence[Leg], context: Context) -> list[Outcome]:
        """All legs, in their order; those that were not ended when the context says stop bring nothing."""
        waiting, outcomes = queue.SimpleQueue[int](), dict[int, Outcome]()
        for number in range(len(legs)):
            waiting.put(number)
        busy = (legs, waiting, outcomes)
        threads = [threading.Thread(target=self._keep_busy, args=(helper, *busy)) for helper in self._helpers]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(LOOK)
                if context.should_stop():
                    for helper in self._helpers:
                        helper.kill()
        ended = context.should_stop()
        return [
            outcomes[number] if number in outcomes else Outcome() if ended else run_leg(self._task, leg, context)
            for number, leg in enumerate(legs)
        ]

    @staticmethod
    def _keep_busy(
        helper: Helper, legs: Sequence[Leg], waiting: queue.SimpleQueue[int], outcomes: dict[int, Outcome]
    ) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                number = waiting.get_nowait()
                for _ in range(TRIES):
                    answer = helper.ask(number, json.dumps(asdict(legs[number])))
                    if answer.line:
                        outcomes[number] = _outcome(json.loads(answer.line))
                        break


def _outcome(said: dict[str, Any]) -> Outcome:
    archive = tuple((tuple(support), float(value)) for support, value in said["archive"])
    curve = tuple((int(count), float(value)) for count, value in said["curve"])
    return Outcome(tuple(said["support"]), float(said["value"]), int(said["evaluations"]), curve, archive)


def main(file: str) -> None:
    """Answer legs, one JSON object a line, for the process that started this one."""
    with np.load(file) as held:
        about = json.loads(str(held["about"]))
        weights = held.get("weights")
        problem = made_again(held["A"], held["y"], weights, about["entries"])
    assert problem.hash == about["hash"], "the same data make the same problem"
    assert is_regression(problem, FREE_COEFFICIENTS)
    task = regression_task(problem)

    def answer(line: str) -> str:
        said = json.loads(line)
        leg = Leg(**{**said, "supports": tuple(map(tuple, said["supports"]))})
        return json.dumps(asdict(run_leg(task, leg, Context(threads=1))))

    serve(answer)


def in_turn(task: Task, legs: Sequence[Leg], context: Context) -> Iterator[Outcome]:
    """All legs in this process, one after the other."""
    for leg in legs:
        yield run_leg(task, leg, context)


if __name__ == "__main__":
    main(sys.argv[1])
