"""Solve in the two modes that are compared, with processor time; run the inexact methods."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.paper.tables import Spread
from exactsel import solve
from exactsel.data.generate import Planted, generate
from exactsel.problem.regression import Problem
from exactsel.solving.outcome import Termination
from exactsel_heuristics.base import Context, Heuristic
from exactsel_heuristics.dual_iht import DualIterativeHardThresholding
from exactsel_heuristics.htp import HardThresholdingPursuit
from exactsel_heuristics.omp import OrthogonalMatchingPursuit

EXACT = 1e-9
"""``rel_eps`` of a run that counts as exact, in both modes."""

SAME = 1e-8
"""Objectives that differ by at most this, relatively, are the same."""

Options = Mapping[str, Any]

FAITHFUL: Options = {"tree": "state-space", "bound": "pdal", "heuristics": ()}
"""The algorithm of the paper, which starts from nothing."""

DEFAULT: Options = {}
"""What exactsel does when nothing is said."""

INEXACT: Mapping[str, Heuristic] = {
    "OMP": OrthogonalMatchingPursuit(),
    "HTP": HardThresholdingPursuit(),
    "HTP, steps as published": HardThresholdingPursuit(lengthen=np.inf),
    "dual IHT": DualIterativeHardThresholding(),
}
"""The inexact methods of the paper; exactsel's HTP lengthens its steps, so that of the papers is there as well."""


@dataclass(frozen=True)
class Run:
    """What is kept of one solve."""

    value: float
    support: tuple[int, ...]
    calls: int
    iterations: int
    seconds: float
    solved: bool


def timed(problem: Problem, mode: Options, *, limit: float | None = None, eps: float = 0.0, rel: float = EXACT) -> Run:
    """Solve on one thread and measure processor time; ``limit`` is in seconds on the clock."""
    began = time.process_time()
    result = solve(problem, threads=1, time_limit=limit, eps=eps, rel_eps=rel, **mode)
    seconds = time.process_time() - began
    solved = result.termination in (Termination.GAP_CLOSED, Termination.TREE_EXHAUSTED)
    return Run(result.upper, result.support, result.bound_calls, result.iterations, seconds, solved)


def settled(problem: Problem, mode: Options, *, limit: float, rel: float = EXACT) -> Run:
    """:func:`timed`, and once more if it was stopped: a long search may meet kernels that none did before."""
    run = timed(problem, mode, limit=limit, rel=rel)
    return run if run.solved else timed(problem, mode, limit=limit, rel=rel)


def warm_up(losses: Iterable[str], modes: Iterable[Options]) -> None:
    """Compile every kernel that is about to be timed."""
    for loss in losses:
        problem = generate("hard" if loss == "quadratic" else loss, n=24, d=8, k=3).problem()
        for mode in modes:
            timed(problem, mode)
        for method in INEXACT.values():
            method.run(problem, Context())


def synthetic(loss: str, n: int, d: int, k: int, seed: int, lam: float) -> Planted:
    """An instance of section 4.1, with the support it was made from."""
    instance = generate(loss, n=n, d=d, k=k, seed=seed, lam=lam)
    assert isinstance(instance, Planted)
    return instance


@dataclass(frozen=True)
class Proposed:
    """What an inexact method returned, and its processor time."""

    support: tuple[int, ...]
    seconds: float


def proposals(problem: Problem) -> dict[str, Proposed]:
    """What each inexact method returns."""
    answers = {}
    for name, method in INEXACT.items():
        began = time.process_time()
        support = method.run(problem, Context()).support
        answers[name] = Proposed(support, time.process_time() - began)
    return answers


def check_agreement(problem: Problem, first: Run, second: Run) -> None:
    """Two exact runs that finished must have the same objective."""
    if first.solved and second.solved and not same(first.value, second.value):
        raise RuntimeError(f"{problem} (hash {problem.hash}): {first.value!r} and {second.value!r} are both 'optimal'")


def same(value: float, optimum: float) -> bool:
    """Whether ``value`` is the optimum but for rounding."""
    return value - optimum <= SAME * max(1e-12, abs(optimum))


def calls(runs: Sequence[Run]) -> Spread:
    """Bound calls, the paper's solver calls."""
    return Spread.of([run.calls for run in runs], not all(run.solved for run in runs))


def seconds(runs: Sequence[Run]) -> Spread:
    """Processor time."""
    return Spread.of([run.seconds for run in runs], not all(run.solved for run in runs))


def spent(runs: Sequence[Run]) -> float:
    """Processor time in total."""
    return sum(run.seconds for run in runs)


def solved(runs: Sequence[Run]) -> str:
    """How many finished, as ``3/5``."""
    return f"{sum(run.solved for run in runs)}/{len(runs)}"
