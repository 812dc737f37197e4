"""Compile kernels ahead: for images, clusters and continuous integration, or before a talk."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass

import numpy as np

from exactsel.data.generate import generate
from exactsel.errors import ExactselError
from exactsel.problem.column_subset import ColumnSubsetProblem
from exactsel.problem.grouped import GroupedProblem
from exactsel.problem.regression import Problem
from exactsel.solving.api import solve
from exactsel.studies.heuristics import names, run

USUAL = (
    "quadratic-intercept", "huber-intercept", "logistic-intercept", "poisson-intercept", "squared_hinge-intercept",
    "groups",
)  # fmt: skip
"""What tables need."""

MORE = ("quadratic", "huber", "logistic", "poisson", "squared_hinge", "css", "methods")

NODES = 60
"""A search with so small a limit bounds nodes one by one, by kernels that a search that lists supports never calls."""

SECONDS = 20.0
"""A search is given up after that; by then it has called what it calls."""


@dataclass(frozen=True)
class Warmed:
    """What one kind took."""

    kind: str
    seconds: float
    error: str = ""


def warm_up(kinds: tuple[str, ...] = USUAL, processes: int | None = None) -> Iterator[Warmed]:
    """Compile what solves of these kinds need, each in a process of its own; yield each kind when it is done.

    Parameters
    ----------
    kinds : tuple of str
        Of :data:`USUAL` and :data:`MORE`.
    processes : int, optional
        At a time; by default as many as there are cores, four at most, because they share kernels.

    Yields
    ------
    Warmed
    """
    team = min(len(kinds), processes or min(4, os.cpu_count() or 1))
    with ThreadPoolExecutor(team) as pool:
        for job in as_completed([pool.submit(_in_a_process, kind) for kind in kinds]):
            yield job.result()


def _in_a_process(kind: str) -> Warmed:
    began = time.perf_counter()
    command = [sys.executable, "-m", "exactsel.studies.warmup", kind]
    environment = {**os.environ, "EXACTSEL_JIT": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    error = "" if done.returncode == 0 else done.stderr.strip().rpartition("\n")[2]
    return Warmed(kind, time.perf_counter() - began, error)


def warm(kind: str) -> None:
    """Call, in this process, what solves of one kind call."""
    if kind == "methods":
        for method in names():
            for problem in (small_problem("quadratic"), small_problem("css")):
                try:
                    run(method, problem, time_limit=SECONDS)
                    break
                except ExactselError:  # it does not serve this kind of problem
                    continue
        return
    problem = small_problem(kind)
    solve(problem, time_limit=SECONDS, signals=())
    solve(problem, node_limit=NODES, subtrees=False, time_limit=SECONDS, signals=())


def small_problem(kind: str) -> Problem | ColumnSubsetProblem:
    """A small problem of a kind, large enough to call for all that larger ones do."""
    loss, _, further = kind.partition("-")
    classes = loss in ("logistic", "squared_hinge")
    instance = generate("logistic", n=120, d=30, k=4) if classes else generate("diabetes")
    A, y = instance.A, instance.y
    assert y is not None
    y = np.round(10.0 * np.abs(y) / np.abs(y).max()) if loss == "poisson" else y
    if kind == "css":
        return ColumnSubsetProblem(A, 4)
    if kind == "groups":
        return GroupedProblem(Problem(A, y, 4, lam=0.1), [f"group {j // 2}" for j in range(A.shape[1])])
    return Problem.prepared(A, y, 4, loss=loss, lam=0.1, intercept=further == "intercept")


if __name__ == "__main__":
    warm(sys.argv[1])
