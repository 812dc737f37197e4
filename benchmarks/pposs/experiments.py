"""Speed-up in time over threads, speed-up in iterations over virtual processors, and the cost of one evaluation."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, median

import numpy as np

from benchmarks.differences import p_text, unpaired
from benchmarks.paper.tables import AtLeast, Row, Spread
from benchmarks.pposs.cases import Case
from exactsel._jit import available_threads
from exactsel_heuristics.base import Context, Heuristic
from exactsel_heuristics.forward import ForwardSelection
from exactsel_heuristics.poss import ParetoOptimization
from exactsel_heuristics.pposs import AsynchronousParetoOptimization, ParallelParetoOptimization


def forward_value(case: Case) -> float:
    """The objective that forward selection reaches."""
    problem = case.problem
    return problem.fit(ForwardSelection().run(problem, Context()).support).value


def timed(case: Case, method: Heuristic, seeds: int) -> tuple[Spread, Spread]:
    """Seconds and values of one run per seed, after one that compiles."""
    problem = case.problem
    method.run(problem, Context(seed=seeds))
    seconds, values = [], []
    for seed in range(seeds):
        began = time.perf_counter()
        proposal = method.run(problem, Context(seed=seed))
        seconds.append(time.perf_counter() - began)
        values.append(problem.fit(proposal.support).value)
    return Spread.of(seconds), Spread.of(values)


@dataclass(frozen=True)
class Threads:
    """Time and quality over the number of threads, with the same number of evaluations for all."""

    cases: Sequence[Case]
    processors: int
    seeds: int

    @property
    def title(self) -> str:
        """A heading that says what was run."""
        return f"Threads: time and quality, {self.seeds} runs each, PPOSS with {self.processors} virtual processors"

    def rows(self) -> Iterator[Row]:
        """One row per case, method and number of threads; speed-up is over one thread of the same method."""
        for case in self.cases:
            forward = forward_value(case)
            count = case.evaluations
            iterations = None if count is None else count // self.processors
            seconds, values = timed(case, ParetoOptimization(iterations=count), self.seeds)
            yield self._row(case, "POSS", 1, seconds, 1.0, values, forward)
            for name in ("PPOSS", "PPOSS-asy"):
                alone = 0.0
                for threads in range(1, available_threads() + 1):
                    method: Heuristic = AsynchronousParetoOptimization(threads=threads, iterations=count)
                    if name == "PPOSS":
                        method = ParallelParetoOptimization(self.processors, iterations, threads=threads)
                    seconds, values = timed(case, method, self.seeds)
                    alone = alone or seconds.mean
                    yield self._row(case, name, threads, seconds, alone / seconds.mean, values, forward)

    @staticmethod
    def _row(
        case: Case, method: str, threads: int, seconds: Spread, speedup: float, values: Spread, forward: float
    ) -> Row:
        return {
            "problem": case.name, "method": method, "threads": threads, "seconds": seconds, "speed-up": speedup,
            "objective": f"{values.mean:.6g} ± {values.sd:.2g}", "forward selection": f"{forward:.6g}",
        }  # fmt: skip


@dataclass(frozen=True)
class Iterations:
    """How many iterations PPOSS needs to be as good as forward selection, and as POSS after its own iterations."""

    case: Case
    processors: Sequence[int]
    seeds: int
    budget: int = 10
    """Times the iterations of the theorem, after which a run is given up."""

    @property
    def title(self) -> str:
        """A heading that says what was run."""
        return f"Iterations needed over virtual processors: {self.case.name}, mean of {self.seeds} runs"

    def rows(self) -> Iterator[Row]:
        """One row per number of processors."""
        targets = {"forward": forward_value(self.case), "POSS": self._median_of_poss()}
        first: dict[str, list[int]] = {}
        for processors in self.processors:
            row: Row = {"processors": processors}
            for name, target in targets.items():
                needed, complete = self._needed(processors, target)
                first.setdefault(name, needed)
                mean = fmean(needed)
                row[f"to reach {name}"] = mean if complete else AtLeast(mean)
                row[f"speed-up, {name}"] = fmean(first[name]) / mean
                # Under a linear speed-up the evaluations would be distributed as those of one processor.
                evaluations = [processors * count for count in needed]
                row[f"evaluations against N = 1, {name}, Mann-Whitney p"] = (
                    "–" if needed is first[name] else p_text(unpaired(evaluations, first[name]))
                )
            yield row

    def _median_of_poss(self) -> float:
        runs = (ParetoOptimization().run(self.case.problem, Context(seed=seed)) for seed in range(self.seeds))
        return median(run.curve[-1][1] for run in runs)

    def _needed(self, processors: int, target: float) -> tuple[list[int], bool]:
        problem = self.case.problem
        limit = int(self.budget * 2 * np.e * problem.k**2 * problem.d / processors)
        # The paper's own algorithm, in which each offspring is merged at once.
        method = ParallelParetoOptimization(processors=processors, iterations=limit, threads=1, batch=1)
        needed: list[int] = []
        complete = True
        for seed in range(self.seeds):
            curve = method.run(problem, Context(seed=1000 + seed)).curve
            reached = next((count for count, value in curve if value <= target * (1 + 1e-9)), None)
            complete = complete and reached is not None
            needed.append(limit if reached is None else -(-reached // processors))
        return needed, complete


@dataclass(frozen=True)
class Evaluation:
    """An iteration of POSS against refits of random supports of the sizes it meets, on one thread."""

    cases: Sequence[Case]

    @property
    def title(self) -> str:
        """A heading that says what was run."""
        return "Cost of one evaluation, one thread"

    def rows(self) -> Iterator[Row]:
        """One row per case."""
        for case in self.cases:
            problem, rng = case.problem, np.random.default_rng(0)
            width = min(2 * problem.k - 1, problem.d)
            supports = np.full((20_000 if problem.objective.is_quadratic else 400, width), -1)
            for row in supports:
                size = int(rng.integers(1, width + 1))
                row[:size] = rng.choice(problem.d, size, replace=False)
            problem.objectives(supports[:1], threads=1)
            began = time.perf_counter()
            problem.objectives(supports, threads=1)
            refit = (time.perf_counter() - began) / len(supports)
            ParetoOptimization(iterations=1).run(problem, Context())
            began = time.perf_counter()
            proposal = ParetoOptimization(iterations=case.evaluations).run(problem, Context())
            flip = (time.perf_counter() - began) / proposal.evaluations
            yield {
                "problem": case.name, "refit, µs": 1e6 * refit, "iteration of POSS, µs": 1e6 * flip,
                "refit / iteration": refit / flip,
            }  # fmt: skip
