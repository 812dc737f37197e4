"""Searches as they are really run: begun, limited, interrupted, broken off, gone on with; each drawn at random."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.reliability.searches import Case
from exactsel import ColumnSubsetProblem, GroupedProblem, Problem, solve
from exactsel.problem.interface import SubsetProblem

SIGNAL = getattr(signal, "SIGUSR1", signal.SIGINT)
"""What interrupts a search here; Ctrl-C still ends all."""

MEMORY_LIMITS = (4096.0, 0.02, 0.2)
"""MiB; nodes go to the disk from a few dozen or a few hundred on."""

MOST_STAGES = 5

UNTIMED = ("nodes", "event", "twice", "raise")
"""How a search may be stopped where nothing may depend on the clock ..."""

TIMED = (*UNTIMED, "time", "signal")
"""... and where it may."""


@dataclass(frozen=True)
class Subject:
    """A problem whose optimum is known."""

    name: str
    problem: SubsetProblem
    settings: dict[str, Any]
    lower: float
    upper: float
    """The optimum lies between these."""
    nodes: int
    seconds: float
    """What a search takes."""
    trees: dict[bool, str]
    """``tree_hash`` without and with a proof."""


class Stop(NamedTuple):
    """How a search is stopped."""

    kind: str
    """``none``; ``time``, ``nodes``: a limit; ``signal``: one from another thread; ``event``: one when something is
    told; ``twice``: two at once; ``raise``: an exception from whoever looks on."""
    share: float = 0.0
    """Of the seconds, or nodes, that the whole search takes."""


class Job(NamedTuple):
    """A search, and all that is done to it."""

    subject: int
    heuristics: bool
    proof: bool
    every: float | None
    """Seconds between checkpoints, None for none."""
    stages: tuple[Stage, ...]

    @property
    def same_tree(self) -> bool:
        """Whether it must come to the tree of the search nobody touched."""
        return not self.heuristics and all(stage.stop.kind != "nodes" for stage in self.stages)


class Stage(NamedTuple):
    """One run of it."""

    from_file: bool
    """Whether it goes on from the checkpoint where there is one, rather than from the result before."""
    threads: int
    memory_limit: float
    stop: Stop


class BrokenOffError(Exception):
    """What somebody who looks on raises."""


def drawn(rng: random.Random, subjects: int, timed: bool) -> Job:
    """A job; the last stage has no limit, but for one in six."""
    stages = [
        Stage(
            rng.random() < 0.5, rng.choice((1, 2)), rng.choice(MEMORY_LIMITS),
            Stop(rng.choice(TIMED if timed else UNTIMED), rng.random() ** 2),
        )
        for _ in range(rng.randrange(1, MOST_STAGES))
    ]  # fmt: skip
    if rng.random() < 5 / 6:
        stages.append(Stage(rng.random() < 0.5, rng.choice((1, 2)), rng.choice(MEMORY_LIMITS), Stop("none")))
    every = rng.choice((None, 0.0, 0.1 if timed else 0.0))
    return Job(rng.randrange(subjects), rng.random() < 0.25, rng.random() < 0.5, every, tuple(stages))


@contextmanager
def stopped(stop: Stop, subject: Subject) -> Iterator[tuple[dict[str, Any], Callable[[], None]]]:
    """Limits for a search in this block, and what to call at each event of it."""
    limits: dict[str, Any] = {}
    if stop.kind == "time":
        limits["time_limit"] = stop.share * subject.seconds
    if stop.kind == "nodes":
        limits["node_limit"] = int(stop.share * subject.nodes)
    left = int(stop.share * min(subject.nodes, 1000))

    def tell() -> None:
        nonlocal left
        left -= 1
        if left == -1 and stop.kind in ("event", "twice"):
            for _ in range(2 if stop.kind == "twice" else 1):
                signal.raise_signal(SIGNAL)
        if left == -1 and stop.kind == "raise":
            raise BrokenOffError

    timer = threading.Timer(stop.share * subject.seconds, os.kill, (os.getpid(), SIGNAL))
    before = signal.signal(SIGNAL, lambda number, frame: None)  # for one that comes too late
    try:
        if stop.kind == "signal":
            timer.start()
        yield limits, tell
    finally:
        timer.cancel()
        if timer.ident is not None:
            timer.join()
        signal.signal(SIGNAL, before)


def small_problems(seed: int, count: int) -> Iterator[tuple[str, SubsetProblem, dict[str, Any]]]:
    """Random problems, solved in a moment: a name, the problem, and what :func:`exactsel.solve` is to be told."""
    rng = np.random.default_rng(seed)
    kinds = ("quadratic", "huber", "logistic", "groups", "css", "quadratic, no walks", "huber, no walks")
    for i in range(count):
        kind, n, d = kinds[i % len(kinds)], int(rng.integers(16, 30)), int(rng.integers(12, 18))
        A = rng.standard_normal((n, d)) + 0.7 * rng.standard_normal((n, 1))
        y, k = A[:, :4].sum(axis=1) + 2.0 * rng.standard_normal(n), int(rng.integers(3, 6))
        loss = kind.partition(",")[0]
        settings = {"heuristics": "none", "subtrees": "no walks" not in kind}
        if kind == "css":
            problem: SubsetProblem = ColumnSubsetProblem(A, k)
        elif kind == "groups":
            problem = GroupedProblem(Problem(A, y, 3, lam=0.2), [j // 2 for j in range(d)])
        elif kind == "logistic":
            problem = Problem(A, np.where(y > 0, 1.0, -1.0), k, loss="logistic", lam=0.2)
        else:
            problem = Problem(A, y, k, loss=loss, lam=0.2)
        yield f"small {i}, {kind}", problem, settings


def problems_of(cases: Sequence[Case]) -> Iterator[tuple[str, SubsetProblem, dict[str, Any]]]:
    """The same of cases on the command line."""
    for case in cases:
        yield case.name, case.problem(), case.settings()


def known(name: str, problem: SubsetProblem, settings: dict[str, Any], folder: Path) -> Subject:
    """Solve a problem, without and with a proof, so that its optimum is known."""
    proof = folder / "known.exsel"
    solve(problem, proof=proof, **settings)  # compiles
    plain, shown = solve(problem, **settings), solve(problem, proof=proof, **settings)
    proof.unlink()
    return Subject(
        name, problem, settings, max(plain.lower, shown.lower), min(plain.upper, shown.upper),
        min(plain.nodes, shown.nodes), plain.time, {False: plain.tree_hash, True: shown.tree_hash},
    )  # fmt: skip
